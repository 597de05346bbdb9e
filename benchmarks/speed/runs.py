"""The timed programs: some updates, or the decoding of a batch. A run takes no argument."""

from __future__ import annotations

import time
from typing import Any, Callable

import numpy as np
import tensorflow as tf

from benchmarks import flops
from benchmarks.speed import batches, cells
from tfmann import config
from tfmann.data.batching import Batch
from tfmann.data.vocab import EOS_ID
from tfmann.decoding import search
from tfmann.decoding.beam import BeamOptions
from tfmann.models import document_cache, history_encoder
from tfmann.models.seq2seq import IDS, LENGTHS, Seq2Seq
from tfmann.training.optimizer import base_rate
from tfmann.training.train_step import TrainStep

BEAM = 10


class Updates:
    """Updates on given batches, repeatedly.

    Attributes:
      operations: of a run, by formula.
      words: target words of a run, `</s>` included.
    """

    def __init__(self, hparams: Any, training_batches: list[Batch], vocabulary: int):
        """Builds the model; the first run compiles."""
        self._learner = TrainStep(hparams, vocabulary, vocabulary)
        self._batches, self._step = training_batches, 0
        self.words = sum(batch.words for batch in training_batches)
        self.sentences = sum(len(batch.source) for batch in training_batches)
        self.operations = sum(_operations(hparams, batch, vocabulary) for batch in training_batches)
        self.parameters = self._learner.model.count_parameters()

    def run(self) -> float:
        """Returns the seconds of an update on each batch."""
        rate = base_rate(self._learner.hparams)
        begin = time.perf_counter()
        for batch in self._batches:
            update = self._learner.update(batch, self._step, rate)
            self._step += 1
        float(update.cross_entropy)  # waits
        return time.perf_counter() - begin


def _operations(hparams: Any, batch: Batch, vocabulary: int) -> int:
    over = batches.projected(hparams, batch, vocabulary)
    return sum(flops.training(hparams, n, over) for n in batches.lengths(batch))


class Decoding:
    """The search for translations of a batch, each of exactly `steps` words with `</s>`.

    With random weights a sentence would end at once or never. Therefore the bias forbids `</s>` up
    to the last step, where only `</s>` is allowed: all cells take the same number of steps. A cache
    is read at every step and written after the batch.
    """

    def __init__(self, hparams: Any, size: cells.Size, beam: bool):
        """Builds the model; the first run compiles."""
        self.model = Seq2Seq(hparams, size.vocabulary, size.vocabulary)
        self.steps, self.sentences = size.words, size.decoded
        bias = np.zeros(size.vocabulary)
        bias[EOS_ID] = -1e9
        assert self.model.projection_bias is not None
        self.model.projection_bias.assign(bias)
        self._search = _beam if beam else search.greedy
        batch = _sources(hparams, size)
        self._inputs = tf.constant(batch.source), tf.constant(batch.source_length)
        self._writes = document_cache.has_memory(self.model)
        self._context, signature = self._first_context(batch)
        self._compiled = tf.function(
            self._once, autograph=False, input_signature=[IDS, LENGTHS, signature]
        )
        self.words = self.sentences * self.steps
        hypotheses = self.steps * (BEAM if beam else 1)
        self.operations = sum(
            flops.encoding(hparams, n)
            + hypotheses * flops.decoding_step(hparams, n, size.vocabulary)
            + flops.writing(hparams, n._replace(target=self.steps))
            for n in batches.lengths(batch)
        )
        self.parameters = self.model.count_parameters()

    def _first_context(self, batch: Batch) -> tuple[Any, Any]:
        """Returns an empty cache, a history or (), and its shapes and types."""
        if self._writes:
            cache = document_cache.empty(self.model, self.sentences)
            return cache, document_cache.signature(self.model)
        history_size = config.cell_spec(self.model.hparams.cell).history_size
        if not history_size:
            return (), ()
        history = history_encoder.History(
            tf.constant(batch.history), tf.constant(batch.history_length)
        )
        return history, history_encoder.signature(history_size)

    def _once(self, source: tf.Tensor, length: tf.Tensor, context: Any) -> tuple[tf.Tensor, Any]:
        """Returns ids, and the document context of the next sentences."""
        model = self.model
        prepared = model.prepare(source, length, document=context)
        if not self._writes:
            return self._search(model, prepared, search.SearchOptions(self.steps)).ids, context
        options = search.SearchOptions(self.steps, record=document_cache.entry_diagnostics(model))
        hypotheses = self._search(model, prepared, options)
        best = {name: value[:, 0] for name, value in (hypotheses.diagnostics or {}).items()}
        words, lengths = hypotheses.ids[:, 0], tf.cast(hypotheses.lengths[:, 0], tf.int32)
        updated = document_cache.write_translation(
            model, context, prepared.encoded, best, words, lengths
        )
        return hypotheses.ids, updated

    def run(self) -> float:
        """Returns the seconds of the batch."""
        begin = time.perf_counter()
        ids, context = self._compiled(*self._inputs, self._context)
        ids = ids.numpy()  # waits
        seconds = time.perf_counter() - begin
        self._context = context if self._writes else self._context
        if ids.shape[-1] != self.steps:
            raise ValueError(f"expected {self.steps} steps, not {ids.shape[-1]}")
        return seconds


def _beam(model: Seq2Seq, prepared: Any, options: search.SearchOptions) -> search.Hypotheses:
    return search.beam_search(model, prepared, BeamOptions(beam_width=BEAM), options)


def _sources(hparams: Any, size: cells.Size) -> Batch:
    """Returns the first batch, with as many sentences as are decoded together."""
    settings = hparams.replace(batch_size=size.decoded)
    return batches.of_training(settings, size.words, size.vocabulary, 1)[0]


def _training(row: str, size_name: str, precision: str) -> Updates:
    size, h = cells.SIZES[size_name], cells.hparams(row, size_name, precision=precision)
    training_batches = batches.of_training(h, size.words, size.vocabulary, size.updates)
    return Updates(h, training_batches, size.vocabulary)


def _decoding(beam: bool) -> Callable[[str, str, str], Decoding]:
    def make(row: str, size: str, precision: str) -> Decoding:
        h = cells.hparams(row, size, precision=precision, trainable_parameters="")
        return Decoding(h, cells.SIZES[size], beam)

    return make


# By kind of measurement: makes a program with a `run` from a row, a size and a precision.
MAKE: dict[str, Callable[[str, str, str], Any]] = {
    "train": _training,
    "beam": _decoding(beam=True),
    "greedy": _decoding(beam=False),
}
