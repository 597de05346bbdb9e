"""A few test sentences as all systems of a table translate them, compared word by word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from tfmann.data.documents import document_starts
from tfmann.evaluation.adequacy import judge
from tfmann.evaluation.gold_alignments import units_of, words_of
from tfmann.report.runs import SystemRun, TranslatedTest

SHORTEST, LONGEST = 4, 18  # words of a reference that is easy to take in
_CHARACTERS = 2  # of a word, on average, where there are no spaces
_CONTEXT = 2  # sentences shown before one in a document

SAME, ADDED, MISSING = "same", "added", "missing"


class Piece(NamedTuple):
    """Consecutive words or characters.

    They are in both texts (SAME), in the translation alone (ADDED) or in the other (MISSING).
    """

    kind: str
    words: str


class SystemOutput(NamedTuple):
    """One system's translation of a sentence.

    Attributes:
      title: of the row.
      name: of the row.
      to_reference: differences to the closest reference.
      to_baseline: differences to the first system's translation; None for that system.
      under_translated: source words that it leaves out; empty without gold links.
      over_translated: source words that it translates too often; empty without gold links.
    """

    title: str
    name: str
    to_reference: list[Piece]
    to_baseline: list[Piece] | None
    under_translated: list[str]
    over_translated: list[str]


class Sentence(NamedTuple):
    """A test sentence and its translations."""

    number: int  # from 0
    source: str
    references: list[str]
    context: list[tuple[str, str]]  # source and reference of the previous sentences, in order
    systems: list[SystemOutput]


def choose_sentences(test: TranslatedTest, count: int) -> list[int]:
    """Chooses sentences evenly over the test, of medium length and with different translations.

    The first sentences of documents are left out, since a memory cannot show its use there.
    """
    first = set() if test.documents is None else set(document_starts(test.documents).tolist())
    size = _CHARACTERS if test.by_character else 1
    lengths = list(map(len, units_of(test.references[0], test.by_character)))
    inside = [i for i in range(len(test.sources)) if i not in first] or sorted(first)
    medium = [i for i in inside if SHORTEST * size <= lengths[i] <= LONGEST * size]
    candidates = medium if len(medium) >= count else inside
    varied = [i for i in candidates if len({run.translations[i] for run in test.runs}) > 1]
    candidates = varied if len(varied) >= count else candidates
    count = min(count, len(candidates))
    return [candidates[k * len(candidates) // count] for k in range(count)]


def compare_systems(test: TranslatedTest, numbers: Sequence[int]) -> list[Sentence]:
    """Returns these sentences with their context and the outputs of all systems."""
    begin = document_starts(test.documents).tolist() if test.documents is not None else None
    frequency = Counter(
        word
        for references in test.references
        for words in words_of(references)
        for word in _keys(words, test.lowercase)
    )
    sentences = []
    for i in numbers:
        earliest = i if begin is None else max(begin[i], i - _CONTEXT)
        context = [(test.sources[j], test.references[0][j]) for j in range(earliest, i)]
        references = [lines[i] for lines in test.references]
        systems = [_system_output(test, run, i, frequency) for run in test.runs]
        sentences.append(Sentence(i, test.sources[i], references, context, systems))
    return sentences


def _system_output(
    test: TranslatedTest, run: SystemRun, i: int, frequency: Counter[str]
) -> SystemOutput:
    text, baseline = run.translations[i], test.runs[0]
    options = test.lowercase, test.by_character
    reference = closest(text, [lines[i] for lines in test.references], *options)
    under_translated: list[str] = []
    over_translated: list[str] = []
    if test.gold is not None:
        source, target, words = words_of([test.sources[i], test.references[0][i], text])
        target, words = _keys(target, test.lowercase), _keys(words, test.lowercase)
        judgement = judge(target, words, test.gold[i].sure, frequency)
        under_translated = [source[k] for k in judgement.under]
        over_translated = [source[k] for k in judgement.over]
    to_baseline = None
    if run is not baseline:
        to_baseline = word_differences(text, baseline.translations[i], *options)
    return SystemOutput(
        run.title,
        run.name,
        word_differences(text, reference, *options),
        to_baseline,
        under_translated,
        over_translated,
    )


def word_differences(
    text: str, other: str, lowercase: bool = False, by_character: bool = False
) -> list[Piece]:
    """Returns the words of `text` in order, with the words of `other` that it lacks.

    Args:
      text: a translation.
      other: the reference, or a baseline's translation.
      lowercase: words that differ only in case are the same.
      by_character: compare characters instead: the language has no spaces.
    """
    words, other_words = units_of([text, other], by_character)
    space = separator(by_character)
    matcher = SequenceMatcher(None, _keys(other_words, lowercase), _keys(words, lowercase), False)
    pieces = []
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            pieces.append(Piece(SAME, space.join(words[k:m])))
            continue
        if i < j:
            pieces.append(Piece(MISSING, space.join(other_words[i:j])))
        if k < m:
            pieces.append(Piece(ADDED, space.join(words[k:m])))
    return pieces


def closest(
    text: str, references: Sequence[str], lowercase: bool = False, by_character: bool = False
) -> str:
    """Returns the reference that has most in common with a translation."""
    texts = units_of([text, *references], by_character)
    words, *others = (_keys(words, lowercase) for words in texts)
    similarities = [SequenceMatcher(None, other, words, False).ratio() for other in others]
    return references[similarities.index(max(similarities))]


def separator(by_character: bool) -> str:
    """Returns what stands between two pieces."""
    return "" if by_character else " "


def _keys(words: list[str], lowercase: bool) -> list[str]:
    return [word.lower() for word in words] if lowercase else words
