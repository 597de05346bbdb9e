"""Access of heads to a memory: addressing by content and by location, reading, writing.

Graves et al. 2014 (arXiv:1410.5401) section 3 and Collier & Beel 2019 equations 3-15. Weights are
over the last axis, `[..., N]`. A mask `[..., N]` of 0 and 1, broadcast against the weights, marks
the locations that exist; none of these functions ever puts weight elsewhere. Everything is float32.
"""

from __future__ import annotations

import tensorflow as tf

from tfmann.ops import rewriting, row_products

_NOWHERE = -1e30  # a score whose exponential is exactly 0 in float32, and whose gradient is 0
_SHARPEN_EPSILON = 1e-12  # keeps the logarithm of an empty location finite


def masked_softmax(scores: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Computes the softmax of scores `[..., N]` over the locations that exist."""
    if mask is not None:
        scores = tf.where(mask > 0, scores, _NOWHERE)
    return tf.nn.softmax(scores)


def softmax_over_filled(scores: tf.Tensor, filled: tf.Tensor) -> tf.Tensor:
    """Computes the softmax of scores `[..., N]` over filled slots; all zero where none is filled.

    Args:
      scores: `[..., N]`.
      filled: 1 in filled slots and 0 in empty ones, broadcast against the scores.
    """
    return filled * masked_softmax(scores, filled)


def interpolate(gate: tf.Tensor, content: tf.Tensor, previous: tf.Tensor) -> tf.Tensor:
    """Computes `g w^c + (1-g) w_{t-1}`: g `[..., 1]`, w `[..., N]` (Collier eqs 5, 13)."""
    return previous + gate * (content - previous)


def shift(weights: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """Convolves circularly over all N locations (Collier eq 6).

    Args:
      weights: `[..., N]`.
      kernel: `[..., J]`, J odd, ordered by offset: a weight of 1 on the last tap moves an address
        (J-1)/2 locations forward.

    Returns:
      `[..., N]`, by rolls: no `[N, N]` matrix.
    """
    reach = kernel.shape[-1] // 2
    return tf.add_n(
        [
            kernel[..., tap : tap + 1] * tf.roll(weights, offset, axis=-1)
            for tap, offset in enumerate(range(-reach, reach + 1))
        ]
    )


def shift_within(
    weights: tf.Tensor, kernel: tf.Tensor, mask: tf.Tensor, last: tf.Tensor
) -> tf.Tensor:
    """Shifts as `shift`, but circularly modulo each sentence's own length (Collier eq 14).

    Args:
      weights: `[..., S]`, zero at padding.
      kernel: `[..., J]`, J odd.
      mask: `[..., S]`, 1 at real positions.
      last: `[..., S]`, 1 at the last real position, 0 elsewhere.

    Returns:
      `[..., S]`, zero at padding.
    """
    reach = kernel.shape[-1] // 2
    shifted = [kernel[..., reach : reach + 1] * weights]
    forward = backward = weights
    for step in range(1, reach + 1):
        final = tf.reduce_sum(forward * last, axis=-1, keepdims=True)
        forward = tf.concat([final, forward[..., :-1]], axis=-1) * mask
        first = backward[..., :1]
        backward = tf.concat([backward[..., 1:], tf.zeros_like(first)], axis=-1) + first * last
        shifted.append(kernel[..., reach + step : reach + step + 1] * forward)
        shifted.append(kernel[..., reach - step : reach - step + 1] * backward)
    return tf.add_n(shifted)


def sharpen(weights: tf.Tensor, gamma: tf.Tensor, mask: tf.Tensor | None) -> tf.Tensor:
    """Computes `w^gamma / sum w^gamma` in log space (Collier eqs 7, 15).

    Unlike the paper: `softmax(gamma log(max(w, 1e-12)))`. The printed form is 0/0 in float32 for
    uniform weights over 128 locations at gamma = 20.

    Args:
      weights: `[..., N]`.
      gamma: `[..., 1]`, at least 1.
      mask: `[..., N]` or None.
    """
    return masked_softmax(gamma * tf.math.log(tf.maximum(weights, _SHARPEN_EPSILON)), mask)


def cosine_similarity(
    dots: tf.Tensor, keys: tf.Tensor, squares: tf.Tensor, floor: float = 1e-30
) -> tf.Tensor:
    """Computes `K[k, M(i)] = k . M(i) / (|k||M(i)| + 1e-8)` (Collier eq 4): `[B, H, N]`.

    The epsilon is added to the denominator: inside the norms it would flatten a memory that starts
    at 1e-6 to no similarity at all.

    Args:
      dots: `[B, H, N]`, the products k . M(i).
      keys: `[B, H, W]`.
      squares: `[B, N]`, the squared lengths |M(i)|^2.
      floor: added inside the norms, for cells that want it there.
    """
    slot_norms = tf.expand_dims(tf.sqrt(squares + floor), 1)
    return dots / (tf.expand_dims(norm(keys, floor), 2) * slot_norms + 1e-8)


def masked_cosine_similarity(
    keys: tf.Tensor, memory: tf.Tensor, masks: tf.Tensor, floor: float = 1e-30
) -> tf.Tensor:
    """Computes the `cosine_similarity` of `mu k` and `mu M(i)`: `[B, H, N]`.

    Every head has a mask mu of its own (Csordás & Schmidhuber 2019, section 3.1). Its squares go
    into two products, so that no masked memory `[B, H, N, W]` is made.

    Args:
      keys: `[B, H, W]`.
      memory: `[B, N, W]`.
      masks: `[B, H, W]`.
      floor: added inside the norms.
    """
    squares = tf.square(masks)
    dots = row_products.times_transposed(squares * keys, memory)
    slot_squares = row_products.times_transposed(squares, tf.square(memory))
    slot_norms = tf.sqrt(slot_squares + floor)
    return dots / (tf.expand_dims(norm(masks * keys, floor), 2) * slot_norms + 1e-8)


def norm(vectors: tf.Tensor, floor: float = 1e-30) -> tf.Tensor:
    """Computes `sqrt(sum x^2 + floor)` of vectors `[..., W]`, with a finite gradient at zero."""
    return tf.sqrt(tf.reduce_sum(tf.square(vectors), axis=-1) + floor)


def normalize(vectors: tf.Tensor) -> tf.Tensor:
    """Scales vectors `[..., W]` to length 1; those below 1e-6 stay shorter, and zero stays zero."""
    return vectors / norm(vectors, 1e-12)[..., None]


def drift(memory: tf.Tensor, start: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Computes how far memories have moved from their start, mean over the real locations.

    Args:
      memory: `[B, K, S, W]`, of K hypotheses.
      start: `[B, S, W]`.
      mask: `[B, 1, S]`.

    Returns:
      `[B, K]`.
    """
    distances = norm(memory - start[:, None]) * mask  # [B, K, S]
    return tf.reduce_sum(distances, axis=-1) / tf.reduce_sum(mask, axis=-1)


def read(weights: tf.Tensor, memory: tf.Tensor) -> tf.Tensor:
    """Reads `r = sum_i w(i) M(i)` (8): weights `[B, R, N]` to vectors `[B, R, W]`."""
    return row_products.times(weights, memory)


def erase_and_add(
    memory: tf.Tensor, weights: tf.Tensor, erase: tf.Tensor, add: tf.Tensor
) -> tf.Tensor:
    """Computes `M prod_h(1 - w_h e_h^T) + sum_h w_h a_h^T` (9, 10): all erase, then all add.

    Args:
      memory: `[B, N, W]`.
      weights: `[B, H, N]`.
      erase: `[B, H, W]` in [0, 1].
      add: `[B, H, W]`.

    Returns:
      `[B, N, W]`.
    """
    if row_products.is_row_by_row():
        return rewriting.erase_and_add_by_rows(memory, weights, erase, add)
    if weights.shape[1] == 1:
        return rewriting.erase_and_add_by_one_head(memory, weights, erase, add)
    for head_weights, head_erase in zip(
        tf.unstack(weights[:, :, None], axis=1), tf.unstack(erase[:, :, None], axis=1)
    ):
        nothing = tf.zeros_like(head_erase)
        memory = rewriting.erase_and_add_by_one_head(memory, head_weights, head_erase, nothing)
    return memory + tf.matmul(weights, add, transpose_a=True)
