"""Reading from and writing to a memory `[B, N, W]` (Collier & Beel 2019, equations 8-10)."""

from __future__ import annotations

import tensorflow as tf


def read(weights: tf.Tensor, memory: tf.Tensor) -> tf.Tensor:
    """`sum_i w(i) M(i)` (8): weights `[B, R, N]` to vectors `[B, R, W]`."""
    return tf.matmul(weights, memory)


def erase_and_add(
    memory: tf.Tensor, weights: tf.Tensor, erase: tf.Tensor, add: tf.Tensor
) -> tf.Tensor:
    """The product of all heads' erases, then the sum of all adds (9, 10).

    Its gradient is written out for one head, so that a step of back-propagation keeps the memory
    before it and nothing else of that size.

    Args:
      memory: `[B, N, W]`.
      weights: `[B, H, N]`.
      erase: `[B, H, W]` in [0, 1].
      add: `[B, H, W]`.

    Returns:
      `[B, N, W]`.
    """
    if weights.shape[1] == 1:
        return _one_head(memory, weights, erase, add)
    kept = memory
    for head in range(weights.shape[1]):
        one = slice(head, head + 1)
        kept = _one_head(kept, weights[:, one], erase[:, one], tf.zeros_like(add[:, one]))
    return kept + tf.matmul(weights, add, transpose_a=True)


@tf.custom_gradient
def _one_head(memory: tf.Tensor, weights: tf.Tensor, erase: tf.Tensor, add: tf.Tensor):
    """`M (1 - w e^T) + w a^T`: `[B, N, W]`, `[B, 1, N]`, `[B, 1, W]`, `[B, 1, W]`."""
    column = tf.transpose(weights, [0, 2, 1])  # [B, N, 1]
    result = memory + column * (add - memory * erase)

    def gradient(d: tf.Tensor):
        through = column * d  # [B, N, W]
        d_memory = d - through * erase
        d_weights = tf.reduce_sum(d * (add - memory * erase), axis=-1)[:, None]
        d_erase = -tf.reduce_sum(through * memory, axis=1, keepdims=True)
        d_add = tf.reduce_sum(through, axis=1, keepdims=True)
        return d_memory, d_weights, d_erase, d_add

    return result, gradient
