"""The contents of a model's memory after the source, before the first target word."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.diagnostics import ADDRESSES
from tfmann.data.batching import pad_sources
from tfmann.decoding.text_processor import TextProcessor
from tfmann.models import document_cache
from tfmann.models.seq2seq import Prepared, Seq2Seq


class MemoryContents(NamedTuple):
    """The slots of a memory.

    Attributes:
      labels: the source token of each annotation; for a memory that the cell writes, each slot's
        number, and where the cell shows its `write_weights` the token at whose step it was written
        most.
      vectors: `[S, D]` annotations, or `[N, W]` slots.
    """

    labels: list[str]
    vectors: np.ndarray


def memory_contents(model: Seq2Seq, text: TextProcessor, ids: list[int]) -> MemoryContents | None:
    """Reads one source, outside any document, and returns the memory.

    That of a cell which reads the source itself is the part `memory` of its state, a tensor
    `[B, N, W]` or a structure whose part `memory` is one. A cell without such a part has none.

    Args:
      model: the model.
      text: the model's text processor.
      ids: the source without `</s>`, at least one id.
    """
    source, length = pad_sources([ids], model.hparams.append_source_eos)
    before = document_cache.empty(model, 1) if document_cache.has_memory(model) else ()
    reads_itself = model.encoder is None
    record = ADDRESSES if reads_itself else ()
    prepared = model.prepare(source, length, record=record, document=before)
    tokens = text.source_tokens(ids)
    if not reads_itself:
        return MemoryContents(tokens, prepared.encoded.annotations[0].numpy())
    vectors = _slots(prepared.state)
    if vectors is None:
        return None
    return MemoryContents(_slot_labels(prepared, tokens, vectors.shape[1]), vectors[0].numpy())


def _slots(state: Any) -> tf.Tensor | None:
    """Returns the slots `[B, N, W]` of a state; None if it has no memory of slots."""
    part = getattr(state, "memory", None)
    memory: Any = getattr(part, "memory", part)
    return memory if tf.is_tensor(memory) and memory.shape.rank == 3 else None


def _slot_labels(prepared: Prepared, tokens: list[str], slots: int) -> list[str]:
    if "write_weights" not in prepared.diagnostics:
        return list(map(str, range(slots)))
    weights = prepared.diagnostics["write_weights"].numpy()[:, 0].max(axis=1)  # [S, N]
    return [f"{slot}: {tokens[step]}" for slot, step in enumerate(weights.argmax(axis=0))]
