"""The attentional encoder-decoder of tensorflow/nmt (Luong et al. 2015, arXiv:1508.04025).

The baseline of Collier & Beel 2019: LSTM layers with input feeding, scaled general attention.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell, StepOutput, per_row, per_sentence
from tfmann.cells.bridge import Bridge, decoder_stack
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import StackWeights, State, product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import addressing, attention

NAME = "luong"

HPARAMS = {
    "attention": {
        "default": "scaled_luong",
        "choices": ["luong", "scaled_luong"],
        "help": "luong cell: general attention, without or with a learned gain.",
    },
    "attention_tanh": {
        "default": False,
        "help": "tanh on the attention vector, as Luong et al. have it and tensorflow/nmt has not.",
    },
}


class LuongState(NamedTuple):
    """What one step leaves for the next."""

    attention: tf.Tensor  # [B, U] a_{t-1}, the attention vector that is fed back
    layers: tuple[State, ...]  # per layer h [B, U] (and c [B, U])


class LuongMemory(NamedTuple):
    """What every step reads."""

    annotations: tf.Tensor  # [B, S, D]
    keys: tf.Tensor  # [B, S, U] W_m h_s
    mask: tf.Tensor  # [B, 1, S]
    attention_kernel: tf.Tensor  # [D + U, U] W_c
    stack: StackWeights


class LuongCell(MemoryCell):
    """`a_t = W_c [c_t; h_t]`, `c_t` read by `softmax(g h_t^T W_m h_s)`.

    Unlike the paper: no tanh on a_t unless `attention_tanh`, as in tensorflow/nmt.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the layers, W_m `[D, U]`, g and W_c `[D+U, U]`."""
        super().__init__(hparams, annotation_width, weights)
        h, units = hparams, hparams.num_units
        self.output_width = self.readout_width = units
        self.stack = decoder_stack(h, feed_width=units, weights=weights)
        self.bridge = Bridge(h, weights.scope("bridge"))
        self.memory_kernel = weights.matrix("memory_kernel", [annotation_width, units])
        self.attention_kernel = weights.matrix(
            "attention_kernel", [annotation_width + units, units]
        )
        if h.attention == "scaled_luong":
            self.attention_scale = weights.constant("attention_scale", 1.0)

    def initial_state(self, encoded: Encoded) -> LuongState:
        """The encoder's final states; a_{-1} = 0."""
        layers = self.bridge.start(encoded)
        return LuongState(attention=tf.zeros_like(layers[0][0]), layers=layers)

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> LuongMemory:
        """Projects the annotations; the gain goes into the keys."""
        keys = product(encoded.annotations, tf.cast(self.memory_kernel, dtype))
        if self.hparams.attention == "scaled_luong":
            keys *= self.attention_scale
        return LuongMemory(
            annotations=encoded.annotations,
            keys=keys,
            mask=encoded.mask[:, None],
            attention_kernel=tf.cast(self.attention_kernel, dtype),
            stack=self.stack.prepare(dtype),
        )

    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        """Layer 1's sums from the words."""
        return self.stack.prepare_inputs(embedded, noise.scope("stack"), dtype)

    def step(self, inputs: tf.Tensor, state: LuongState, memory: LuongMemory) -> StepOutput:
        """Layers, address, context, attention vector."""
        top, layers = self.stack.step(inputs, state.attention, state.layers, memory.stack)
        scores = attention.dot_scores(per_sentence(top, memory.keys), memory.keys)
        alignments = addressing.masked_softmax(scores, memory.mask)  # [B, K, S]
        context = per_row(attention.read(alignments, memory.annotations))
        vector = product(tf.concat([context, top], axis=-1), memory.attention_kernel)
        if self.hparams.attention_tanh:
            vector = tf.tanh(vector)
        return StepOutput(
            output=vector,
            state=LuongState(attention=vector, layers=layers),
            diagnostics={"alignments": per_row(alignments)},
        )
