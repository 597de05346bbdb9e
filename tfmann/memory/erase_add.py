"""Reading from and writing to a memory `[B, N, W]` (Collier & Beel 2019, equations 8-10)."""

from __future__ import annotations

import tensorflow as tf

from tfmann.ops.rewriting import erase_and_add_by_one_head


def read(weights: tf.Tensor, memory: tf.Tensor) -> tf.Tensor:
    """`r = sum_i w(i) M(i)` (8): weights `[B, R, N]` to vectors `[B, R, W]`."""
    return weights @ memory


def erase_and_add(
    memory: tf.Tensor, weights: tf.Tensor, erase: tf.Tensor, add: tf.Tensor
) -> tf.Tensor:
    """`M prod_h(1 - w_h e_h^T) + sum_h w_h a_h^T` (9, 10): all heads erase, then all add.

    Args:
      memory: `[B, N, W]`.
      weights: `[B, H, N]`.
      erase: `[B, H, W]` in [0, 1].
      add: `[B, H, W]`.

    Returns:
      `[B, N, W]`.
    """
    if weights.shape[1] == 1:
        return erase_and_add_by_one_head(memory, weights, erase, add)
    for head_weights, head_erase in zip(
        tf.unstack(weights[:, :, None], axis=1), tf.unstack(erase[:, :, None], axis=1)
    ):
        nothing = tf.zeros_like(head_erase)
        memory = erase_and_add_by_one_head(memory, head_weights, head_erase, nothing)
    return memory + tf.matmul(weights, add, transpose_a=True)
