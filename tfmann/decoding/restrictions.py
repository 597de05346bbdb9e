"""Restrictions on a translation: a least length, and no repeated n-grams.

A forbidden word is left out of the choice. The probabilities of the others stay as the model gives
them, so that a score is still that of `--mode=score`.

Letters: M rows, V words, L the greatest number of steps.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.data.vocab import EOS_ID, SOS_ID


class Restrictions(NamedTuple):
    """The restrictions on every translation.

    At its last possible step, and where they forbid every word, it ends all the same.
    """

    min_length: int = 0  # words before </s>
    no_repeat_ngram_size: int = 0  # n: no n words in a row occur twice; 0: they may

    @property
    def need_words(self) -> bool:
        """True if a step has to know the words so far."""
        return self.no_repeat_ngram_size > 0


UNRESTRICTED = Restrictions()


def no_words(rows: tf.Tensor, limits: tf.Tensor, restrictions: Restrictions) -> tf.Tensor:
    """Returns no words, as before the first step: `[*rows, L + n]`, or `[*rows, 0]` if unused."""
    steps = 0
    if restrictions.need_words:
        steps = tf.reduce_max(limits) + restrictions.no_repeat_ngram_size
    return tf.fill(tf.concat([rows, [steps]], axis=0), EOS_ID)


def add_words(words: tf.Tensor, chosen: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
    """Puts the words `chosen` `[...]` at step `time` into the words so far, `[..., L + n]`."""
    at_time = tf.equal(tf.range(tf.shape(words)[-1]), time)
    return tf.where(at_time, chosen[..., None], words)


def forbid(
    logits: tf.Tensor, words: tf.Tensor, time: tf.Tensor, restrictions: Restrictions
) -> tf.Tensor:
    """Sets `logits` `[M, V]` to -inf at forbidden words, of which `<s>` is always one.

    No text contains `<s>`: what looks like it there is read as an unknown word. Where no word is
    left, `</s>` is allowed.

    Args:
      logits: of the step `time`, from 0.
      words: `[M, L + n]`, the words so far, from `no_words` and `add_words`.
      time: the step's index.
      restrictions: the restrictions.
    """
    ids = tf.range(tf.shape(logits)[1])
    forbidden = tf.equal(ids, SOS_ID)
    if restrictions.min_length:
        forbidden |= tf.equal(ids, EOS_ID) & (time < restrictions.min_length)
    allowed = tf.where(forbidden, -float("inf"), logits)
    if restrictions.need_words:
        repeated = _repeated(words, time, restrictions.no_repeat_ngram_size)
        allowed = tf.tensor_scatter_nd_update(
            allowed, repeated, tf.fill(tf.shape(repeated)[:1], -float("inf"))
        )
        is_left = tf.reduce_any(allowed > -float("inf"), axis=1, keepdims=True)
        allowed = tf.where(is_left | tf.not_equal(ids, EOS_ID), allowed, logits)
    return allowed


def _repeated(words: tf.Tensor, time: tf.Tensor, size: int) -> tf.Tensor:
    """Finds pairs (row, word) `[Q, 2]` that would complete an n-gram of the row once more."""
    starts = tf.shape(words)[1] - size + 1
    padded = tf.pad(words, [[0, 0], [size - 1, 0]], constant_values=-1)  # no word's id
    last = padded[:, time : time + size - 1]  # the n - 1 words before this step
    complete = tf.range(starts) + size - 1 < time  # n-grams that end before this step
    same = tf.repeat(complete[None], tf.shape(words)[0], axis=0)
    for offset in range(size - 1):
        same &= tf.equal(words[:, offset : offset + starts], last[:, offset : offset + 1])
    matches = tf.where(same)
    following = tf.gather_nd(words[:, size - 1 :], matches)
    return tf.stack([tf.cast(matches[:, 0], tf.int32), following], axis=1)
