"""A differentiable neural computer as a cell (Graves et al. 2016, Nature 538).

With `encoder_type` memory it is the pure MANN of Collier & Beel 2019, section 3.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell, StepOutput
from tfmann.cells.bridge import Bridge, decoder_stack
from tfmann.cells.dnc_memory import DNCMemory, DNCMemoryState
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import StackWeights, State, product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams

NAME = "dnc"

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
}

CLIP = 20.0


class DNCState(NamedTuple):
    """What one step leaves for the next."""

    memory: DNCMemoryState
    layers: tuple[State, ...]  # per controller layer h [B, U] (and c [B, U])


class DNCWeights(NamedTuple):
    """What every step reads: kernels in the type of the products."""

    heads: tf.Tensor
    stack: StackWeights


class DNCCell(MemoryCell):
    """Controller of U units on `[x_t; r_{t-1}]`, memory, output `W_o [h_t; r_t] + b`.

    The controller's states and the output are clipped to +-20, the memory never.
    """

    needs_annotations = False

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the controller, the memory and W_o `[U + R*W, U]`."""
        super().__init__(hparams, annotation_width, weights)
        units, read = hparams.num_units, hparams.read_heads * hparams.memory_unit_size
        self.output_width, self.readout_width = units + read, units
        self.stack = decoder_stack(hparams, feed_width=read, weights=weights)
        self.bridge = Bridge(hparams, weights.scope("bridge"))
        self.memory = DNCMemory(hparams, units, weights.scope("memory"))
        self.output_kernel = weights.matrix("output_kernel", [units + read, units])
        self.output_bias = weights.constant("output_bias", np.zeros(units))

    def initial_state(self, encoded: Encoded) -> DNCState:
        """The memory's start; the controller from the encoder's states, or zero."""
        memory = self.memory.start(tf.shape(encoded.length)[0])
        return DNCState(memory=memory, layers=self.bridge.start(encoded))

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> DNCWeights:
        """Casts the kernels; the source is read through the memory alone."""
        del encoded
        return DNCWeights(heads=self.memory.prepare(dtype), stack=self.stack.prepare(dtype))

    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        """Layer 1's sums from the words."""
        return self.stack.prepare_inputs(embedded, noise.scope("stack"), dtype)

    def step(self, inputs: tf.Tensor, state: DNCState, memory: DNCWeights) -> StepOutput:
        """Controller on `[x_t; r_{t-1}]`, then the memory."""
        fed = tf.reshape(state.memory.reads, [-1, self.stack.feed_width])
        top, layers = self.stack.step(inputs, fed, state.layers, memory.stack)
        layers = tf.nest.map_structure(lambda s: tf.clip_by_value(s, -CLIP, CLIP), layers)
        new, seen = self.memory.step(top, state.memory, memory.heads)
        reads = tf.reshape(new.reads, [-1, self.stack.feed_width])
        return StepOutput(
            output=tf.concat([top, reads], axis=-1),
            state=DNCState(memory=new, layers=layers),
            diagnostics=seen,
        )

    def readout(
        self,
        outputs: tf.Tensor,
        embedded: tf.Tensor,
        noise: Noise,
        dtype: tf.DType = tf.float32,
    ) -> tf.Tensor:
        """`W_o [h_t; r_t] + b`, clipped: `[M, U]`."""
        del embedded
        output = product(outputs, tf.cast(self.output_kernel, dtype)) + self.output_bias
        output = tf.clip_by_value(output, -CLIP, CLIP)
        return noise.dropout("readout", self.hparams.readout_dropout, output)
