"""Links between the words of sentence pairs, counted: which word translates which.

IBM Model 1 aligns each target word with its most probable source word or the empty word, and, in
the other direction, each source word with its most probable target word or the empty word. A link
is a pair of positions that both directions align: few are wrong, and a rare word is not linked to
everything in its few sentences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Callable, NamedTuple, Union

import numpy as np

from tfmann.data import ibm_model1
from tfmann.data.ibm_model1 import Counts

Ids = Union[Sequence[int], np.ndarray]
Side = Sequence[np.ndarray]


class Links(NamedTuple):
    """Numbers of links of the K pairs of words that are linked, ascending by (source, target)."""

    source: np.ndarray  # [K] int64 ids
    target: np.ndarray  # [K] int64 ids
    counts: np.ndarray  # [K] int64, above 0


def count_links(
    pairs: Iterable[tuple[Ids, Ids]],
    log: Callable[[str], None] = lambda message: None,
) -> Links:
    """Counts the links of sentence pairs, given as ids.

    Args:
      pairs: one with a side that is empty or above `MAX_WORDS` is skipped.
      log: receives the number of skipped pairs.

    Raises:
      UserError: no pair is left.
    """
    sources, targets = [], []
    for source, target in ibm_model1.usable_pairs(pairs, "words", log):
        sources.append(np.asarray(source, np.int64))
        targets.append(np.asarray(target, np.int64))
    forward, backward = _Model1(sources, targets), _Model1(targets, sources)
    size = backward.empty_word + 1  # above every target id
    linked = [
        _links(forward.best_origins(s, t), backward.best_origins(t, s), s, t, size)
        for s, t in zip(sources, targets)
    ]
    keys, counts = np.unique(np.concatenate(linked), return_counts=True)
    return Links(keys // size, keys % size, counts)


def _links(
    origins: np.ndarray, translations: np.ndarray, source: np.ndarray, target: np.ndarray, size: int
) -> np.ndarray:
    """Returns source * size + target of each link of a sentence pair.

    Args:
      origins: `[T]` the source position that each target word is aligned with, or S.
      translations: `[S]` the target position that each source word is aligned with, or T.
      source: `[S]` ids.
      target: `[T]` ids.
      size: above every target id.
    """
    aligned = np.flatnonzero(origins < len(source))
    positions = origins[aligned]
    mutual = translations[positions] == aligned
    return source[positions[mutual]] * size + target[aligned[mutual]]


class _Model1:
    """IBM Model 1, from `sources` to `targets`.

    Attributes:
      empty_word: its id, above those of the words that translate.
    """

    def __init__(self, sources: Side, targets: Side):
        self.empty_word = 1 + max(int(ids.max()) for ids in sources)
        self._size = 1 + max(int(ids.max()) for ids in targets)
        with_empty = [np.append(ids, self.empty_word) for ids in sources]
        counts: Counts = ibm_model1.expected_counts(with_empty, targets)
        self._keys = counts.source * self._size + counts.target
        self._probability = counts.probability

    def best_origins(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Returns the best source position of each target word `[T]`; S is the empty word's."""
        keys = np.append(source, self.empty_word)[None] * self._size + target[:, None]  # [T, S+1]
        return self._probability[np.searchsorted(self._keys, keys)].argmax(axis=1)
