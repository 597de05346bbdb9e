"""What is timed: some updates, or the decoding of a batch. A run takes no argument."""

from __future__ import annotations

import time
from typing import Any, Callable

import numpy as np
import tensorflow as tf

from benchmarks import flops
from benchmarks.speed import batches, cells
from tfmann import hparams as hparams_module
from tfmann.corpus.pipeline import Batch
from tfmann.corpus.vocab import EOS_ID
from tfmann.decoding import search
from tfmann.decoding.beam import Search
from tfmann.decoding.translator import IDS, LENGTHS
from tfmann.models import document, history
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training.optimizer import base_rate
from tfmann.training.step import Learner

BEAM = 10


class Updates:
    """Updates on given batches, over and over.

    Attributes:
      operations: of a run, by formula; `words`: target words of a run, `</s>` counted.
    """

    def __init__(self, hparams: Any, given: list[Batch], vocabulary: int):
        """Builds the model; the first run compiles."""
        self._learner = Learner(hparams, vocabulary, vocabulary)
        self._batches, self._step = given, 0
        self.words = sum(batch.words for batch in given)
        self.sentences = sum(len(batch.source) for batch in given)
        self.operations = sum(_operations(hparams, batch, vocabulary) for batch in given)
        self.parameters = self._learner.model.count_parameters()

    def run(self) -> float:
        """Seconds of an update on each batch."""
        rate = base_rate(self._learner.hparams)
        begin = time.perf_counter()
        for batch in self._batches:
            told = self._learner.update(batch, self._step, rate)
            self._step += 1
        float(told.cross_entropy)  # waits
        return time.perf_counter() - begin


def _operations(hparams: Any, batch: Batch, vocabulary: int) -> int:
    over = batches.projected(hparams, batch, vocabulary)
    return sum(flops.training(hparams, n, over) for n in batches.lengths(batch))


class Decoding:
    """The search for translations of a batch, each of exactly `steps` words with `</s>`.

    Random weights would end a sentence at once or never: the way to `</s>` is closed, by its bias,
    up to the last step, which may be nothing else. So all cells take the same steps. A cache is
    read at every step, and written when the batch is done.
    """

    def __init__(self, hparams: Any, place: cells.Size, beam: bool):
        """Builds the model; the first run compiles."""
        self.model = Seq2Seq(hparams, place.vocabulary, place.vocabulary)
        self.steps, self.sentences = place.words, place.decoded
        bias = np.zeros(place.vocabulary)
        bias[EOS_ID] = -1e9
        self.model.projection_bias.assign(bias)
        self._search = _beam if beam else search.greedy
        batch = _sources(hparams, place)
        self._inputs = tf.constant(batch.source), tf.constant(batch.source_length)
        self._writes = document.keeps(self.model)
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
            kept = document.nothing_kept(self.model, self.sentences)
            return kept, document.signature(self.model)
        size = hparams_module.history_size(self.model.hparams.cell)
        if not size:
            return (), ()
        before = history.History(tf.constant(batch.history), tf.constant(batch.history_length))
        return before, history.signature(size)

    def _once(self, source: tf.Tensor, length: tf.Tensor, around: Any) -> tuple[tf.Tensor, Any]:
        """Ids, and what stands around the next sentences."""
        model = self.model
        prepared = model.prepare(source, length, document=around)
        if not self._writes:
            return self._search(model, prepared, self.steps).ids, around
        found = self._search(model, prepared, self.steps, record=model.cell.written_from)
        best = {name: value[:, 0] for name, value in found.diagnostics.items()}
        words, lengths = found.ids[:, 0], tf.cast(found.lengths[:, 0], tf.int32)
        kept = document.keep_found(model, around, prepared.encoded, best, words, lengths)
        return found.ids, kept

    def run(self) -> float:
        """Seconds of the batch."""
        begin = time.perf_counter()
        ids, around = self._compiled(*self._inputs, self._around)
        found = ids.numpy()
        seconds = time.perf_counter() - begin
        self._around = around if self._writes else self._around
        if found.shape[-1] != self.steps:
            raise ValueError(f"{found.shape[-1]} steps were taken instead of {self.steps}")
        return seconds


def _beam(model: Seq2Seq, prepared: Any, steps: int, **how: Any) -> search.Hypotheses:
    return search.beam_search(model, prepared, Search(beam_width=BEAM), steps, **how)


def _sources(hparams: Any, place: cells.Size) -> Batch:
    """The first batch of as many sentences as are decoded together."""
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


# By what is measured: a row, a size and a precision to something with a `run`.
MAKE: dict[str, Callable[[str, str, str], Any]] = {
    "train": _training,
    "beam": _decoding(beam=True),
    "greedy": _decoding(beam=False),
}
