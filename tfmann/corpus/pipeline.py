"""Encoded text to batches: an order that follows from (seed, epoch), and padding done once.

The order of an epoch is a permutation, cut into pools; each pool is sorted by length and cut into
batches; the batches are shuffled. To resume is to make the same plan and start further on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfmann.corpus.documents import beginnings
from tfmann.corpus.encode import Encoded
from tfmann.corpus.vocab import EOS_ID, SOS_ID
from tfmann.errors import UserError
from tfmann.hparams import HParams


class Batch(NamedTuple):
    """Padded ids; padding is `</s>` and is told by length, never by id."""

    source: np.ndarray  # [B, S] int32
    source_length: np.ndarray  # [B] int32
    target_in: np.ndarray  # [B, T] int32, begins with <s>
    target_out: np.ndarray  # [B, T] int32, ends in </s>
    target_length: np.ndarray  # [B] int32, </s> counted
    documents: np.ndarray  # [B] int64
    sentences: np.ndarray  # [B] int64, line numbers from 0
    starts: np.ndarray  # [B] bool, the first of its document
    history: np.ndarray  # [B, P, S'] int32, the P source sentences before it, the nearest last
    history_length: np.ndarray  # [B, P] int32, 0 where there is none
    # [2] int32, words and sentences (`counts`): of the rows that other workers have, too
    whole: np.ndarray

    @property
    def words(self) -> int:
        """Target words of its rows, `</s>` counted."""
        return int(self.target_length.sum())


class Position(NamedTuple):
    """Where a run stands in its data: what a checkpoint keeps of it."""

    epoch: int = 0
    batch: int = 0


class Share(NamedTuple):
    """The rows that a process reads of every batch: those of its replicas, as `shards` deals them.

    All of them, if nothing else is said.
    """

    first: int = 0  # the number of its first replica
    replicas: int = 1  # how many it has
    of: int = 1  # how many all have

    def rows(self, size: int) -> np.ndarray:
        """Its rows of a batch of `size`, ascending."""
        rows = np.arange(size)
        turn = rows % self.of - self.first
        return rows[(turn >= 0) & (turn < self.replicas)]


class Training:
    """Batches of a training corpus; every process makes the same plan, and reads its share.

    Attributes:
      kept: indexes of the pairs that are used.
      report: in words, what was left out or cut.
    """

    def __init__(
        self,
        corpus: Encoded,
        hparams: HParams,
        history_size: int = 0,
        share: Share = Share(),  # noqa: B008 (immutable)
    ):
        """Looks at the lengths alone; `history_size` sentences go with each pair.

        Raises:
          UserError: no pair is left.
        """
        self._corpus, self._hparams, self._share = corpus, hparams, share
        self._history = History(corpus, history_size, hparams.src_max_len)
        source, target = np.diff(corpus.source_starts), np.diff(corpus.target_starts)
        empty = (source == 0) | (target == 0)
        long = ((source > hparams.src_max_len) | (target > hparams.tgt_max_len)) & ~empty
        use = ~empty
        if hparams.max_len_policy == "filter":
            use &= ~long
        self.kept = np.flatnonzero(use)
        eos = int(hparams.append_source_eos)
        self._source = (np.minimum(source, hparams.src_max_len) + eos).astype(np.int32)
        self._target = (np.minimum(target, hparams.tgt_max_len) + 1).astype(np.int32)
        dealt = "left out" if hparams.max_len_policy == "filter" else "cut"
        self.report = (
            f"{len(corpus)} pairs; {int(empty.sum())} with an empty side left out; "
            f"{int(long.sum())} longer than {hparams.src_max_len}/{hparams.tgt_max_len} {dealt}"
        )
        if not len(self.kept):
            raise UserError(f"no training pair is left: {self.report}")

    @property
    def words(self) -> int:
        """Target words of a batch as wide as the mean one, or somewhat fewer."""
        lengths, size = self._target[self.kept], self._hparams.batch_size
        if self._hparams.batch_type == "tokens":
            return min(size, int(lengths.sum()))
        return int(min(size, len(lengths)) * float(lengths.mean()))

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, each an array of pair indexes."""
        h = self._hparams
        stream = np.random.Generator(np.random.PCG64([h.random_seed, epoch]))
        order = self.kept[stream.permutation(len(self.kept))]
        if not h.bucket_pool:
            return self._cut(order)
        sentences = h.batch_size
        if h.batch_type == "tokens":
            sentences = max(1, int(h.batch_size / self._target[self.kept].mean()))
        pool = h.bucket_pool * sentences
        batches = []
        for begin in range(0, len(order), pool):
            part = order[begin : begin + pool]
            part = part[np.lexsort((self._source[part], self._target[part]))]
            batches.extend(self._cut(part))
        return [batches[i] for i in stream.permutation(len(batches))]

    def batches(self, start: Position) -> Iterator[tuple[Batch, Position]]:
        """Batches without end from a position on, each with the position after it."""
        epoch, number = start
        while True:
            plan = self.plan(epoch)
            while number < len(plan):
                number += 1
                after = Position(epoch + 1, 0) if number == len(plan) else Position(epoch, number)
                yield self._own(plan[number - 1]), after
            epoch, number = epoch + 1, 0

    def _cut(self, order: np.ndarray) -> list[np.ndarray]:
        size = self._hparams.batch_size
        if self._hparams.batch_type == "sentences":
            return [order[i : i + size] for i in range(0, len(order), size)]
        batches, begin, longest = [], 0, 0
        for end, index in enumerate(order):
            longest = max(longest, int(self._target[index]))
            if end > begin and longest * (end - begin + 1) > size:
                batches.append(order[begin:end])
                begin, longest = end, int(self._target[index])
        return [*batches, order[begin:]]

    def _own(self, indexes: np.ndarray) -> Batch:
        """This process's rows of a batch; without any, one that has no words."""
        rows = self._share.rows(len(indexes))
        batch = self._make(indexes[rows]) if len(rows) else no_words(self._make(indexes[:1]))
        return batch._replace(whole=counts(self._lengths(indexes)))

    def _lengths(self, indexes: np.ndarray) -> np.ndarray:
        """Target words of pairs."""
        return self._target[indexes]

    def _make(self, indexes: np.ndarray) -> Batch:
        h = self._hparams
        sources = [self._corpus.source(i)[: h.src_max_len] for i in indexes]
        targets = [self._corpus.target(i)[: h.tgt_max_len] for i in indexes]
        return make_batch(
            sources,
            targets,
            self._corpus.documents[indexes],
            indexes,
            h.append_source_eos,
            [self._history.before(i) for i in indexes],
        )


