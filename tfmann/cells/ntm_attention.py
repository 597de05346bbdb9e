"""NTM-style attention: the source addressed by content and location (Collier & Beel 2019, 3.1).

As the luong cell, with its score replaced by equations 11-15.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell, StepOutput, per_sentence
from tfmann.cells.bridge import Bridge, decoder_stack
from tfmann.cells.dot_product import DotProduct
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import StackWeights, State, product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import addressing, attention

NAME = "ntm_attention"
SHARED_HPARAMS = ("dot_product",)

HPARAMS = {
    "num_attention_heads": {
        "default": 1,
        "minimum": 1,
        "maximum": 64,
        "help": "ntm_attention cell: read heads R on the source.",
    },
    "shift_range": {
        "default": 1,
        "minimum": 0,
        "maximum": 64,
        "help": "How far an address moves in a step; J = 2 * shift_range + 1 taps.",
    },
    # With these two an address begins as nearly its content's (g = 0.88, middle tap 0.91). From 0
    # half of it is the last address, blurred over three positions: at cpu scale on Vi-En it drifts
    # round to the sentence's end and stays there (BLEU 8.2 instead of 15.8 after 2,500 updates).
    # On the short, regular sentences of the synthetic corpus 0 learns faster (97 instead of 85).
    "gate_start": {
        "default": 2.0,
        "help": "ntm_attention cell: start value of the interpolation gate's bias.",
    },
    "stay_start": {
        "default": 3.0,
        "help": "ntm_attention cell: start value of the bias of the shift kernel's middle tap.",
    },
}

HEAD_CLIP = 20.0  # "stable NTM" (Collier & Beel 2018): bounds strength and sharpening


class NTMAttentionState(NamedTuple):
    """What one step leaves for the next."""

    attention: tf.Tensor  # [B, U] a_{t-1}
    weights: tf.Tensor  # [B, R, S] w_{t-1}
    layers: tuple[State, ...]  # per layer h [B, U] (and c [B, U])


class NTMAttentionMemory(NamedTuple):
    """What every step reads."""

    annotations: tf.Tensor  # [B, S, D]
    keys: tf.Tensor  # [B, S, U] W_a h_s, with what the score makes of them once
    mask: tf.Tensor  # [B, 1, S]
    last: tf.Tensor  # [B, 1, S] 1 at the sentence's last position
    head_kernel: tf.Tensor  # [U, R * (U + J + 3)]
    attention_kernel: tf.Tensor  # [R * D + U, U] W_c
    stack: StackWeights


class NTMAttentionCell(MemoryCell):
    """Content weights (12), interpolation (13), shift (14) and sharpening (15) per head.

    Unlike the paper: the shift is circular modulo each sentence's true length and no weight falls
    on padding (the authors' code wraps round 50 padded positions). w_{-1} is the first position
    and the heads' biases start at `gate_start` and `stay_start`, both of which the paper leaves
    open. With several heads the contexts are concatenated and `alignments` is their mean.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the layers, W_a `[D, U]`, the heads' `[U, R*(U+J+3)]` and W_c `[R*D+U, U]`."""
        super().__init__(hparams, annotation_width, weights)
        h, units, heads = hparams, hparams.num_units, hparams.num_attention_heads
        self.output_width = self.readout_width = units
        self.taps = 2 * h.shift_range + 1
        self.stack = decoder_stack(h, feed_width=units, weights=weights)
        self.bridge = Bridge(h, weights.scope("bridge"))
        self.memory_kernel = weights.matrix("memory_kernel", [annotation_width, units])
        self.dot_product = DotProduct(h.attention_score, units, weights)
        width = heads * (units + self.taps + 3)
        self.head_kernel = weights.matrix("head_kernel", [units, width])
        start = np.zeros([heads, units + self.taps + 3])
        start[:, units + 1] = h.gate_start
        start[:, units + 2 + h.shift_range] = h.stay_start
        self.head_bias = weights.constant("head_bias", start.reshape(-1))
        self.attention_kernel = weights.matrix(
            "attention_kernel", [heads * annotation_width + units, units]
        )

    def initial_state(self, encoded: Encoded) -> NTMAttentionState:
        """The encoder's final states, a_{-1} = 0, every head on the first position."""
        layers = self.bridge.start(encoded)
        first = tf.one_hot(tf.zeros_like(encoded.length), tf.shape(encoded.annotations)[1])
        heads = self.hparams.num_attention_heads
        return NTMAttentionState(
            attention=tf.zeros_like(layers[0][0]),
            weights=tf.tile(first[:, None], [1, heads, 1]),
            layers=layers,
        )

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> NTMAttentionMemory:
        """Projects the annotations."""
        last = tf.one_hot(encoded.length - 1, tf.shape(encoded.annotations)[1])
        keys = product(encoded.annotations, tf.cast(self.memory_kernel, dtype))
        return NTMAttentionMemory(
            annotations=encoded.annotations,
            keys=self.dot_product.prepare(keys),
            mask=encoded.mask[:, None],
            last=last[:, None],
            head_kernel=tf.cast(self.head_kernel, dtype),
            attention_kernel=tf.cast(self.attention_kernel, dtype),
            stack=self.stack.prepare(dtype),
        )

    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        """Layer 1's sums from the words."""
        return self.stack.prepare_inputs(embedded, noise.scope("stack"), dtype)

    def step(
        self, inputs: tf.Tensor, state: NTMAttentionState, memory: NTMAttentionMemory
    ) -> StepOutput:
        """Layers, heads, addresses, contexts, attention vector."""
        top, layers = self.stack.step(inputs, state.attention, state.layers, memory.stack)
        heads = product(top, memory.head_kernel) + self.head_bias
        weights, diagnostics = self._address(heads, state.weights, memory)  # [B, K*R, S]
        contexts = attention.read(weights, memory.annotations)
        contexts = tf.reshape(
            contexts, [-1, self.hparams.num_attention_heads * self.annotation_width]
        )
        vector = product(tf.concat([contexts, top], axis=-1), memory.attention_kernel)
        read_weights = tf.reshape(weights, tf.shape(state.weights))
        diagnostics["read_weights"] = read_weights
        diagnostics["alignments"] = tf.reduce_mean(read_weights, axis=1)
        state = NTMAttentionState(attention=vector, weights=read_weights, layers=layers)
        return StepOutput(output=vector, state=state, diagnostics=diagnostics)

    def _address(
        self, heads: tf.Tensor, previous: tf.Tensor, memory: NTMAttentionMemory
    ) -> tuple[tf.Tensor, dict]:
        """Heads' numbers `[B*K, R*(U+J+3)]` and w_{t-1} `[B*K, R, S]` to w_t `[B, K*R, S]`."""
        units, count = self.hparams.num_units, self.hparams.num_attention_heads
        heads = tf.clip_by_value(heads, -HEAD_CLIP, HEAD_CLIP)
        heads = per_sentence(heads, memory.keys)  # [B, K, R*(U+J+3)]
        rows = -1 if heads.shape[1] is None else heads.shape[1] * count
        heads = tf.reshape(heads, [tf.shape(heads)[0], rows, units + self.taps + 3])
        key, strength, gate, kernel, gamma = tf.split(heads, [units, 1, 1, self.taps, 1], axis=-1)
        gate, kernel, gamma = tf.sigmoid(gate), tf.nn.softmax(kernel), 1 + tf.nn.softplus(gamma)
        scores = tf.nn.softplus(strength) * self.dot_product.scores(tf.tanh(key), memory.keys)
        content = addressing.masked_softmax(scores, memory.mask)  # (12)
        previous = tf.reshape(previous, tf.shape(content))
        gated = addressing.interpolate(gate, content, previous)  # (13)
        shifted = addressing.shift_within(gated, kernel, memory.mask, memory.last)  # (14)
        weights = addressing.sharpen(shifted, gamma, memory.mask)  # (15)
        seen = {
            "content_weights": content,
            "interpolation_gate": gate,
            "shift_kernel": kernel,
            "sharpening": gamma,
        }
        rows = tf.shape(content)[0] * tf.shape(content)[1] // count
        return weights, {
            name: tf.reshape(value, [rows, count, tf.shape(value)[-1]])
            for name, value in seen.items()
        }
