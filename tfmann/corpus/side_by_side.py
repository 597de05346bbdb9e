"""Documents side by side: row b of a batch goes on where row b of the batch before it stood."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tfmann.corpus.documents import beginnings, deal
from tfmann.corpus.encode import Encoded
from tfmann.corpus.pipeline import Batch, Share, Training, counts, make_batch
from tfmann.hparams import HParams

_NOTHING = -1  # in a plan: this row has no sentence left


class SideBySide(Training):
    """Batches of a training corpus in documents; `batch_size` counts documents.

    A row takes its next document where one ends. Documents are dealt out once, so that all rows end
    at about the same time; every epoch has an order of its own within each row. A row that has
    ended before the others has no words to predict.
    """

    def __init__(
        self,
        corpus: Encoded,
        hparams: HParams,
        share: Share = Share(),  # noqa: B008 (immutable)
    ):
        """Deals the documents out.

        Raises:
          UserError: no pair is left.
        """
        super().__init__(corpus, hparams, share=share)
        documents = _documents(corpus, self.kept)
        self._rows = deal(documents, hparams.batch_size)
        self._first = np.array([document[0] for document in documents])
        self.report += f"; {len(documents)} documents, {len(self._rows)} side by side"

    @property
    def rows(self) -> int:
        """Rows of every batch."""
        return len(self._rows)

    @property
    def words(self) -> int:
        """As of any training, of the documents side by side."""
        return int(self.rows * float(self._target[self.kept].mean()))

    def plan(self, epoch: int) -> list[np.ndarray]:
        """The batches of an epoch, each an array of pair indexes, one a row, or -1."""
        stream = np.random.Generator(np.random.PCG64([self._hparams.random_seed, epoch]))
        orders = [stream.permutation(len(documents)) for documents in self._rows]
        return _table([[row[i] for i in order] for row, order in zip(self._rows, orders)])

    def _lengths(self, indexes: np.ndarray) -> np.ndarray:
        return np.where(indexes == _NOTHING, 0, super()._lengths(indexes))

    def _make(self, indexes: np.ndarray) -> Batch:
        return _batch(super()._make, indexes, self.kept[0], self._first)


def in_documents(corpus: Encoded, rows: int, append_source_eos: bool) -> Iterator[Batch]:
    """All pairs in documents side by side, for measuring perplexity."""
    documents = _documents(corpus, np.arange(len(corpus)))
    first = np.array([document[0] for document in documents])

    def make(indexes: np.ndarray) -> Batch:
        return make_batch(
            [corpus.source(i) for i in indexes],
            [corpus.target(i) for i in indexes],
            corpus.documents[indexes],
            indexes,
            append_source_eos,
        )

    for indexes in _table(deal(documents, rows)):
        yield _batch(make, indexes, 0, first)


def _documents(corpus: Encoded, kept: np.ndarray) -> list[np.ndarray]:
    """The documents of those pairs that are kept, each an array of indexes."""
    begin = beginnings(corpus.documents)[kept]
    return np.split(kept, np.flatnonzero(np.diff(begin)) + 1)


def _table(rows: list[list[np.ndarray]]) -> list[np.ndarray]:
    """Rows of documents, one after the other, to columns of pair indexes."""
    columns = [np.concatenate(documents) for documents in rows]
    table = np.full([max(map(len, columns)), len(columns)], _NOTHING)
    for row, indexes in enumerate(columns):
        table[: len(indexes), row] = indexes
    return list(table)


def _batch(make, indexes: np.ndarray, anything: int, first: np.ndarray) -> Batch:
    """A batch with its documents' beginnings; a row without a sentence has no words."""
    idle = indexes == _NOTHING
    batch = make(np.where(idle, anything, indexes))
    lengths = np.where(idle, 0, batch.target_length).astype(np.int32)
    return batch._replace(
        target_length=lengths, starts=np.isin(indexes, first), whole=counts(lengths)
    )
