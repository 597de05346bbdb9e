"""A differentiable neural computer as a cell (Graves et al. 2016, Nature 538).

An LSTM controller reads the word and what the heads read last; its state makes the interface vector
of the memory (`layers.dnc_memory`). With `encoder_type` memory the cell is the pure MANN of Collier
& Beel 2019, section 3.3: it reads the source too, word by word.

With `memory_hops` n, the heads read n times in a step: `o^1 = h_t`, `o^{k+1} = GRU(o^k, r^k)`. The
first hop is a whole step. The others read again what it wrote, forward and backward from where hop
k-1 read, so that a chain of n links can be followed in a step. In the output, o^n and r^n take the
places of h_t and r_t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.dnc_memory import DNCMemory, DNCMemoryState
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import DecoderStack, GRUCell, State, product

CLIP = 20.0  # of the controller's states and the output, as in deepmind/dnc
_KEEP = 2.0  # start of the bias of the hops' update gate: o^{k+1} has 0.88 of o^k


class DNCState(NamedTuple):
    """The state between steps."""

    memory: DNCMemoryState
    layers: tuple[State, ...]  # per controller layer h [B, U] (and c [B, U])


class DNCSource(NamedTuple):
    """Constants of a step; the source itself is read through the memory alone."""

    feed_kernel: tf.Tensor  # [R*W, G*U], of r_{t-1} in the controller's first layer


class DNCCell(DecoderCell):
    """`h_t = LSTM([x_t; r_{t-1}])`, `r_t, M_t = memory(h_t)`, output `W_o [h_t; r_t] + b`.

    The controller's states and the output are clipped to +-20, the memory never. Unlike the paper,
    whose controller has connections that skip layers: only the lowest layer reads the word and the
    reads, and only the top one's h_t goes to the memory and to the output.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates controller, memory and W_o `[U + R*W, U]` with b."""
        super().__init__(hparams, annotation_width, weights)
        units, read_width = hparams.num_units, hparams.read_heads * hparams.memory_unit_size
        self.output_width, self.readout_width = units + read_width, units
        self.controller = DecoderStack(hparams, read_width, weights)
        self.memory = DNCMemory(hparams, units, weights.scope("memory"))
        self.memory_numbers = self.memory.numbers
        if hparams.memory_hops > 1:
            self.hop_gru = GRUCell(read_width, units, weights.scope("hop_gru"), _KEEP)
        self.output_kernel = weights.matrix("output_kernel", [units + read_width, units])
        self.output_bias = weights.constant("output_bias", np.zeros(units))

    def initial_state(self, encoded: EncoderOutput) -> DNCState:
        """Returns the first state of the memory, and of the controller: the encoder's, or zero."""
        batch_size = tf.shape(encoded.length)[0]
        return DNCState(
            memory=self.memory.initial_state(batch_size),
            layers=self.controller.initial_states(encoded.final_state, batch_size),
        )

    def prepare(self, encoded: EncoderOutput) -> DNCSource:
        """Returns the part of the controller's kernel that multiplies the reads."""
        del encoded
        return DNCSource(self.controller.feed_kernel())

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects the words x_t to their part of the first layer's pre-activations."""
        return self.controller.prepare_inputs(embedded, masks.scope("stack"))

    def step(self, inputs: tf.Tensor, state: DNCState, source: DNCSource) -> StepOutput:
        """Runs the controller, then the memory: it writes in the first hop alone."""
        reads = self._flat(state.memory.reads)  # r_{t-1}
        hidden, layers = self.controller.step(inputs, reads, state.layers, source.feed_kernel)
        layers = tf.nest.map_structure(_clip, layers)
        memory, diagnostics = self.memory.step(hidden, state.memory)  # r^1
        for _ in range(self.hparams.memory_hops - 1):
            hidden = self.hop_gru(self._flat(memory.reads), hidden)  # o^{k+1}
            memory, diagnostics = self.memory.read_again(hidden, memory, diagnostics)  # r^{k+1}
        reads = self._flat(memory.reads)  # r_t = r^n
        return StepOutput(
            output=tf.concat([hidden, reads], axis=-1),  # [h_t; r_t]
            state=DNCState(memory, layers),
            diagnostics=diagnostics,
        )

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Computes `W_o [h_t; r_t] + b`, linear: `[M, U]`."""
        del embedded
        rate = self.hparams.dnc_bypass_dropout
        if rate and masks.training:
            hidden, reads = tf.split(outputs, [self.hparams.num_units, -1], axis=-1)
            outputs = tf.concat([masks.dropout("bypass", rate, hidden), reads], axis=-1)
        output = product(outputs, self.output_kernel) + self.output_bias
        output = _clip(output)
        return masks.dropout("readout", self.hparams.readout_dropout, output)

    def _flat(self, reads: tf.Tensor) -> tf.Tensor:
        """Reshapes `[B, R, W]` to `[B, R*W]`."""
        return tf.reshape(reads, [-1, self.controller.feed_width])


def _clip(values: tf.Tensor) -> tf.Tensor:
    return tf.clip_by_value(values, -CLIP, CLIP)
