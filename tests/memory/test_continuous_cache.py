"""The cache's operations against the oracle, over long random sequences."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import cache as oracle

from tfmann.memory import continuous_cache
from tfmann.memory.word_mixture import NEVER

D, U = 3, 2
SLOTS = (0, 1, 3, 25)


@functools.lru_cache(None)
def compiled(slots, overwrite):
    """`cache.write`, traced once for sentences of any length."""
    shapes = [[None, slots, D], [None, slots, U], [None, slots], [None, slots]]
    shapes += [[None, None, D], [None, None, U], [None, None], [None]]
    types = [tf.float32, tf.float32, tf.int32, tf.int32] * 2
    specs = [tf.TensorSpec(*spec) for spec in zip(shapes, types)]

    def write(keys, values, words, written, *sentence):
        return continuous_cache.write(
            continuous_cache.Cache(keys, values, words, written), *sentence, overwrite
        )

    return tf.function(write, input_signature=specs, autograph=False)


def write(caches, sentence, overwrite):
    return compiled(caches.words.shape[1], overwrite)(*caches, *sentence)


# --- what the tests are made of ----------------------------------------------------------


def sentences(stream, lengths, vocabulary):
    """A batch of sentences to write; what is behind a sentence's end is rubbish."""
    shape = len(lengths), max(lengths)
    return (
        tf.constant(stream.normal(size=(*shape, D)), tf.float32),
        tf.constant(stream.normal(size=(*shape, U)), tf.float32),
        tf.constant(stream.integers(vocabulary, size=shape), tf.int32),
        tf.constant(lengths, tf.int32),
    )


def write_oracle(caches, written, overwrite):
    """A list of the oracle's caches, after the same batch."""
    parts = [part.numpy() for part in written]
    return [
        oracle.write_sentence(cache, *(part[row, : parts[3][row]] for part in parts[:3]), overwrite)
        for row, cache in enumerate(caches)
    ]


def assert_same(actual, expected):
    for row, cache in enumerate(expected):
        np.testing.assert_allclose(actual.keys[row], cache.keys, atol=1e-5)
        np.testing.assert_allclose(actual.values[row], cache.values, atol=1e-5)
        np.testing.assert_array_equal(actual.words[row], cache.words)
        filled, times = cache.counts > 0, actual.written[row].numpy()
        np.testing.assert_array_equal(times >= 0, filled)
        np.testing.assert_array_equal((times.max(initial=0) - times)[filled], cache.ages[filled])


def random_caches(stream, batch, slots, overwrite=True, vocabulary=9):
    """Caches filled to unlike degrees, the first not at all, with the oracle's."""
    caches, expected = (
        continuous_cache.empty(batch, slots, D, U),
        [oracle.empty(slots, D, U)] * batch,
    )
    written = sentences(stream, [0, *stream.integers(1, 12, batch - 1)], vocabulary)
    return write(caches, written, overwrite), write_oracle(expected, written, overwrite)


# --- writing -----------------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("slots", SLOTS)
@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 7, 60]))
def test_documents_are_written_as_by_the_oracle(slots, overwrite, seed, vocabulary):
    stream = np.random.default_rng(seed)
    caches, expected = continuous_cache.empty(3, slots, D, U), [oracle.empty(slots, D, U)] * 3
    for _ in range(6):
        lengths = stream.integers(0, 30, 3)
        written = sentences(stream, lengths + (lengths.max() == 0), vocabulary)
        caches = write(caches, written, overwrite)
        expected = write_oracle(expected, written, overwrite)
        assert_same(caches, expected)
        assert [part.shape for part in caches] == [(3, slots, D), (3, slots, U), *[(3, slots)] * 2]


def test_the_mean_of_repeated_writes_by_hand():
    contexts = tf.constant([[[4.0], [1.0], [2.0], [8.0]]])
    words, length = tf.constant([[7, 0, 7, 7]]), tf.constant([4])
    cache = continuous_cache.write(
        continuous_cache.empty(1, 3, 1, 1), contexts, 10 * contexts, words, length, True
    )
    assert cache.keys.numpy().ravel().tolist() == [5.5, 1.0, 0.0]
    assert cache.values.numpy().ravel().tolist() == [55.0, 10.0, 0.0]
    assert cache.words.numpy().ravel().tolist() == [7, 0, -1]
    later = continuous_cache.write(
        cache, contexts[:, :1], contexts[:, :1], words[:, :1], length // 4, True
    )
    assert later.keys.numpy().ravel().tolist() == [4.75, 1.0, 0.0]


