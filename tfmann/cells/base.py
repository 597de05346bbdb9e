"""The contract of a decoder cell, and the records that go into a step and come out of it.

Rows of a state are hypotheses, rows of `EncoderOutput` are sentences (`layers.beams`).
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from tfmann.cells.document_memory import DocumentMemory
from tfmann.config import HParams
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory

if not hasattr(tf.keras.layers, "AbstractRNNCell"):
    raise ImportError(
        "the cells are layers of Keras 2, and tf.keras is Keras 3 here: import tfmann before "
        "tf.keras is used, or set TF_USE_LEGACY_KERAS=1"
    )


class EncoderOutput(NamedTuple):
    """The encoded source, which the decoder reads; nothing writes to it."""

    annotations: tf.Tensor  # [B, S, D], zero at padding
    mask: tf.Tensor  # [B, S] float32, 1 at real positions
    length: tf.Tensor  # [B] int32
    final_state: tuple[tuple[tf.Tensor, ...], ...]  # per layer and direction: (h,) or (h, c)
    document: Any = ()  # of earlier sentences: a cache or their annotations, [B, ...]
    word_proposer: Any = ()  # a `WordProposer`, for the search alone


class StepOutput(NamedTuple):
    """One step of a cell: input of the readout, the new state, and what can be inspected."""

    output: tf.Tensor  # [B, O]
    state: Any
    diagnostics: Mapping[str, tf.Tensor]  # [B, ...]; names and shapes: `cells.diagnostics`


class AuxiliaryReadouts(Protocol):
    """Further predictions of the next word, each through a projection of its own, in training."""

    names: tuple[str, ...]

    def __call__(self, outputs: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Maps outputs `[M, O]` to a `[M, readout_width]` for each name."""


class DecoderCell(tf.keras.layers.AbstractRNNCell, abc.ABC):
    """A decoder cell over an encoded source.

    A cell creates its weights in `__init__` and defines `initial_state`, `prepare`,
    `prepare_inputs` and `step`, and `readout` if its last layer can run after the loop. What does
    not change over time is computed once, by `prepare` (of the source) and by `prepare_inputs` (of
    the inputs); `step` does the rest. A cell multiplies by its kernels with `layers.rnn.product`
    and does not know their type: in mixed precision, `layers.compute_weights` casts them all.

    What is known of a cell without TensorFlow (its settings, whether it has alignments or reads
    earlier sentences) is in `tfmann.config.cells`.
    """

    output_width: int  # O, of StepOutput.output
    readout_width: int  # of what is projected to the vocabulary
    auxiliary: AuxiliaryReadouts | None = None  # predictions whose losses are added in training
    memory_numbers = 0  # floats of memory per hypothesis
    document_memory: DocumentMemory | None = None  # of the translation of earlier sentences

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Stores the settings; subclasses then create their weights."""
        super().__init__(name="cell")
        self.hparams = hparams
        self.annotation_width = annotation_width
        del weights
        self.built = True  # weights are made in __init__

    @abc.abstractmethod
    def initial_state(self, encoded: EncoderOutput) -> Any:
        """Returns the state before the first step, a NamedTuple of float tensors [B, ...]."""

    @abc.abstractmethod
    def prepare(self, encoded: EncoderOutput) -> Any:
        """Returns what every step reads, such as projected annotations."""

    @abc.abstractmethod
    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Maps embedded words `[..., E]` to inputs of steps, for all steps at once."""

    @abc.abstractmethod
    def step(self, inputs: tf.Tensor, state: Any, source: Any) -> StepOutput:
        """Runs one step on prepared inputs `[B, I]`, a state and what `prepare` returned."""

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Maps outputs `[M, O]` and their input words `[M, E]` to `[M, readout_width]`."""
        del embedded
        return masks.dropout("readout", self.hparams.readout_dropout, outputs)

    @staticmethod
    def ancestor(name: str) -> str:
        """Returns the weight of a simpler model that `name` starts from (`init_checkpoint`)."""
        return name

    @functools.cached_property
    def state_size(self) -> Any:
        """The shapes of a state without the batch; source positions are unknown (None)."""
        shapes = [self._shapes_of_state(positions) for positions in (1, 2)]
        return tf.nest.map_structure(tf.TensorShape.most_specific_compatible_shape, *shapes)

    def state_numbers(self, positions: int) -> int:
        """Returns the floats that a hypothesis has in its state, over so many source positions."""
        shapes = (shape.as_list() for shape in tf.nest.flatten(self.state_size))
        return sum(math.prod(positions if n is None else n for n in shape) for shape in shapes)

    def _shapes_of_state(self, positions: int) -> Any:
        width, units = self.annotation_width, self.hparams.num_units
        parts = 2 if self.hparams.unit_type == "lstm" else 1
        nothing = EncoderOutput(
            annotations=tf.zeros([1, positions, width]),
            mask=tf.ones([1, positions]),
            length=tf.fill([1], positions),
            final_state=((tf.zeros([1, units]),) * parts,) * self.hparams.final_states,
        )
        return tf.nest.map_structure(lambda t: t.shape[1:], self.initial_state(nothing))

    @property
    def output_size(self) -> int:
        """The width O, under the name that Keras uses."""
        return self.output_width

    def call(
        self, inputs: tf.Tensor, states: Any, constants: tuple[tf.Tensor, ...]
    ) -> tuple[tf.Tensor, Any]:
        """Runs one step for `tf.keras.layers.RNN`, without dropout.

        Args:
          inputs: `[B, E]`, one embedded word per row.
          states: as from `initial_state`; Keras turns its NamedTuples into other sequences.
          constants: annotations `[B, S, D]`, mask `[B, S]` and length `[B]` of the source.

        Returns:
          output `[B, O]`, new state.
        """
        annotations, mask, length = constants
        encoded = EncoderOutput(annotations, mask, length, final_state=())
        source = self.prepare(encoded)
        prepared = self.prepare_inputs(inputs, DropoutMasks.none())
        state = tf.nest.pack_sequence_as(self.state_size, tf.nest.flatten(states))
        out = self.step(prepared, state, source)
        return out.output, tf.nest.pack_sequence_as(states, tf.nest.flatten(out.state))

    def save_own_variables(self, store: MutableMapping[str, np.ndarray]) -> None:
        """Saves all weights in a Keras model; Keras alone leaves out those of `tf.Module` parts."""
        for number, variable in enumerate(self.variables):
            store[str(number)] = variable.numpy()

    def load_own_variables(self, store: Mapping[str, np.ndarray]) -> None:
        """Loads what `save_own_variables` has saved.

        Raises:
          ValueError: the store has another number of weights than this cell.
        """
        variables = self.variables
        if len(store) != len(variables):
            raise ValueError(f"cell: expected {len(variables)} variables, found {len(store)}")
        for number, variable in enumerate(variables):
            variable.assign(store[str(number)])
