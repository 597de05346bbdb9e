"""What a model keeps from sentence to sentence of a document: the continuous cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfmann.cells.base import Encoded
from tfmann.memory import cache
from tfmann.models.seq2seq import Seq2Seq


def keeps(model: Seq2Seq) -> bool:
    """Whether a model keeps anything."""
    return model.cell.document_memory == "cache"


def nothing_kept(model: Seq2Seq, rows: tf.Tensor | int) -> cache.Cache:
    """What is kept of `rows` documents that are about to begin."""
    h = model.hparams
    return cache.empty(rows, h.cache_size, model.cell.annotation_width, h.num_units)


def signature(model: Seq2Seq) -> cache.Cache:
    """The shapes and types of what is kept of any number of documents."""
    one = nothing_kept(model, 1)
    return cache.Cache(*(tf.TensorSpec([None, *part.shape[1:]], part.dtype) for part in one))


def begin(kept: cache.Cache, starts: tf.Tensor) -> cache.Cache:
    """Forgets the documents `[B]` that begin anew."""
    return cache.reset(kept, starts)


def keep(
    model: Seq2Seq, kept: cache.Cache, outputs: Any, words: tf.Tensor, length: tf.Tensor
) -> cache.Cache:
    """Writes a complete sentence.

    Args:
      model: the model.
      kept: before it.
      outputs: `[T, B, O]` of its decoding, before anything was recalled (`search.Decoded.raw`).
      words: `[B, T]` its words.
      length: `[B]` how many are real, `</s>` counted; 0 for a row without a sentence.
    """
    keys, values = model.cell.writes(tf.transpose(outputs, [1, 0, 2]))
    words = words[:, : tf.shape(outputs)[0]]
    return cache.write(kept, keys, values, words, length, model.hparams.cache_overwrite)


def keep_found(
    model: Seq2Seq,
    kept: cache.Cache,
    encoded: Encoded,
    seen: Mapping[str, tf.Tensor],
    words: tf.Tensor,
    length: tf.Tensor,
) -> cache.Cache:
    """As `keep`, of sentences that a search has found.

    Args:
      model: the model.
      kept: before them.
      encoded: their sources.
      seen: `[B, T, ...]`, what the search recorded of `model.cell.written_from`.
      words: `[B, T]`.
      length: `[B]`.
    """
    keys, values = model.cell.writes_seen(seen, encoded)
    return cache.write(kept, keys, values, words, length, model.hparams.cache_overwrite)
