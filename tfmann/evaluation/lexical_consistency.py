"""Lexical consistency: is a word that comes again in a document translated as before?

Carpuat and Simard (2012, "The Trouble with SMT Consistency") count repeated source words whose
translations within a document agree. A word also has the same translation again because it has only
one. So the same share is counted for pairs of occurrences in two documents: what a document adds is
the difference.

The translation of an occurrence is the word of the line that a lexicon gives the greatest weight
for it. An occurrence without such a word is left out. So are the most frequent words, mostly
function words, which make up half of the source, and a word counts once in a sentence.

Letters: D documents.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tfmann.data.documents import document_starts
from tfmann.data.lexicon import Entry
from tfmann.evaluation.bleu import check_parallel
from tfmann.evaluation.comparison import System, table
from tfmann.evaluation.significance import RESAMPLES
from tfmann.utils.numbers import format_difference

FREQUENT = 0.5  # of the source's words are the most frequent ones, which are left out
Words = Sequence[Sequence[str]]
Lexicon = Mapping[str, Mapping[str, float]]


class Consistency(NamedTuple):
    """Pairs of occurrences of a source word, in different sentences.

    Attributes:
      pairs: `[D]` within each document.
      alike: `[D]` those of them with the same translation.
      other_pairs: pairs of occurrences in two documents.
      other_alike: those of them with the same translation.
    """

    pairs: np.ndarray
    alike: np.ndarray
    other_pairs: int
    other_alike: int

    @property
    def within(self) -> float:
        """The share of pairs within documents that are alike; NaN without pairs."""
        return _share(self.alike.sum(), self.pairs.sum())

    @property
    def across(self) -> float:
        """The same of pairs in two documents."""
        return _share(self.other_alike, self.other_pairs)


def translations(entries: Iterable[Entry]) -> Lexicon:
    """Returns the weights of each source word's translations, the greatest of equal lines."""
    lexicon: dict[str, dict[str, float]] = defaultdict(dict)
    for entry in entries:
        weights = lexicon[entry.source]
        weights[entry.target] = max(entry.weight, weights.get(entry.target, 0.0))
    return lexicon


def measure(
    sources: Words, lines: Words, documents: Sequence[int], lexicon: Lexicon
) -> Consistency:
    """Counts repeated words and those that are translated alike.

    Args:
      sources: the words of each source sentence.
      lines: the words of each translation.
      documents: each sentence's document, a number that changes where a document ends.
      lexicon: weights of translations, by source and target word.

    Raises:
      UserError: the three differ in length, or are empty.
    """
    check_parallel(
        [("the sources", sources), ("the translations", lines), ("the documents", documents)]
    )
    frequent = _frequent(sources)
    _, numbers = np.unique(document_starts(documents), return_inverse=True)
    # By word and document: how often it has which translation.
    counts: dict[str, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for source, line, document in zip(sources, lines, numbers.tolist()):
        for word in set(source) - frequent:
            translation = _translation(lexicon.get(word, {}), line)
            if translation is not None:
                counts[word][document][translation] += 1
    pairs, alike = np.zeros((2, numbers.max() + 1), np.int64)
    all_pairs = all_alike = 0
    for by_document in counts.values():
        for document, counter in by_document.items():
            pairs[document] += _pairs(sum(counter.values()))
            alike[document] += sum(map(_pairs, counter.values()))
        total: Counter[str] = sum(by_document.values(), Counter())
        all_pairs += _pairs(sum(total.values()))
        all_alike += sum(map(_pairs, total.values()))
    return Consistency(pairs, alike, all_pairs - int(pairs.sum()), all_alike - int(alike.sum()))


def difference_interval(system: Consistency, baseline: Consistency) -> tuple[float, float] | None:
    """Returns the 95% interval of the difference between two systems within documents.

    Documents are resampled, the same for both. None if there is one document, or no pairs.
    """
    documents = len(system.pairs)
    if documents < 2 or not system.pairs.any() or not baseline.pairs.any():
        return None
    drawn = np.random.default_rng(1).integers(0, documents, (RESAMPLES, documents))
    shares = []
    for counts in (system, baseline):
        pairs = counts.pairs[drawn].sum(axis=1)
        shares.append(counts.alike[drawn].sum(axis=1) / np.where(pairs, pairs, np.nan))
    low, high = np.nanquantile(shares[0] - shares[1], [0.025, 0.975])
    return float(low), float(high)


def report(systems: Sequence[System], measured: Sequence[Consistency]) -> str:
    """Returns a Markdown table, each further system beside the first."""
    rows = [["", "pairs", "alike", "difference", "pairs in two documents", "alike"]]
    for system, counts in zip(systems, measured):
        interval = difference_interval(counts, measured[0])
        difference = ""
        if counts is not measured[0] and counts.pairs.any() and measured[0].pairs.any():
            difference = format_difference(100 * (counts.within - measured[0].within), 1)
            if interval:
                low, high = (format_difference(100 * limit, 1) for limit in interval)
                difference += f" [{low}, {high}]"
        rows.append([
            system.name, str(counts.pairs.sum()), _percent(counts.within), difference,
            str(counts.other_pairs), _percent(counts.across),
        ])  # fmt: skip
    title = (
        "Lexical consistency: pairs of occurrences of a source word in a document, and those with "
        "the same translation:"
    )
    return "\n".join([title, "", *table(rows)])


def _percent(share: float) -> str:
    return "-" if share != share else f"{100 * share:.1f} %"  # without pairs it is no number


def _frequent(sources: Words) -> set[str]:
    """Returns the most frequent words that make up the share `FREQUENT` of a text."""
    ranked = Counter(word for words in sources for word in words).most_common()
    ends = np.cumsum([count for _, count in ranked])
    number = int(np.searchsorted(ends, FREQUENT * ends[-1])) + 1 if ranked and FREQUENT else 0
    return {word for word, _ in ranked[:number]}


def _translation(weights: Mapping[str, float], line: Sequence[str]) -> str | None:
    """Returns the word of a line with the greatest weight, the first of equals; None without."""
    candidates = [word for word in line if word in weights]
    return max(candidates, key=lambda word: weights[word], default=None)


def _pairs(number: int) -> int:
    return number * (number - 1) // 2


def _share(part: int, whole: int) -> float:
    return float(part / whole) if whole else float("nan")
