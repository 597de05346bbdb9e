"""The contents of a model's memory after the source, before the first target word."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfmann.data.batching import pad_sources
from tfmann.decoding.text_processor import TextProcessor
from tfmann.models import document_cache
from tfmann.models.seq2seq import Prepared, Seq2Seq


class MemoryContents(NamedTuple):
    """The slots of a memory.

    Attributes:
      labels: the source token of each annotation; for a memory that the cell writes, each slot's
        number and the token at whose step it was written most.
      vectors: `[S, D]` annotations, or `[N, W]` slots.
    """

    labels: list[str]
    vectors: np.ndarray


def memory_contents(model: Seq2Seq, text: TextProcessor, ids: list[int]) -> MemoryContents:
    """Reads one source, outside any document, and returns the memory.

    Args:
      model: the model.
      text: the model's text processor.
      ids: the source without `</s>`, at least one id.
    """
    source, length = pad_sources([ids], model.hparams.append_source_eos)
    before = document_cache.empty(model, 1) if document_cache.has_memory(model) else ()
    reads_itself = model.encoder is None
    record = ("write_weights",) if reads_itself else ()
    prepared = model.prepare(source, length, record=record, document=before)
    tokens = text.source_tokens(ids)
    if reads_itself:
        vectors = prepared.state.memory.memory
        return MemoryContents(_slot_labels(prepared, tokens), vectors[0].numpy())
    return MemoryContents(tokens, prepared.encoded.annotations[0].numpy())


def _slot_labels(prepared: Prepared, tokens: list[str]) -> list[str]:
    weights = prepared.diagnostics["write_weights"].numpy()[:, 0].max(axis=1)  # [S, N]
    return [f"{slot}: {tokens[step]}" for slot, step in enumerate(weights.argmax(axis=0))]
