"""Erasing and adding by write heads, and a DNC's links, with gradients that save only their inputs.

Automatic differentiation saves two tensors `[B, N, W]` for a step of one head, M and a - M e. Here
M is saved, and the other is computed again. For 64 x 128 x 64 that is 2.1 MB in place of 4.2 MB a
step, in the same time (ratio 1.00 over 20 steps). The functions `..._by_rows` are for
`row_products.row_by_row`: they compute sums as products of rows, which outside of XLA would take up
to 1.16 times as long.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tfmann.ops import row_products
from tfmann.ops.gradients import custom_gradient


@custom_gradient
def erase_and_add_by_one_head(
    memory: tf.Tensor, weights: tf.Tensor, erase: tf.Tensor, add: tf.Tensor
):
    """Computes `M (1 - w e^T) + w a^T` `[B, N, W]` of w `[B, 1, N]`, e and a `[B, 1, W]`."""
    column = tf.transpose(weights, [0, 2, 1])  # [B, N, 1]
    result = memory + column * (add - memory * erase)

    def gradient(d: tf.Tensor):
        by_column = column * d  # [B, N, W]
        d_memory = d - by_column * erase
        d_weights = tf.reduce_sum(d * (add - memory * erase), axis=-1)[:, None]
        d_erase = -tf.reduce_sum(by_column * memory, axis=1, keepdims=True)
        d_add = tf.reduce_sum(by_column, axis=1, keepdims=True)
        return d_memory, d_weights, d_erase, d_add

    return result, gradient


@custom_gradient
def erase_and_add_by_rows(memory: tf.Tensor, weights: tf.Tensor, erase: tf.Tensor, add: tf.Tensor):
    """Computes `M prod_h(1 - w_h e_h^T) + sum_h w_h a_h^T` `[B, N, W]`, for `row_by_row`.

    The gradient computes again what the other heads have left of a memory.

    Args:
      memory: `[B, N, W]`.
      weights: `[B, H, N]`.
      erase: `[B, H, W]`.
      add: `[B, H, W]`.
    """
    heads = weights.shape[1]
    columns = tf.split(tf.transpose(weights, [0, 2, 1]), heads, axis=2)  # [B, N, 1]
    rows = tf.split(erase, heads, axis=1)  # [B, 1, W]
    if heads == 1:
        result = memory + columns[0] * (add - memory * erase)
    else:
        result = _erased(memory, columns, rows) + row_products.outer(weights, add)

    def gradient(d: tf.Tensor):
        by_memory = d * memory
        d_weights, d_erase = [], []
        for head in range(heads):
            others = [h for h in range(heads) if h != head]
            rest = _erased(by_memory, [columns[h] for h in others], [rows[h] for h in others])
            d_weights.append(row_products.times_transposed(-rows[head], rest))
            d_erase.append(row_products.times(-weights[:, head : head + 1], rest))
        return (
            _erased(d, columns, rows),
            tf.concat(d_weights, axis=1) + row_products.times_transposed(add, d),
            tf.concat(d_erase, axis=1),
            row_products.times(weights, d),
        )

    return result, gradient


def _erased(memory: tf.Tensor, columns: Sequence, rows: Sequence) -> tf.Tensor:
    """Computes `M prod_h(1 - w_h e_h^T)` of columns w `[B, N, 1]` and rows e `[B, 1, W]`."""
    for column, row in zip(columns, rows):
        memory = memory - column * (memory * row)
    return memory


@custom_gradient
def update_link_by_rows(link: tf.Tensor, precedence: tf.Tensor, write_weights: tf.Tensor):
    """Computes `L[i, j] = (1 - w_i - w_j) L[i, j] + w_i p_j`, diagonal 0: `[B, H, N, N]`.

    For `row_products.row_by_row`: the sums of the gradient are products of rows.

    Args:
      link: `[B, H, N, N]` before.
      precedence: `[B, H, N]` before.
      write_weights: `[B, H, N]` of this step.
    """
    rows, columns = tf.expand_dims(write_weights, 3), tf.expand_dims(write_weights, 2)
    precedence = tf.expand_dims(precedence, 2)  # [B, H, 1, N]
    nothing = tf.zeros_like(write_weights)
    result = (1.0 - rows - columns) * link + rows * precedence

    def gradient(d: tf.Tensor):
        d = tf.linalg.set_diag(d, nothing)
        by_link, ones = d * link, tf.ones_like(columns)
        d_weights = (
            row_products.times_transposed(precedence, d)
            - row_products.times_transposed(ones, by_link)
            - row_products.times(ones, by_link)
        )
        d_precedence = row_products.times(columns, d)
        return (1.0 - rows - columns) * d, tf.squeeze(d_precedence, 2), tf.squeeze(d_weights, 2)

    return tf.linalg.set_diag(result, nothing), gradient
