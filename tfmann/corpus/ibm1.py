"""A lexicon learnt from parallel text: IBM Model 1 (Brown et al. 1993, section 4.1).

Model 1 says that a target word t comes from any word s of its source sentence, or from none (the
empty word), with probability t(t|s), whatever the positions. Expectation maximisation:

- E: c(t|s) += t(t|s) / sum_s' t(t|s') for every pair of positions, s' over the source sentence;
- M: t(t|s) = c(t|s) / sum_t' c(t'|s).

Its likelihood has no other maxima than the greatest, so it may start from equal probabilities.

Of the translations of a word that one is the best whose Dice coefficient 2 c(t|s) / (c(s) + c(t))
is the greatest, where c(s) sums c(t|s) over t, and c(t) over s. The probability itself would not
do for rare words, which unknown words are: Model 1 lets them explain whatever else stands in their
few sentences, and a word seen once would often come out as a comma.
Letters: C cells (pairs of a target and a source position), K different pairs of words.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Callable, NamedTuple

import numpy as np

from tfmann.corpus import inputs, lexicon
from tfmann.corpus.files import iter_parallel
from tfmann.corpus.subword import WordSegmenter
from tfmann.corpus.text import require_languages
from tfmann.errors import UsageError, UserError
from tfmann.hparams import HParams

ITERATIONS = 5  # as GIZA++ gives Model 1
# Longer sentences cost by the square of their length and say little; GIZA++'s limit is 101.
MAX_WORDS = 100
_BLOCK = 1 << 22  # cells that are worked on together
_TIE = 1e-9  # a Dice coefficient that is greater by less is as good


class Counts(NamedTuple):
    """c(t|s) of the K pairs of words that stand in one sentence pair, in ascending order."""

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
    """Some sentences' cells, those of one target position next to each other."""

    pairs: np.ndarray  # [k], which of the K pairs occur in the block
    cells: np.ndarray  # [C] int32, the place of each cell's pair in `pairs`
    widths: np.ndarray  # [target positions], cells of each
    starts: np.ndarray  # [target positions], the first of them


def learn_lexicon(hparams: HParams, out_dir: str, log: Callable[[str], None] = print) -> None:
    """Learns a lexicon from the words of a run's training text, and writes it into its folder.

    Raises:
      UsageError: a setting is not given, or the text is in subwords.
      UserError: the text cannot be used, or the file cannot be written.
    """
    require_languages(hparams)
    if not hparams.train_prefix:
        raise UsageError("train_prefix is not given: a lexicon is learnt from the training text")
    lexicon.refuse_subwords(hparams)
    segment = WordSegmenter().segment
    paths = inputs.require_prefix(hparams, "train_prefix")
    place = lexicon.path(hparams, out_dir)
    inputs.refuse_overwriting({"lexicon_file": place}, {f"the text {path}": path for path in paths})
    pairs = ((segment(pair.source), segment(pair.target)) for pair in iter_parallel(*paths))
    entries = best_translations(pairs, log)
    try:
        os.makedirs(out_dir, exist_ok=True)
    except OSError as error:
        raise UserError(f"out_dir {out_dir} cannot be used: {error.strerror}") from None
    lexicon.write(place, entries)
    log(f"{place}: {len(entries)} words, from {paths[0]} and {paths[1]}")


