"""What RNNSearch and the cells that add to it share: additive attention between two GRUs.

`q_t = GRU1(s_{t-1}, y_{t-1})` asks annotations that nothing rewrites (Bahdanau et al. 2015).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.cells.base import Encoded, per_row, per_sentence
from tfmann.cells.recurrent import gru_step, product
from tfmann.cells.two_gru import GRU, TwoGRUCell, make_gru
from tfmann.cells.weights import Weights
from tfmann.hparams import HParams
from tfmann.memory import addressing, attention


class Asked(NamedTuple):
    """Annotations that can be asked."""

    annotations: tf.Tensor  # [B, S, D]
    keys: tf.Tensor  # [B, S, A] U_a h_j
    mask: tf.Tensor  # [B, 1, S]
    query_kernel: tf.Tensor  # [U, A] W_a
    score_vector: tf.Tensor  # [A] v

    def answer(self, query: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """`e_j = v . tanh(W_a q_t + U_a h_j)`, `c_t = sum_j a_j h_j`, of queries `[B*K, U]`.

        Returns:
          a `[B, K, S]`, c `[B*K, D]`.
        """
        asked = per_sentence(product(query, self.query_kernel), self.keys)
        scores = attention.additive_scores(asked, self.keys, self.score_vector)
        alignments = addressing.masked_softmax(scores, self.mask)
        return alignments, per_row(attention.read(alignments, self.annotations))


class AdditiveState(NamedTuple):
    """What one step leaves for the next."""

    hidden: tf.Tensor  # [B, U] s_{t-1}


class AdditiveMemory(NamedTuple):
    """What every step reads."""

    source: Asked
    query_recurrent: tf.Tensor  # [U, 3U] GRU1
    state_gru: GRU  # GRU2


class AdditiveCell(TwoGRUCell):
    """GRU1, the attention, GRU2; what else a step takes in is the subclasses'."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
        """Creates the attention and GRU2."""
        super().__init__(hparams, annotation_width, weights)
        units = hparams.num_units
        self.state_gru = make_gru(weights.scope("state_gru"), annotation_width, units)
        self.query_kernel = weights.matrix("query_kernel", [units, self.depth])
        self.memory_kernel = weights.matrix("memory_kernel", [annotation_width, self.depth])
        self.score_vector = weights.matrix("score_vector", [self.depth])

    def initial_state(self, encoded: Encoded) -> AdditiveState:
        """s_0."""
        return AdditiveState(self.initial_hidden(encoded))

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> Any:
        """Projects the annotations to keys: an AdditiveMemory, or what a subclass has around it."""
        source = Asked(
            annotations=encoded.annotations,
            keys=product(encoded.annotations, tf.cast(self.memory_kernel, dtype)),
            mask=encoded.mask[:, None],
            query_kernel=tf.cast(self.query_kernel, dtype),
            score_vector=self.score_vector,
        )
        recurrent = tf.cast(self.query_gru.recurrent, dtype)
        return AdditiveMemory(source, recurrent, self.state_gru.cast(dtype))

    def query(
        self, inputs: tf.Tensor, state: AdditiveState, memory: AdditiveMemory
    ) -> tf.Tensor:
        """q_t `[B, U]`."""
        recurrent = product(state.hidden, memory.query_recurrent)
        return gru_step(inputs, recurrent, (state.hidden,))[0]
