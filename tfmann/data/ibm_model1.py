"""IBM Model 1, which learns a lexicon from parallel text (Brown et al. 1993, section 4.1).

In Model 1 a target word t is the translation of any word s of its source sentence, or of the empty
word, with probability t(t|s), whatever their positions. Expectation maximisation alternates

- E: c(t|s) += t(t|s) / sum_s' t(t|s') for every pair of positions, s' over the source sentence;
- M: t(t|s) = c(t|s) / sum_t' c(t'|s).

The likelihood has no local maximum besides the global one, so equal probabilities can start it.

The best translation of a word has the greatest Dice coefficient 2 c(t|s) / (c(s) + c(t)), where
c(s) sums c(t|s) over t, and c(t) over s. The probability alone fails for rare words, for which the
lexicon is used: Model 1 lets them explain everything else in their few sentences ("garbage
collection"), and a word that occurs once would often be translated as a comma.

Letters: C cells (pairs of a target and a source position), K distinct pairs of words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Callable, NamedTuple, TypeVar

import numpy as np

from tfmann.data.lexicon import Entry
from tfmann.errors import UserError

ITERATIONS = 5  # the default of GIZA++
# The cost is quadratic in the length, and long sentences say little; GIZA++'s limit is 101.
MAX_WORDS = 100
_BLOCK = 1 << 22  # cells per vectorised operation
Pair = TypeVar("Pair", bound=tuple[Sized, Sized])
_TIE = 1e-9  # Dice coefficients that differ by less are equal


class Counts(NamedTuple):
    """c(t|s) of the K pairs of words that occur in the same sentence pair, ascending by (s, t)."""

    source: np.ndarray  # [K] int64
    target: np.ndarray  # [K] int64
    value: np.ndarray  # [K]

    @property
    def probability(self) -> np.ndarray:
        """t(t|s) `[K]`."""
        return self.value / self.of_source

    @property
    def dice(self) -> np.ndarray:
        """The Dice coefficient of each pair `[K]`, from 0 to 1."""
        of_target = np.bincount(self.target, self.value)[self.target]
        return 2 * self.value / (self.of_source + of_target)

    @property
    def of_source(self) -> np.ndarray:
        """c(s) of each pair `[K]`."""
        return np.bincount(self.source, self.value)[self.source]


class _Block(NamedTuple):
    """The cells of some sentences, those of the same target position next to each other."""

    pairs: np.ndarray  # [k], indexes of the K pairs that occur in the block
    cells: np.ndarray  # [C] int32, index of each cell's pair in `pairs`
    widths: np.ndarray  # [target positions], number of cells of each
    starts: np.ndarray  # [target positions], first cell of each


def best_translations(
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]],
    log: Callable[[str], None] = lambda message: None,
) -> list[Entry]:
    """Returns the best translation of every source word with its Dice coefficient, by code point.

    Of equally good ones it is the one with the source word's own spelling, else the first in the
    text: a first and a family name that occur only once, together, are each its own translation.

    Args:
      pairs: sentence pairs; a pair with a side that is empty or above `MAX_WORDS` is skipped.
      log: receives the number of skipped pairs.

    Raises:
      UserError: no pair is left.
    """
    source_ids: dict[str, int] = {"": 0}  # the empty word, which is in every sentence
    target_ids: dict[str, int] = {}
    sources, targets = [], []
    for source, target in usable_pairs(pairs, "words", log):
        sources.append(encode(["", *source], source_ids))
        targets.append(encode(target, target_ids))
    counts = expected_counts(sources, targets)
    same_spelling = np.array([target_ids.get(word, -1) for word in source_ids])
    score = counts.dice + _TIE * (counts.target == same_spelling[counts.source])
    firsts = run_starts(counts.source)
    best = np.repeat(np.maximum.reduceat(score, firsts), np.diff(firsts, append=score.size))
    chosen = np.flatnonzero(score == best)
    chosen = chosen[run_starts(counts.source[chosen])]  # the first of equally good ones
    source_words, target_words = list(source_ids), list(target_ids)
    rows = (counts.source[chosen], counts.target[chosen], counts.dice[chosen])
    return sorted(
        Entry(source_words[s], target_words[t], weight)
        for s, t, weight in zip(*(row.tolist() for row in rows))
        if s != source_ids[""]
    )


def usable_pairs(pairs: Iterable[Pair], unit: str, log: Callable[[str], None]) -> Iterator[Pair]:
    """Yields the sentence pairs of which neither side is empty or above `MAX_WORDS`.

    Args:
      pairs: of the sentences' words or tokens.
      unit: what these are called.
      log: receives the number of skipped pairs, after the last one.

    Raises:
      UserError: there was no such pair.
    """
    usable = skipped = 0
    for pair in pairs:
        if all(0 < len(side) <= MAX_WORDS for side in pair):
            usable += 1
            yield pair
        else:
            skipped += 1
    if skipped:
        log(f"skipped {skipped} pairs with a side that is empty or above {MAX_WORDS} {unit}")
    if not usable:
        raise UserError("there is no sentence pair to learn a lexicon from")


def encode(words: Iterable[str], ids: dict[str, int]) -> np.ndarray:
    """Returns the words' ids; new words are added to `ids`."""
    return np.array([ids.setdefault(word, len(ids)) for word in words], np.int32)


