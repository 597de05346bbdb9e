"""The sharpness of a model's addresses, of its attention and memory heads, over a set of pairs.

A softmax whose scores have grown too large gives one position all of the weight, whatever the
query. It then has no gradient, and the model trains as if it had no attention. The loss falls all
the same, so that only these figures show the fault.

Letters: B pairs, T steps, H heads, n locations, S source positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from tfmann.config import cell_spec, fields_of

Sharpness = dict[str, dict[str, float]]  # by head, then by measure

_TINY = 1e-6  # total weight below which there is no address: the DNC can withhold a write
_COLLAPSED_WEIGHT, _COLLAPSED_POSITIONS = 0.95, 0.6


def measure(
    of_target: Mapping[str, tf.Tensor],
    of_source: Mapping[str, tf.Tensor],
    source_length: tf.Tensor,
    target_length: tf.Tensor,
) -> dict[str, tf.Tensor]:
    """Sums measures over the pairs of a batch, and counts the summands.

    Args:
      of_target: diagnostics `cells.diagnostics.ADDRESSES` of the target's steps, `[T, B, ...]`.
      of_source: the same of the source's steps, `[S, B, ...]`, of a cell that reads it itself.
      source_length: `[B]`.
      target_length: `[B]`.

    Returns:
      by diagnostic `[4, 2, H]`: entropy as a share of the uniform distribution's; the greatest
      weight; arg-max positions that differ, by steps of the pair; and, of the attention on the
      source, the weight of its last position at steps that do not emit `</s>`.
    """
    return {
        name: _measure(name, weights, of_source.get(name), source_length, target_length)
        for name, weights in of_target.items()
    }


def _measure(
    name: str,
    weights: tf.Tensor,
    source_weights: tf.Tensor | None,
    source_length: tf.Tensor,
    target_length: tf.Tensor,
) -> tf.Tensor:
    real = _real(target_length, weights)
    emits_end = tf.transpose(tf.one_hot(target_length - 1, tf.shape(weights)[0]))  # [T, B]
    if source_weights is not None:
        weights = tf.concat([source_weights, weights], axis=0)
        real = tf.concat([_real(source_length, source_weights), real], axis=0)
    if name == "alignments":
        weights = weights[:, :, None]  # [T, B, 1, S]
    locations = weights.shape[3]  # static if they are slots of a memory
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
    """Returns `[T, B]`: 1 at the steps of a sentence, 0 at padding."""
    return tf.transpose(tf.sequence_mask(length, tf.shape(steps)[0], dtype=tf.float32))


def _sum(values: tf.Tensor, counted: tf.Tensor) -> tf.Tensor:
    """Reduces `[..., H]` to `[2, H]`: the sum of the counted values, and their number."""
    axes = list(range(values.shape.rank - 1))
    return tf.stack([tf.reduce_sum(values * counted, axes), tf.reduce_sum(counted, axes)])


def means(sums: Mapping[str, np.ndarray], end_of_source: bool) -> Sharpness:
    """Turns sums `[4, 2, H]` over all pairs into means by head and measure.

    Args:
      sums: of `measure`, added up.
      end_of_source: True if the last position of a source is `</s>`; if it is a word, its weight is
        not returned.

    Returns:
      `attention`, `read_head_0`, ..., `write_head_0`, ..., each with `entropy`, `greatest_weight`,
      `distinct_positions` and, of the attention, `end_weight`.
    """
    result: Sharpness = {}
    for name, array in sums.items():
        for head in range(array.shape[2]):
            head_name = "attention"
            if name != "alignments":
                head_name = f"{name.split('_')[0]}_head_{head}"
            total, count = array[:, 0, head], np.maximum(array[:, 1, head], 1)
            entropy, greatest, distinct, end = (float(mean) for mean in total / count)
            result[head_name] = {
                "entropy": entropy, "greatest_weight": greatest, "distinct_positions": distinct,
            }  # fmt: skip
            if name == "alignments" and end_of_source:
                result[head_name]["end_weight"] = end
    return result


def lines(sharpness: Sharpness) -> list[str]:
    """Formats one line for each head, for a log."""
    return [
        f"  {head}: entropy {measures['entropy']:.2f} of uniform, "
        f"greatest weight {measures['greatest_weight']:.2f}, "
        + (f"{measures['end_weight']:.2f} on </s>, " if "end_weight" in measures else "")
        + f"{measures['distinct_positions']:.2f} positions per step"
        for head, measures in sharpness.items()
    ]


def collapsed(sharpness: Sharpness) -> bool:
    """Returns True if the attention puts its weight on the same positions whatever the query.

    A sharp attention that moves with every step is the aim of training; one that does not move is
    a fault.
    """
    attention = sharpness.get("attention")
    return bool(
        attention
        and attention["greatest_weight"] > _COLLAPSED_WEIGHT
        and attention["distinct_positions"] < _COLLAPSED_POSITIONS
    )


def remedy(cell: Any) -> str:
    """Advises a setting that usually helps an attention that has collapsed."""
    score = getattr(getattr(cell, "attention", None), "score", None)
    if score is not None and score.kind == "dot":
        saturated = "its dot products saturate the softmax"
        if "attention_score" in fields_of(cell_spec(cell.hparams.cell).options):
            return f"{saturated}; attention_score=cosine bounds them"
        return (
            f"{saturated}; bound them in the cell's code (score 'cosine'), or lower learning_rate"
        )
    if hasattr(cell, "head_scales") and cell.hparams.head_scale == 1:
        return "its heads move fast; sharpening_start=-3 with head_scale=1/sqrt(U) usually helps"
    return "a lower learning_rate usually helps"
