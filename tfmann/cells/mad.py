"""The memory-augmented decoder (Collier & Beel 2019, section 3.2): attention beside a memory.

The decoder is a MANN controller that reads the source by Luong-style attention and an external
memory by its own heads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell, StepOutput, per_row, per_sentence
from tfmann.cells.bridge import Bridge, decoder_stack
from tfmann.cells.dnc_memory import DNCMemory
from tfmann.cells.dot_product import DotProduct
from tfmann.cells.noise import Noise
from tfmann.cells.ntm_memory import NTMMemory
from tfmann.cells.recurrent import StackWeights, State, product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import addressing, attention

NAME = "mad"
SHARED_HPARAMS = ("own_memory", "ntm_memory", "dot_product")

HPARAMS = {
    "external_addressing": {
        "default": "ntm",
        "choices": ["ntm", "dnc"],
        "help": "mad cell: how its memory is addressed; the paper has ntm and names dnc.",
    },
}


class MADState(NamedTuple):
    """What one step leaves for the next."""

    context: tf.Tensor  # [B, D] c_{t-1}
    memory: Any  # NTMMemoryState or DNCMemoryState
    layers: tuple[State, ...]  # per controller layer h [B, U] (and c [B, U])


class MADSource(NamedTuple):
    """What every step reads."""

    annotations: tf.Tensor  # [B, S, D]
    keys: tf.Tensor  # [B, S, U] g W_m h_s
    mask: tf.Tensor  # [B, 1, S]
    heads: tf.Tensor
    stack: StackWeights


class MADCell(MemoryCell):
    """Controller on `[x_t; c_{t-1}; r_{t-1}]`; output `W_o [h_t; c_t; r_t] + b`.

    The attention head is Luong style, as the paper says; the authors' code had NTM-style there.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the controller, W_m `[D, U]` with its gain, the memory, W_o `[U+D+R*W, U]`."""
        super().__init__(hparams, annotation_width, weights)
        units = hparams.num_units
        self.read_width = hparams.read_heads * hparams.memory_unit_size
        fed = annotation_width + self.read_width
        self.output_width, self.readout_width = units + fed, units
        self.stack = decoder_stack(hparams, feed_width=fed, weights=weights)
        self.bridge = Bridge(hparams, weights.scope("bridge"))
        kind = DNCMemory if hparams.external_addressing == "dnc" else NTMMemory
        self.memory = kind(hparams, units, weights.scope("memory"))
        self.memory_numbers = self.memory.numbers
        self.memory_kernel = weights.matrix("memory_kernel", [annotation_width, units])
        self.dot_product = DotProduct(hparams.attention_score, units, weights, gain=True)
        self.output_kernel = weights.matrix("output_kernel", [units + fed, units])
        self.output_bias = weights.constant("output_bias", np.zeros(units))

    def initial_state(self, encoded: Encoded) -> MADState:
        """c_0 = 0, the memory's start, the encoder's final states."""
        batch = tf.shape(encoded.length)[0]
        return MADState(
            context=tf.zeros([batch, self.annotation_width]),
            memory=self.memory.start(batch),
            layers=self.bridge.start(encoded),
        )

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> MADSource:
        """Projects the annotations; the gain goes into the keys."""
        keys = product(encoded.annotations, tf.cast(self.memory_kernel, dtype))
        return MADSource(
            annotations=encoded.annotations,
            keys=self.dot_product.prepare(keys),
            mask=encoded.mask[:, None],
            heads=self.memory.prepare(dtype),
            stack=self.stack.prepare(dtype),
        )

    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        """Layer 1's sums from the words."""
        return self.stack.prepare_inputs(embedded, noise.scope("stack"), dtype)

    def step(self, inputs: tf.Tensor, state: MADState, memory: MADSource) -> StepOutput:
        """Controller, attention on the source, then the external memory."""
        reads = tf.reshape(state.memory.reads, [-1, self.read_width])
        fed = tf.concat([state.context, reads], axis=-1)
        top, layers = self.stack.step(inputs, fed, state.layers, memory.stack)
        scores = self.dot_product.scores(per_sentence(top, memory.keys), memory.keys)
        alignments = addressing.masked_softmax(scores, memory.mask)  # [B, K, S]
        context = per_row(attention.read(alignments, memory.annotations))
        new, seen = self.memory.step(top, state.memory, memory.heads)
        reads = tf.reshape(new.reads, [-1, self.read_width])
        return StepOutput(
            output=tf.concat([top, context, reads], axis=-1),
            state=MADState(context=context, memory=new, layers=layers),
            diagnostics={**seen, "alignments": per_row(alignments)},
        )

    def readout(
        self,
        outputs: tf.Tensor,
        embedded: tf.Tensor,
        noise: Noise,
        dtype: tf.DType = tf.float32,
    ) -> tf.Tensor:
        """`W_o [h_t; c_t; r_t] + b`, linear: `[M, U]`."""
        del embedded
        output = product(outputs, tf.cast(self.output_kernel, dtype)) + self.output_bias
        return noise.dropout("readout", self.hparams.readout_dropout, output)
