"""What goes with a batch beside its sentences: their history, or what their documents have kept."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfmann import hparams as hparams_module
from tfmann.corpus.pipeline import Batch
from tfmann.memory.cache import Cache
from tfmann.models import document
from tfmann.models.history import History
from tfmann.models.seq2seq import Seq2Seq


class Kept(NamedTuple):
    """What documents have kept, and which of them begin."""

    starts: tf.Tensor  # [B] bool
    cache: Cache  # of the sentences before


def signature(model: Seq2Seq) -> Any:
    """The shapes and types of what `of` returns."""
    if document.keeps(model):
        one = document.nothing_kept(model, 1)
        parts = (tf.TensorSpec([None, *part.shape[1:]], part.dtype) for part in one)
        return Kept(tf.TensorSpec([None], tf.bool), Cache(*parts))
    size = hparams_module.history_size(model.hparams.cell)
    if not size:
        return ()
    ids = tf.TensorSpec([None, size, None], tf.int32)
    return History(ids, tf.TensorSpec([None, size], tf.int32))


def of(model: Seq2Seq, batch: Batch, cache: Cache | None = None) -> Any:
    """What goes with a batch; without a `cache`, nothing is kept yet.

    Nothing that fits is, either, where a run goes on with another number of documents.
    """
    if document.keeps(model):
        rows = len(batch.source)
        if cache is None or len(cache.words) != rows:
            cache = document.nothing_kept(model, rows)
        return Kept(batch.starts, cache)
    if not hparams_module.history_size(model.hparams.cell):
        return ()
    return History(batch.history, batch.history_length)


def begin(around: Any) -> Any:
    """As `Seq2Seq.prepare` takes it: without what was kept of documents that have ended."""
    return document.begin(around.cache, around.starts) if isinstance(around, Kept) else around
