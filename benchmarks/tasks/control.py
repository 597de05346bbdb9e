"""The control: an LSTM that has nothing but its own state, as a cell like the others."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell, StepOutput
from tfmann.cells.bridge import Bridge, decoder_stack
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import StackWeights, State
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams


class LSTMState(NamedTuple):
    """Per layer h [B, U] and c [B, U]."""

    layers: tuple[State, ...]


class LSTMCell(MemoryCell):
    """Layers of U units on x_t; the output is the top one's h."""

    needs_annotations = False

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        super().__init__(hparams, annotation_width, weights)
        self.output_width = self.readout_width = hparams.num_units
        self.stack = decoder_stack(hparams, feed_width=0, weights=weights)
        self.bridge = Bridge(hparams, weights.scope("bridge"))

    def initial_state(self, encoded: Encoded) -> LSTMState:
        return LSTMState(self.bridge.start(encoded))

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> StackWeights:
        del encoded
        return self.stack.prepare(dtype)

    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        return self.stack.prepare_inputs(embedded, noise.scope("stack"), dtype)

    def step(self, inputs: tf.Tensor, state: LSTMState, memory: StackWeights) -> StepOutput:
        top, layers = self.stack.step(inputs, None, state.layers, memory)
        return StepOutput(output=top, state=LSTMState(layers), diagnostics={})
