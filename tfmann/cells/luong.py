"""The attentional encoder-decoder of tensorflow/nmt (Luong et al. 2015, arXiv:1508.04025).

The baseline of Collier & Beel 2019: LSTM layers with input feeding, scaled general attention. As
there, `attention` may be additive instead (Bahdanau et al. 2015, arXiv:1409.0473), which asks with
the same state h_t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell, StepOutput, per_row, per_sentence
from tfmann.cells.bridge import Bridge, decoder_stack
from tfmann.cells.dot_product import DotProduct
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import StackWeights, State, product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import addressing, attention

NAME = "luong"
SHARED_HPARAMS = ("dot_product",)

HPARAMS = {
    "attention": {
        "default": "scaled_luong",
        "choices": ["luong", "scaled_luong", "bahdanau", "normed_bahdanau"],
        "help": "luong cell: general attention, without or with a learned gain; or additive, as it "
        "is or with weight normalisation.",
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
    keys: tf.Tensor  # [B, S, U] W_m h_s, with what the score makes of them once
    mask: tf.Tensor  # [B, 1, S]
    query_kernel: tf.Tensor | None  # [U, U] W_q, of additive attention
    score_vector: tf.Tensor | None  # [U] v, or g v / |v|
    attention_kernel: tf.Tensor  # [D + U, U] W_c
    stack: StackWeights


class LuongCell(MemoryCell):
    """`a_t = W_c [c_t; h_t]`, `c_t` read by `softmax(g h_t^T W_m h_s)`.

    The score of `bahdanau` is `v . tanh(W_q h_t + W_m h_s)`, that of `normed_bahdanau`
    `g v / |v| . tanh(W_q h_t + W_m h_s + b)`, g starting at `sqrt(1 / U)`. Unlike the paper: no
    tanh on a_t unless `attention_tanh`, as in tensorflow/nmt.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the layers, W_m `[D, U]`, what the score needs and W_c `[D+U, U]`."""
        super().__init__(hparams, annotation_width, weights)
        h, units = hparams, hparams.num_units
        self.output_width = self.readout_width = units
        self.stack = decoder_stack(h, feed_width=units, weights=weights)
        self.bridge = Bridge(h, weights.scope("bridge"))
        self.memory_kernel = weights.matrix("memory_kernel", [annotation_width, units])
        self.attention_kernel = weights.matrix(
            "attention_kernel", [annotation_width + units, units]
        )
        self.additive = h.attention in ("bahdanau", "normed_bahdanau")
        self.normed = h.attention == "normed_bahdanau"
        if not self.additive:
            gain = h.attention == "scaled_luong"
            self.dot_product = DotProduct(h.attention_score, units, weights, gain)
            return
        self.query_kernel = weights.matrix("query_kernel", [units, units])
        self.score_vector = weights.matrix("score_vector", [units])
        if self.normed:
            self.attention_scale = weights.constant("attention_scale", units**-0.5)
            self.attention_bias = weights.constant("attention_bias", np.zeros(units))

    def initial_state(self, encoded: Encoded) -> LuongState:
        """The encoder's final states; a_{-1} = 0."""
        layers = self.bridge.start(encoded)
        return LuongState(attention=tf.zeros_like(layers[0][0]), layers=layers)

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> LuongMemory:
        """Projects the annotations; a gain or bias of the score is put in here."""
        keys = product(encoded.annotations, tf.cast(self.memory_kernel, dtype))
        query_kernel = vector = None
        if self.additive:
            query_kernel, vector = tf.cast(self.query_kernel, dtype), self.score_vector
        else:
            keys = self.dot_product.prepare(keys)
        if self.normed:
            keys += self.attention_bias
            vector = self.attention_scale * addressing.unit(vector)
        return LuongMemory(
            annotations=encoded.annotations,
            keys=keys,
            mask=encoded.mask[:, None],
            query_kernel=query_kernel,
            score_vector=vector,
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
        scores = self._scores(top, memory)  # [B, K, S]
        alignments = addressing.masked_softmax(scores, memory.mask)
        context = per_row(attention.read(alignments, memory.annotations))
        vector = product(tf.concat([context, top], axis=-1), memory.attention_kernel)
        if self.hparams.attention_tanh:
            vector = tf.tanh(vector)
        return StepOutput(
            output=vector,
            state=LuongState(attention=vector, layers=layers),
            diagnostics={"alignments": per_row(alignments)},
        )

    def _scores(self, top: tf.Tensor, memory: LuongMemory) -> tf.Tensor:
        """States h_t `[B*K, U]` to `[B, K, S]`."""
        if not self.additive:
            return self.dot_product.scores(per_sentence(top, memory.keys), memory.keys)
        query = per_sentence(product(top, memory.query_kernel), memory.keys)
        return attention.additive_scores(query, memory.keys, memory.score_vector)
