"""What a word memory does at every word of a forced decoding: its share, and which entries voted.

A word memory proposes words to the search (`memory.word_mixture`): a neural cache, a translation
memory or a memory of word translations. Nothing here imports TensorFlow. Letters: T words of a
translation, C proposals of a step, E entries of a sentence that got some weight.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any, NamedTuple

import numpy as np

_PREFIX = "vote_"  # of the names under which a forced decoding returns the parts of `Votes`


class Entry(NamedTuple):
    """An entry of a word memory.

    Attributes:
      word: that it proposes.
      origin: where it is from: the source words that its word may translate; `N words ago` in the
        document; or `pair P, word N` of a translation memory, both from 1.
    """

    word: str
    origin: str


class WordMemory(NamedTuple):
    """A word memory at the T words of a translation.

    Attributes:
      share: lambda, `[T]`; 0 where the memory is empty.
      model: probability of the word by the model, `[T]`.
      memory: its probability by the memory, `[T]`. That of the search is
        `(1 - share) * model + share * memory`.
      entries: the E entries that have some weight at a word, in the order of the memory.
      weights: of the entries, `[T, E]`; rows sum to 1, or are all 0 where the memory is empty.
    """

    share: np.ndarray
    model: np.ndarray
    memory: np.ndarray
    entries: list[Entry]
    weights: np.ndarray


class Votes(NamedTuple):
    """What is proposed at the T steps of a pair, or with a further axis B in front, of B pairs."""

    share: Any  # [T] lambda
    model: Any  # [T] p_model of the word of the step
    weights: Any  # [T, C] which sum to 1 or are all 0
    words: Any  # [T, C] int32, below 0 where there is none
    places: Any  # [T, C] int32, which entry of the memory each is

    def as_diagnostics(self) -> dict[str, Any]:
        """Returns the parts by the names under which a forced decoding returns them."""
        return {f"{_PREFIX}{name}": value for name, value in self._asdict().items()}


def take_votes(diagnostics: MutableMapping[str, np.ndarray], steps: int) -> Votes | None:
    """Takes the parts of `Votes` out of the diagnostics of a pair, cut to `steps` words.

    Returns:
      None if there are none: the model has no word memory, or they were not recorded.
    """
    names = [f"{_PREFIX}{name}" for name in Votes._fields]
    if names[0] not in diagnostics:
        return None
    return Votes(*(diagnostics.pop(name)[:steps] for name in names))


def collect(
    votes: Votes,
    target: Sequence[int],
    origins: Sequence[str],
    decode: Callable[[list[int]], list[str]],
) -> WordMemory:
    """Adds up the votes of each entry of a memory.

    Args:
      votes: of a pair.
      target: ids of the T words.
      origins: of all entries of the memory, in the order of their places.
      decode: from ids to words.
    """
    has_weight = votes.weights > 0
    used = np.unique(votes.places[has_weight])
    weights = np.zeros([len(target), len(used)])
    steps, columns = np.nonzero(has_weight)
    places = votes.places[steps, columns]
    entries = np.searchsorted(used, places)
    np.add.at(weights, (steps, entries), votes.weights[steps, columns])
    word_of = dict(zip(places.tolist(), votes.words[steps, columns].tolist()))
    words = decode([word_of[place] for place in used.tolist()])
    is_word = has_weight & (votes.words == np.asarray(target)[:, None])
    return WordMemory(
        share=votes.share,
        model=votes.model,
        memory=np.where(is_word, votes.weights, 0.0).sum(axis=1),
        entries=[Entry(word, origins[place]) for word, place in zip(words, used.tolist())],
        weights=weights,
    )
