"""Recall of reference words by how often they are in the training text: do rare words come out?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tfmann.evaluation.bleu import check_parallel
from tfmann.evaluation.comparison import System, length_range, ranges, table
from tfmann.evaluation.gold_alignments import words_of
from tfmann.utils.numbers import format_difference

LIMITS = (0, 1, 10, 100, 1000)  # occurrences; more frequent words are a class of their own


class FrequencyClass(NamedTuple):
    """Words in a range of frequencies: how many the reference has, and how many each system has.

    Attributes:
      least: the fewest occurrences in the training text.
      most: the most occurrences; None is no limit.
      words: how many the reference has.
      matched: how many of them each system has, of a word no more than the reference's sentence.
    """

    least: int
    most: int | None
    words: int
    matched: Sequence[int]

    @property
    def recall(self) -> list[float]:
        """The share of the words that each system has, from 0 to 1."""
        return [matched / self.words for matched in self.matched]


def by_frequency(
    systems: Sequence[System],
    reference: Sequence[str],
    occurrences: Mapping[str, int],
    limits: Sequence[int] = LIMITS,
) -> list[FrequencyClass]:
    """Counts matched words, those up to each of the limits and those beyond the last.

    Args:
      systems: their lines, words separated by spaces.
      reference: lines of the first reference.
      occurrences: of words in the target side of the training text.
      limits: the most occurrences of each class, ascending.

    Returns:
      the classes that have words.

    Raises:
      UserError: line counts differ.
    """
    check_parallel([("the reference", reference), *((s.name, s.lines) for s in systems)])
    sentences = list(map(Counter, words_of(reference)))
    words = _total(sentences)
    matched = [
        _total(a & Counter(b) for a, b in zip(sentences, words_of(system.lines)))
        for system in systems
    ]
    classes = []
    for least, most in ranges(limits):
        chosen = [
            word
            for word in words
            if least <= occurrences.get(word, 0)
            and (most is None or occurrences.get(word, 0) <= most)
        ]
        if chosen:
            counts = [sum(of_system[word] for word in chosen) for of_system in matched]
            classes.append(FrequencyClass(least, most, sum(words[w] for w in chosen), counts))
    return classes


def _total(counts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for of_sentence in counts:
        total.update(of_sentence)  # a sum of counters would copy the total for each sentence
    return total


def report(systems: Sequence[System], classes: Sequence[FrequencyClass]) -> str:
    """Returns the classes as a Markdown table, each further system beside the first."""
    rows = [["in the training text", "words", *(system.name for system in systems)]]
    for row in classes:
        baseline, *others = (100 * share for share in row.recall)
        cells = [f"{share:.1f} % ({format_difference(share - baseline, 1)})" for share in others]
        name = str(row.most) if row.least == row.most else length_range(row.least, row.most)
        rows.append([name, str(row.words), f"{baseline:.1f} %", *cells])
    title = "Recall of the first reference's words, by how often they are in the training text:"
    return "\n".join([title, "", *table(rows)])
