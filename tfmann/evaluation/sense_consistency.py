"""The senses of ambiguous nouns in documents of the synthetic corpus.

There, every sentence has a noun that two topics translate differently, and some sentences do not
show their topic, neither by a word that only one topic has nor by two nouns that share only one. A
translator that uses the previous sentences should choose the right sense there, and only as often
as by chance, half of the time, with the history of another document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfmann.evaluation.bleu import check_parallel
from tfmann.synthetic.lexicon import AMBIGUOUS, Noun, shows_topic


class Senses(NamedTuple):
    """Ambiguous nouns in each of N sentences; none in a sentence that shows its topic.

    Attributes:
      right: `[N]` those in the right sense.
      nouns: `[N]`.
    """

    right: np.ndarray
    nouns: np.ndarray


def sense_accuracy(
    sources: Sequence[Sequence[str]],
    translations: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
) -> Senses:
    """Counts the ambiguous nouns that are translated in the reference's sense, and in no other.

    Sentences that show their topic are left out. A noun counts once in a sentence.

    Args:
      sources: the words of each source sentence.
      translations: the words of each translation.
      references: the words of each reference.

    Raises:
      UserError: the three differ in length, or are empty.
    """
    check_parallel(
        [
            ("the sources", sources),
            ("the translations", translations),
            ("the references", references),
        ]
    )
    right, nouns = np.zeros((2, len(sources)), np.int64)
    for index, words in enumerate(map(set, sources)):
        if shows_topic(words):
            continue
        for noun in AMBIGUOUS.keys() & words:
            expected = _topics(noun, references[index])
            if len(expected) == 1:
                nouns[index] += 1
                right[index] += _topics(noun, translations[index]) == expected
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
