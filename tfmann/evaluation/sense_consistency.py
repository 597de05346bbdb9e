"""The senses of ambiguous nouns in documents of the synthetic corpus.

There, only the first source sentence of a document reveals its topic, and the later ones have nouns
that two topics translate differently. A translator that uses the previous sentences should choose
the right sense, and only as often as by chance with the history of another document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tfmann.data.documents import later_sentences
from tfmann.evaluation.bleu import check_parallel
from tfmann.synthetic.lexicon import AMBIGUOUS, Noun


class Senses(NamedTuple):
    """Ambiguous nouns of sentences that are not the first of a document."""

    right: int
    nouns: int


def sense_accuracy(
    sources: Sequence[Sequence[str]],
    translations: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    documents: Sequence[int],
) -> Senses:
    """Counts the ambiguous nouns that are translated in the reference's sense, and in no other.

    The first sentence of a document is left out. A noun counts once in a sentence.

    Args:
      sources: the words of each source sentence.
      translations: the words of each translation.
      references: the words of each reference.
      documents: each sentence's document, a number that changes where a document ends.

    Raises:
      UserError: the four differ in length, or are empty.
    """
    check_parallel(
        [
            ("the sources", sources),
            ("the translations", translations),
            ("the references", references),
            ("the documents", documents),
        ]
    )
    right = nouns = 0
    for index in later_sentences(documents):
        for noun in AMBIGUOUS.keys() & set(sources[index]):
            expected = _topics(noun, references[index])
            if len(expected) == 1:
                nouns += 1
                right += _topics(noun, translations[index]) == expected
    return Senses(right, nouns)


def _topics(noun: str, words: Sequence[str]) -> set[str]:
    """Returns the topics whose translation of an ambiguous noun is among the words."""
    return {topic for topic, sense in AMBIGUOUS[noun].items() if _occurs(sense, words)}


def _occurs(sense: Noun, words: Sequence[str]) -> bool:
    return any(
        tuple(words[i : i + len(form)]) == form
        for form in (sense.singular, sense.plural)
        for i in range(len(words) - len(form) + 1)
    )