def test_a_word_that_returns_after_its_eviction_starts_over():
    contexts = tf.constant([[[1.0], [2.0], [4.0], [8.0], [16.0]]])
    words, length = tf.constant([[5, 5, 6, 7, 5]]), tf.constant([5])
    cache = continuous_cache.write(
        continuous_cache.empty(1, 2, 1, 1), contexts, contexts, words, length, True
    )
    assert cache.words.numpy().tolist() == [[7, 5]]  # 7 took the place of 5, then 5 that of 6
    assert cache.keys.numpy().ravel().tolist() == [8.0, 16.0]


def test_a_long_sentence_of_one_word_stays_finite():
    contexts = tf.ones([1, 200, 1])
    words, length = tf.fill([1, 200], 4), tf.constant([200])
    cache = continuous_cache.write(
        continuous_cache.empty(1, 2, 1, 1), contexts, contexts, words, length, True
    )
    np.testing.assert_allclose(cache.keys.numpy().ravel(), [1.0, 0.0])


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_batch_is_its_documents_one_at_a_time(overwrite):
    stream = np.random.default_rng(4)
    caches = continuous_cache.empty(4, 3, D, U)
    singles = [continuous_cache.empty(1, 3, D, U)] * 4
    for _ in range(3):
        written = sentences(stream, [9, 0, 1, 5], 5)
        caches = continuous_cache.write(caches, *written, overwrite)
        for row, length in enumerate(written[3]):
            sentence = [part[row : row + 1, :length] for part in written[:3]]
            if length:
                singles[row] = continuous_cache.write(
                    singles[row], *sentence, written[3][row : row + 1], overwrite
                )
    for row, single in enumerate(singles):
        for actual, expected in zip(caches, single):
            np.testing.assert_array_equal(actual[row], expected[0])


def test_no_gradient_flows_into_a_cache():
    stream = np.random.default_rng(0)
    contexts, states, words, length = sentences(stream, [4, 2], 5)
    with tf.GradientTape() as tape:
        tape.watch([contexts, states])
        caches = continuous_cache.write(
            continuous_cache.empty(2, 3, D, U), contexts, states, words, length, True
        )
        total = tf.reduce_sum(caches.keys) + tf.reduce_sum(caches.values)
    assert tape.gradient(total, [contexts, states]) == [None, None]


@pytest.mark.parametrize("slots", [0, 3])
def test_a_reset_cache_is_an_empty_one(slots):
    caches, _ = random_caches(np.random.default_rng(0), 4, slots)
    after_reset = continuous_cache.reset(caches, tf.constant([False, True, False, True]))
    for new, old, nothing in zip(after_reset, caches, continuous_cache.empty(4, slots, D, U)):
        for row in range(4):
            np.testing.assert_array_equal(new[row], (nothing if row % 2 else old)[row])


# --- reading -----------------------------------------------------------------------------


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("slots", SLOTS)
def test_reads_are_those_of_the_oracle(slots, overwrite):
    stream = np.random.default_rng(slots)
    caches, expected = random_caches(stream, 6, slots, overwrite, vocabulary=4)
    contexts = 2.0 * stream.normal(size=(6, 5, D)).astype(np.float32)
    sums = stream.normal(size=(6, 5, U)).astype(np.float32)
    scores = tf.matmul(tf.constant(contexts), caches.keys, transpose_b=True)
    matched = continuous_cache.match(scores, caches)
    retrieved = continuous_cache.read(matched, caches)
    of_words = matched if overwrite else continuous_cache.word_probabilities(matched, caches)
    gates = tf.sigmoid(continuous_cache.gate_scores(tf.constant(sums), caches)).numpy()
    for row, cache in enumerate(expected):
        for n in range(5):
            probabilities = oracle.match(cache, contexts[row, n])
            np.testing.assert_allclose(matched[row, n], probabilities, atol=1e-6)
            assert np.all(matched[row, n].numpy()[cache.counts == 0] == 0)
            from_cache = oracle.retrieve(cache, probabilities)
            np.testing.assert_allclose(retrieved[row, n], from_cache, atol=1e-5)
            actual = np.zeros(5)
            np.add.at(actual, caches.words[row].numpy(), of_words[row, n].numpy())
            spread = oracle.word_probabilities(cache, probabilities, 5)
            np.testing.assert_allclose(actual, spread, atol=1e-6)
            amount = 1 / (1 + np.exp(-sums[row, n])) if cache.counts.any() else np.zeros(U)
            np.testing.assert_allclose(gates[row, n], amount, atol=1e-6)
            combined = continuous_cache.combine(gates[row, n], sums[row, n], retrieved[row, n])
            np.testing.assert_allclose(
                combined, oracle.combine(amount, sums[row, n], from_cache), atol=1e-5
            )
    assert not gates[0].any() and not matched[0].numpy().any()  # nothing was written there


