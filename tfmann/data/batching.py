"""Batches of an encoded corpus, in an order that depends on the seed and the epoch alone.

An epoch's order is a permutation cut into pools. Each pool is sorted by length and cut into
batches, and the batches are shuffled. A resumed run makes the same plan and continues in it.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, Union

import numpy as np

from tfmann.config import HParams
from tfmann.data.bpe_dropout import BpeDropout
from tfmann.data.documents import document_starts
from tfmann.data.encoded_corpus import EncodedCorpus
from tfmann.data.joined_corpus import JoinedCorpus, WeightedDraws
from tfmann.data.vocab import EOS_ID, SOS_ID
from tfmann.errors import UserError

Corpus = Union[EncodedCorpus, JoinedCorpus]
Items = TypeVar("Items", Sequence[Any], np.ndarray)


class Batch(NamedTuple):
    """Padded ids of B sentence pairs; the padding is `</s>`, so only lengths tell it from words."""

    source: np.ndarray  # [B, S] int32
    source_length: np.ndarray  # [B] int32
    target_in: np.ndarray  # [B, T] int32, starts with <s>
    target_out: np.ndarray  # [B, T] int32, ends with </s>
    target_length: np.ndarray  # [B] int32, including </s>
    documents: np.ndarray  # [B] int64
    sentences: np.ndarray  # [B] int64, line numbers from 0
    starts: np.ndarray  # [B] bool, first sentence of a document
    history: np.ndarray  # [B, P, S'] int32, the P preceding source sentences, the nearest last
    history_length: np.ndarray  # [B, P] int32, 0 for a missing sentence
    totals: np.ndarray  # [2] int32, words and sentences in the rows of all workers

    @property
    def words(self) -> int:
        """Number of target words in these rows, including `</s>`."""
        return int(self.target_length.sum())


class Position(NamedTuple):
    """A run's position in its data, which a checkpoint saves."""

    epoch: int = 0
    batch: int = 0
    batches: int = 0  # of the epoch; 0 where it is unknown, or before the first


class Share(NamedTuple):
    """A process's share of every batch: the rows of its replicas, as `shard_batch` assigns them.

    The default is the whole batch.
    """

    first: int = 0  # index of the process's first replica
    replicas: int = 1  # number of replicas of the process
    all_replicas: int = 1  # number of replicas of all processes

    def rows(self, size: int) -> np.ndarray:
        """Returns the process's rows of a batch of `size` rows, ascending."""
        rows = np.arange(size)
        replica = rows % self.all_replicas - self.first
        return rows[(replica >= 0) & (replica < self.replicas)]


