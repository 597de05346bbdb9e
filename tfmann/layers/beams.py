"""Conversions between rows of hypotheses and rows of the sentences that they translate.

Rows of a state are hypotheses; rows of a source are sentences. In training there is one hypothesis
per sentence; in a beam there are K: row b*K + k of the state belongs to row b of the source.
"""

from __future__ import annotations

import tensorflow as tf


def split_beams(rows: tf.Tensor, sentences: tf.Tensor) -> tf.Tensor:
    """Reshapes rows `[B*K, ...]` to `[B, K, ...]`, B as in `sentences`."""
    shape = tf.concat([[tf.shape(sentences)[0], -1], tf.shape(rows)[1:]], axis=0)
    result = tf.reshape(rows, shape)
    result.set_shape([sentences.shape[0], None, *rows.shape[1:]])
    return result


def merge_beams(grouped: tf.Tensor) -> tf.Tensor:
    """Reshapes `[B, K, ...]` back to rows `[B*K, ...]`."""
    result = tf.reshape(grouped, tf.concat([[-1], tf.shape(grouped)[2:]], axis=0))
    result.set_shape([None, *grouped.shape[2:]])
    return result
