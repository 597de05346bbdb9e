"""The neural cache: readouts and the words after them (Grave, Joulin and Usunier 2017, section 3).

    p_cache(w) ~ sum_i 1[w = w_i] exp(theta h_t . h_i)
    p(w) = (1 - lambda) p_model(w) + lambda p_cache(w)

Nothing of it is trained; `word_mixture` has the second equation. Letters: I slots, R the width of
readouts, n queries per sentence (its steps, or its hypotheses at one step).
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.memory import access
from tfmann.memory.word_mixture import NO_WORD, Proposals, all_places, fixed_gate


class NeuralCache(NamedTuple):
    """The caches of B documents, the newest entry last and empty slots first."""

    keys: tf.Tensor  # [B, I, R] h_i; zero in an empty slot
    words: tf.Tensor  # [B, I] int32, w_i


class NeuralSource(NamedTuple):
    """Constants of a sentence's steps."""

    keys: tf.Tensor  # [B, I, R] theta h_i
    words: tf.Tensor  # [B, I]
    gate: tf.Tensor  # [B, 1] log(lambda / (1 - lambda)); NEVER where the cache is empty

    @property
    def proposals(self) -> int:
        """The number of slots I: each proposes its word."""
        return self.words.shape[1]

    def of_sentences(self, sentences: tf.Tensor) -> NeuralSource:
        """Returns the constants of the sentences `[n]`."""
        return tf.nest.map_structure(lambda part: tf.gather(part, sentences), self)

    def propose(self, readouts: tf.Tensor) -> Proposals:
        """Returns p_cache and lambda for readouts `[B, n, R]`."""
        filled = tf.cast(self.words != NO_WORD, tf.float32)[:, None]
        scores = tf.matmul(readouts, self.keys, transpose_b=True)  # theta h_t . h_i
        shares = access.softmax_over_filled(scores, filled)
        shape = tf.shape(shares)
        gates = tf.broadcast_to(self.gate[:, None], [shape[0], shape[1], 1])
        return Proposals(gates, shares, tf.broadcast_to(self.words[:, None], shape))

    def places(self, readouts: tf.Tensor) -> tf.Tensor:
        """Returns the slots of the proposals, `[B, n, I]`: all, the newest last."""
        return all_places(readouts, self.proposals)


def empty(batch: tf.Tensor | int, slots: int, width: int) -> NeuralCache:
    """Returns empty caches of I = `slots` slots for readouts of `width`."""
    return NeuralCache(tf.zeros([batch, slots, width]), tf.fill([batch, slots], NO_WORD))


def reset(cache: NeuralCache, starts: tf.Tensor) -> NeuralCache:
    """Empties the caches `[B]` whose next sentence begins a document."""
    keys = tf.where(starts[:, None, None], 0.0, cache.keys)
    return NeuralCache(keys, tf.where(starts[:, None], NO_WORD, cache.words))


def prepare(cache: NeuralCache, theta: float, weight: float) -> NeuralSource:
    """Returns what the steps of a sentence read; `weight` is lambda, from 0 to below 1."""
    return NeuralSource(theta * cache.keys, cache.words, fixed_gate(weight, cache.words))


def write(
    cache: NeuralCache, readouts: tf.Tensor, words: tf.Tensor, real: tf.Tensor
) -> NeuralCache:
    """Returns the caches after a sentence; its entries push out the oldest ones.

    Args:
      cache: before it.
      readouts: `[B, T, R]`.
      words: `[B, T]`, each the word that was chosen from the readout at its position.
      real: bool `[B, T]`, the ones to write.
    """
    order = tf.argsort(tf.cast(~real, tf.int32), axis=1, stable=True)  # the real ones first
    count = tf.math.count_nonzero(real, axis=1, dtype=tf.int32, keepdims=True)
    last = count + tf.range(cache.words.shape[1])  # of the I + count entries the last I

    def push(old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        entries = tf.concat([old, tf.gather(new, order, batch_dims=1)], axis=1)
        return tf.gather(entries, last, batch_dims=1)

    return NeuralCache(push(cache.keys, readouts), push(cache.words, words))
