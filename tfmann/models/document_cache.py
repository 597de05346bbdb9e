"""The document memory of a model: its state from one sentence of a document to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfmann.cells.base import EncoderOutput
from tfmann.cells.document_memory import DocumentMemory
from tfmann.memory import continuous_cache
from tfmann.models.seq2seq import Seq2Seq


def keeps(model: Seq2Seq) -> bool:
    """Tells whether a model has a document memory."""
    return model.cell.document_memory is not None


def nothing_kept(model: Seq2Seq, rows: tf.Tensor | int) -> continuous_cache.Cache:
    """Returns the caches of `rows` documents that are about to begin."""
    return _memory(model).empty(rows)


def signature(model: Seq2Seq) -> continuous_cache.Cache:
    """Returns the shapes and types of the caches of any number of documents."""
    one = nothing_kept(model, 1)
    return continuous_cache.Cache(
        *(tf.TensorSpec([None, *part.shape[1:]], part.dtype) for part in one)
    )


def begin(kept: continuous_cache.Cache, starts: tf.Tensor) -> continuous_cache.Cache:
    """Empties the caches `[B]` whose next sentence begins a document."""
    return continuous_cache.reset(kept, starts)


def keep(
    model: Seq2Seq, kept: continuous_cache.Cache, outputs: Any, words: tf.Tensor, length: tf.Tensor
) -> continuous_cache.Cache:
    """Writes a complete sentence.

    Args:
      model: the model.
      kept: the caches before it.
      outputs: `[T, B, O]`, before they read the memory (`ForcedOutputs.raw`).
      words: `[B, T]` its words.
      length: `[B]` how many are real, `</s>` counted; 0 for a row without a sentence.
    """
    memory = _memory(model)
    entries = memory.entries(tf.transpose(outputs, [1, 0, 2]))
    return memory.write(kept, entries, words[:, : tf.shape(outputs)[0]], length)


def keep_found(
    model: Seq2Seq,
    kept: continuous_cache.Cache,
    encoded: EncoderOutput,
    seen: Mapping[str, tf.Tensor],
    words: tf.Tensor,
    length: tf.Tensor,
) -> continuous_cache.Cache:
    """Writes a sentence that a search has found.

    Args:
      model: the model.
      kept: the caches before it.
      encoded: its source.
      seen: `entry_diagnostics` of the search, `[B, T, ...]`.
      words: `[B, T]`.
      length: `[B]`.
    """
    memory = _memory(model)
    entries = memory.entries_of_search(seen, encoded.annotations)
    return memory.write(kept, entries, words, length)


def entry_diagnostics(model: Seq2Seq) -> tuple[str, ...]:
    """Returns the diagnostics of a search that `keep_found` needs; none without a memory."""
    return _memory(model).entry_diagnostics if keeps(model) else ()


def _memory(model: Seq2Seq) -> DocumentMemory:
    memory = model.cell.document_memory
    if memory is None:
        raise TypeError(f"cell={model.hparams.cell!r} has no document memory")
    return memory
