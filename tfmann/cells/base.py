"""The contract of a memory cell, and the records that go in and come out of a step.

Rows of a state are hypotheses; rows of `Encoded` are sentences. In training there is one
hypothesis a sentence; in a beam there are K, side by side: row b*K + k of the state belongs to
row b of the source. `per_sentence` brings a row-wise tensor beside its source.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

import tensorflow as tf

from tfmann.cells.noise import Noise
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import deferred


class Encoded(NamedTuple):
    """What the encoder leaves for the decoder to read; nothing writes to it."""

    annotations: tf.Tensor  # [B, S, D], zero at padding
    mask: tf.Tensor  # [B, S] float32, 1 at real positions
    length: tf.Tensor  # [B] int32
    final_state: tuple[tuple[tf.Tensor, ...], ...]  # per layer and direction: (h,) or (h, c)
    document: Any = ()  # what the sentences before this one left, a structure of [B, ...]


class StepOutput(NamedTuple):
    """One step of a cell: what the readout needs, the new state, and what can be looked at."""

    output: tf.Tensor  # [B, O]
    state: Any
    diagnostics: Mapping[str, tf.Tensor]  # [B, ...]; names and shapes: `cells.diagnostics`


class MemoryCell(tf.keras.layers.AbstractRNNCell, abc.ABC):
    """A decoder cell over an encoded source.

    A cell creates its weights in `__init__` and writes `initial_state`, `prepare`,
    `prepare_inputs` and `step`; `readout` where its last layer need not stand in the loop. What
    does not change over time is computed once, by `prepare` (of the source) and by
    `prepare_inputs` (of the inputs); `step` does the rest.
    """

    needs_annotations = True  # False: the cell can do without an encoder, and has no alignments
    # What the cell looks at of the sentences before this one: nothing, their source words
    # ("history"), or what was kept of their translation ("cache").
    document_memory = ""
    history_size = 0  # P, of a "history": how many sentences before at most
    history_form = ""  # what becomes of it: "summary" or "annotations" (`cells.history`)
    output_width: int  # O, of StepOutput.output
    readout_width: int  # of what is projected to the vocabulary
    beside_width = 0  # of what a readout carries beside that, for `distribution`
    memory_numbers = 0  # of the memory of its own that a row has at every step
    written_from: tuple[str, ...] = ()  # diagnostics that `writes_seen` takes
    recalls: tuple[str, ...] = ()  # diagnostics of `recall`; none: there is nothing to ask

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Keeps the settings; subclasses go on to create their weights."""
        super().__init__(name="cell")
        self.hparams = hparams
        self.annotation_width = annotation_width
        del weights
        self.built = True  # weights are made in __init__

    @abc.abstractmethod
    def initial_state(self, encoded: Encoded) -> Any:
        """Returns the state before the first step, a NamedTuple of float tensors [B, ...]."""

    @abc.abstractmethod
    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> Any:
        """Returns what every step reads: projected annotations, and weights as `dtype`."""

    @abc.abstractmethod
    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        """Maps embedded words `[..., E]` to what a step takes, for all steps at once."""

    @abc.abstractmethod
    def step(self, inputs: tf.Tensor, state: Any, memory: Any) -> StepOutput:
        """One step: prepared inputs `[B, I]`, state and what `prepare` returned."""

    def readout(
        self,
        outputs: tf.Tensor,
        embedded: tf.Tensor,
        noise: Noise,
        dtype: tf.DType = tf.float32,
    ) -> tf.Tensor:
        """Maps outputs `[M, O]` beside their input words `[M, E]` to what is projected."""
        del embedded, dtype
        return noise.dropout("readout", self.hparams.readout_dropout, outputs)

    def recall(
        self, outputs: tf.Tensor, memory: Any, seen: Mapping[str, tf.Tensor] | None
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """What outputs are beside what the cell remembers of other sentences.

        Nothing of it returns into the state. So it stands outside the loop over given words, for
        all steps at once; in a search it follows `step`. Asked of cells that name `recalls`.

        Args:
          outputs: `[B, n, O]`, n steps or hypotheses of each sentence.
          memory: what `prepare` returned.
          seen: in a search the step's diagnostics; what holds for all steps is better worked out
            before them then. None outside the loop.

        Returns:
          outputs as `readout` takes them `[B, n, O']`, diagnostics `[B, n, ...]`.
        """
        del memory, seen
        return outputs, {}

    def writes(self, outputs: tf.Tensor) -> Any:
        """What of a sentence's outputs `[B, T, O]`, not recalled, a later sentence may need."""
        del outputs
        return ()

    def writes_seen(self, seen: Mapping[str, tf.Tensor], encoded: Encoded) -> Any:
        """The same from the diagnostics `written_from` of a search, `[B, T, ...]`."""
        del seen, encoded
        return ()

    def distribution(
        self, readout: tf.Tensor, project: Callable[[tf.Tensor], tf.Tensor]
    ) -> tf.Tensor:
        """A readout `[M, R]` to logits `[M, V]`, by `project` from `[M, readout_width]`."""
        return project(readout)

    @staticmethod
    def ancestor(name: str) -> str:
        """The weight of a simpler model that the weight `name` starts from (`init_checkpoint`)."""
        return name

    @property
    def state_size(self) -> Any:
        """The state's shapes without the batch; source positions are unknown (None)."""
        width = self.annotation_width
        units = self.hparams.num_units
        parts = 2 if self.hparams.unit_type == "lstm" else 1
        nothing = Encoded(
            annotations=tf.zeros([1, 1, width]),
            mask=tf.ones([1, 1]),
            length=tf.ones([1], tf.int32),
            final_state=((tf.zeros([1, units]),) * parts,) * self.hparams.final_states,
        )
        return tf.nest.map_structure(lambda t: t.shape[1:], self.initial_state(nothing))

    @property
    def output_size(self) -> int:
        """O, as Keras calls it."""
        return self.output_width

    def call(
        self, inputs: tf.Tensor, states: Any, constants: tuple[tf.Tensor, ...]
    ) -> tuple[tf.Tensor, Any]:
        """One step as `tf.keras.layers.RNN` wants it, without dropout.

        Args:
          inputs: `[B, E]`, one embedded word a row.
          states: as from `initial_state`.
          constants: annotations `[B, S, D]`, mask `[B, S]` and length `[B]` of the source.

        Returns:
          output `[B, O]`, new state.
        """
        annotations, mask, length = constants
        encoded = Encoded(annotations, mask, length, final_state=())
        memory = self.prepare(encoded)
        prepared = self.prepare_inputs(inputs, Noise.none())
        out = self.step(prepared, states, memory)
        return out.output, out.state


def per_sentence(rows: tf.Tensor, sentences: tf.Tensor) -> tf.Tensor:
    """Reshapes rows `[B*K, ...]` to `[B, K, ...]`, B as in `sentences`.

    Where a loop with a row a sentence is traced, K is known to be 1.
    """
    if deferred.one_row_a_sentence():
        return tf.expand_dims(rows, 1)
    shape = tf.concat([[tf.shape(sentences)[0], -1], tf.shape(rows)[1:]], axis=0)
    result = tf.reshape(rows, shape)
    result.set_shape([sentences.shape[0], None, *rows.shape[1:]])
    return result


def per_row(grouped: tf.Tensor) -> tf.Tensor:
    """Reshapes `[B, K, ...]` back to rows `[B*K, ...]`."""
    result = tf.reshape(grouped, tf.concat([[-1], tf.shape(grouped)[2:]], axis=0))
    result.set_shape([None, *grouped.shape[2:]])
    return result
