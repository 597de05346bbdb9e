"""What stands in a model's memory when a source has been read, before the first word is written."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfmann.corpus.pipeline import pad_sources
from tfmann.decoding.lines import Lines
from tfmann.models import document
from tfmann.models.seq2seq import Prepared, Seq2Seq


class Contents(NamedTuple):
    """The slots of a memory.

    Attributes:
      labels: the source token of each annotation; of a memory that the cell has written itself, the
        slot's number and the token at whose step it was written most.
      vectors: `[S, D]` annotations, or `[N, W]` slots.
    """

    labels: list[str]
    vectors: np.ndarray


def contents(model: Seq2Seq, lines: Lines, ids: list[int]) -> Contents:
    """Reads one source, in no document, and looks into the memory.

    Args:
      model: the model.
      lines: its languages.
      ids: the source without `</s>`, at least one.
    """
    source, length = pad_sources([ids], model.hparams.append_source_eos)
    before = document.nothing_kept(model, 1) if document.keeps(model) else ()
    reads_itself = model.encoder is None
    record = ("write_weights",) if reads_itself else ()
    prepared = model.prepare(source, length, record=record, document=before)
    tokens = lines.source_tokens(ids)
    if reads_itself:
        vectors = prepared.state.memory.memory
        return Contents(_written_at(prepared, tokens), vectors[0].numpy())
    return Contents(tokens, prepared.encoded.annotations[0].numpy())


def _written_at(prepared: Prepared, tokens: list[str]) -> list[str]:
    weights = prepared.diagnostics["write_weights"].numpy()[:, 0].max(axis=1)  # [S, N]
    return [f"{slot}: {tokens[step]}" for slot, step in enumerate(weights.argmax(axis=0))]
