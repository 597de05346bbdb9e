"""Additive attention with its weights (Bahdanau et al. 2015, sections 3.1 and A.1.2)."""

from __future__ import annotations

import tensorflow as tf

from tfmann.layers.beams import split_beams
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import product
from tfmann.memory import access


class AdditiveAttention(tf.Module):
    """`a_j = softmax_j(v . tanh(W_a q + U_a h_j))`."""

    def __init__(
        self, units: int, width: int, depth: int, weights: VariableFactory, prefix: str = ""
    ):
        """Creates W_a `[U, A]`, U_a `[D, A]` and v `[A]`.

        Args:
          units: U, of a query.
          width: D, of an annotation.
          depth: A.
          weights: creates them.
          prefix: beginning of their names.
        """
        super().__init__(name="additive_attention")
        self.query_kernel = weights.matrix(f"{prefix}query_kernel", [units, depth])
        self.memory_kernel = weights.matrix(f"{prefix}memory_kernel", [width, depth])
        self.score_vector = weights.matrix(f"{prefix}score_vector", [depth])

    def keys(self, annotations: tf.Tensor) -> tf.Tensor:
        """Returns `U_a h_j` `[B, S, A]` of annotations `[B, S, D]`."""
        return product(annotations, self.memory_kernel)

    def __call__(
        self, query: tf.Tensor, keys: tf.Tensor, mask: tf.Tensor, addend: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Returns the weights a of queries over keys that all hypotheses of a sentence share.

        Args:
          query: `[B*K, U]`.
          keys: `[B, S, A]`, from `keys`.
          mask: `[B, 1, S]`, 1 at real positions.
          addend: `[B, K, S, A]`, added before the tanh, such as a hypothesis's coverage.

        Returns:
          `[B, K, S]`.
        """
        projected = split_beams(product(query, self.query_kernel), keys)
        scores = additive_scores(projected, keys, self.score_vector, addend)
        return access.masked_softmax(scores, mask)

    def per_hypothesis(self, query: tf.Tensor, keys: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Returns the weights a of queries over keys that belong to each hypothesis.

        Args:
          query: `[B*K, U]`.
          keys: `[B*K, S, A]`.
          mask: `[B, 1, S]`.

        Returns:
          `[B, K, S]`.
        """
        projected = product(query, self.query_kernel)[:, None]
        scores = additive_scores(projected, keys, self.score_vector)[:, 0]
        return access.masked_softmax(split_beams(scores, mask), mask)


def additive_scores(
    query: tf.Tensor, keys: tf.Tensor, vector: tf.Tensor, addend: tf.Tensor | None = None
) -> tf.Tensor:
    """Computes `v . tanh(q + k)` (Bahdanau et al. 2015) `[B, K, S]` of `[B, K, A]`, `[B, S, A]`.

    `addend [B, K, S, A]` is added before the tanh.
    """
    # expand_dims, whose gradient costs nothing; that of an index copies the keys at every step
    sums = tf.expand_dims(query, 2) + tf.expand_dims(keys, 1)  # [B, K, S, A]
    hidden = tf.tanh(sums if addend is None else sums + addend)
    # a product of two matrices: an einsum's gradients take half as long again
    scores = tf.matmul(tf.reshape(hidden, [-1, hidden.shape[3]]), tf.expand_dims(vector, 1))
    return tf.reshape(scores, tf.shape(hidden)[:3])
