"""Stores of a `DocumentTranslator` for each document: the cell's own cache, or a neural cache."""

from __future__ import annotations

from typing import Any, Union

import numpy as np
import tensorflow as tf

from tfmann.config import TranslationSettings
from tfmann.data.vocab import EOS_ID, UNK_ID
from tfmann.decoding.search import READOUT, Hypotheses
from tfmann.memory import continuous_cache, neural_cache
from tfmann.memory.continuous_cache import Cache
from tfmann.memory.neural_cache import NeuralCache
from tfmann.memory.word_mixture import DocumentAndProposer
from tfmann.models import document_cache
from tfmann.models.seq2seq import Prepared, Seq2Seq


class CellStore:
    """The cache of a model whose cell has one.

    Attributes:
      record: diagnostics of a search that `write_best` needs.
    """

    def __init__(self, model: Seq2Seq):
        """Takes the model."""
        self._model = model
        self.record = document_cache.entry_diagnostics(model)

    def empty(self, rows: int) -> Cache:
        """Returns the caches of documents that begin."""
        return document_cache.empty(self._model, rows)

    def signature(self) -> Cache:
        """Returns the shapes and types of the caches of any number of documents."""
        return document_cache.signature(self._model)

    def begin(self, caches: Cache, starts: tf.Tensor) -> Cache:
        """Empties the caches `[B]` whose next sentence begins a document."""
        return continuous_cache.reset(caches, starts)

    def document(self, caches: Cache, history: Any) -> Cache:
        """Returns the caches: the cell reads no earlier source sentences."""
        del history
        return caches

    def write_best(self, caches: Cache, prepared: Prepared, hypotheses: Hypotheses) -> Cache:
        """Returns the caches after the best hypotheses of a search."""
        return write_best(self._model, caches, prepared, hypotheses, None)

    def write_forced(
        self, caches: Cache, entries: tf.Tensor, words: tf.Tensor, length: tf.Tensor
    ) -> Cache:
        """Returns the caches after given words `[B, T]`; `entries` is of `forced_log_probs`."""
        return document_cache.write(self._model, caches, entries, words, length)

    def slots(self, caches: Cache) -> tuple[np.ndarray, np.ndarray]:
        """Returns the words `[B, I]` and writes `[B, I]` of the slots of `cache_match`."""
        return caches.words.numpy(), caches.written.numpy()


class NeuralStore:
    """A neural cache on any model; `</s>` and `<unk>` are not written.

    Every sentence ends in `</s>`: its entries would make translations end early.
    """

    record = (READOUT,)

    def __init__(self, model: Seq2Seq, hparams: TranslationSettings):
        """Takes the model, and the settings `neural_cache_*`."""
        self._width, self._hparams = model.readout_width, hparams

    def empty(self, rows: int) -> NeuralCache:
        """Returns the caches of documents that begin."""
        return neural_cache.empty(rows, self._hparams.neural_cache_size, self._width)

    def signature(self) -> NeuralCache:
        """Returns the shapes and types of the caches of any number of documents."""
        slots = self._hparams.neural_cache_size
        return NeuralCache(
            tf.TensorSpec([None, slots, self._width]), tf.TensorSpec([None, slots], tf.int32)
        )

    def begin(self, caches: NeuralCache, starts: tf.Tensor) -> NeuralCache:
        """Empties the caches `[B]` whose next sentence begins a document."""
        return neural_cache.reset(caches, starts)

    def document(self, caches: NeuralCache, history: Any) -> DocumentAndProposer:
        """Returns caches and earlier source sentences as `Seq2Seq.prepare` takes them."""
        h = self._hparams
        source = neural_cache.prepare(caches, h.neural_cache_theta, h.neural_cache_lambda)
        return DocumentAndProposer(history, source)

    def write_best(
        self, caches: NeuralCache, prepared: Prepared, hypotheses: Hypotheses
    ) -> NeuralCache:
        """Returns the caches after the best hypotheses of a search."""
        del prepared
        assert hypotheses.diagnostics is not None
        readouts, lengths = hypotheses.diagnostics[READOUT][:, 0], hypotheses.lengths[:, 0]
        return self._write(caches, readouts, hypotheses.ids[:, 0], lengths)

    def write_forced(
        self, caches: NeuralCache, entries: tf.Tensor, words: tf.Tensor, length: tf.Tensor
    ) -> NeuralCache:
        """Returns the caches after given words `[B, T]` with the readouts `[T', B, R]`."""
        words = words[:, : tf.shape(entries)[0]]
        return self._write(caches, tf.transpose(entries, [1, 0, 2]), words, length)

    def _write(
        self, caches: NeuralCache, readouts: tf.Tensor, words: tf.Tensor, length: tf.Tensor
    ) -> NeuralCache:
        real = tf.sequence_mask(length, tf.shape(words)[1])
        real &= (words != EOS_ID) & (words != UNK_ID)
        return neural_cache.write(caches, readouts, words, real)

    def slots(self, caches: NeuralCache) -> None:
        """Returns nothing: its slots are not those of `cache_match`."""


# The caches in a store are NamedTuples of tensors [B, ...].
DocumentStore = Union[CellStore, NeuralStore]


def make_store(model: Seq2Seq, hparams: TranslationSettings) -> DocumentStore | None:
    """Returns the store that a model and the settings of its search need; None without a cache."""
    if document_cache.has_memory(model):
        return CellStore(model)
    return NeuralStore(model, hparams) if hparams.neural_cache_size else None


def write_best(
    model: Seq2Seq,
    cache: Cache,
    prepared: Prepared,
    hypotheses: Hypotheses,
    blank: tf.Tensor | None,
) -> Cache:
    """Writes the best hypotheses of a search to the caches of their documents.

    Args:
      model: a model with a cache.
      cache: the caches before, a row a document.
      prepared: the sources.
      hypotheses: of the search, with the diagnostics `entry_diagnostics`.
      blank: `[B]` bool, lines that add nothing; None: there are none.
    """
    best = {name: value[:, 0] for name, value in (hypotheses.diagnostics or {}).items()}
    lengths = tf.cast(hypotheses.lengths[:, 0], tf.int32)
    if blank is not None:
        lengths = tf.where(blank, 0, lengths)
    return document_cache.write_translation(
        model, cache, prepared.encoded, best, hypotheses.ids[:, 0], lengths
    )
