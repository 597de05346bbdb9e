"""The continuous cache: a memory of the document's earlier sentences (Tu et al. 2018, section 3).

A slot holds a key c_i, a value s_i and the target word y_i that they came with. Letters: I slots,
n queries per sentence (its steps, or its hypotheses at one step). Equation numbers are the paper's.
I may be 0: the cache is always empty then.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.memory import access
from tfmann.memory.word_mixture import NEVER, NO_WORD


class Cache(NamedTuple):
    """The caches of B documents."""

    keys: tf.Tensor  # [B, I, D] c_i; zero in an empty slot, as are the values
    values: tf.Tensor  # [B, I, U] s_i
    words: tf.Tensor  # [B, I] int32, y_i
    # [B, I] int32, the time of a slot's last write, counted in writes of the document. All are
    # different; those of empty slots are below 0, the first slot's the lowest. The slot with the
    # lowest time is overwritten next.
    written: tf.Tensor


def empty(batch: tf.Tensor | int, slots: int, annotation_width: int, units: int) -> Cache:
    """Returns empty caches of I = `slots` slots."""
    return Cache(
        keys=tf.zeros([batch, slots, annotation_width]),
        values=tf.zeros([batch, slots, units]),
        words=tf.fill([batch, slots], NO_WORD),
        written=tf.tile(tf.range(-slots, 0)[None], [batch, 1]),
    )


def reset(cache: Cache, starts: tf.Tensor) -> Cache:
    """Empties the caches `[B]` whose next sentence begins a document."""
    batch, slots = tf.shape(starts)[0], cache.words.shape[1]
    nothing = empty(batch, slots, cache.keys.shape[-1], cache.values.shape[-1])

    def choose(new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
        return tf.where(tf.reshape(starts, [-1] + [1] * (old.shape.rank - 1)), new, old)

    return Cache(*(choose(new, old) for new, old in zip(nothing, cache)))


# Reading (3.2)


def match(scores: tf.Tensor, cache: Cache) -> tf.Tensor:
    """Computes `softmax_i(scores)` over the filled slots (5): `[B, n, I]` to `[B, n, I]`.

    All zero where nothing is filled.
    """
    filled = tf.cast(cache.written >= 0, tf.float32)[:, None]
    return access.softmax_over_filled(scores, filled)


def read(matched: tf.Tensor, cache: Cache) -> tf.Tensor:
    """Reads `m_t = sum_i P(c_i | c_t) s_i`: `[B, n, I]` to `[B, n, U]`."""
    return matched @ cache.values


def gate_scores(sums: tf.Tensor, cache: Cache) -> tf.Tensor:
    """Masks `U s_t + V c_t + W m_t` `[B, n, G]` (8) so that lambda is 0 if no slot is filled."""
    is_filled = tf.reduce_any(cache.written >= 0, axis=-1)[:, None, None]
    return tf.where(is_filled, sums, NEVER)


def combine(gate: tf.Tensor, states: tf.Tensor, retrieved: tf.Tensor) -> tf.Tensor:
    """Combines `(1 - lambda) s_t + lambda m_t` (6)."""
    return (1.0 - gate) * states + gate * retrieved


# Shallow fusion (4.4)


def word_probabilities(matched: tf.Tensor, cache: Cache) -> tf.Tensor:
    """Computes P_cache of the slots' words: `[B, n, I]` to `[B, n, I]`.

    A word that has several slots, as it can without overwriting, has its whole probability at the
    first of them and 0 at the others.
    """
    same = cache.words[:, :, None] == cache.words[:, None]  # [B, I, I]
    none_before = tf.cumsum(tf.cast(same, tf.int32), axis=2, exclusive=True) == 0
    return tf.matmul(matched, tf.cast(same & none_before, tf.float32))


def mix(
    logits: tf.Tensor, scores: tf.Tensor, probabilities: tf.Tensor, words: tf.Tensor
) -> tf.Tensor:
    """Returns logits of `(1 - lambda) softmax(logits) + lambda P_cache`, of the same normaliser.

    In logarithms, so that neither a lambda near 1 nor an improbable word is rounded away. Where
    lambda is 0 the logits are untouched, to the last bit.

    Args:
      logits: `[M, V]`.
      scores: `[M, 1]`, from `gate_scores`: log(lambda / (1 - lambda)).
      probabilities: `[M, I]`, from `word_probabilities`.
      words: int32 `[M, I]`; any number where the probability is 0.
    """
    is_cached = probabilities > 0
    words = tf.where(is_cached, words, 0)
    rest = logits - tf.nn.softplus(scores)  # + log(1 - lambda)
    from_cache = tf.math.log(tf.where(is_cached, probabilities, 1.0)) - tf.nn.softplus(-scores)
    from_cache += tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
    rows = tf.broadcast_to(tf.range(tf.shape(words)[0])[:, None], tf.shape(words))
    places = tf.stack([rows, words], axis=-1)  # [M, I, 2]
    # not tf.gather with batch_dims, whose gradient has the wrong shape where M is 0
    gain = tf.nn.softplus(from_cache - tf.gather_nd(rest, places))  # of logaddexp
    return tf.tensor_scatter_nd_add(rest, places, tf.where(is_cached, gain, 0.0))


def gate_loss(scores: tf.Tensor, own: tf.Tensor, cached: tf.Tensor) -> tf.Tensor:
    """Sums `|P_cache(y_t) - P(y_t)| CE(P_cache(y_t) > P(y_t), lambda_t)`; not of the paper.

    The likelihood alone shuts the gate everywhere before it finds out where it should be open: at
    most words P_cache is 0, and the gradient fades with lambda. No gradient flows into P and
    P_cache.

    Args:
      scores: `[M]`, from `gate_scores`.
      own: P of the words, `[M]`.
      cached: P_cache of the words, `[M]`; all 0 where nothing is filled, which adds 0.
    """
    difference = tf.stop_gradient(cached - own)
    should_open = tf.cast(difference > 0, tf.float32)
    errors = tf.nn.sigmoid_cross_entropy_with_logits(should_open, scores)
    return tf.reduce_sum(tf.abs(difference) * errors)


# Writing (3.3)


class _Plan(NamedTuple):
    """The slot that each of T triples is written to, and all slots after the last."""

    slots: tf.Tensor  # [B, T] int32
    replaces: tf.Tensor  # [B, T] bool: the slot is overwritten; else the mean is written
    retained: tf.Tensor  # [B, I] the share left of what was there before the sentence
    words: tf.Tensor  # [B, I] after it
    written: tf.Tensor  # [B, I] after it


def write(
    cache: Cache,
    contexts: tf.Tensor,
    states: tf.Tensor,
    words: tf.Tensor,
    length: tf.Tensor,
    overwrite: bool,
) -> Cache:
    """Returns the caches after a whole sentence, each (c_t, s_t, y_t) written in order.

    Where y_t has a slot, key and value become the mean of old and new; else the first empty slot is
    taken, or the least recently used one. The paper does not say what uses a slot: here a write
    does, a read does not. `</s>` and `<unk>` are written too.

    Only the slots are chosen word by word; the vectors are then added together, each with the share
    of it that is left after the whole sentence: halved by every later mean, nothing where the slot
    is overwritten. No gradient flows into a cache.

    Args:
      cache: before.
      contexts: `[B, T, D]`.
      states: `[B, T, U]`.
      words: ids `[B, T]`.
      length: `[B]`, the real ones of the T.
      overwrite: False: always a new slot, even where y_t has one (Table 3).
    """
    if cache.words.shape[1] == 0:
        return cache
    plan = _plan(cache, words, length, overwrite)
    shares = _shares(plan, length)
    rows = tf.broadcast_to(tf.range(tf.shape(words)[0])[:, None], tf.shape(words))
    indices = tf.stack([rows, plan.slots], axis=-1)  # [B, T, 2]

    def fill(old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        return tf.stop_gradient(
            tf.tensor_scatter_nd_add(
                plan.retained[..., None] * old, indices, shares[..., None] * new
            )
        )

    return Cache(
        keys=fill(cache.keys, contexts),
        values=fill(cache.values, states),
        words=plan.words,
        written=plan.written,
    )


def _plan(cache: Cache, words: tf.Tensor, length: tf.Tensor, overwrite: bool) -> _Plan:
    """Chooses the slots, word by word."""
    steps, count = tf.shape(words)[1], cache.words.shape[1]
    by_step = tf.transpose(words)  # [T, B]
    now = tf.reduce_max(cache.written, axis=1, keepdims=True) + 1

    def step(time, slot_words, written, retained, slots, replaces):
        word = by_step[time][:, None]
        same_word = (slot_words == word) & overwrite
        slot = tf.argmax(tf.where(same_word, count + 1, -written), axis=1, output_type=tf.int32)
        has_slot = tf.reduce_any(same_word, axis=1, keepdims=True)
        chosen = tf.one_hot(slot, count, True, False) & (time < length)[:, None]
        return (
            time + 1,
            tf.where(chosen, word, slot_words),
            tf.where(chosen, now + time, written),
            tf.where(chosen, tf.where(has_slot, 0.5 * retained, 0.0), retained),
            slots.write(time, slot),
            replaces.write(time, ~has_slot[:, 0]),
        )

    start = (
        tf.constant(0),
        cache.words,
        cache.written,
        tf.ones(tf.shape(cache.words)),
        tf.TensorArray(tf.int32, steps, element_shape=words.shape[:1]),
        tf.TensorArray(tf.bool, steps, element_shape=words.shape[:1]),
    )
    _, slot_words, written, retained, slots, replaces = tf.while_loop(
        lambda time, *_: time < steps, step, start
    )
    return _Plan(
        slots=tf.transpose(slots.stack()),
        replaces=tf.transpose(replaces.stack()),
        retained=retained,
        words=slot_words,
        written=written,
    )


def _shares(plan: _Plan, length: tf.Tensor) -> tf.Tensor:
    """Returns the share of each triple in its slot after the whole sentence: `[B, T]`."""
    steps = tf.range(tf.shape(plan.slots)[1])
    real = steps < length[:, None]
    later = (steps > steps[:, None]) & real[:, None]  # [B, T, T]
    later &= plan.slots[:, :, None] == plan.slots[:, None]  # [b, t, u]: u goes where t went
    lost = tf.reduce_any(later & plan.replaces[:, None], axis=-1)
    halvings = tf.reduce_sum(tf.cast(later, tf.float32), axis=-1)
    halvings += tf.cast(~plan.replaces, tf.float32)  # its own mean
    return tf.where(real & ~lost, tf.pow(0.5, halvings), 0.0)
