"""What the memory-augmented networks share: a controller, a memory of its own, one output layer.

Collier & Beel 2019, section 3.3; with `encoder_type` memory such a cell is their pure MANN.
"""

from __future__ import annotations

import abc
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell, StepOutput
from tfmann.cells.bridge import Bridge, decoder_stack
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import StackWeights, State, product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams


class MannState(NamedTuple):
    """What one step leaves for the next."""

    memory: Any  # the memory's own state, with `reads` [B, R, W]
    layers: tuple[State, ...]  # per controller layer h [B, U] (and c [B, U])


class MannWeights(NamedTuple):
    """What every step reads: kernels in the type of the products."""

    heads: tf.Tensor
    stack: StackWeights


class MannCell(MemoryCell):
    """Controller of U units on `[x_t; r_{t-1}]`, memory, output `W_o [h_t; r_t] + b`."""

    @abc.abstractmethod
    def __init__(
        self, hparams: HParams, annotation_width: int, weights: Weights, memory: type
    ):
        """Creates the controller, a memory of that kind and W_o `[U + R*W, U]`."""
        super().__init__(hparams, annotation_width, weights)
        units, read = hparams.num_units, hparams.read_heads * hparams.memory_unit_size
        self.output_width, self.readout_width = units + read, units
        self.stack = decoder_stack(hparams, feed_width=read, weights=weights)
        self.bridge = Bridge(hparams, weights.scope("bridge"))
        self.memory = memory(hparams, units, weights.scope("memory"))
        self.memory_numbers = self.memory.numbers
        self.output_kernel = weights.matrix("output_kernel", [units + read, units])
        self.output_bias = weights.constant("output_bias", np.zeros(units))

    def clip(self, values: tf.Tensor) -> tf.Tensor:
        """What is done to the controller's states and to the output: nothing."""
        return values

    def initial_state(self, encoded: Encoded) -> MannState:
        """The memory's start; the controller from the encoder's states, or zero."""
        memory = self.memory.start(tf.shape(encoded.length)[0])
        return MannState(memory=memory, layers=self.bridge.start(encoded))

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> MannWeights:
        """Casts the kernels; the source is read through the memory alone."""
        del encoded
        return MannWeights(heads=self.memory.prepare(dtype), stack=self.stack.prepare(dtype))

    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        """Layer 1's sums from the words."""
        return self.stack.prepare_inputs(embedded, noise.scope("stack"), dtype)

    def step(self, inputs: tf.Tensor, state: MannState, memory: MannWeights) -> StepOutput:
        """Controller on `[x_t; r_{t-1}]`, then the memory."""
        fed = tf.reshape(state.memory.reads, [-1, self.stack.feed_width])
        top, layers = self.stack.step(inputs, fed, state.layers, memory.stack)
        layers = tf.nest.map_structure(self.clip, layers)
        new, seen = self.memory.step(top, state.memory, memory.heads)
        reads = tf.reshape(new.reads, [-1, self.stack.feed_width])
        return StepOutput(
            output=tf.concat([top, reads], axis=-1),
            state=MannState(memory=new, layers=layers),
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
        return noise.dropout("readout", self.hparams.readout_dropout, self.clip(output))
