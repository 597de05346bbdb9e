"""RNNSearch with two GRUs a step (Bahdanau et al. 2015; the baseline of Meng 2018 and Tu 2018)."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.cells.base import Encoded, StepOutput, per_row, per_sentence
from tfmann.cells.recurrent import gru_step, product
from tfmann.cells.two_gru import GRU, TwoGRUCell, make_gru
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import addressing, attention

NAME = "rnnsearch"

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
    state_gru: GRU  # GRU2


class RNNSearchCell(TwoGRUCell):
    """`e_j = v . tanh(W_a q_t + U_a h_j)`, `c_t = sum_j a_j h_j`."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the attention and GRU2."""
        super().__init__(hparams, annotation_width, weights)
        units = hparams.num_units
        self.state_gru = make_gru(weights.scope("state_gru"), annotation_width, units)
        self.query_kernel = weights.matrix("query_kernel", [units, self.depth])
        self.memory_kernel = weights.matrix("memory_kernel", [annotation_width, self.depth])
        self.score_vector = weights.matrix("score_vector", [self.depth])

    def initial_state(self, encoded: Encoded) -> RNNSearchState:
        """s_0."""
        return RNNSearchState(self.initial_hidden(encoded))

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> RNNSearchMemory:
        """Projects the annotations to keys."""
        return RNNSearchMemory(
            annotations=encoded.annotations,
            keys=product(encoded.annotations, tf.cast(self.memory_kernel, dtype)),
            mask=encoded.mask[:, None],
            query_recurrent=tf.cast(self.query_gru.recurrent, dtype),
            query_kernel=tf.cast(self.query_kernel, dtype),
            state_gru=self.state_gru.cast(dtype),
        )

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
        hidden = memory.state_gru.step(context, query)
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=RNNSearchState(hidden),
            diagnostics={"alignments": per_row(alignments)},
        )
