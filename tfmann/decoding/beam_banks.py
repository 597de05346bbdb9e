"""Banks: the parts of a beam, by how many tokens of given phrases their hypotheses have.

Dynamic beam allocation, Post & Vilar 2018 (arXiv:1804.06609), section 3: of a beam of width K each
of the banks 0 to n has K / (n + 1) slots, rounded down, and bank n the rest. A bank with more slots
than candidates gives those it cannot fill to others, to its neighbours first and then outwards.

Letters: B sentences, N candidates, K selected, M banks, of which sentence b uses n_b + 1.
"""

from __future__ import annotations

import tensorflow as tf


def best_of_banks(
    scores: tf.Tensor,
    banks: tf.Tensor,
    last_bank: tf.Tensor,
    width: int,
    widths: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Selects the best K candidates of the banks; of one bank alone, those of `tf.math.top_k`.

    Args:
      scores: `[B, N]`, N at least K; a candidate of -inf fills no slot.
      banks: `[B, N]` int32, from 0 to n_b.
      last_bank: n_b `[B]`.
      width: K.
      widths: `[B]` how many a sentence selects, at most K; None: K. The others have -inf.

    Returns:
      scores `[B, K]` from best to worst, indexes `[B, K]` into the N.
    """
    sorted_scores, order = tf.math.top_k(scores, tf.shape(scores)[1])
    sorted_banks = tf.gather(banks, order, batch_dims=1)
    is_member = tf.one_hot(sorted_banks, tf.reduce_max(last_bank) + 1, dtype=tf.int32)  # [B, N, M]
    is_member *= tf.cast(sorted_scores > -float("inf"), tf.int32)[..., None]
    selected = tf.fill(tf.shape(last_bank), width) if widths is None else widths
    slots = allocate(tf.reduce_sum(is_member, axis=1), last_bank, selected)
    ranks = tf.cumsum(is_member, axis=1, exclusive=True)
    is_selected = tf.reduce_any((is_member > 0) & (ranks < slots[:, None]), axis=-1)
    values, columns = tf.math.top_k(tf.where(is_selected, sorted_scores, -float("inf")), width)
    return values, tf.gather(order, columns, batch_dims=1)


def allocate(counts: tf.Tensor, last_bank: tf.Tensor, widths: tf.Tensor) -> tf.Tensor:
    """Divides the slots of each sentence's beam among its banks.

    Args:
      counts: `[B, M]` int32 candidates of each bank.
      last_bank: n_b `[B]` int32; the banks after it are empty.
      widths: `[B]` int32 slots of the beams.

    Returns:
      `[B, M]` slots, at most `counts`; together those of the beam, or all of `counts` if they are
      fewer.
    """
    banks, last_bank = tf.range(tf.shape(counts)[1])[None], last_bank[:, None]
    equal_part = widths[:, None] // (last_bank + 1)
    rest = widths[:, None] - equal_part * (last_bank + 1)
    slots = tf.where(banks <= last_bank, equal_part, 0)
    slots += tf.where(tf.equal(banks, last_bank), rest, 0)
    spare, room = tf.nn.relu(slots - counts), tf.nn.relu(counts - slots)

    def give(distance: tf.Tensor, spare: tf.Tensor, room: tf.Tensor):
        for step in (distance, -distance):
            moved = tf.minimum(spare, _shift(room, -step))
            spare, room = spare - moved, room - _shift(moved, step)
        return distance + 1, spare, room

    shape = tf.TensorShape([None, None])
    _, _, room = tf.while_loop(
        lambda distance, spare, room: tf.reduce_any(spare > 0) & tf.reduce_any(room > 0),
        give,
        (tf.constant(1), spare, room),
        shape_invariants=(tf.TensorShape([]), shape, shape),
        maximum_iterations=tf.shape(counts)[1] - 1,
    )
    return counts - room


def _shift(values: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
    """Moves each column of `[B, M]` by `step` columns; those that nothing moves to are 0."""
    padded = tf.pad(values, [[0, 0], [tf.nn.relu(step), tf.nn.relu(-step)]])
    begin = tf.nn.relu(-step)
    return padded[:, begin : begin + tf.shape(values)[1]]
