"""Batches of documents: row b of a batch continues the document in row b of the batch before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Callable

import numpy as np

from tfmann.config import HParams
from tfmann.data.batching import Batch, Corpus, Share, TrainingBatches, batch_totals
from tfmann.data.bpe_dropout import BpeDropout
from tfmann.data.documents import assign_to_rows, document_starts
from tfmann.data.encoded_corpus import EncodedCorpus
from tfmann.data.evaluation_batches import whole_pairs

_IDLE = -1  # in a plan: the row has no sentence left


class DocumentBatches(TrainingBatches):
    """Batches of a training corpus of documents, of which `batch_size` are read side by side.

    When a row's document ends, its next one starts. Documents are assigned to rows once, so that
    all rows end at about the same time; every epoch shuffles the documents within each row. With
    `train_weights` every epoch draws its own documents and assigns these. A row that ends before
    the others has no words to predict.
    """

    def __init__(
        self,
        corpus: Corpus,
        hparams: HParams,
        share: Share = Share(),  # noqa: B008 (immutable)
        dropout: BpeDropout | None = None,
    ):
        """Assigns the documents to rows.

        Raises:
          UserError: no pair is left.
        """
        super().__init__(corpus, hparams, share=share, dropout=dropout)
        documents = _documents(corpus, self.pairs)
        self._documents = documents
        self._rows = assign_to_rows(documents, hparams.batch_size)
        first = np.array([document[0] for document in documents])
        self._is_first = _marked(first, len(corpus))
        lengths = np.array([len(document) for document in documents])
        self._draws = self._weighted_draws(first, lengths)
        self.summary += f"; {len(documents)} documents, {len(self._rows)} side by side"

    @property
    def rows(self) -> int:
        """Number of rows of every batch."""
        return len(self._rows)

    @property
    def words_per_batch(self) -> int:
        """Average number of target words of a batch without idle rows."""
        return int(self.rows * float(self._target[self.pairs].mean()))

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Returns the batches of an epoch: for each row a pair's index, or -1 if it has ended."""
        stream = np.random.Generator(np.random.PCG64([self._hparams.random_seed, epoch]))
        rows = self._rows
        if self._draws:
            drawn = [self._documents[i] for i in self._draws.draw(epoch)]
            rows = assign_to_rows(drawn, self.rows)
            rows += [[]] * (self.rows - len(rows))  # so that all batches have as many
        orders = [stream.permutation(len(documents)) for documents in rows]
        return _table([[row[i] for i in order] for row, order in zip(rows, orders)])

    def _lengths(self, indexes: np.ndarray, epoch: int, repetitions: np.ndarray) -> np.ndarray:
        idle = indexes == _IDLE
        pairs = np.where(idle, self.pairs[0], indexes)
        return np.where(idle, 0, super()._lengths(pairs, epoch, repetitions))

    def _make(self, indexes: np.ndarray, epoch: int, repetitions: np.ndarray) -> Batch:
        make = partial(super()._make, epoch=epoch, repetitions=repetitions)
        return _batch(make, indexes, self.pairs[0], self._is_first)


def document_evaluation_batches(
    corpus: EncodedCorpus, rows: int, append_source_eos: bool
) -> Iterator[Batch]:
    """Yields all pairs, `rows` documents side by side, to measure perplexity on."""
    documents = _documents(corpus, np.arange(len(corpus)))
    is_first = _marked([document[0] for document in documents], len(corpus))

    def make(indexes: np.ndarray) -> Batch:
        return whole_pairs(corpus, indexes, append_source_eos)

    for indexes in _table(assign_to_rows(documents, rows)):
        yield _batch(make, indexes, 0, is_first)


def _marked(indexes: Sequence[int] | np.ndarray, count: int) -> np.ndarray:
    """Returns `count` booleans, True at the indexes."""
    marks = np.zeros(count, bool)
    marks[indexes] = True
    return marks


def _documents(corpus: Corpus, pairs: np.ndarray) -> list[np.ndarray]:
    """Returns the documents of these pairs `[n]`, each an array of pair indexes."""
    starts = document_starts(corpus.documents)[pairs]
    return np.split(pairs, np.flatnonzero(np.diff(starts)) + 1)


def _table(rows: list[list[np.ndarray]]) -> list[np.ndarray]:
    """Returns a batch of pair indexes for each step through the rows' documents."""
    columns = [np.concatenate([np.zeros([0], np.int64), *documents]) for documents in rows]
    table = np.full([max(map(len, columns)), len(columns)], _IDLE)
    for row, indexes in enumerate(columns):
        table[: len(indexes), row] = indexes
    return list(table)


def _batch(
    make: Callable[[np.ndarray], Batch], indexes: np.ndarray, filler: int, is_first: np.ndarray
) -> Batch:
    """Makes a batch with its `starts`; an idle row holds the pair `filler`, without words."""
    idle = indexes == _IDLE
    batch = make(np.where(idle, filler, indexes))
    lengths = np.where(idle, 0, batch.target_length).astype(np.int32)
    return batch._replace(
        target_length=lengths, starts=is_first[indexes] & ~idle, totals=batch_totals(lengths)
    )
