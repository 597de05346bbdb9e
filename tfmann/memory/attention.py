"""Scores of a query against the source, and the reading of it.

Queries are grouped by sentence: `[B, K, U]`, K hypotheses (times heads) of one source; they share
its annotations.
"""

from __future__ import annotations

import tensorflow as tf

from tfmann.memory import deferred


def dot_scores(query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """`q . k` (Luong et al. 2015, eq 8): `[B, K, U]`, `[B, S, U]` to `[B, K, S]`."""
    return deferred.by_sentence(query, keys, transposed=True)


def additive_scores(query: tf.Tensor, keys: tf.Tensor, vector: tf.Tensor) -> tf.Tensor:
    """`v . tanh(q + k)` (Bahdanau et al. 2015): `[B, K, A]`, `[B, S, A]`, `[A]` to `[B, K, S]`."""
    # expand_dims, whose gradient costs nothing; that of an index copies the keys at every step
    hidden = tf.tanh(tf.expand_dims(query, 2) + tf.expand_dims(keys, 1))  # [B, K, S, A]
    # a product of two matrices: an einsum's gradients take half as long again
    scores = tf.matmul(tf.reshape(hidden, [-1, hidden.shape[3]]), tf.expand_dims(vector, 1))
    return tf.reshape(scores, tf.shape(hidden)[:3])


def read(weights: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """`sum_s w(s) v(s)`: `[B, K, S]`, `[B, S, D]` to `[B, K, D]`."""
    return deferred.by_sentence(weights, values)
