"""RNNSearch with two GRUs a step (Bahdanau et al. 2015; the baseline of Meng 2018 and Tu 2018).

`q_t = GRU1(s_{t-1}, y_{t-1})`, additive attention with q_t, `s_t = GRU2(q_t, c_t)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell, StepOutput, per_row, per_sentence
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import gru_step, product
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import addressing, attention

NAME = "rnnsearch"

HPARAMS = {
    "attention_size": {
        "default": 0,
        "minimum": 0,
        "help": "rnnsearch cell: width A of the additive attention; 0 = num_units.",
    },
    "readout_size": {
        "default": 0,
        "minimum": 0,
        "help": "rnnsearch cell: width of the readout; 0 = embedding_size.",
    },
}


class RNNSearchState(NamedTuple):
    """What one step leaves for the next."""

    hidden: tf.Tensor  # [B, U] s_{t-1}


class RNNSearchMemory(NamedTuple):
    """What every step reads."""

    annotations: tf.Tensor  # [B, S, D]
    keys: tf.Tensor  # [B, S, A] U_a h_j
    mask: tf.Tensor  # [B, 1, S]
    query_recurrent: tf.Tensor  # [U, 3U] GRU1
    query_kernel: tf.Tensor  # [U, A] W_a
    state_kernel: tf.Tensor  # [D, 3U] GRU2
    state_recurrent: tf.Tensor  # [U, 3U] GRU2


class RNNSearchCell(MemoryCell):
    """`e_j = v . tanh(W_a q_t + U_a h_j)`, readout `tanh(W_s s_t + W_y y_{t-1} + W_c c_t)`.

    The annotation width, one bias a gate and no bias elsewhere follow from the parameter counts of
    Meng et al. 2018, Table 1 (53.98M).
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates GRU1, the attention, GRU2, the readout and the map to s_0."""
        super().__init__(hparams, annotation_width, weights)
        h, units, width = hparams, hparams.num_units, annotation_width
        depth, embedding = h.attention_size or units, h.embedding_width
        self.output_width = units + width
        self.readout_width = h.readout_size or embedding
        query, state = weights.scope("query_gru"), weights.scope("state_gru")
        self.query_input = query.matrix("kernel", [embedding, 3 * units])
        self.query_recurrent = query.recurrent("recurrent_kernel", units, 3)
        self.query_bias = query.constant("bias", np.zeros(3 * units))
        self.state_input = state.matrix("kernel", [width, 3 * units])
        self.state_recurrent = state.recurrent("recurrent_kernel", units, 3)
        self.state_bias = state.constant("bias", np.zeros(3 * units))
        self.query_kernel = weights.matrix("query_kernel", [units, depth])
        self.memory_kernel = weights.matrix("memory_kernel", [width, depth])
        self.score_vector = weights.matrix("score_vector", [depth])
        self.readout_kernel = weights.matrix(
            "readout_kernel", [units + embedding + width, self.readout_width]
        )
        self.initial_kernel = weights.matrix("initial_kernel", [width, units])
        self.initial_bias = weights.constant("initial_bias", np.zeros(units))

    def initial_state(self, encoded: Encoded) -> RNNSearchState:
        """`s_0 = tanh(W_init mean_j h_j + b)`, the mean over real positions."""
        total = tf.reduce_sum(encoded.annotations, axis=1)  # padding is zero
        mean = total / tf.cast(encoded.length, tf.float32)[:, None]
        return RNNSearchState(tf.tanh(tf.matmul(mean, self.initial_kernel) + self.initial_bias))

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> RNNSearchMemory:
        """Projects the annotations to keys."""
        return RNNSearchMemory(
            annotations=encoded.annotations,
            keys=product(encoded.annotations, tf.cast(self.memory_kernel, dtype)),
            mask=encoded.mask[:, None],
            query_recurrent=tf.cast(self.query_recurrent, dtype),
            query_kernel=tf.cast(self.query_kernel, dtype),
            state_kernel=tf.cast(self.state_input, dtype),
            state_recurrent=tf.cast(self.state_recurrent, dtype),
        )

    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        """GRU1's sums from the words."""
        embedded = noise.dropout("input", self.hparams.dropout, embedded)
        return product(embedded, tf.cast(self.query_input, dtype)) + self.query_bias

    def step(
        self, inputs: tf.Tensor, state: RNNSearchState, memory: RNNSearchMemory
    ) -> StepOutput:
        """Query, address, context, state."""
        recurrent = product(state.hidden, memory.query_recurrent)
        (query,) = gru_step(inputs, recurrent, (state.hidden,))
        asked = per_sentence(product(query, memory.query_kernel), memory.keys)
        scores = attention.additive_scores(asked, memory.keys, self.score_vector)
        alignments = addressing.masked_softmax(scores, memory.mask)  # [B, K, S]
        context = per_row(attention.read(alignments, memory.annotations))
        projected = product(context, memory.state_kernel) + self.state_bias
        (hidden,) = gru_step(projected, product(query, memory.state_recurrent), (query,))
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=RNNSearchState(hidden),
            diagnostics={"alignments": per_row(alignments)},
        )

    def readout(
        self,
        outputs: tf.Tensor,
        embedded: tf.Tensor,
        noise: Noise,
        dtype: tf.DType = tf.float32,
    ) -> tf.Tensor:
        """`tanh(W_s s_t + W_y y_{t-1} + W_c c_t)`, then dropout: `[M, readout_width]`."""
        hidden, context = tf.split(outputs, [self.hparams.num_units, self.annotation_width], -1)
        joined = tf.concat([hidden, embedded, context], axis=-1)
        readout = tf.tanh(product(joined, tf.cast(self.readout_kernel, dtype)))
        return noise.dropout("readout", self.hparams.readout_dropout, readout)
