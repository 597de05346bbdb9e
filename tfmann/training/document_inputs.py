"""The document inputs of a batch: its preceding sentences, or the caches of its documents."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.config import cell_spec
from tfmann.data.batching import Batch
from tfmann.memory import continuous_cache
from tfmann.memory.continuous_cache import Cache
from tfmann.models import document_cache, history_encoder
from tfmann.models.seq2seq import Seq2Seq


class CacheInputs(NamedTuple):
    """The caches of a batch's documents."""

    starts: tf.Tensor  # [B] bool, the document begins here
    cache: Cache  # of the sentences before


def document_inputs(model: Seq2Seq, batch: Batch, cache: Cache | None = None) -> Any:
    """Returns the document inputs of a batch: `CacheInputs`, a `History`, or ().

    The cache is empty if none is given, and also if a run continues with another number of
    documents.
    """
    if document_cache.has_memory(model):
        rows = len(batch.source)
        if cache is None or len(cache.words) != rows:
            cache = document_cache.empty(model, rows)
        return CacheInputs(batch.starts, cache)
    if not cell_spec(model.hparams.cell).history_size:
        return ()
    return history_encoder.History(batch.history, batch.history_length)


def signature(model: Seq2Seq) -> Any:
    """Returns the shapes and types of what `document_inputs` returns."""
    if document_cache.has_memory(model):
        return CacheInputs(tf.TensorSpec([None], tf.bool), document_cache.signature(model))
    size = cell_spec(model.hparams.cell).history_size
    return history_encoder.signature(size) if size else ()


def document_context(inputs: Any) -> Any:
    """Prepares the inputs for `Seq2Seq.prepare`: empties caches where a document begins."""
    if isinstance(inputs, CacheInputs):
        return continuous_cache.reset(inputs.cache, inputs.starts)
    return inputs
