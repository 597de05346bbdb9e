"""The sublayers of a Transformer (Vaswani et al. 2017, arXiv:1706.03762, section 3).

Unlike the paper, a sublayer reads `LN(x)`, and its output is added to x without a norm (pre-norm:
Xiong et al. 2020, arXiv:2002.04745). Such a model trains without the warm-up that the paper's
needs. One more LN follows the last layer.

Letters: U units, H heads of U/H numbers, n queries, N keys.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tfmann.config import HParams
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import product
from tfmann.memory import access

_EPSILON = 1e-6  # of the variance


class LayerNorm(tf.Module):
    """`LN(x) = g (x - mean) / sqrt(variance + 1e-6) + b` (Ba et al. 2016, arXiv:1607.06450)."""

    def __init__(self, units: int, weights: VariableFactory, name: str):
        """Creates g and b `[U]`, `NAME_norm_gain` and `NAME_norm_bias`."""
        super().__init__(name="layer_norm")
        self.gain = weights.constant(f"{name}_norm_gain", np.ones(units))
        self.bias = weights.constant(f"{name}_norm_bias", np.zeros(units))

    def __call__(self, values: tf.Tensor) -> tf.Tensor:
        """Normalises `[..., U]` over its last axis."""
        centered = values - tf.reduce_mean(values, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centered), axis=-1, keepdims=True)
        return self.gain * centered * tf.math.rsqrt(variance + _EPSILON) + self.bias


class WordScale(tf.Module):
    """`sqrt(U) y` (3.4); where embeddings have another width E than U, `sqrt(U) y W_x`."""

    def __init__(self, hparams: HParams, weights: VariableFactory):
        """Creates W_x `[E, U]` if it is needed."""
        super().__init__(name="word_scale")
        width, units = hparams.embedding_width, hparams.num_units
        self.scale = units**0.5
        self.kernel = None
        if width != units:
            self.kernel = weights.matrix("input_kernel", [width, units])

    def __call__(self, embedded: tf.Tensor) -> tf.Tensor:
        """Maps embedded words `[..., E]` to `[..., U]`."""
        if self.kernel is not None:
            embedded = product(embedded, self.kernel)
        return self.scale * embedded


class FeedForward(tf.Module):
    """`FFN(z) = W_2 relu(W_1 z + b_1) + b_2` (equation 2), F wide between."""

    def __init__(self, hparams: HParams, weights: VariableFactory):
        """Creates W_1 `[U, F]`, b_1, W_2 `[F, U]` and b_2."""
        super().__init__(name="feed_forward")
        units, width = hparams.num_units, hparams.feed_forward_width
        self.kernel = weights.matrix("feed_kernel", [units, width])
        self.bias = weights.constant("feed_bias", np.zeros(width))
        self.output_kernel = weights.matrix("feed_output_kernel", [width, units])
        self.output_bias = weights.constant("feed_output_bias", np.zeros(units))

    def __call__(self, values: tf.Tensor) -> tf.Tensor:
        """Maps z `[..., U]` to `[..., U]`."""
        hidden = tf.nn.relu(product(values, self.kernel) + self.bias)
        return product(hidden, self.output_kernel) + self.output_bias


def positions(time: tf.Tensor, units: int) -> tf.Tensor:
    """Returns PE (3.5) `[..., U]` of positions `[..., 1]`, counted from 0.

    Even columns are `sin(p / 10000^(2i/U))`, odd ones the cosine, a sine shifted by a quarter.
    """
    columns = np.arange(units)
    rates = 10000.0 ** (-(columns - columns % 2) / units)
    shifts = columns % 2 * (np.pi / 2)
    return tf.sin(time * rates.astype(np.float32) + shifts.astype(np.float32))


def split_heads(values: tf.Tensor, heads: int) -> tf.Tensor:
    """Splits `[B, n, U]` to `[B, H, n, U/H]`."""
    shape = tf.shape(values)
    split = tf.reshape(values, [shape[0], shape[1], heads, values.shape[2] // heads])
    return tf.transpose(split, [0, 2, 1, 3])


def attention_scores(queries: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """Computes `q . k / sqrt(U/H)` `[B, H, n, N]` of `[B, H, n, U/H]` and `[B, H, N, U/H]`."""
    return tf.matmul(queries * queries.shape[-1] ** -0.5, keys, transpose_b=True)


def read_values(
    scores: tf.Tensor, values: tf.Tensor, mask: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Reads values by the softmax of scores (equation 1).

    Args:
      scores: `[B, H, n, N]`.
      values: `[B, H, N, U/H]`.
      mask: `[B, 1, 1, N]`, 1 at keys that exist.

    Returns:
      the weights `[B, H, n, N]`; the contexts of all heads side by side, `[B, n, U]`.
    """
    weights = access.masked_softmax(scores, mask)
    contexts = tf.transpose(weights @ values, [0, 2, 1, 3])  # [B, n, H, U/H]
    shape = tf.shape(contexts)
    width = values.shape[1] * values.shape[3]
    return weights, tf.reshape(contexts, [shape[0], shape[1], width])
