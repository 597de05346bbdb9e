"""The DNC's dynamic memory: usage, allocation, temporal links (Graves et al. 2016, Methods).

Weights are `[B, H, N]` for write heads and `[B, R, N]` for read heads; each sums to at most 1.
"""

from __future__ import annotations

import functools
import operator

import tensorflow as tf

from tfmann.ops import row_products
from tfmann.ops.rewriting import update_link_by_rows

_EPSILON = 1e-6  # the least usage: the gradient of a cumulative product divides by it
_LINK_EPSILON = 1e-6  # keeps the logarithm finite at a slot to which no link leads


def retention(free_gates: tf.Tensor, read_weights: tf.Tensor) -> tf.Tensor:
    """Computes `psi_t = prod_r(1 - f_r w_r)`, what the free gates retain of each slot: `[B, N]`.

    Args:
      free_gates: `[B, R, 1]` of this step.
      read_weights: `[B, R, N]` of the last step.
    """
    return _product(1.0 - free_gates * read_weights)


def update_usage(usage: tf.Tensor, write_weights: tf.Tensor, retained: tf.Tensor) -> tf.Tensor:
    """Computes `u_t = (u_{t-1} + (1 - u_{t-1}) (1 - prod_h(1 - w_h))) psi_t`: `[B, N]`.

    Args:
      usage: `[B, N]` before.
      write_weights: `[B, H, N]` of the last step.
      retained: `[B, N]` psi_t (`retention`).
    """
    written = 1.0 - _product(1.0 - write_weights)
    return (usage + (1.0 - usage) * written) * retained


def _product(values: tf.Tensor) -> tf.Tensor:
    """Multiplies `[B, R, N]` over the heads; the gradient of `reduce_prod` takes 20 operations."""
    return functools.reduce(operator.mul, tf.unstack(values, axis=1))


def allocation(usage: tf.Tensor) -> tf.Tensor:
    """Weighs the least used slots `[B, N]`: `a[phi_j] = (1 - u[phi_j]) prod_i<j u[phi_i]`.

    phi sorts by usage; of equal ones the lowest index comes first. No gradient flows through the
    order.
    """
    if row_products.is_row_by_row():
        return _allocation_by_rows(usage)
    usage = _EPSILON + (1.0 - _EPSILON) * usage
    order = tf.math.top_k(-usage, usage.shape[-1]).indices
    ascending = tf.gather(usage, order, batch_dims=1)
    weights = (1.0 - ascending) * tf.math.cumprod(ascending, axis=-1, exclusive=True)
    back = tf.argsort(order, axis=-1)
    return tf.gather(weights, back, batch_dims=1)


def _allocation_by_rows(usage: tf.Tensor) -> tf.Tensor:
    """Computes the same with a comparison of all pairs: XLA sorts slowly."""
    slots = tf.range(usage.shape[-1])
    each, other = tf.expand_dims(usage, 2), tf.expand_dims(usage, 1)
    is_before = (other < each) | ((other == each) & (slots < tf.expand_dims(slots, 1)))
    usage = _EPSILON + (1.0 - _EPSILON) * usage
    logarithms = tf.expand_dims(tf.math.log(usage), 1)
    sums = row_products.times_transposed(logarithms, tf.cast(is_before, tf.float32))
    return (1.0 - usage) * tf.exp(tf.squeeze(sums, 1))


def allocate(usage: tf.Tensor, write_gates: tf.Tensor, allocation_gates: tf.Tensor) -> tf.Tensor:
    """Computes the allocation weights a_t of all write heads, one after the other: `[B, H, N]`.

    The usage that a head reads is raised by what the heads before it are about to write.

    Args:
      usage: `[B, N]`.
      write_gates: `[B, H, 1]`.
      allocation_gates: `[B, H, 1]`.
    """
    allocated = []
    for head in range(write_gates.shape[1]):
        weights = allocation(usage)
        allocated.append(weights)
        share = write_gates[:, head] * allocation_gates[:, head]
        usage = usage + (1.0 - usage) * share * weights
    return tf.stack(allocated, axis=1)


def update_link(link: tf.Tensor, precedence: tf.Tensor, write_weights: tf.Tensor) -> tf.Tensor:
    """Computes `L[i, j] = (1 - w_i - w_j) L[i, j] + w_i p_j`, diagonal 0: `[B, H, N, N]`.

    Args:
      link: `[B, H, N, N]` before.
      precedence: `[B, H, N]` before.
      write_weights: `[B, H, N]` of this step.
    """
    if row_products.is_row_by_row():
        return update_link_by_rows(link, precedence, write_weights)
    row, column = tf.expand_dims(write_weights, 3), tf.expand_dims(write_weights, 2)
    link = (1.0 - row - column) * link + row * tf.expand_dims(precedence, 2)
    return tf.linalg.set_diag(link, tf.zeros_like(write_weights))


def update_precedence(precedence: tf.Tensor, write_weights: tf.Tensor) -> tf.Tensor:
    """Computes `p = (1 - sum_i w_i) p + w`: `[B, H, N]`."""
    total = tf.reduce_sum(write_weights, axis=-1, keepdims=True)
    return (1.0 - total) * precedence + write_weights


def follow_links(link: tf.Tensor, read_weights: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Moves read weights backward, `L^T w`, and forward, `L w`, along each write head's links.

    Args:
      link: `[B, H, N, N]`.
      read_weights: `[B, R, N]` of the last step.

    Returns:
      two `[B, R, H, N]`.
    """
    rows = tf.tile(tf.expand_dims(read_weights, 1), [1, link.shape[1], 1, 1])  # [B, H, R, N]
    backward = row_products.times(rows, link)
    forward = row_products.times_transposed(rows, link)
    return tf.transpose(backward, [0, 2, 1, 3]), tf.transpose(forward, [0, 2, 1, 3])


def sharpen_moves(weights: tf.Tensor, sharpness: tf.Tensor) -> tf.Tensor:
    """Computes `softmax(s log(d + 1e-6))` of backward or forward weights d `[B, R, H, N]`.

    This is `(d + 1e-6)^s / sum`, which sums to 1: from a slot without a link it leads to all slots
    equally (Csordás & Schmidhuber 2019, section 3.3).

    Args:
      weights: `[B, R, H, N]` from `follow_links`; rounding can leave one just below zero.
      sharpness: `[B, R, 1]`, at least 1.
    """
    logarithms = tf.math.log(tf.maximum(weights, 0.0) + _LINK_EPSILON)
    return tf.nn.softmax(sharpness[:, :, None] * logarithms)


def mix_read_weights(
    modes: tf.Tensor, backward: tf.Tensor, content: tf.Tensor, forward: tf.Tensor
) -> tf.Tensor:
    """Mixes `w^r = sum_m pi[m] weights[m]`; modes `[B, R, 1+2H]`: backward, content, forward."""
    weights = tf.concat([backward, content[:, :, None], forward], axis=2)  # [B, R, 1+2H, N]
    return tf.einsum("brm,brmn->brn", modes, weights)
