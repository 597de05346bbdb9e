"""The state of documents between requests: a cache, or the preceding source sentences.

A signature takes and returns it as arrays with a row for each document; the server stores them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

import tensorflow as tf

from tfmann import config
from tfmann.decoding import search
from tfmann.decoding.document_stores import write_best
from tfmann.export.graph_text import EncodedLines, pad_to
from tfmann.memory.continuous_cache import Cache
from tfmann.models import document_cache
from tfmann.models.history_encoder import History, signature
from tfmann.models.seq2seq import Prepared, Seq2Seq


class CacheState:
    """The continuous cache of a model that has one (Tu et al. 2018)."""

    def __init__(self, model: Seq2Seq):
        """Takes the model, whose cell writes the cache."""
        self._model = model
        self.record = document_cache.entry_diagnostics(model)
        self.signature: Cache = document_cache.signature(model)

    def empty(self, rows: tf.Tensor) -> Cache:
        """Returns the state of documents before their first line."""
        return document_cache.empty(self._model, rows)

    def update(
        self, state: Cache, lines: EncodedLines, prepared: Prepared, hypotheses: search.Hypotheses
    ) -> Cache:
        """Returns the cache with the best translations; a blank line writes nothing."""
        return write_best(self._model, state, prepared, hypotheses, lines.blank)


class SourceState:
    """The preceding source sentences, for a model that reads them."""

    record: tuple[str, ...] = ()

    def __init__(self, size: int):
        """Takes the number of sentences."""
        self._size = size
        self.signature: History = signature(size)

    def empty(self, rows: tf.Tensor) -> History:
        """Returns the state of documents before their first line."""
        ids = tf.zeros([rows, self._size, 1], tf.int32)
        return History(ids, tf.zeros([rows, self._size], tf.int32))

    def update(
        self, state: History, lines: EncodedLines, prepared: Prepared, hypotheses: search.Hypotheses
    ) -> History:
        """Returns the state with these sources, blank ones too, in place of the oldest."""
        del prepared, hypotheses
        count = tf.cast(lines.words.row_lengths(), tf.int32)
        length = tf.concat([state.length[:, 1:], count[:, None] + 1], axis=1)
        longest = tf.maximum(tf.reduce_max(length), 1)  # there may be no documents
        before = pad_to(state.ids[:, 1:, :longest], longest)
        ids = pad_to(lines.ids[:, :longest], longest)
        return History(tf.concat([before, ids[:, None]], axis=1), length)


DocumentState = Union[CacheState, SourceState]


def document_state(model: Seq2Seq) -> DocumentState | None:
    """Returns the kind of state that the model needs, None if it reads no other sentences."""
    if document_cache.has_memory(model):
        return CacheState(model)
    size = config.cell_spec(model.hparams.cell).history_size
    return SourceState(size) if size else None


def unpack(signature: Any, arrays: Mapping[str, Any]) -> Any:
    """Returns the record, of the type of `signature`, of the arrays that `pack` has named."""
    return type(signature)(*(arrays[f"kept_{name}"] for name in signature._fields))


def pack(state: Any) -> dict[str, Any]:
    """Returns the arrays of a record by their names in a signature."""
    return {f"kept_{name}": value for name, value in state._asdict().items()}
