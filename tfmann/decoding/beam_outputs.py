"""The outputs of a beam search, step by step, and the way back along a hypothesis's parents."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.data.vocab import EOS_ID


class BeamOutput(NamedTuple):
    """The outputs of a step."""

    predicted_ids: tf.Tensor  # [B, K]
    parent_ids: tf.Tensor  # [B, K]
    diagnostics: tuple[tf.Tensor, ...]  # each [B, K, n], of the selected hypotheses


def append_outputs(old: BeamOutput, new: BeamOutput, sources: tf.Tensor) -> BeamOutput:
    """Appends the outputs of a stage to those before it.

    A sentence that was not in the stage continues every hypothesis by `</s>`, in its rank.

    Args:
      old: `[time, B, K, ...]`.
      new: `[steps, n, K, ...]`.
      sources: `[B]` indexes into B idle sentences followed by the n of the stage.
    """
    steps, batch = tf.shape(new.parent_ids)[0], tf.size(sources)

    def append(old: tf.Tensor, new: tf.Tensor, idle_value: Any) -> tf.Tensor:
        idle = tf.broadcast_to(idle_value, tf.concat([[steps, batch], tf.shape(new)[2:]], axis=0))
        return tf.concat([old, tf.gather(tf.concat([idle, new], axis=1), sources, axis=1)], axis=0)

    return BeamOutput(
        append(old.predicted_ids, new.predicted_ids, EOS_ID),
        append(old.parent_ids, new.parent_ids, tf.range(new.parent_ids.shape[2])),
        tuple(append(*values, 0.0) for values in zip(old.diagnostics, new.diagnostics)),
    )


def trace_back(outputs: BeamOutput, ranks: tf.Tensor) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
    """Follows the parents of the hypotheses that have the final `ranks` `[B, n]`.

    It begins at the last step of all sentences: one that is done continues with the others, and its
    hypotheses change ranks then (tfa begins at a sentence's own greatest length). Outputs are
    gathered once, and only along a path.

    Returns:
      ids `[B, n, T]`, diagnostics `[B, n, T, width]`.
    """
    # [T, B, n], the ranks before each step
    ranks_before = tf.scan(
        lambda rank, parents: tf.gather(parents, rank, batch_dims=1),
        outputs.parent_ids,
        initializer=ranks,
        reverse=True,
    )
    paths = tf.transpose(tf.concat([ranks_before[1:], ranks[None]], axis=0), [1, 2, 0])  # [B, n, T]
    times, sentences = tf.range(tf.shape(ranks_before)[0]), tf.range(tf.shape(ranks)[0])
    indexes = tf.stack(
        [
            tf.broadcast_to(times, tf.shape(paths)),
            tf.broadcast_to(sentences[:, None, None], tf.shape(paths)),
            paths,
        ],
        axis=-1,
    )
    ids = tf.gather_nd(outputs.predicted_ids, indexes)
    return ids, tuple(tf.gather_nd(value, indexes) for value in outputs.diagnostics)
