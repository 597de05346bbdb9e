"""The control: an LSTM without a memory, as a cell like the others."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import DecoderStack, State


class LSTMState(NamedTuple):
    """Per layer h [B, U] and c [B, U]."""

    layers: tuple[State, ...]


class LSTMCell(DecoderCell):
    """Layers of U units on x_t; the output is the top one's h."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        super().__init__(hparams, annotation_width, weights)
        self.output_width = self.readout_width = hparams.num_units
        self.stack = DecoderStack(hparams, feed_width=0, weights=weights)

    def initial_state(self, encoded: EncoderOutput) -> LSTMState:
        batch_size = tf.shape(encoded.length)[0]
        return LSTMState(self.stack.initial_states(encoded.final_state, batch_size))

    def prepare(self, encoded: EncoderOutput) -> tuple[()]:
        del encoded
        return ()

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        return self.stack.prepare_inputs(embedded, masks.scope("stack"))

    def step(self, inputs: tf.Tensor, state: LSTMState, source: tuple[()]) -> StepOutput:
        del source
        top, layers = self.stack.step(inputs, None, state.layers, None)
        return StepOutput(output=top, state=LSTMState(layers), diagnostics={})
