"""What the RNNSearch family shares: two GRUs a step, the readout, the start from the annotations.

`q_t = GRU1(s_{t-1}, y_{t-1})` asks; `s_t = GRU2(q_t, c_t)` takes the answer in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import gru_step, product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams

HPARAMS = {
    "attention_size": {
        "default": 0,
        "minimum": 0,
        "help": "RNNSearch family: width A of the additive attention; 0 = num_units.",
    },
    "readout_size": {
        "default": 0,
        "minimum": 0,
        "help": "RNNSearch family: width of the readout; 0 = embedding_size.",
    },
}


class GRU(NamedTuple):
    """The weights of a GRU; one bias a gate."""

    kernel: tf.Tensor  # [I, 3U]
    recurrent: tf.Tensor  # [U, 3U]
    bias: tf.Tensor  # [3U]

    def cast(self, dtype: tf.DType) -> GRU:
        """Kernels in the type of the products."""
        return GRU(tf.cast(self.kernel, dtype), tf.cast(self.recurrent, dtype), self.bias)

    def step(
        self, inputs: tf.Tensor, hidden: tf.Tensor, beside: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Inputs `[B, I]` and h `[B, U]` to the new h; `beside [B, 3U]` is added to the sums."""
        projected = product(inputs, self.kernel) + self.bias
        if beside is not None:
            projected += beside
        return gru_step(projected, product(hidden, self.recurrent), (hidden,))[0]


def make_gru(weights: Weights, input_width: int, units: int) -> GRU:
    """Creates the weights of a GRU."""
    return GRU(
        kernel=weights.matrix("kernel", [input_width, 3 * units]),
        recurrent=weights.recurrent("recurrent_kernel", units, 3),
        bias=weights.constant("bias", np.zeros(3 * units)),
    )


class TwoGRUCell(MemoryCell):
    """Readout `tanh(W_s s_t + W_y y_{t-1} + W_c c_t)`, start `s_0 = tanh(W_init mean_j h_j + b)`.

    The annotation width, one bias a gate and no bias elsewhere follow from the parameter counts of
    Meng et al. 2018, Table 1 (53.98M). What lies between the two GRUs is the subclasses'.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates GRU1, the readout and the map to s_0."""
        super().__init__(hparams, annotation_width, weights)
        h, units, width = hparams, hparams.num_units, annotation_width
        embedding = h.embedding_width
        self.depth = h.attention_size or units  # A
        self.output_width = units + width
        self.readout_width = h.readout_size or embedding
        self.query_gru = make_gru(weights.scope("query_gru"), embedding, units)
        self.readout_kernel = weights.matrix(
            "readout_kernel", [units + embedding + width, self.readout_width]
        )
        self.initial_kernel = weights.matrix("initial_kernel", [width, units])
        self.initial_bias = weights.constant("initial_bias", np.zeros(units))

    def initial_hidden(self, encoded: Encoded) -> tf.Tensor:
        """s_0 `[B, U]`."""
        return tf.tanh(self.initial_sums(encoded))

    def initial_sums(self, encoded: Encoded) -> tf.Tensor:
        """What s_0 is the tanh of, from the mean over real positions: `[B, U]`."""
        total = tf.reduce_sum(encoded.annotations, axis=1)  # padding is zero
        mean = total / tf.cast(encoded.length, tf.float32)[:, None]
        return tf.matmul(mean, self.initial_kernel) + self.initial_bias

    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        """GRU1's sums from the words."""
        embedded = noise.dropout("input", self.hparams.dropout, embedded)
        kernel = tf.cast(self.query_gru.kernel, dtype)
        return product(embedded, kernel) + self.query_gru.bias

    def readout(
        self,
        outputs: tf.Tensor,
        embedded: tf.Tensor,
        noise: Noise,
        dtype: tf.DType = tf.float32,
    ) -> tf.Tensor:
        """`tanh(W_s s_t + W_y y_{t-1} + W_c c_t)`, then dropout: `[M, readout_width]`."""
        readout = tf.tanh(self.readout_sums(outputs, embedded, dtype))
        return noise.dropout("readout", self.hparams.readout_dropout, readout)

    def readout_sums(
        self, outputs: tf.Tensor, embedded: tf.Tensor, dtype: tf.DType
    ) -> tf.Tensor:
        """What the readout is the tanh of: `[M, readout_width]`."""
        hidden, context = tf.split(outputs, [self.hparams.num_units, self.annotation_width], -1)
        joined = tf.concat([hidden, embedded, context], axis=-1)
        return product(joined, tf.cast(self.readout_kernel, dtype))
