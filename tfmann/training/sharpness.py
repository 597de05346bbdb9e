"""How sharply a model addresses: its attention and its memory heads, over a set of pairs.

A softmax whose scores have grown too large gives one position all of the weight, whatever is
asked. It then has no gradient, and the model trains as if it had no attention. The loss falls all
the same, so that only these figures tell.

Letters: B pairs, T steps, H heads, n locations, S source positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

Sharpness = dict[str, dict[str, float]]  # by head, then by measure

_TINY = 1e-6  # a write of the DNC may be withheld: it then has no address
_COLLAPSED_WEIGHT, _COLLAPSED_POSITIONS = 0.95, 0.6


def measure(
    seen: Mapping[str, tf.Tensor],
    read: Mapping[str, tf.Tensor],
    source_length: tf.Tensor,
    target_length: tf.Tensor,
) -> dict[str, tf.Tensor]:
    """Sums over the pairs of a batch, and how many numbers each is the sum of.

    Args:
      seen: diagnostics `cells.diagnostics.ADDRESSES` of the target's steps, `[T, B, ...]`.
      read: the same of the steps that read the source, `[S, B, ...]`, of a cell that does so.
      source_length: `[B]`.
      target_length: `[B]`.

    Returns:
      by diagnostic `[4, 2, H]`: entropy as a share of the uniform distribution's; the greatest
      weight; arg-max positions that differ, by steps of the pair; and, of the attention on the
      source, the weight of its last position at steps that do not emit `</s>`.
    """
    return {
        name: _measure(name, weights, read.get(name), source_length, target_length)
        for name, weights in seen.items()
    }


def _measure(
    name: str,
    weights: tf.Tensor,
    read: tf.Tensor | None,
    source_length: tf.Tensor,
    target_length: tf.Tensor,
) -> tf.Tensor:
    real = _real(target_length, weights)
    emits_end = tf.transpose(tf.one_hot(target_length - 1, tf.shape(weights)[0]))  # [T, B]
    if read is not None:
        weights = tf.concat([read, weights], axis=0)
        real = tf.concat([_real(source_length, read), real], axis=0)
    if name == "alignments":
        weights = weights[:, :, None]  # [T, B, 1, S]
    locations = weights.shape[3]  # known where they are a memory's own slots
    by_pair = source_length if locations is None else tf.fill(tf.shape(source_length), locations)
    mass = tf.reduce_sum(weights, axis=3)  # [T, B, H]
    weights = weights / tf.maximum(mass, _TINY)[..., None]
    choice = tf.cast(by_pair > 1, tf.float32)[:, None]  # one location is no choice
    counted = real[..., None] * choice * tf.cast(mass > _TINY, tf.float32)
    entropy = -tf.reduce_sum(tf.math.xlogy(weights, weights), axis=3)
    share = entropy / tf.math.log(tf.cast(tf.maximum(by_pair, 2), tf.float32))[:, None]
    chosen = tf.one_hot(tf.argmax(weights, axis=3), tf.shape(weights)[3]) * counted[..., None]
    distinct = tf.reduce_sum(tf.reduce_max(chosen, axis=0), axis=2)  # [B, H]
    steps = tf.reduce_sum(counted, axis=0)
    sums = [
        _sum(share, counted),
        _sum(tf.reduce_max(weights, axis=3), counted),
        _sum(tf.math.divide_no_nan(distinct, steps), tf.cast(steps > 0, tf.float32)),
    ]
    if name == "alignments":
        last = tf.one_hot(source_length - 1, tf.shape(weights)[3])
        before = counted * (1.0 - emits_end)[..., None]
        sums.append(_sum(tf.einsum("tbhs,bs->tbh", weights, last), before))
    else:
        sums.append(tf.zeros_like(sums[0]))
    return tf.stack(sums)


def _real(length: tf.Tensor, steps: tf.Tensor) -> tf.Tensor:
    """`[T, B]`: 1 at the steps of a sentence, 0 at padding."""
    return tf.transpose(tf.sequence_mask(length, tf.shape(steps)[0], dtype=tf.float32))


def _sum(values: tf.Tensor, counted: tf.Tensor) -> tf.Tensor:
    """`[..., H]` to `[2, H]`: the sum of what is counted, and its number."""
    axes = list(range(values.shape.rank - 1))
    return tf.stack([tf.reduce_sum(values * counted, axes), tf.reduce_sum(counted, axes)])


def means(sums: Mapping[str, np.ndarray], end_of_source: bool) -> Sharpness:
    """Sums `[4, 2, H]` over all pairs to means by head and measure.

    Args:
      sums: of `measure`, added up.
      end_of_source: whether the last position of a source is `</s>`; without, it is a word, and
        its weight is not told.

    Returns:
      `attention`, `read_head_0`, ..., `write_head_0`, ..., each with `entropy`, `greatest_weight`,
      `distinct_positions` and, of the attention, `end_weight`.
    """
    found: Sharpness = {}
    for name, array in sums.items():
        for head in range(array.shape[2]):
            called = "attention"
            if name != "alignments":
                called = f"{name.split('_')[0]}_head_{head}"
            total, count = array[:, 0, head], np.maximum(array[:, 1, head], 1)
            entropy, greatest, distinct, end = (float(one) for one in total / count)
            found[called] = {
                "entropy": entropy, "greatest_weight": greatest, "distinct_positions": distinct,
            }  # fmt: skip
            if name == "alignments" and end_of_source:
                found[called]["end_weight"] = end
    return found


def lines(sharpness: Sharpness) -> list[str]:
    """What a log says, a line a head."""
    return [
        f"  {head}: entropy {of['entropy']:.2f} of uniform, "
        f"greatest weight {of['greatest_weight']:.2f}, "
        + (f"{of['end_weight']:.2f} on </s>, " if "end_weight" in of else "")
        + f"{of['distinct_positions']:.2f} positions a step"
        for head, of in sharpness.items()
    ]


def collapsed(sharpness: Sharpness) -> bool:
    """Whether the attention has one answer for many questions.

    A sharp attention that moves with every step is what training is for; one that stays is not.
    """
    of = sharpness.get("attention")
    return bool(
        of
        and of["greatest_weight"] > _COLLAPSED_WEIGHT
        and of["distinct_positions"] < _COLLAPSED_POSITIONS
    )


def remedy(cell: Any) -> str:
    """The setting that usually helps an attention that has collapsed."""
    scores = getattr(cell, "dot_product", None)
    if scores is not None and scores.kind == "dot":
        return "its scores have outgrown the softmax; attention_score=cosine bounds them"
    return "a lower learning_rate usually helps"
