"""What a translation must not be: too short, or a phrase said twice.

A forbidden word is left out of the choice. The probabilities of the others stay as the model has
them, so that a score is still that of `--mode=score`.

Letters: M rows, V words, L the greatest number of steps.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.corpus.vocab import EOS_ID, SOS_ID


class Constraints(NamedTuple):
    """What is asked of every translation; at the last step it may take, `</s>` goes before."""

    min_length: int = 0  # words before </s>
    no_repeat_ngram_size: int = 0  # n: no n words in a row stand twice; 0: they may

    @property
    def history(self) -> bool:
        """Whether the words so far have to be known."""
        return self.no_repeat_ngram_size > 0


UNCONSTRAINED = Constraints()


def no_words(rows: tf.Tensor, limits: tf.Tensor, constraints: Constraints) -> tf.Tensor:
    """The words so far before the first step: int32 `[*rows, L + n]`, or `[*rows, 0]` if unused."""
    steps = 0
    if constraints.history:
        steps = tf.reduce_max(limits) + constraints.no_repeat_ngram_size
    return tf.fill(tf.concat([rows, [steps]], axis=0), EOS_ID)


def add_words(words: tf.Tensor, chosen: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
    """The words so far `[..., L + n]` with those `chosen` `[...]` at step `time`."""
    now = tf.equal(tf.range(tf.shape(words)[-1]), time)
    return tf.where(now, chosen[..., None], words)


def forbid(
    logits: tf.Tensor, words: tf.Tensor, time: tf.Tensor, constraints: Constraints
) -> tf.Tensor:
    """`logits` `[M, V]` with -inf at forbidden words, of which `<s>` is always one.

    A text cannot say it: what looks like it there is read as an unknown word.

    Args:
      logits: of the step `time`, from 0.
      words: `[M, L + n]`, the words so far, as `no_words` and `add_words` keep them.
      time: the step's index.
      constraints: what is asked.
    """
    numbers = tf.range(tf.shape(logits)[1])
    forbidden = tf.equal(numbers, SOS_ID)
    if constraints.min_length:
        forbidden |= tf.equal(numbers, EOS_ID) & (time < constraints.min_length)
    logits = tf.where(forbidden, -float("inf"), logits)
    if constraints.history:
        repeated = _repeated(words, time, constraints.no_repeat_ngram_size)
        logits = tf.tensor_scatter_nd_update(
            logits, repeated, tf.fill(tf.shape(repeated)[:1], -float("inf"))
        )
    return logits


def _repeated(words: tf.Tensor, time: tf.Tensor, size: int) -> tf.Tensor:
    """Pairs (row, word) `[Q, 2]` that would end n words which stand in the row already."""
    starts = tf.shape(words)[1] - size + 1
    before = tf.pad(words, [[0, 0], [size - 1, 0]], constant_values=-1)  # no word's number
    last = before[:, time : time + size - 1]  # the n - 1 words before this step
    ended = tf.range(starts) + size - 1 < time  # n words that have been said
    same = tf.repeat(ended[None], tf.shape(words)[0], axis=0)
    for place in range(size - 1):
        same &= tf.equal(words[:, place : place + starts], last[:, place : place + 1])
    places = tf.where(same)
    following = tf.gather_nd(words[:, size - 1 :], places)
    return tf.stack([tf.cast(places[:, 0], tf.int32), following], axis=1)
