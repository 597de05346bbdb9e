"""The mixture with the nearest entries of a datastore, against plain NumPy and at the edges."""

import numpy as np
import pytest
import tensorflow as tf
from oracles import nearest_neighbors as oracle

from tfmann.memory import nearest_neighbors, word_mixture
from tfmann.memory.word_mixture import NO_WORD

V, R = 7, 5
STREAM = np.random.default_rng(11)
COUNTS = [6, 0, 1, 3]  # entries of each sentence
KEYS = [STREAM.normal(size=[count, R]) for count in COUNTS]
WORDS = [[4, 2, 4, 6, 4, 1], [], [3], [5, 5, 0]]
QUERIES = STREAM.normal(size=[4, 3, R])
QUERIES[0, 1] = KEYS[0][2]  # a distance of 0
LOGITS = STREAM.normal(scale=3.0, size=[4, 3, V])
SETTINGS = [(1, 4.0, None), (2, 9.0, None), (3, 2.5, 0.4), (4, 0.3, None), (6, 8.0, 0.9)]


def source(neighbors, tau, weight, counts=COUNTS):
    keys = np.zeros([4, max(counts), R], np.float32)
    words = np.full([4, max(counts)], NO_WORD, np.int32)
    for row, count in enumerate(counts):
        keys[row, :count], words[row, :count] = KEYS[row][:count], WORDS[row][:count]
    keys[words == NO_WORD] = QUERIES[0, 1]  # padding that would be the nearest
    return nearest_neighbors.source(keys, words, neighbors, tau, weight)


def mix_logits(memory, queries=QUERIES, logits=LOGITS):
    """The logits `[4, n, V]` of the mixture."""
    memory = tf.nest.map_structure(tf.constant, memory)
    read = word_mixture.read(tf.constant(queries, tf.float32), memory)
    flat = tf.constant(logits.reshape(-1, V), tf.float32)
    project = word_mixture.projection(lambda readouts: flat, memory)
    result = project(tf.reshape(read, [-1, R + word_mixture.extra_width(memory)]))
    return result.numpy().reshape(logits.shape)


@pytest.mark.parametrize("neighbors, tau, weight", SETTINGS)
def test_the_distribution_is_that_of_the_oracle(neighbors, tau, weight):
    result = tf.nn.softmax(mix_logits(source(neighbors, tau, weight))).numpy()
    p_model = tf.nn.softmax(tf.constant(LOGITS)).numpy()
    for row, (keys, words) in enumerate(zip(KEYS, WORDS)):
        for query in range(3):
            expected = oracle.mixture(
                p_model[row, query], QUERIES[row, query], list(zip(keys, words)),
                neighbors, tau, weight,
            )  # fmt: skip
            np.testing.assert_allclose(result[row, query], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(result.sum(axis=-1), 1.0, atol=1e-5)


def test_logarithms_of_improbable_words_are_those_of_the_oracle():
    """At a distance of 0 lambda is at its greatest, and no word becomes impossible."""
    logs = tf.nn.log_softmax(mix_logits(source(1, 4.0, None)))[0, 1].numpy()
    p_model = tf.nn.softmax(tf.constant(LOGITS[0, 1])).numpy()
    expected = oracle.mixture(p_model, QUERIES[0, 1], list(zip(KEYS[0], WORDS[0])), 1, 4.0, None)
    other_words = [word for word in range(V) if word != 4]
    np.testing.assert_allclose(logs[other_words], np.log(expected)[other_words], atol=0.1)
    assert logs[4] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("weight", [None, 0.7])
def test_without_entries_no_bit_of_the_logits_changes(weight):
    result = mix_logits(source(2, 5.0, weight))
    np.testing.assert_array_equal(result[1], LOGITS[1].astype(np.float32))
    assert np.abs(result[0] - LOGITS[0]).max() > 0.1
    nothing = mix_logits(source(2, 5.0, weight, counts=[0, 0, 0, 0]))
    np.testing.assert_array_equal(nothing, LOGITS.astype(np.float32))


def test_an_entry_further_than_tau_changes_no_bit():
    result = mix_logits(source(2, 1e-3, None))
    far = np.ones([4, 3], bool)
    far[0, 1] = False  # the query that is a key
    np.testing.assert_array_equal(result[far], LOGITS.astype(np.float32)[far])
    np.testing.assert_array_equal(mix_logits(source(2, 5.0, 0.0)), LOGITS.astype(np.float32))


def test_equal_words_add_up():
    memory = tf.nest.map_structure(tf.constant, source(3, 4.0, 0.5))
    proposals = memory.propose(tf.constant(QUERIES, tf.float32))
    words, shares = proposals.words[3].numpy(), proposals.shares[3].numpy()
    assert (np.sort(words) == [0, 5, 5]).all()
    p_model = np.exp(LOGITS[3]) / np.exp(LOGITS[3]).sum(axis=-1, keepdims=True)
    expected = 0.5 * p_model[:, 5] + 0.5 * (shares * (words == 5)).sum(axis=-1)
    result = tf.nn.softmax(mix_logits(source(3, 4.0, 0.5)))[3, :, 5].numpy()
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_of_equal_distances_the_first_entry_is_taken():
    keys = np.zeros([1, 3, R], np.float32)
    memory = nearest_neighbors.source(keys, np.array([[6, 2, 1]], np.int32), 2, 1.0, None)
    memory = tf.nest.map_structure(tf.constant, memory)
    assert memory.propose(tf.ones([1, 1, R])).words.numpy().tolist() == [[[6, 2]]]


def test_a_sentence_does_not_depend_on_its_neighbours():
    together = mix_logits(source(2, 9.0, None))
    for row, count in enumerate(COUNTS):
        keys = np.asarray(KEYS[row], np.float32).reshape(1, count, R)
        words = np.array([WORDS[row]], np.int32).reshape(1, count)
        memory = nearest_neighbors.source(keys, words, 2, 9.0, None)
        single = mix_logits(memory, QUERIES[row : row + 1], LOGITS[row : row + 1])
        np.testing.assert_allclose(single[0], together[row], atol=1e-5)


def test_distances_are_exact_where_vectors_are_equal_and_never_negative():
    vectors = tf.constant(STREAM.normal(scale=9.0, size=[2, 40, 64]), tf.float32)
    distances = nearest_neighbors.squared_distances(vectors, vectors).numpy()
    expected = np.square(vectors.numpy()[:, :, None] - vectors.numpy()[:, None]).sum(axis=-1)
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=0.02)
    assert distances.min() >= 0.0


def test_a_sentence_of_the_memory_is_at_no_distance_at_all():
    """By |q|^2 - 2 q.k + |k|^2 alone it would be at one of up to about a thousandth.

    So an entry that is nearly the same can come first among those that are found.
    """
    vectors = tf.constant(STREAM.normal(scale=9.0, size=[2, 40, 64]), tf.float32)
    words = tf.constant(STREAM.integers(3, 9, [2, 40]), tf.int32)
    keys = tf.concat([vectors + 1e-4, vectors], axis=1)
    distances, found = nearest_neighbors.nearest(vectors, keys, tf.tile(words, [1, 2]), 3)
    np.testing.assert_array_equal(distances[..., 0], np.zeros([2, 40]))
    np.testing.assert_array_equal(found[..., 0], words)
    assert np.all(np.diff(distances, axis=-1) >= 0)


def test_signatures_take_what_is_made():
    arrays = source(3, 4.0, None)
    for spec, array in zip(nearest_neighbors.signature(3, R), arrays):
        assert spec.is_compatible_with(tf.constant(array))