class TrainingBatches:
    """Batches of a training corpus; every process makes the same plan and reads its share.

    Attributes:
      pairs: indexes of the pairs that are used, ascending.
      summary: a sentence on what was left out or cut.
    """

    def __init__(
        self,
        corpus: Corpus,
        hparams: HParams,
        history_size: int = 0,
        share: Share = Share(),  # noqa: B008 (immutable)
        dropout: BpeDropout | None = None,
    ):
        """Selects pairs by their lengths; each comes with `history_size` preceding sentences.

        With `dropout` the sentences, but not those before them, are segmented differently in every
        epoch. Pairs are selected, cut and sorted by their segmentation without dropout. With
        `train_weights` the corpus is a `JoinedCorpus`, and an epoch draws from its parts; a pair
        that it draws several times is segmented differently each time.

        Raises:
          UserError: no pair is left, or a corpus with a weight has none.
        """
        self._corpus, self._hparams, self._share = corpus, hparams, share
        self._dropout = dropout
        self._history = SourceHistory(corpus, history_size, hparams.src_max_len)
        source, target = np.diff(corpus.source_starts), np.diff(corpus.target_starts)
        empty = (source == 0) | (target == 0)
        long = ((source > hparams.src_max_len) | (target > hparams.tgt_max_len)) & ~empty
        left_out = empty | long if hparams.max_len_policy == "filter" else empty
        self.pairs = np.flatnonzero(~left_out)
        eos = int(hparams.append_source_eos)
        self._source = (np.minimum(source, hparams.src_max_len) + eos).astype(np.int32)
        self._target = (np.minimum(target, hparams.tgt_max_len) + 1).astype(np.int32)
        treatment = "left out" if hparams.max_len_policy == "filter" else "cut"
        self.summary = (
            f"{len(corpus)} pairs; {int(empty.sum())} with an empty side left out; "
            f"{int(long.sum())} longer than {hparams.src_max_len}/{hparams.tgt_max_len} {treatment}"
        )
        if not len(self.pairs):
            raise UserError(f"no training pair is left: {self.summary}")
        self._draws = self._weighted_draws(self.pairs, np.ones(len(self.pairs)))

    @property
    def words_per_batch(self) -> int:
        """Number of target words of an average batch, or somewhat fewer."""
        lengths, size = self._target[self.pairs], self._hparams.batch_size
        if self._hparams.batch_type == "tokens":
            return min(size, int(lengths.sum()))
        return int(min(size, len(lengths)) * float(lengths.mean()))

    def _weighted_draws(self, first: np.ndarray, lengths: np.ndarray) -> WeightedDraws | None:
        """Returns the draws of units by `train_weights`, None without them.

        Args:
          first: `[n]` each unit's first pair.
          lengths: `[n]` its number of pairs.

        Raises:
          UserError: a corpus has no unit.
        """
        weights = self._hparams.corpus_weights
        if not weights:
            return None
        assert isinstance(self._corpus, JoinedCorpus)
        parts = self._corpus.part(first)
        for part, prefix in enumerate(self._hparams.train_prefixes):
            if not np.any(parts == part):
                raise UserError(f"no training pair of {prefix} is left: {self.summary}")
        return WeightedDraws(parts, lengths, weights, self._hparams.random_seed)

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Returns the batches of an epoch, each an array of pair indexes."""
        h = self._hparams
        stream = np.random.Generator(np.random.PCG64([h.random_seed, epoch]))
        pairs = self.pairs[self._draws.draw(epoch)] if self._draws else self.pairs
        order = pairs[stream.permutation(len(pairs))]
        if not h.bucket_pool:
            return self._cut(order)
        sentences = h.batch_size
        if h.batch_type == "tokens":
            sentences = max(1, int(h.batch_size / self._target[self.pairs].mean()))
        pool = h.bucket_pool * sentences
        batches = []
        for pairs in chunks(order, pool):
            by_length = np.lexsort((self._source[pairs], self._target[pairs]))
            batches.extend(self._cut(pairs[by_length]))
        return [batches[i] for i in stream.permutation(len(batches))]

    def batches(self, start: Position) -> Iterator[tuple[Batch, Position]]:
        """Yields batches without end from a position on, each with the position after it.

        If the epoch of `start` had another number of batches, because the run continues with other
        settings, as great a share of its batches is left.
        """
        epoch, number, expected = start
        while True:
            plan = self.plan(epoch)
            if expected not in (0, len(plan)):
                number = number * len(plan) // expected
            repetitions = itertools.islice(self._repetitions(plan), number, None)
            while number < len(plan):
                number += 1
                after = Position(epoch, number, len(plan))
                if number == len(plan):
                    after = Position(epoch + 1)
                yield self._own_rows(plan[number - 1], epoch, next(repetitions)), after
            epoch, number, expected = epoch + 1, 0, 0

    def _repetitions(self, plan: list[np.ndarray]) -> Iterator[np.ndarray]:
        """Yields for each batch how often each of its pairs came before in the epoch.

        The counts are 0 where nothing depends on them.
        """
        if not (self._draws and self._dropout):
            yield from (np.zeros_like(indexes) for indexes in plan)
            return
        count: collections.Counter[int] = collections.Counter()
        for indexes in plan:
            before = np.zeros_like(indexes)
            for row, index in enumerate(indexes.tolist()):
                before[row] = count[index]
                count[index] += 1
            yield before

    def _cut(self, order: np.ndarray) -> list[np.ndarray]:
        size = self._hparams.batch_size
        if self._hparams.batch_type == "sentences":
            return list(chunks(order, size))
        return cut_by_words(order, self._target, size)

    def _own_rows(self, indexes: np.ndarray, epoch: int, repetitions: np.ndarray) -> Batch:
        """Returns this process's rows of a batch, or a row without words if it has none."""
        rows = self._share.rows(len(indexes))
        if len(rows):
            batch = self._make(indexes[rows], epoch, repetitions[rows])
        else:
            batch = without_words(self._make(indexes[:1], epoch, repetitions[:1]))
        if len(rows) == len(indexes):  # nothing is segmented twice
            return batch._replace(totals=batch_totals(batch.target_length))
        return batch._replace(totals=batch_totals(self._lengths(indexes, epoch, repetitions)))

    def _lengths(self, indexes: np.ndarray, epoch: int, repetitions: np.ndarray) -> np.ndarray:
        """Returns the number of target words of each pair, including `</s>`."""
        if self._dropout:
            drawn = zip(indexes, repetitions)
            return np.array([len(self._target_ids(i, epoch, count)) + 1 for i, count in drawn])
        return self._target[indexes]

    def _source_ids(self, index: int, epoch: int, repetition: int) -> np.ndarray:
        ids = self._corpus.source(index)[: self._hparams.src_max_len]
        return self._dropout.source(ids, epoch, index, repetition) if self._dropout else ids

    def _target_ids(self, index: int, epoch: int, repetition: int) -> np.ndarray:
        ids = self._corpus.target(index)[: self._hparams.tgt_max_len]
        return self._dropout.target(ids, epoch, index, repetition) if self._dropout else ids

    def _make(self, indexes: np.ndarray, epoch: int, repetitions: np.ndarray) -> Batch:
        h, drawn = self._hparams, list(zip(indexes, repetitions))
        return make_batch(
            [self._source_ids(i, epoch, count) for i, count in drawn],
            [self._target_ids(i, epoch, count) for i, count in drawn],
            self._corpus.documents[indexes],
            indexes,
            h.append_source_eos,
            [self._history.previous_sources(i) for i in indexes],
        )