class History:
    """The source sentences before a sentence of an encoded corpus, in its own document."""

    def __init__(self, corpus: Encoded, size: int, max_length: int | None = None):
        """At most `size` of them, each cut to `max_length`."""
        self._corpus, self._size, self._max_length = corpus, size, max_length
        self._begin = beginnings(corpus.documents) if size else None

    def before(self, index: int) -> list[Any]:
        """Ids of the `size` sentences, oldest first, None for those that are not there."""
        if self._begin is None:
            return []
        wanted = range(index - self._size, index)
        return [
            self._corpus.source(i)[: self._max_length] if i >= self._begin[index] else None
            for i in wanted
        ]


def make_batch(
    sources: Sequence[Any],
    targets: Sequence[Any],
    documents: np.ndarray,
    sentences: np.ndarray,
    append_source_eos: bool,
    histories: Sequence[Sequence[Any]] = (),
) -> Batch:
    """Shifts and pads ids without special symbols; an empty source holds one `</s>`.

    Args:
      sources: ids of each sentence.
      targets: the same.
      documents: `[B]` ids.
      sentences: `[B]` line numbers.
      append_source_eos: end a source in a real `</s>`.
      histories: of each sentence P sources before it or None, if they are wanted.
    """
    source, source_length = pad_sources(sources, append_source_eos)
    lengths = np.array([len(t) + 1 for t in targets], np.int32)
    target_in = np.full([len(targets), lengths.max()], EOS_ID, np.int32)
    target_out = target_in.copy()
    target_in[:, 0] = SOS_ID
    for row, ids in enumerate(targets):
        target_in[row, 1 : len(ids) + 1] = ids
        target_out[row, : len(ids)] = ids
    history, history_length = pad_histories(histories or [()] * len(sources))
    return Batch(
        source=source,
        source_length=source_length,
        target_in=target_in,
        target_out=target_out,
        target_length=lengths,
        documents=documents,
        sentences=np.asarray(sentences),
        starts=np.zeros(len(sources), bool),
        history=history,
        history_length=history_length,
        whole=counts(lengths),
    )


def counts(lengths: np.ndarray) -> np.ndarray:
    """Words, and sentences that have any, of target lengths."""
    return np.array([lengths.sum(), np.count_nonzero(lengths)], np.int32)


def pad_histories(histories: Sequence[Sequence[Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Ids `[B, P, S']` and lengths `[B, P]` of P sentences each, 0 for None.

    They are read with their `</s>`, whatever the source itself has; a blank one is `</s>` alone.
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
    sources: Sequence[Any], append_source_eos: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Ids `[B, S]` and lengths `[B]`, at least 1."""
    eos = int(append_source_eos)
    lengths = np.array([max(1, len(s) + eos) for s in sources], np.int32)
    source = np.full([len(sources), lengths.max()], EOS_ID, np.int32)
    for row, ids in enumerate(sources):
        source[row, : len(ids)] = ids
    return source, lengths


def in_order(
    corpus: Encoded, batch_size: int, append_source_eos: bool, history_size: int = 0
) -> Iterator[Batch]:
    """All pairs, shortest targets first, for measuring perplexity."""
    history = History(corpus, history_size)
    order = np.lexsort((np.diff(corpus.source_starts), np.diff(corpus.target_starts)))
    for begin in range(0, len(order), batch_size):
        indexes = order[begin : begin + batch_size]
        yield make_batch(
            [corpus.source(i) for i in indexes],
            [corpus.target(i) for i in indexes],
            corpus.documents[indexes],
            indexes,
            append_source_eos,
            [history.before(i) for i in indexes],
        )


def shards(batch: Batch, count: int) -> list[Batch]:
    """Deals the rows of a batch to `count` replicas; some may get none."""
    return [_rows(batch, slice(index, None, count)) for index in range(count)]


def no_words(batch: Batch) -> Batch:
    """The first row of a batch without any word to predict, for who has no row of it."""
    first = _rows(batch, slice(1))
    return first._replace(target_length=np.zeros_like(first.target_length))


def _rows(batch: Batch, which: slice) -> Batch:
    return Batch._make([*(part[which] for part in batch[:-1]), batch.whole])
