"""The mixture of adaptive kNN-MT against plain NumPy, its gradient, and its edges."""

import numpy as np
import pytest
import tensorflow as tf
from oracles import adaptive_neighbors as oracle

from tfmann.memory import adaptive_neighbors, word_mixture
from tfmann.memory.adaptive_neighbors import MetaNetwork
from tfmann.memory.word_mixture import NO_WORD

V, R = 7, 5
STREAM = np.random.default_rng(12)
COUNTS = [10, 0, 1, 3]  # entries of each sentence
KEYS = [STREAM.normal(size=[count, R]) for count in COUNTS]
WORDS = [[4, 2, 4, 6, 4, 1, 2, 0, 3, 4], [], [3], [5, 5, 0]]
QUERIES = STREAM.normal(size=[4, 3, R])
QUERIES[0, 1] = KEYS[0][2]  # a distance of 0
LOGITS = STREAM.normal(scale=3.0, size=[4, 3, V])
P_MODEL = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=-1, keepdims=True)


def network_of(neighbors, scale=0.7, dtype=np.float32):
    stream = np.random.default_rng(neighbors)
    shapes = adaptive_neighbors.network_shapes(neighbors).values()
    return MetaNetwork(*(stream.normal(scale=scale, size=shape).astype(dtype) for shape in shapes))


def for_oracle(network):
    """W_1, b_1, W_2, b_2 as the equations have them: matrices on the left."""
    return network.w_1.T, network.b_1[0], network.w_2.T, network.b_2[0]


def expected_of(row, query, neighbors, temperature, network):
    return oracle.mixture(
        P_MODEL[row, query], QUERIES[row, query], list(zip(KEYS[row], WORDS[row])),
        neighbors, temperature, for_oracle(network),
    )  # fmt: skip


def source(temperature, network, rows=range(4)):
    most = max(COUNTS[row] for row in rows)
    keys = np.zeros([len(rows), most, R], np.float32)
    words = np.full([len(rows), most], NO_WORD, np.int32)
    for place, row in enumerate(rows):
        keys[place, : COUNTS[row]] = KEYS[row]
        words[place, : COUNTS[row]] = WORDS[row]
    keys[words == NO_WORD] = QUERIES[0, 1]  # padding that would be the nearest
    return adaptive_neighbors.source(keys, words, temperature, network)


def mix_logits(memory, rows=range(4)):
    """The logits `[len(rows), n, V]` of the mixture."""
    memory = tf.nest.map_structure(tf.constant, memory)
    logits = LOGITS[list(rows)]
    read = word_mixture.read(tf.constant(QUERIES[list(rows)], tf.float32), memory)
    flat = tf.constant(logits.reshape(-1, V), tf.float32)
    project = word_mixture.projection(lambda readouts: flat, memory)
    result = project(tf.reshape(read, [-1, R + word_mixture.extra_width(memory)]))
    return result.numpy().reshape(logits.shape)