class SourceHistory:
    """The source sentences that precede each sentence in its document."""

    def __init__(self, corpus: Corpus, size: int, max_length: int | None = None):
        """Takes the number of sentences, and the length to which each is cut."""
        self._corpus, self._size, self._max_length = corpus, size, max_length
        self._starts = document_starts(corpus.documents) if size else None

    def previous_sources(self, index: int) -> list[Any]:
        """Returns the ids of the preceding sentences, oldest first, None for each missing one."""
        if self._starts is None:
            return []
        return [
            self._corpus.source(i)[: self._max_length] if i >= self._starts[index] else None
            for i in range(index - self._size, index)
        ]


def make_batch(
    sources: Sequence[Any] | np.ndarray,
    targets: Sequence[Any] | np.ndarray,
    documents: np.ndarray,
    sentences: np.ndarray,
    append_source_eos: bool,
    histories: Sequence[Sequence[Any]] = (),
) -> Batch:
    """Pads pairs as `pad_pairs` does, and makes a batch of them and their documents.

    Args:
      sources: ids of each source sentence.
      targets: ids of each target sentence.
      documents: `[B]` document ids.
      sentences: `[B]` line numbers.
      append_source_eos: whether a source ends with a real `</s>`.
      histories: for each sentence, ids of the P preceding sources, None for a missing one.
    """
    pairs = pad_pairs(sources, targets, append_source_eos)
    history, history_length = pad_histories(histories or [()] * len(sources))
    return Batch(
        *pairs,
        documents=documents,
        sentences=np.asarray(sentences),
        starts=np.zeros(len(sources), bool),
        history=history,
        history_length=history_length,
        totals=batch_totals(pairs[4]),
    )


def pad_pairs(
    sources: Sequence[Any] | np.ndarray,
    targets: Sequence[Any] | np.ndarray,
    append_source_eos: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pads ids without special symbols, and shifts the targets; an empty source is one `</s>`.

    Returns:
      the fields of a `Batch` up to `target_length`.
    """
    lengths = np.array([len(t) + 1 for t in targets], np.int32)
    target_in = np.full([len(targets), lengths.max()], EOS_ID, np.int32)
    target_out = target_in.copy()
    target_in[:, 0] = SOS_ID
    for row, ids in enumerate(targets):
        target_in[row, 1 : len(ids) + 1] = ids
        target_out[row, : len(ids)] = ids
    return (*pad_sources(sources, append_source_eos), target_in, target_out, lengths)


def batch_totals(lengths: np.ndarray) -> np.ndarray:
    """Returns `[2]`: the number of words, and of sentences with any, for target lengths `[B]`."""
    return np.array([lengths.sum(), np.count_nonzero(lengths)], np.int32)


def pad_histories(histories: Sequence[Sequence[Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns ids `[B, P, S']` and lengths `[B, P]` of P sentences each, 0 for None.

    They end with `</s>` even if sources do not; a blank sentence is `</s>` alone.
    """
    lengths = np.array(
        [[0 if ids is None else len(ids) + 1 for ids in row] for row in histories], np.int32
    )
    padded = np.full([*lengths.shape, lengths.max(initial=1)], EOS_ID, np.int32)
    for row, sentences in enumerate(histories):
        for column, ids in enumerate(sentences):
            if ids is not None:
                padded[row, column, : len(ids)] = ids
    return padded, lengths


def pad_sources(
    sources: Sequence[Any] | np.ndarray, append_source_eos: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Returns ids `[B, S]` and lengths `[B]`, at least 1."""
    eos = int(append_source_eos)
    lengths = np.array([max(1, len(s) + eos) for s in sources], np.int32)
    source = np.full([len(sources), lengths.max()], EOS_ID, np.int32)
    for row, ids in enumerate(sources):
        source[row, : len(ids)] = ids
    return source, lengths


def cut_by_words(order: np.ndarray, lengths: np.ndarray, words: int) -> list[np.ndarray]:
    """Cuts `order` where a batch would have more than `words`, padding included."""
    batches, begin, longest = [], 0, 0
    for end, index in enumerate(order):
        longest = max(longest, int(lengths[index]))
        if end > begin and longest * (end - begin + 1) > words:
            batches.append(order[begin:end])
            begin, longest = end, int(lengths[index])
    return [*batches, order[begin:]]


def chunks(items: Items, size: int) -> Iterator[Items]:
    """Yields the items in their order, `size` at a time."""
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def shard_batch(batch: Batch, count: int) -> list[Batch]:
    """Returns the rows of each of `count` replicas: row i goes to replica i modulo `count`."""
    return [_rows(batch, slice(index, None, count)) for index in range(count)]


def without_words(batch: Batch) -> Batch:
    """Returns a batch's first row with no word to predict, for a replica that received no rows."""
    first = _rows(batch, slice(1))
    return first._replace(target_length=np.zeros_like(first.target_length))


def _rows(batch: Batch, rows: slice) -> Batch:
    return Batch._make([*(array[rows] for array in batch[:-1]), batch.totals])
