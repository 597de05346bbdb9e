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
from tfmann.decoding.beam_scoring import BeamOptions
from tfmann.decoding.translator import IDS, LENGTHS
from tfmann.models import document_cache, history_encoder
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training.optimizer import base_rate
from tfmann.training.train_step import TrainStep

BEAM = 10


class Updates:
    """Updates on given batches, repeatedly.

    Attributes:
      operations: of a run, by formula.
      words: target words of a run, `</s>` included.
    """

    def __init__(self, hparams: Any, given: list[Batch], vocabulary: int):
        """Builds the model; the first run compiles."""
        self._learner = TrainStep(hparams, vocabulary, vocabulary)
        self._batches, self._step = given, 0
        self.words = sum(batch.words for batch in given)
        self.sentences = sum(len(batch.source) for batch in given)
        self.operations = sum(_operations(hparams, batch, vocabulary) for batch in given)
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

    Random weights would end a sentence at once or never. So the bias forbids `</s>` up to the last
    step, where nothing else is allowed, and all cells take the same number of steps. A cache is
    read at every step and written after the batch.
    """

    def __init__(self, hparams: Any, place: cells.Size, beam: bool):
        """Builds the model; the first run compiles."""
        self.model = Seq2Seq(hparams, place.vocabulary, place.vocabulary)
        self.steps, self.sentences = place.words, place.decoded
        bias = np.zeros(place.vocabulary)
        bias[EOS_ID] = -1e9
        assert self.model.projection_bias is not None
        self.model.projection_bias.assign(bias)
        self._search = _beam if beam else search.greedy
        batch = _sources(hparams, place)
        self._inputs = tf.constant(batch.source), tf.constant(batch.source_length)
        self._writes = document_cache.has_memory(self.model)
        self._around, signature = self._what_stands_around(batch)
        self._compiled = tf.function(
            self._once, autograph=False, input_signature=[IDS, LENGTHS, signature]
        )
        self.words = self.sentences * self.steps
        hypotheses = self.steps * (BEAM if beam else 1)
        self.operations = sum(
            flops.encoding(hparams, n)
            + hypotheses * flops.decoding_step(hparams, n, place.vocabulary)
            + flops.writing(hparams, n._replace(target=self.steps))
            for n in batches.lengths(batch)
        )
        self.parameters = self.model.count_parameters()

    def _what_stands_around(self, batch: Batch) -> tuple[Any, Any]:
        """An empty cache, or a history, or nothing; and its shapes and types."""
        if self._writes:
            kept = document_cache.empty(self.model, self.sentences)
            return kept, document_cache.signature(self.model)
        size = config.cell_spec(self.model.hparams.cell).history_size
        if not size:
            return (), ()
        before = history_encoder.History(
            tf.constant(batch.history), tf.constant(batch.history_length)
        )
        return before, history_encoder.signature(size)

    def _once(self, source: tf.Tensor, length: tf.Tensor, around: Any) -> tuple[tf.Tensor, Any]:
        """Returns ids, and the document context of the next sentences."""
        model = self.model
        prepared = model.prepare(source, length, document=around)
        if not self._writes:
            return self._search(model, prepared, search.SearchOptions(self.steps)).ids, around
        options = search.SearchOptions(self.steps, record=document_cache.entry_diagnostics(model))
        found = self._search(model, prepared, options)
        best = {name: value[:, 0] for name, value in (found.diagnostics or {}).items()}
        words, lengths = found.ids[:, 0], tf.cast(found.lengths[:, 0], tf.int32)
        kept = document_cache.write_translation(
            model, around, prepared.encoded, best, words, lengths
        )
        return found.ids, kept

    def run(self) -> float:
        """Returns the seconds of the batch."""
        begin = time.perf_counter()
        ids, around = self._compiled(*self._inputs, self._around)
        found = ids.numpy()
        seconds = time.perf_counter() - begin
        self._around = around if self._writes else self._around
        if found.shape[-1] != self.steps:
            raise ValueError(f"expected {self.steps} steps, not {found.shape[-1]}")
        return seconds


def _beam(model: Seq2Seq, prepared: Any, options: search.SearchOptions) -> search.Hypotheses:
    return search.beam_search(model, prepared, BeamOptions(beam_width=BEAM), options)


def _sources(hparams: Any, place: cells.Size) -> Batch:
    """Returns the first batch, with as many sentences as are decoded together."""
    of_that_many = hparams.replace(batch_size=place.decoded)
    return batches.of_training(of_that_many, place.words, place.vocabulary, 1)[0]


def _training(row: str, size: str, precision: str) -> Updates:
    place, h = cells.SIZES[size], cells.hparams(row, size, precision=precision)
    given = batches.of_training(h, place.words, place.vocabulary, place.updates)
    return Updates(h, given, place.vocabulary)


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
