"""What a server keeps of a document from line to line: a cache, or the sources before.

It goes in and comes out as arrays, a row a document, so that the server may hold it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

import tensorflow as tf

from tfmann import hparams as hparams_module
from tfmann.decoding import search
from tfmann.decoding.document import keep_best
from tfmann.export.sides import Asked, pad_to
from tfmann.memory.cache import Cache
from tfmann.models import document
from tfmann.models.history import History, signature
from tfmann.models.seq2seq import Prepared, Seq2Seq


class KeptCache:
    """The cache of a model that has one (Tu et al. 2018)."""

    def __init__(self, model: Seq2Seq):
        """For that model."""
        self._model = model
        self.record = model.cell.written_from
        self.signature: Cache = document.signature(model)

    def nothing(self, rows: tf.Tensor) -> Cache:
        """Of documents that are about to begin."""
        return document.nothing_kept(self._model, rows)

    def after(
        self, kept: Cache, asked: Asked, prepared: Prepared, found: search.Hypotheses
    ) -> Cache:
        """With the best translations; a blank line adds nothing."""
        return keep_best(self._model, kept, prepared, found, asked.blank)


class KeptSources:
    """The source sentences before, of a model that looks at them."""

    record: tuple[str, ...] = ()

    def __init__(self, size: int):
        """At most `size` sentences."""
        self._size = size
        self.signature: History = signature(size)

    def nothing(self, rows: tf.Tensor) -> History:
        """Of documents that are about to begin."""
        ids = tf.zeros([rows, self._size, 1], tf.int32)
        return History(ids, tf.zeros([rows, self._size], tf.int32))

    def after(
        self, kept: History, asked: Asked, prepared: Prepared, found: search.Hypotheses
    ) -> History:
        """With these sources, each with its `</s>`, in the place of the oldest; blank ones too."""
        del prepared, found
        count = tf.cast(asked.words.row_lengths(), tf.int32)
        width = tf.maximum(tf.reduce_max(count) + 1, tf.shape(kept.ids)[2])
        ids = pad_to(asked.ids, tf.maximum(width, tf.shape(asked.ids)[1]))
        before = pad_to(kept.ids[:, 1:], tf.shape(ids)[1])
        return History(
            tf.concat([before, ids[:, None]], axis=1),
            tf.concat([kept.length[:, 1:], count[:, None] + 1], axis=1),
        )


Keeper = Union[KeptCache, KeptSources]


def keeper(model: Seq2Seq) -> Keeper | None:
    """What keeps a document of the model, if it looks at other sentences."""
    if document.keeps(model):
        return KeptCache(model)
    size = hparams_module.history_size(model.hparams.cell)
    return KeptSources(size) if size else None


def unnamed(signature: Any, arrays: Mapping[str, Any]) -> Any:
    """The record that `signature` is the like of, of its arrays by name."""
    return type(signature)(*(arrays[f"kept_{name}"] for name in signature._fields))


def named(kept: Any) -> dict[str, Any]:
    """The arrays under the names that a signature has for them."""
    return {f"kept_{name}": value for name, value in kept._asdict().items()}
