"""A neural Turing machine as a cell (Graves et al. 2014, arXiv:1410.5401; Collier & Beel 2019).

With `encoder_type` memory it is the pure MANN of Collier & Beel 2019, section 3.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell, StepOutput
from tfmann.cells.bridge import Bridge, decoder_stack
from tfmann.cells.noise import Noise
from tfmann.cells.ntm_memory import NTMMemory, NTMMemoryState
from tfmann.cells.recurrent import StackWeights, State, product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams

NAME = "ntm"

HPARAMS = {
    "num_memory_locations": {
        "default": 128,
        "minimum": 1,
        "help": "ntm, dnc, mad cells: slots N of the memory.",
    },
    "memory_unit_size": {
        "default": 512,
        "minimum": 1,
        "help": "ntm, dnc, mad cells: width W of a slot.",
    },
    "read_heads": {"default": 1, "minimum": 1, "help": "ntm, dnc, mad cells: read heads R."},
    "write_heads": {"default": 1, "minimum": 1, "help": "ntm, dnc, mad cells: write heads H."},
    "shift_range": {
        "default": 1,
        "minimum": 0,
        "help": "How far an address moves in a step; J = 2 * shift_range + 1 taps.",
    },
}


class NTMState(NamedTuple):
    """What one step leaves for the next."""

    memory: NTMMemoryState
    layers: tuple[State, ...]  # per controller layer h [B, U] (and c [B, U])


class NTMWeights(NamedTuple):
    """What every step reads: kernels in the type of the products."""

    heads: tf.Tensor
    stack: StackWeights


class NTMCell(MemoryCell):
    """Controller of U units on `[x_t; r_{t-1}]`, memory, output `W_o [h_t; r_t] + b`."""

    needs_annotations = False

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the controller, the memory and W_o `[U + R*W, U]`."""
        super().__init__(hparams, annotation_width, weights)
        units, read = hparams.num_units, hparams.read_heads * hparams.memory_unit_size
        self.output_width, self.readout_width = units + read, units
        self.stack = decoder_stack(hparams, feed_width=read, weights=weights)
        self.bridge = Bridge(hparams, weights.scope("bridge"))
        self.memory = NTMMemory(hparams, units, weights.scope("memory"))
        self.output_kernel = weights.matrix("output_kernel", [units + read, units])
        self.output_bias = weights.constant("output_bias", np.zeros(units))

    def initial_state(self, encoded: Encoded) -> NTMState:
        """The memory's start; the controller from the encoder's states, or zero."""
        memory = self.memory.start(tf.shape(encoded.length)[0])
        return NTMState(memory=memory, layers=self.bridge.start(encoded))

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> NTMWeights:
        """Casts the kernels; the source is read through the memory alone."""
        del encoded
        return NTMWeights(heads=self.memory.prepare(dtype), stack=self.stack.prepare(dtype))

    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        """Layer 1's sums from the words."""
        return self.stack.prepare_inputs(embedded, noise.scope("stack"), dtype)

    def step(self, inputs: tf.Tensor, state: NTMState, memory: NTMWeights) -> StepOutput:
        """Controller on `[x_t; r_{t-1}]`, then the memory."""
        fed = tf.reshape(state.memory.reads, [-1, self.stack.feed_width])
        top, layers = self.stack.step(inputs, fed, state.layers, memory.stack)
        new, seen = self.memory.step(top, state.memory, memory.heads)
        reads = tf.reshape(new.reads, [-1, self.stack.feed_width])
        return StepOutput(
            output=tf.concat([top, reads], axis=-1),
            state=NTMState(memory=new, layers=layers),
            diagnostics=seen,
        )

    def readout(
        self,
        outputs: tf.Tensor,
        embedded: tf.Tensor,
        noise: Noise,
        dtype: tf.DType = tf.float32,
    ) -> tf.Tensor:
        """`W_o [h_t; r_t] + b`, linear: `[M, U]`."""
        del embedded
        output = product(outputs, tf.cast(self.output_kernel, dtype)) + self.output_bias
        return noise.dropout("readout", self.hparams.readout_dropout, output)
