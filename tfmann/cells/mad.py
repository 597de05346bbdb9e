"""The memory-augmented decoder, M.A.D. (Collier & Beel 2019, section 3.2).

The decoder is an LSTM controller that reads the source by Luong attention and an external memory by
heads of its own: `layers.ntm_memory`, or `layers.dnc_memory`, which the paper names as possible.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.dnc_memory import DNCMemory
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.luong_attention import AttentionSource, LuongAttention
from tfmann.layers.ntm_memory import NTMMemory
from tfmann.layers.rnn import DecoderStack, State, product


class MADState(NamedTuple):
    """The state between steps."""

    context: tf.Tensor  # [B, D] c_{t-1}
    memory: Any  # NTMMemoryState or DNCMemoryState
    layers: tuple[State, ...]  # per controller layer h [B, U] (and c [B, U])


class MADSource(NamedTuple):
    """Constants of a step."""

    attention: AttentionSource  # keys g W_m h_s
    feed_kernel: tf.Tensor  # [D + R*W, G*U], of c_{t-1} and r_{t-1} in the controller's first layer


class MADCell(DecoderCell):
    """`h_t = LSTM([x_t; c_{t-1}; r_{t-1}])`, output `W_o [h_t; c_t; r_t] + b`.

    The attention head is Luong's, as the paper says; the authors' code had an NTM-style one there.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates controller, attention, memory and W_o `[U + D + R*W, U]` with b."""
        super().__init__(hparams, annotation_width, weights)
        units, read_width = hparams.num_units, hparams.read_heads * hparams.memory_unit_size
        feed_width = annotation_width + read_width
        self.output_width, self.readout_width = units + feed_width, units
        self.controller = DecoderStack(hparams, feed_width, weights)
        self.attention = LuongAttention(hparams, annotation_width, units, weights, gain=True)
        memory = DNCMemory if hparams.external_addressing == "dnc" else NTMMemory
        self.memory = memory(hparams, units, weights.scope("memory"))
        self.memory_numbers = self.memory.numbers
        self.read_width = read_width
        self.output_kernel = weights.matrix("output_kernel", [units + feed_width, units])
        self.output_bias = weights.constant("output_bias", np.zeros(units))

    def initial_state(self, encoded: EncoderOutput) -> MADState:
        """Returns c_0 = 0, the memory's start and the encoder's final states."""
        batch_size = tf.shape(encoded.length)[0]
        return MADState(
            context=tf.zeros([batch_size, self.annotation_width]),
            memory=self.memory.initial_state(batch_size),
            layers=self.controller.initial_states(encoded.final_state, batch_size),
        )

    def prepare(self, encoded: EncoderOutput) -> MADSource:
        """Projects the annotations to keys."""
        return MADSource(
            attention=self.attention.prepare_annotations(encoded.annotations, encoded.mask),
            feed_kernel=self.controller.feed_kernel(),
        )

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects the words x_t to their part of the first layer's pre-activations."""
        return self.controller.prepare_inputs(embedded, masks.scope("stack"))

    def step(self, inputs: tf.Tensor, state: MADState, source: MADSource) -> StepOutput:
        """Runs the controller, the attention on the source and the external memory."""
        reads = tf.reshape(state.memory.reads, [-1, self.read_width])  # r_{t-1}
        feed = tf.concat([state.context, reads], axis=-1)
        hidden, layers = self.controller.step(inputs, feed, state.layers, source.feed_kernel)
        alignments, context = self.attention.attend(hidden, source.attention)  # alpha_t, c_t
        memory, diagnostics = self.memory.step(hidden, state.memory)
        reads = tf.reshape(memory.reads, [-1, self.read_width])  # r_t
        return StepOutput(
            output=tf.concat([hidden, context, reads], axis=-1),  # [h_t; c_t; r_t]
            state=MADState(context, memory, layers),
            diagnostics={**diagnostics, "alignments": alignments},
        )

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Computes `W_o [h_t; c_t; r_t] + b`, linear: `[M, U]`."""
        del embedded
        output = product(outputs, self.output_kernel) + self.output_bias
        return masks.dropout("readout", self.hparams.readout_dropout, output)
