"""A table of word translations, p(t|s) and p(s|t), and the entries of a sentence's memory.

Both are relative frequencies of links (`word_links`), as Feng et al. 2017 (arXiv:1708.02005) take
them from word alignments. Links of special tokens are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfmann.data.vocab import EOS_ID
from tfmann.data.word_links import Links
from tfmann.errors import UserError


class TranslationTable:
    """The translations of source words.

    Attributes:
      source: `[K]` int32 ids.
      target: `[K]` int32 ids; pairs ascend by (source, target).
      count: `[K]` int32 links of the pairs.
    """

    def __init__(self, source: np.ndarray, target: np.ndarray, count: np.ndarray, ranks: int):
        """Ranks the translations of every source word, of which at most `ranks` are used."""
        self.source, self.target, self.count = source, target, count
        self._size = 1 + int(target.max(initial=0))
        self._keys = source.astype(np.int64) * self._size + target
        of_target = np.bincount(target, count, self._size)
        self._p_source = count / of_target[target]  # p(s|t)
        order = np.lexsort((target, -count, source))
        sizes = np.bincount(source, minlength=1)
        ends = np.cumsum(sizes)
        ranked = target[order].tolist()
        self._best = {
            word: ranked[ends[word] - sizes[word] : ends[word]][:ranks]
            for word in np.flatnonzero(sizes).tolist()
        }
        self._ranks = ranks

    def entries(self, ids: Sequence[int], most: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the words of a sentence's memory, and their origins.

        The best translations by p(t|s) of all source words come first, then the second best, and
        so on; each word is taken once, and at most two for each source word.

        Args:
          ids: the sentence, without `</s>`.
          most: words at most.

        Returns:
          int32 `[k]`, and `[k, S]` p(s_j|t_k), normalised over the sentence.
        """
        lists = [self._best.get(word, ()) for word in ids]
        limit = min(2 * len(ids), most)
        ranked = (
            words[rank] for rank in range(self._ranks) for words in lists if rank < len(words)
        )
        words = np.array([*dict.fromkeys(ranked)][:limit], np.int32)
        shares = self._origins(np.asarray(ids, np.int64), words)
        totals = shares.sum(axis=1, keepdims=True)
        return words, shares / np.where(totals > 0, totals, 1.0)

    def _origins(self, ids: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Returns p(s_j|t_k) `[k, S]`, 0 where the two are not linked."""
        keys = ids[None] * self._size + words[:, None]
        rows = np.searchsorted(self._keys, keys)
        rows = np.minimum(rows, len(self._keys) - 1)  # for a pair above all others
        return np.where(self._keys[rows] == keys, self._p_source[rows], 0.0)


def from_links(links: Links, ranks: int) -> TranslationTable:
    """Makes a table of counted links.

    Raises:
      UserError: no two words are linked.
    """
    is_word = (links.source > EOS_ID) & (links.target > EOS_ID)
    if not is_word.any():
        raise UserError("no word of the text is linked to a word of its translation")
    source, target, count = (part[is_word].astype(np.int32) for part in links)
    return TranslationTable(source, target, count, ranks)
