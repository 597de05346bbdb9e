"""The document memory of a model: its state from one sentence of a document to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tfmann.cells.base import EncoderOutput
from tfmann.cells.document_memory import DocumentMemory
from tfmann.memory import continuous_cache
from tfmann.models.seq2seq import Seq2Seq


def has_memory(model: Seq2Seq) -> bool:
    """Tells whether a model has a document memory."""
    return model.cell.document_memory is not None


def empty(model: Seq2Seq, rows: tf.Tensor | int) -> continuous_cache.Cache:
    """Returns the caches of `rows` documents that are about to begin."""
    return _memory(model).empty(rows)


def signature(model: Seq2Seq) -> continuous_cache.Cache:
    """Returns the shapes and types of the caches of any number of documents."""
    cache = empty(model, 1)
    return continuous_cache.Cache(
        *(tf.TensorSpec([None, *part.shape[1:]], part.dtype) for part in cache)
    )


def write(
    model: Seq2Seq, cache: continuous_cache.Cache, outputs: Any, words: tf.Tensor, length: tf.Tensor
) -> continuous_cache.Cache:
    """Writes a complete sentence into the caches.

    Args:
      model: the model.
      cache: the caches before the sentence.
      outputs: `[T, B, O]`, before they read the memory (`ForcedOutputs.raw`).
      words: `[B, T]`, the words of the sentence.
      length: `[B]`, the number of real words, `</s>` counted; 0 for a row without a sentence.
    """
    memory = _memory(model)
    entries = memory.entries(tf.transpose(outputs, [1, 0, 2]))
    return memory.write(cache, entries, words[:, : tf.shape(outputs)[0]], length)


def write_translation(
    model: Seq2Seq,
    cache: continuous_cache.Cache,
    encoded: EncoderOutput,
    diagnostics: Mapping[str, tf.Tensor],
    words: tf.Tensor,
    length: tf.Tensor,
) -> continuous_cache.Cache:
    """Writes a search's translation into the caches.

    Args:
      model: the model.
      cache: the caches before the sentence.
      encoded: the source.
      diagnostics: `entry_diagnostics` of the search, `[B, T, ...]`.
      words: `[B, T]`, the words of the translation.
      length: `[B]`, as in `write`.
    """
    memory = _memory(model)
    entries = memory.entries_of_search(diagnostics, encoded.annotations)
    return memory.write(cache, entries, words, length)


def entry_diagnostics(model: Seq2Seq) -> tuple[str, ...]:
    """Returns the diagnostics of a search that `write_translation` needs; none without a memory."""
    return _memory(model).entry_diagnostics if has_memory(model) else ()


def _memory(model: Seq2Seq) -> DocumentMemory:
    memory = model.cell.document_memory
    if memory is None:
        raise TypeError(f"cell={model.hparams.cell!r} has no document memory")
    return memory
