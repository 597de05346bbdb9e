"""Two GRUs with attention between them, their start and their readout: the decoder of RNNSearch.

Bahdanau et al. 2015, in the form of dl4mt and Nematus (the conditional GRU). Letters: s_t the
state, y_{t-1} the embedding of the previous word, h_j the annotations, c_t the context.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.config import HParams
from tfmann.layers.attention import AdditiveAttention
from tfmann.layers.beams import merge_beams
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import GRUCell, product


class KeyedAnnotations(NamedTuple):
    """Annotations with their keys of additive attention, constant over the steps."""

    annotations: tf.Tensor  # [B, S, D] h_j
    keys: tf.Tensor  # [B, S, A] U_a h_j
    mask: tf.Tensor  # [B, 1, S]


class ConditionalGRU(tf.Module):
    """`q_t = GRU1(s_{t-1}, y_{t-1})`, `c_t = sum_j a_j(q_t) h_j`, `s_t = GRU2(q_t, c_t)`."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates both GRUs and the attention."""
        super().__init__(name="conditional_gru")
        units, depth = hparams.num_units, hparams.attention_width  # U, A
        self.query_gru = GRUCell(hparams.embedding_width, units, weights.scope("query_gru"))
        self.attention = AdditiveAttention(units, annotation_width, depth, weights)
        self.state_gru = GRUCell(annotation_width, units, weights.scope("state_gru"))

    def prepare(self, annotations: tf.Tensor, mask: tf.Tensor) -> KeyedAnnotations:
        """Projects annotations `[B, S, D]` to keys; the mask is `[B, S]`."""
        return KeyedAnnotations(annotations, self.attention.keys(annotations), mask[:, None])

    def attend(
        self, projected: tf.Tensor, hidden: tf.Tensor, source: KeyedAnnotations
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Runs the first half of a step.

        Args:
          projected: `[B*K, 3U]`, the word's part of GRU1 (`query_gru.project`).
          hidden: `[B*K, U]` s_{t-1}.
          source: from `prepare`.

        Returns:
          q_t `[B*K, U]`, c_t `[B*K, D]`, a `[B*K, S]`.
        """
        query = self.query_gru.from_projected(projected, hidden)
        alignments = self.attention(query, source.keys, source.mask)  # [B, K, S]
        context = alignments @ source.annotations
        return query, merge_beams(context), merge_beams(alignments)


class MeanStart(tf.Module):
    """`s_0 = tanh(W_init mean_j h_j + b)`."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates W_init `[D, U]` and b `[U]`."""
        super().__init__(name="start")
        units = hparams.num_units
        self.kernel = weights.matrix("initial_kernel", [annotation_width, units])
        self.bias = weights.constant("initial_bias", np.zeros(units))

    def __call__(
        self, annotations: tf.Tensor, length: tf.Tensor, addend: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Returns s_0 `[B, U]`.

        Args:
          annotations: `[B, S, D]`, zero at padding.
          length: `[B]`.
          addend: `[B, U]`, added before the tanh.
        """
        sums = tf.matmul(mean_annotation(annotations, length), self.kernel) + self.bias
        return tf.tanh(sums if addend is None else sums + addend)


def mean_annotation(annotations: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """Returns `mean_j h_j` `[B, D]` of annotations `[B, S, D]`, which are zero at padding."""
    return tf.reduce_sum(annotations, axis=1) / tf.cast(length, tf.float32)[:, None]


class Readout(tf.Module):
    """`tanh(W_s s_t + W_y y_{t-1} + W_c c_t)`, without a bias.

    Attributes:
      width: of the readout.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates W_s, W_y and W_c in one kernel `[U + E + D, R]`."""
        super().__init__(name="readout")
        units, embedding = hparams.num_units, hparams.embedding_width
        self._sizes = [units, annotation_width]
        self.width = hparams.readout_size or embedding
        rows = units + embedding + annotation_width
        self.kernel = weights.matrix("readout_kernel", [rows, self.width])

    def __call__(
        self, outputs: tf.Tensor, embedded: tf.Tensor, addend: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Returns the readout `[M, R]`.

        Args:
          outputs: `[M, U + D]`, s_t and c_t.
          embedded: `[M, E]`, y_{t-1}.
          addend: `[M, R]`, added before the tanh.
        """
        hidden, context = tf.split(outputs, self._sizes, axis=-1)
        sums = product(tf.concat([hidden, embedded, context], axis=-1), self.kernel)
        return tf.tanh(sums if addend is None else sums + addend)
