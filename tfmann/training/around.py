"""What goes with a batch beside its sentences: their history, or what their documents have kept."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.corpus.pipeline import Batch
from tfmann.memory.cache import Cache
from tfmann.models import document, history
from tfmann.models.seq2seq import Seq2Seq


class Kept(NamedTuple):
    """What documents have kept, and which of them begin."""

    starts: tf.Tensor  # [B] bool
    cache: Cache  # of the sentences before


def signature(model: Seq2Seq) -> Any:
    """The shapes and types of what `of` returns."""
    if document.keeps(model):
        return Kept(tf.TensorSpec([None], tf.bool), document.signature(model))
    size = model.cell.history_size
    return history.signature(size) if size else ()


def of(model: Seq2Seq, batch: Batch, cache: Cache | None = None) -> Any:
    """What goes with a batch; without a `cache`, nothing is kept yet.

    Nothing that fits is, either, where a run goes on with another number of documents.
    """
    if document.keeps(model):
        rows = len(batch.source)
        if cache is None or len(cache.words) != rows:
            cache = document.nothing_kept(model, rows)
        return Kept(batch.starts, cache)
    if not model.cell.history_size:
        return ()
    return history.History(batch.history, batch.history_length)


def begin(around: Any) -> Any:
    """As `Seq2Seq.prepare` takes it: without what was kept of documents that have ended."""
    return document.begin(around.cache, around.starts) if isinstance(around, Kept) else around
