"""BPE dropout: other segmentations of the training text in every epoch.

Provilkov, Emelianenko & Voita 2020 (arXiv 1910.13267), algorithm 1: at every step of segmenting a
word, each possible merge is left out with probability p, and the best of the others is made. The
word is done when none is left. With p = 0 this is byte pair encoding itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from tfmann.data.moses import MosesSegmenter
from tfmann.data.subword import SEPARATOR, BpeSegmenter
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import EOS_ID

_WORD_END = "</w>"
_CACHED_WORDS = 500_000  # limit of a cache that grows with the corpus


def segment_with_dropout(
    word: str, segmenter: BpeSegmenter, probability: float, draw: Callable[[], float]
) -> list[str]:
    """Segments a word into units, with the separator after each but the last.

    Args:
      word: without white space, one character or more.
      segmenter: has the merges.
      probability: p, of leaving a merge out.
      draw: returns the next random number in [0, 1).
    """
    if len(word) == 1:
        return [word]  # as in subword-nmt
    merges = segmenter.merges
    symbols = [*word, _WORD_END] if segmenter.end_apart else [*word[:-1], word[-1] + _WORD_END]
    while len(symbols) > 1:
        ranks = {
            i: merges[pair]
            for i, pair in enumerate(zip(symbols, symbols[1:]))
            if pair in merges and draw() >= probability
        }
        if not ranks:
            break
        best = min(ranks.values())
        merged, i = [], 0
        while i < len(symbols):
            width = 2 if ranks.get(i) == best else 1
            merged.append("".join(symbols[i : i + width]))
            i += width
        symbols = merged
    if symbols[-1] == _WORD_END:
        del symbols[-1]
    elif symbols[-1].endswith(_WORD_END):
        symbols[-1] = symbols[-1][: -len(_WORD_END)]
    return [*(unit + SEPARATOR for unit in symbols[:-1]), symbols[-1]]


class BpeDropout:
    """Draws segmentations of encoded lines; each depends on seed, epoch, sentence and side alone.

    If a sentence comes several times in an epoch, it also depends on the number of repetitions.

    A word keeps its usual units where one of these is unknown, where the line was cut inside it,
    and where the vocabulary lacks one of the units that were drawn.
    """

    def __init__(self, languages: LanguagePair, probability: float, seed: int):
        """Takes the codes and vocabularies of both sides, p, and the seed of a run."""
        self._sides = [_Side(encoder) for encoder in languages]
        self._probability, self._seed = probability, seed

    def source(self, ids: np.ndarray, epoch: int, sentence: int, repetition: int = 0) -> np.ndarray:
        """Returns the ids of a source line in other units."""
        return self._draw(0, ids, epoch, sentence, repetition)

    def target(self, ids: np.ndarray, epoch: int, sentence: int, repetition: int = 0) -> np.ndarray:
        """Returns the ids of a target line in other units."""
        return self._draw(1, ids, epoch, sentence, repetition)

    def _draw(
        self, side: int, ids: np.ndarray, epoch: int, sentence: int, repetition: int
    ) -> np.ndarray:
        again = f" {repetition}" if repetition else ""
        stream = random.Random(f"{self._seed} {epoch} {sentence} {side}{again}")
        return self._sides[side].resegment(ids.tolist(), self._probability, stream.random)


class _Side:
    """The codes and the vocabulary of a language."""

    def __init__(self, encoder: TextEncoder):
        segmenter = encoder.segmenter
        if isinstance(segmenter, MosesSegmenter):
            segmenter = segmenter.inner
        assert isinstance(segmenter, BpeSegmenter) and segmenter.merges, "no BPE codes"
        self._segmenter, self._vocabulary = segmenter, encoder.vocabulary
        tokens = encoder.vocabulary.decode(list(range(len(encoder.vocabulary))))
        self._continues = [token.endswith(SEPARATOR) for token in tokens]
        self._words: dict[tuple[int, ...], str] = {}

    def resegment(
        self, ids: Sequence[int], probability: float, draw: Callable[[], float]
    ) -> np.ndarray:
        """Returns the ids of a line with other units of its words."""
        drawn: list[int] = []
        for units in self._split(ids):
            word = self._word(units)
            if word:
                pieces = segment_with_dropout(word, self._segmenter, probability, draw)
                new = self._vocabulary.encode(pieces)
                drawn.extend(new if min(new) > EOS_ID else units)
            else:
                drawn.extend(units)
        return np.array(drawn, np.int32)

    def _split(self, ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Yields the ids of each word."""
        begin = 0
        for end, unit in enumerate(ids, start=1):
            if not self._continues[unit] or end == len(ids):
                yield tuple(ids[begin:end])
                begin = end

    def _word(self, units: tuple[int, ...]) -> str:
        """Returns the word that the units spell; "" if one is unknown or the end is cut off."""
        if units not in self._words:
            if len(self._words) > _CACHED_WORDS:
                self._words.clear()
            whole = min(units) > EOS_ID and not self._continues[units[-1]]
            tokens = self._vocabulary.decode(list(units)) if whole else []
            self._words[units] = self._segmenter.join(tokens)
        return self._words[units]
