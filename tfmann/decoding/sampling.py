"""Sampling of words: temperature, and the truncation of the distribution that is drawn from."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

_REMOVED = -1e30  # a logit whose exponential is exactly 0


class SamplingOptions(NamedTuple):
    """The distribution that words are drawn from; truncation comes after the temperature."""

    temperature: float = 1.0
    top_k: int = 0  # only the k most probable words (Fan et al. 2018, arXiv:1805.04833); 0: all
    top_p: float = 1.0  # only the nucleus of mass p (Holtzman et al. 2020, arXiv:1904.09751)


def truncated_logits(logits: tf.Tensor, options: SamplingOptions) -> tf.Tensor:
    """Returns the logits `[B, V]` of the distribution that is drawn from.

    Both truncations keep the most probable word; equally probable words stay or go together.
    """
    logits = logits / options.temperature
    if options.top_k:
        count = tf.minimum(options.top_k, tf.shape(logits)[-1])
        least = tf.math.top_k(logits, count).values[:, -1:]
        logits = tf.where(logits < least, _REMOVED, logits)
    if options.top_p < 1:
        ordered = tf.sort(logits, axis=-1, direction="DESCENDING")
        probabilities = tf.nn.softmax(ordered)
        before = tf.cumsum(probabilities, axis=-1, exclusive=True)  # of more probable words
        in_nucleus = before < options.top_p
        least = tf.reduce_min(tf.where(in_nucleus, ordered, ordered[:, :1]), axis=-1, keepdims=True)
        logits = tf.where(logits < least, _REMOVED, logits)
    return logits


def draw(logits: tf.Tensor, options: SamplingOptions, seed: tf.Tensor) -> tf.Tensor:
    """Draws a word for every row of logits `[B, V]`: ids `[B]`; `seed` is an int32 pair."""
    truncated = truncated_logits(logits, options)
    return tf.random.stateless_categorical(truncated, 1, seed, dtype=tf.int32)[:, 0]