def expected_counts(
    sources: Sequence[np.ndarray], targets: Sequence[np.ndarray], iterations: int = ITERATIONS
) -> Counts:
    """Runs the expectation maximisation of Model 1; returns the counts of its last E step.

    Args:
      sources: ids of each source sentence, with that of the empty word if there is to be one.
      targets: ids of each target sentence; no sentence is empty.
      iterations: passes over the text.
    """
    size = 1 + max(int(target.max()) for target in targets)
    keys, blocks = _blocks(sources, targets, size)
    counts = Counts(keys // size, keys % size, np.ones([keys.size]))
    for iteration in range(iterations):
        # any equal numbers can start: the E step normalises them
        probability = counts.probability if iteration else counts.value
        value = np.zeros([keys.size])
        for block in blocks:
            cells = probability[block.pairs][block.cells]  # [C]
            cells /= np.repeat(np.add.reduceat(cells, block.starts), block.widths)
            value[block.pairs] += np.bincount(block.cells, cells, block.pairs.size)
        counts = counts._replace(value=value)
    return counts


def _blocks(
    sources: Sequence[np.ndarray], targets: Sequence[np.ndarray], size: int
) -> tuple[np.ndarray, list[_Block]]:
    """Returns the distinct pairs of words as s * size + t, ascending, and the cells of all."""
    keys_of_blocks, blocks = [], []
    for begin, end in _ranges(sources, targets):
        cells_of_pairs = [
            (np.repeat(t, len(s)), np.tile(s, len(t)))
            for s, t in zip(sources[begin:end], targets[begin:end])
        ]
        target, source = (np.concatenate(ids).astype(np.int64) for ids in zip(*cells_of_pairs))
        keys, cells = np.unique(source * size + target, return_inverse=True)
        widths = np.repeat(list(map(len, sources[begin:end])), list(map(len, targets[begin:end])))
        starts = np.cumsum(widths) - widths
        keys_of_blocks.append(keys)
        blocks.append(_Block(keys, cells.astype(np.int32), widths, starts))
    distinct = np.unique(np.concatenate(keys_of_blocks))
    return distinct, [b._replace(pairs=np.searchsorted(distinct, b.pairs)) for b in blocks]


def _ranges(
    sources: Sequence[np.ndarray], targets: Sequence[np.ndarray]
) -> Iterator[tuple[int, int]]:
    """Yields ranges of sentences with about `_BLOCK` cells."""
    begin = cells = 0
    for number, (source, target) in enumerate(zip(sources, targets), start=1):
        cells += len(source) * len(target)
        if cells >= _BLOCK or number == len(sources):
            yield begin, number
            begin, cells = number, 0


def run_starts(ids: np.ndarray) -> np.ndarray:
    """Returns the index of the first id of each run of equal ids."""
    return np.flatnonzero(np.diff(ids, prepend=-1))
