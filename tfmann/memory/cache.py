"""The continuous cache: what the sentences before this one left (Tu et al. 2018, section 3).

A slot holds a key c_i, a value s_i and the target word y_i that they came with. Letters: I slots,
n queries a sentence (its steps, or its hypotheses at one step). Equation numbers are the paper's.
I may be 0: nothing is ever found then, and nothing kept.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.memory import addressing, attention

_NEVER = -1e30  # a gate's sum whose sigmoid is exactly 0 in float32, in value and gradient
_NO_WORD = -1  # the word of an empty slot


class Cache(NamedTuple):
    """The caches of B documents."""

    keys: tf.Tensor  # [B, I, D] c_i; zero in an empty slot, as are the values
    values: tf.Tensor  # [B, I, U] s_i
    words: tf.Tensor  # [B, I] int32, y_i
    # [B, I] int32, when a slot was last written, in writes of the document. No two slots have the
    # same: an empty one's is below 0, the first one's the lowest, so the lowest makes room.
    written: tf.Tensor


def empty(batch: tf.Tensor, slots: int, annotation_width: int, units: int) -> Cache:
    """Caches of I = `slots` slots with nothing in them."""
    return Cache(
        keys=tf.zeros([batch, slots, annotation_width]),
        values=tf.zeros([batch, slots, units]),
        words=tf.fill([batch, slots], _NO_WORD),
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
    """`softmax_i(scores)` over the filled slots (5): `[B, n, I]` to `[B, n, I]`.

    All zero where nothing is filled.
    """
    filled = tf.cast(cache.written >= 0, tf.float32)[:, None]
    return filled * addressing.masked_softmax(scores, filled)


def read(matched: tf.Tensor, cache: Cache) -> tf.Tensor:
    """`m_t = sum_i P(c_i | c_t) s_i`: `[B, n, I]` to `[B, n, U]`."""
    return attention.read(matched, cache.values)


def gate_scores(sums: tf.Tensor, cache: Cache) -> tf.Tensor:
    """`U s_t + V c_t + W m_t` `[B, n, G]` (8), such that lambda is 0 where nothing is filled."""
    something = tf.reduce_any(cache.written >= 0, axis=-1)[:, None, None]
    return tf.where(something, sums, _NEVER)


def combine(gate: tf.Tensor, own: tf.Tensor, cached: tf.Tensor) -> tf.Tensor:
    """`(1 - lambda) s_t + lambda m_t` (6)."""
    return (1.0 - gate) * own + gate * cached


# Shallow fusion (4.4)


def word_probabilities(matched: tf.Tensor, cache: Cache) -> tf.Tensor:
    """P_cache of the slots' words: `[B, n, I]` to `[B, n, I]`.

    A word that has several slots, as it can without overwriting, has its whole probability at the
    first of them and 0 at the others.
    """
    same = cache.words[:, :, None] == cache.words[:, None]  # [B, I, I]
    none_before = tf.cumsum(tf.cast(same, tf.int32), axis=2, exclusive=True) == 0
    return tf.matmul(matched, tf.cast(same & none_before, tf.float32))


def mix(
    logits: tf.Tensor, scores: tf.Tensor, probabilities: tf.Tensor, words: tf.Tensor
) -> tf.Tensor:
    """Logits of `(1 - lambda) softmax(logits) + lambda P_cache`; their normaliser stays as it was.

    In logarithms, so that neither a lambda near 1 nor an improbable word is rounded away. Where
    lambda is 0 the logits are untouched, to the last bit.

    Args:
      logits: `[M, V]`.
      scores: `[M, 1]`, from `gate_scores`: log(lambda / (1 - lambda)).
      probabilities: `[M, I]`, from `word_probabilities`.
      words: int32 `[M, I]`; any number where the probability is 0.
    """
    given = probabilities > 0
    words = tf.where(given, words, 0)
    rest = logits - tf.nn.softplus(scores)  # + log(1 - lambda)
    from_cache = tf.math.log(tf.where(given, probabilities, 1.0)) - tf.nn.softplus(-scores)
    from_cache += tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
    gain = tf.nn.softplus(from_cache - tf.gather(rest, words, batch_dims=1))  # of logaddexp
    rows = tf.broadcast_to(tf.range(tf.shape(words)[0])[:, None], tf.shape(words))
    return tf.tensor_scatter_nd_add(
        rest, tf.stack([rows, words], axis=-1), tf.where(given, gain, 0.0)
    )


# Writing (3.3)


class _Plan(NamedTuple):
    """Where T triples go, and what becomes of the slots."""

    slots: tf.Tensor  # [B, T] int32
    anew: tf.Tensor  # [B, T] bool: the slot is taken over; else the mean is written
    kept: tf.Tensor  # [B, I] the share of what was there before the sentence
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
    """The caches after a whole sentence, each (c_t, s_t, y_t) written in order.

    Where y_t has a slot, key and value become the mean of what was there and what comes; else the
    first empty slot is taken, or the one whose last write is longest ago. Word by word only the
    slots are chosen; the vectors are then added in one go, each with the share of it that is left
    after the whole sentence: halved by every later mean, nothing where the slot is taken over. No
    gradient flows into a cache.

    Args:
      cache: before.
      contexts: `[B, T, D]`.
      states: `[B, T, U]`.
      words: ids `[B, T]`.
      length: `[B]` how many of the T are real.
      overwrite: False: y_t's slot is not looked for (Table 3).
    """
    if cache.words.shape[1] == 0:
        return cache
    plan = _plan(cache, words, length, overwrite)
    shares = _shares(plan, length)
    rows = tf.broadcast_to(tf.range(tf.shape(words)[0])[:, None], tf.shape(words))
    places = tf.stack([rows, plan.slots], axis=-1)  # [B, T, 2]

    def fill(old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        return tf.stop_gradient(
            tf.tensor_scatter_nd_add(plan.kept[..., None] * old, places, shares[..., None] * new)
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
    now = tf.maximum(tf.reduce_max(cache.written, axis=1, keepdims=True) + 1, 0)

    def one(time, held, written, kept, slots, anew):
        word = by_step[time][:, None]
        found = (held == word) & overwrite
        slot = tf.argmax(tf.where(found, count + 1, -written), axis=1, output_type=tf.int32)
        known = tf.reduce_any(found, axis=1, keepdims=True)
        place = tf.one_hot(slot, count, True, False) & (time < length)[:, None]
        return (
            time + 1,
            tf.where(place, word, held),
            tf.where(place, now + time, written),
            tf.where(place, tf.where(known, 0.5 * kept, 0.0), kept),
            slots.write(time, slot),
            anew.write(time, ~known[:, 0]),
        )

    start = (
        tf.constant(0),
        cache.words,
        cache.written,
        tf.ones(tf.shape(cache.words)),
        tf.TensorArray(tf.int32, steps, element_shape=words.shape[:1]),
        tf.TensorArray(tf.bool, steps, element_shape=words.shape[:1]),
    )
    _, held, written, kept, slots, anew = tf.while_loop(lambda time, *_: time < steps, one, start)
    return _Plan(
        slots=tf.transpose(slots.stack()),
        anew=tf.transpose(anew.stack()),
        kept=kept,
        words=held,
        written=written,
    )


def _shares(plan: _Plan, length: tf.Tensor) -> tf.Tensor:
    """How much of each triple is in its slot when the sentence is written: `[B, T]`."""
    steps = tf.range(tf.shape(plan.slots)[1])
    real = steps < length[:, None]
    later = (steps > steps[:, None]) & real[:, None]  # [B, T, T]
    later &= plan.slots[:, :, None] == plan.slots[:, None]  # [b, t, u]: u goes where t went
    lost = tf.reduce_any(later & plan.anew[:, None], axis=-1)
    halvings = tf.reduce_sum(tf.cast(later, tf.float32), axis=-1)
    halvings += tf.cast(~plan.anew, tf.float32)  # its own mean
    return tf.where(real & ~lost, tf.pow(0.5, halvings), 0.0)