def best_translations(
    pairs: Iterable[tuple[Sequence[str], Sequence[str]]],
    log: Callable[[str], None] = lambda message: None,
) -> list[lexicon.Entry]:
    """The best translation of every source word, by code point, with its Dice coefficient.

    Of equally good ones it is the one that is spelled as the source word, else the one that comes
    first in the text: of a first name and a family name that occur once, together, each is its own
    translation.

    Args:
      pairs: sentence pairs; one with a side that is empty or longer than `MAX_WORDS` is passed
        over.
      log: is told how many were passed over.

    Raises:
      UserError: no pair is left.
    """
    source_ids: dict[str, int] = {"": 0}  # the empty word, which is in every sentence
    target_ids: dict[str, int] = {}
    sources, targets = [], []
    passed_over = 0
    for source, target in pairs:
        if not (0 < len(source) <= MAX_WORDS and 0 < len(target) <= MAX_WORDS):
            passed_over += 1
            continue
        sources.append(_number(["", *source], source_ids))
        targets.append(_number(target, target_ids))
    if passed_over:
        log(f"passed over {passed_over} pairs with a side that is empty or above {MAX_WORDS} words")
    if not sources:
        raise UserError("there is no sentence pair to learn a lexicon from")
    found = counts(sources, targets)
    spelled = [target_ids.get(word, -1) for word in source_ids]  # the target word that looks alike
    alike = found.target == np.array(spelled)[found.source]
    score = found.dice + alike * _TIE
    firsts = _firsts(found.source)
    best = np.repeat(np.maximum.reduceat(score, firsts), np.diff(firsts, append=score.size))
    at_best = np.flatnonzero(score == best)
    at_best = at_best[_firsts(found.source[at_best])]  # the first of equally good ones
    words = list(source_ids), list(target_ids)
    ids = found.source[at_best].tolist(), found.target[at_best].tolist()
    return sorted(
        lexicon.Entry(words[0][s], words[1][t], weight)
        for s, t, weight in zip(*ids, found.dice[at_best].tolist())
        if s != source_ids[""]
    )


def _number(words: Iterable[str], ids: dict[str, int]) -> np.ndarray:
    return np.array([ids.setdefault(word, len(ids)) for word in words], np.int32)


def counts(
    sources: Sequence[np.ndarray], targets: Sequence[np.ndarray], iterations: int = ITERATIONS
) -> Counts:
    """Runs Model 1's expectation maximisation, and returns what its last E step counts.

    Args:
      sources: ids of each source sentence, the empty word's among them where there is to be one.
      targets: ids of each target sentence; no sentence is empty.
      iterations: passes over the text.
    """
    size = 1 + max(int(target.max()) for target in targets)
    keys, blocks = _blocks(sources, targets, size)
    found = Counts(keys // size, keys % size, np.ones([keys.size]))
    for number in range(iterations):
        # any equal numbers will do at first: the E step normalises
        probability = found.probability if number else found.value
        value = np.zeros([keys.size])
        for block in blocks:
            cells = probability[block.pairs][block.cells]  # [C]
            cells /= np.repeat(np.add.reduceat(cells, block.starts), block.widths)
            value[block.pairs] += np.bincount(block.cells, cells, block.pairs.size)
        found = found._replace(value=value)
    return found


def _blocks(
    sources: Sequence[np.ndarray], targets: Sequence[np.ndarray], size: int
) -> tuple[np.ndarray, list[_Block]]:
    """The different pairs of words as s * size + t, ascending, and the cells of all sentences."""
    local, blocks = [], []
    for begin, end in _ranges(sources, targets):
        found = [
            (np.repeat(t, len(s)), np.tile(s, len(t)))
            for s, t in zip(sources[begin:end], targets[begin:end])
        ]
        target, source = (np.concatenate(part).astype(np.int64) for part in zip(*found))
        keys, cells = np.unique(source * size + target, return_inverse=True)
        widths = np.repeat(list(map(len, sources[begin:end])), list(map(len, targets[begin:end])))
        starts = np.cumsum(widths) - widths
        local.append(keys)
        blocks.append(_Block(keys, cells.astype(np.int32), widths, starts))
    every = np.unique(np.concatenate(local))
    return every, [block._replace(pairs=np.searchsorted(every, block.pairs)) for block in blocks]


def _ranges(
    sources: Sequence[np.ndarray], targets: Sequence[np.ndarray]
) -> Iterator[tuple[int, int]]:
    """Runs of sentences with about `_BLOCK` cells."""
    begin = cells = 0
    for number, (source, target) in enumerate(zip(sources, targets), start=1):
        cells += len(source) * len(target)
        if cells >= _BLOCK or number == len(sources):
            yield begin, number
            begin, cells = number, 0


def _firsts(ids: np.ndarray) -> np.ndarray:
    """Where each run of equal ids begins."""
    return np.flatnonzero(np.diff(ids, prepend=-1))