def mix_words(logits, scores, probabilities, words):
    arrays = [np.asarray(value, np.float32)[None] for value in (logits, scores, probabilities)]
    return continuous_cache.mix(*map(tf.constant, arrays), tf.constant([words]))


@pytest.mark.parametrize("score", [-30.0, -2.0, 0.0, 3.0, 40.0])
def test_a_mixture_is_what_it_is_called(score):
    stream = np.random.default_rng(1)
    logits = stream.normal(scale=4.0, size=9)
    probabilities, words = [0.25, 0.0, 0.75, 0.0], [3, 5, 0, -1]
    plain = np.exp(logits) / np.exp(logits).sum()
    expected = plain / (1 + np.exp(score))
    expected[[3, 0]] += np.array([0.25, 0.75]) / (1 + np.exp(-score))
    actual = mix_words(logits, [score], probabilities, words)
    np.testing.assert_allclose(tf.nn.log_softmax(actual)[0], np.log(expected), rtol=1e-5, atol=1e-5)
    total = tf.reduce_logsumexp(actual), np.logaddexp.reduce(logits)
    np.testing.assert_allclose(*total, rtol=1e-6)  # as it was


def test_a_mixture_with_an_improbable_word_and_with_a_shut_gate():
    logits = [200.0, 0.0, -3.0]  # words 1 and 2: their probabilities are 0 in float32
    log_probs = tf.nn.log_softmax(mix_words(logits, [0.0], [1.0], [1])).numpy()[0]
    np.testing.assert_allclose(log_probs, [np.log(0.5), np.log(0.5), np.log(0.5) - 203], rtol=1e-6)
    shut = continuous_cache.gate_scores(tf.zeros([1, 1, 1]), continuous_cache.empty(1, 1, D, U))[
        0, 0
    ]
    np.testing.assert_array_equal(mix_words(logits, shut, [0.0], [-1])[0], np.float32(logits))


@pytest.mark.parametrize("score", [-200.0, 0.0, 200.0])
def test_gradients_of_a_mixture_are_finite(score):
    values = [tf.constant([[3.0, 80.0, -2.0]]), tf.constant([[score]]), tf.constant([[0.5, 0.0]])]
    with tf.GradientTape() as tape:
        tape.watch(values)
        log_prob = tf.nn.log_softmax(continuous_cache.mix(*values, tf.constant([[2, -1]])))[0, 2]
    for gradient in tape.gradient(log_prob, values):
        assert np.all(np.isfinite(gradient))


def test_a_gate_s_loss_by_hand():
    """It opens where the cache is better, and nothing is said where nothing is filled."""
    scores = tf.constant([0.0, 2.0, NEVER])
    own, cached = tf.constant([0.5, 0.9, 0.3]), tf.constant([0.9, 0.1, 0.0])
    with tf.GradientTape() as tape:
        tape.watch([scores, own, cached])
        loss = continuous_cache.gate_loss(scores, own, cached)
    assert float(loss) == pytest.approx(0.4 * np.log(2.0) + 0.8 * np.log1p(np.exp(2.0)), rel=1e-6)
    gradient, *of_probabilities = tape.gradient(loss, [scores, own, cached])
    np.testing.assert_allclose(gradient, [-0.4 * 0.5, 0.8 / (1 + np.exp(-2.0)), 0.0], rtol=1e-5)
    assert of_probabilities == [None, None]
