"""The neural cache: readouts and the words after them (Grave, Joulin and Usunier 2017, section 3).

    p_cache(w) ~ sum_i 1[w = w_i] exp(theta h_t . h_i)
    p(w) = (1 - lambda) p_model(w) + lambda p_cache(w)

Nothing of it is trained. Letters: I slots, R the width of readouts, n queries a sentence (its
steps, or its hypotheses at one step).
"""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

import tensorflow as tf

from tfmann.memory import addressing

_NEVER = -1e30  # log(lambda / (1 - lambda)) such that lambda is exactly 0 in float32
_NO_WORD = -1  # the word of an empty slot


class NeuralCache(NamedTuple):
    """The caches of B documents, the newest entry last and empty slots first."""

    keys: tf.Tensor  # [B, I, R] h_i; zero in an empty slot
    words: tf.Tensor  # [B, I] int32, w_i


class NeuralSource(NamedTuple):
    """What every step of a sentence reads."""

    keys: tf.Tensor  # [B, I, R] theta h_i
    words: tf.Tensor  # [B, I]
    gate: tf.Tensor  # [B, 1] log(lambda / (1 - lambda)); never where the cache is empty


class NeuralDocument(NamedTuple):
    """The earlier sentences of documents: what the cell takes, and a neural cache."""

    history: Any  # as `Seq2Seq.prepare` takes it of a model without a neural cache
    cache: NeuralSource


def empty(batch: tf.Tensor | int, slots: int, width: int) -> NeuralCache:
    """Returns empty caches of I = `slots` slots for readouts of `width`."""
    return NeuralCache(tf.zeros([batch, slots, width]), tf.fill([batch, slots], _NO_WORD))


def reset(cache: NeuralCache, starts: tf.Tensor) -> NeuralCache:
    """Empties the caches `[B]` whose next sentence begins a document."""
    keys = tf.where(starts[:, None, None], 0.0, cache.keys)
    return NeuralCache(keys, tf.where(starts[:, None], _NO_WORD, cache.words))


def prepare(cache: NeuralCache, theta: float, weight: float) -> NeuralSource:
    """Returns what the steps of a sentence read; `weight` is lambda, from 0 to below 1."""
    gate = math.log(weight / (1.0 - weight)) if weight else _NEVER
    is_filled = tf.reduce_any(cache.words != _NO_WORD, axis=1, keepdims=True)
    return NeuralSource(theta * cache.keys, cache.words, tf.where(is_filled, gate, _NEVER))


def read(readouts: tf.Tensor, source: NeuralSource) -> tf.Tensor:
    """Appends to readouts `[B, n, R]` what `projection` needs: `[B, n, R + extra_width]`."""
    filled = tf.cast(source.words != _NO_WORD, tf.float32)[:, None]
    scores = tf.matmul(readouts, source.keys, transpose_b=True)  # theta h_t . h_i
    matched = filled * addressing.masked_softmax(scores, filled)
    shape = tf.shape(matched)
    gates = tf.broadcast_to(source.gate[:, None], [shape[0], shape[1], 1])
    # ids pass as floats: exact below 2**24
    words = tf.broadcast_to(tf.cast(source.words, tf.float32)[:, None], shape)
    return tf.concat([readouts, gates, matched, words], axis=-1)


def extra_width(source: NeuralSource | tuple[()]) -> int:
    """Returns how much wider `read` makes readouts; 0 without a cache."""
    return 1 + 2 * source.words.shape[1] if source else 0


def projection(
    project: Callable[[tf.Tensor], tf.Tensor], source: NeuralSource | tuple[()]
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Returns the map from what `read` returns, `[M, R + extra_width]`, to logits `[M, V]`.

    Args:
      project: readouts `[M, R]` to logits `[M, V]`; without a cache, it is the result.
      source: what the steps read, or ().
    """
    if not source:
        return project
    slots = source.words.shape[1]

    def project_mixture(readouts: tf.Tensor) -> tf.Tensor:
        plain, gates, matched, words = tf.split(readouts, [-1, 1, slots, slots], axis=-1)
        return mix(project(plain), gates, matched, tf.cast(words, tf.int32))

    return project_mixture


def mix(logits: tf.Tensor, gates: tf.Tensor, matched: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
    """Returns logits of `(1 - lambda) softmax(logits) + lambda p_cache`.

    In logarithms, so that no improbable word is rounded away. Their normaliser is that of `logits`,
    and where lambda is 0 they are `logits`, to the last bit.

    Args:
      logits: `[M, V]`.
      gates: `[M, 1]`, log(lambda / (1 - lambda)).
      matched: `[M, I]`, the shares of the slots, which sum to 1 or are all 0.
      words: int32 `[M, I]`, any number where the share is 0.
    """
    words = tf.maximum(words, 0)
    rows = tf.broadcast_to(tf.range(tf.shape(words)[0])[:, None], tf.shape(words))
    indices = tf.stack([rows, words], axis=-1)  # [M, I, 2]
    # the probability of each slot's word, which may have several slots
    cached = tf.gather(tf.scatter_nd(indices, matched, tf.shape(logits)), words, batch_dims=1)
    is_cached = cached > 0
    rest = logits - tf.nn.softplus(gates)  # + log(1 - lambda)
    from_cache = tf.math.log(tf.where(is_cached, cached, 1.0)) - tf.nn.softplus(-gates)
    from_cache += tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
    from_model = tf.gather(rest, words, batch_dims=1)
    gain = tf.where(is_cached, tf.nn.softplus(from_cache - from_model), 0.0)  # of logaddexp
    return tf.tensor_scatter_nd_update(rest, indices, from_model + gain)


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
