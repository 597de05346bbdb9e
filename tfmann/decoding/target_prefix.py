"""Given first words of translations: a search follows them, and is free after them.

A given word counts in the score with its own log-probability, as `--mode=score` would count it.

Letters: B sentences, P words of the longest prefix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfmann.decoding.lexical_constraints import Phrases

ANY_WORD = -1  # in place of an id: the search chooses

SIGNATURE = tf.TensorSpec([None, None], tf.int32)


def pad_prefixes(prefixes: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns the ids of B prefixes `[B, P]`, filled with `ANY_WORD`; a prefix may be empty."""
    padded = np.full([len(prefixes), max(map(len, prefixes), default=0)], ANY_WORD, np.int32)
    for row, ids in enumerate(prefixes):
        padded[row, : len(ids)] = ids
    return padded


def extend_limits(
    limits: tf.Tensor, prefix: tf.Tensor | None, phrases: Phrases | None = None
) -> tf.Tensor:
    """Returns limits `[B]` in steps that have room for prefixes `[B, P]`, phrases and `</s>`.

    Where a prefix ends in a part of a word, a token more ends the word before the phrases.
    """
    needed = 1  # </s>
    if prefix is not None:
        length = tf.reduce_sum(tf.cast(tf.not_equal(prefix, ANY_WORD), tf.int32), axis=1)
        needed += length
    if phrases is not None:
        needed += phrases.total
        if prefix is not None and phrases.is_open is not None:
            is_last = tf.equal(tf.range(tf.shape(prefix)[1]), length[:, None] - 1)
            is_open = is_last & tf.gather(phrases.is_open, tf.maximum(prefix, 0))
            needed += tf.cast(tf.reduce_any(is_open, axis=1) & (phrases.total > 0), tf.int32)
    return limits if prefix is None and phrases is None else tf.maximum(limits, needed)


def given_words(prefix: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
    """Returns the words `[B]` of the prefixes `[B, P]` at a step, `ANY_WORD` after their ends."""
    padded = tf.pad(prefix, [[0, 0], [0, 1]], constant_values=ANY_WORD)
    return padded[:, tf.minimum(time, tf.shape(prefix)[1])]