@pytest.mark.parametrize("neighbors, temperature", [(1, 4.0), (2, 0.5), (4, 9.0), (8, 2.5)])
def test_the_distribution_is_that_of_the_oracle(neighbors, temperature):
    network = network_of(neighbors)
    result = tf.nn.softmax(mix_logits(source(temperature, network))).numpy()
    for row in range(4):
        for query in range(3):
            expected = expected_of(row, query, neighbors, temperature, network)
            np.testing.assert_allclose(result[row, query], expected, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(result.sum(axis=-1), 1.0, atol=1e-5)
    assert np.abs(result - P_MODEL)[0].max() > 0.05


def test_places_are_those_of_the_nearest_entries():
    memory = tf.nest.map_structure(tf.constant, source(4.0, network_of(4)))
    queries = tf.constant(QUERIES, tf.float32)
    places, shares = memory.places(queries).numpy(), memory.propose(queries).shares.numpy()
    for row in range(4):
        for query in range(3):
            entries = KEYS[row][: COUNTS[row]]
            distances = [np.sum((QUERIES[row, query] - key) ** 2) for key in entries]
            nearest = np.argsort(distances, kind="stable")[:4].tolist()
            assert places[row, query, : len(nearest)].tolist() == nearest
            assert not shares[row, query, len(nearest) :].any()


def test_a_network_that_never_asks_the_model_leaves_every_word_possible():
    network = network_of(4)._replace(b_2=np.array([[-90.0, 0, 0, 0]], np.float32))
    logs = tf.nn.log_softmax(mix_logits(source(4.0, network)))[0, 1].numpy()
    expected = np.log(expected_of(0, 1, 4, 4.0, network))
    np.testing.assert_allclose(logs, expected, atol=0.1)
    assert logs.min() > np.log(1e-7 * P_MODEL[0, 1].min())


def test_without_entries_no_bit_of_the_logits_changes():
    result = mix_logits(source(5.0, network_of(8)))
    np.testing.assert_array_equal(result[1], LOGITS[1].astype(np.float32))
    alone = mix_logits(source(5.0, network_of(8), rows=[1]), rows=[1])
    np.testing.assert_array_equal(alone[0], LOGITS[1].astype(np.float32))


def test_a_sentence_does_not_depend_on_its_neighbours():
    together = mix_logits(source(3.0, network_of(8)))
    for row in range(4):
        single = mix_logits(source(3.0, network_of(8), rows=[row]), rows=[row])
        np.testing.assert_allclose(single[0], together[row], atol=1e-5)


def test_the_numbers_of_neighbours_are_powers_of_two():
    assert adaptive_neighbors.neighbor_counts(1) == [0, 1]
    assert (
        adaptive_neighbors.neighbor_counts(16) == oracle.neighbor_counts(16) == [0, 1, 2, 4, 8, 16]
    )


@pytest.mark.parametrize("neighbors, parameters", [(4, 420), (8, 709), (16, 1254), (32, 2311)])
def test_the_network_has_the_size_of_the_papers(neighbors, parameters):
    network = adaptive_neighbors.initial_network(neighbors, seed=1)
    assert sum(part.size for part in network) == parameters
    spread = network.w_1[:neighbors].std() / network.w_1[neighbors:].std()
    assert 5 < spread < 20  # counts begin with a tenth of the weight


def log_probs_of(network, chosen, dtype=np.float64):
    """log p of a word at each of three readouts, by the function that training maximises."""
    words = np.array([[4, 2, 4, 6], [3, 3, NO_WORD, NO_WORD], [5, 1, 2, NO_WORD]], np.int32)
    distances = np.sort(np.random.default_rng(5).uniform(0.1, 5.0, size=[3, 4]))
    proposals = adaptive_neighbors.propose(
        tf.constant(distances, dtype), tf.constant(words), tf.constant(2.0, dtype), network
    )
    logits = tf.constant(LOGITS[0], dtype)
    model_log_probs = tf.gather(tf.nn.log_softmax(logits), chosen, batch_dims=1)
    result = adaptive_neighbors.word_log_probs(proposals, tf.constant(chosen), model_log_probs)
    return result, word_mixture.mix(logits, *proposals)


@pytest.mark.parametrize("chosen", [[4, 3, 1], [2, 0, 6]])
def test_log_probs_of_words_are_those_of_the_mixture(chosen):
    result, mixed = log_probs_of(network_of(4, dtype=np.float64), chosen)
    expected = tf.gather(tf.nn.log_softmax(mixed), chosen, batch_dims=1)
    np.testing.assert_allclose(result, expected, rtol=1e-10)


@pytest.mark.parametrize("chosen", [[4, 3, 1], [2, 0, 6]])  # proposed twice, once and never
def test_gradients_are_those_of_finite_differences(chosen):
    network = network_of(4, dtype=np.float64)
    variables = MetaNetwork(*(tf.Variable(part) for part in network))
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(log_probs_of(variables, chosen)[0])
    gradients = tape.gradient(value, variables)
    for name, part in network._asdict().items():
        for place in [(0, 0), tuple(size - 1 for size in part.shape)]:
            moved = []
            for step in (1e-6, -1e-6):
                changed = part.copy()
                changed[place] += step
                result, _ = log_probs_of(network._replace(**{name: changed}), chosen)
                moved.append(float(tf.reduce_sum(result)))
            expected = (moved[0] - moved[1]) / 2e-6
            assert abs(expected) > 1e-6, (name, place)
            gradient = float(getattr(gradients, name)[place])
            assert gradient == pytest.approx(expected, rel=1e-5, abs=1e-8), (name, place)


def test_signatures_take_what_is_made():
    made = source(3.0, network_of(8))
    specs = tf.nest.flatten(adaptive_neighbors.signature(8, R))
    for spec, array in zip(specs, tf.nest.flatten(made)):
        assert spec.is_compatible_with(tf.constant(array))
