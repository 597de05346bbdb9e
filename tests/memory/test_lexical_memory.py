"""The memory of word translations, against plain NumPy, its gradient, and at the edges."""

import numpy as np
import pytest
import tensorflow as tf
from oracles import lexical_memory as oracle

from tfmann.memory import lexical_memory, word_mixture
from tfmann.memory.lexical_memory import LexicalWeights
from tfmann.memory.word_mixture import NO_WORD

V, R, A, D, E, S = 9, 5, 4, 3, 2, 4
STREAM = np.random.default_rng(17)
WORDS = [[4, 7, 3], [], [5], [8, 3, 6, 4, 7]]
SHARES = [STREAM.dirichlet(np.ones(S), len(words)).reshape(-1, S) for words in WORDS]
SHARES[0][1] = 0.0  # a word that has no origin in the sentence
ANNOTATIONS = STREAM.normal(size=[4, S, D])
EMBEDDING = STREAM.normal(size=[V, E])
QUERIES = STREAM.normal(size=[4, 3, R])
LOGITS = STREAM.normal(scale=3.0, size=[4, 3, V])
WEIGHTS = {
    "element_kernel": STREAM.normal(size=[D + E, A]),
    "query_kernel": STREAM.normal(size=[R, A]),
    "score_vector": STREAM.normal(scale=2.0, size=[A]),
}


def source(weight=1 / 3, words=WORDS, weights=WEIGHTS):
    entries = lexical_memory.pack(
        [np.array(row, np.int32) for row in words],
        [shares[: len(row)] for shares, row in zip(SHARES, words)],
        S,
    )
    weights = LexicalWeights(*(tf.convert_to_tensor(weights[k], tf.float32) for k in WEIGHTS))
    return lexical_memory.prepare(
        tf.nest.map_structure(tf.constant, entries),
        weights,
        tf.constant(ANNOTATIONS, tf.float32),
        tf.constant(EMBEDDING, tf.float32),
        weight,
    )


def betas(row, query):
    """beta of one query by the oracle."""
    elements = np.array([
        np.concatenate([shares @ ANNOTATIONS[row], EMBEDDING[word]])
        for word, shares in zip(WORDS[row], SHARES[row])
    ])  # fmt: skip
    return oracle.attend(WEIGHTS, QUERIES[row, query], elements)


def mix_logits(memory):
    read = word_mixture.read(tf.constant(QUERIES, tf.float32), memory)
    flat = tf.constant(LOGITS.reshape(-1, V), tf.float32)
    project = word_mixture.projection(lambda readouts: flat, memory)
    result = project(tf.reshape(read, [-1, R + word_mixture.extra_width(memory)]))
    return result.numpy().reshape(LOGITS.shape)


@pytest.mark.parametrize("weight", [1 / 3, 0.8])
def test_the_distribution_is_that_of_the_oracle(weight):
    result = tf.nn.softmax(mix_logits(source(weight))).numpy()
    p_model = tf.nn.softmax(tf.constant(LOGITS)).numpy()
    for row, words in enumerate(WORDS):
        for query in range(3):
            expected = oracle.mixture(p_model[row, query], betas(row, query), words, weight)
            np.testing.assert_allclose(result[row, query], expected, rtol=1e-4, atol=1e-6)
    assert np.abs(result - p_model).max() > 0.1


def test_without_words_or_share_no_bit_of_the_logits_changes():
    expected = LOGITS.astype(np.float32)
    np.testing.assert_array_equal(mix_logits(source())[1], expected[1])
    np.testing.assert_array_equal(mix_logits(source(0.0)), expected)
    np.testing.assert_array_equal(mix_logits(source(words=[[]] * 4)), expected)


def test_rows_are_those_of_the_sentences():
    memory = source()
    chosen = memory.of_sentences(tf.constant([3, 0, 3]))
    queries = tf.gather(tf.constant(QUERIES, tf.float32), [3, 0, 3])
    for part, expected in zip(chosen.propose(queries), memory.propose(QUERIES.astype(np.float32))):
        np.testing.assert_allclose(part.numpy(), expected.numpy()[[3, 0, 3]], rtol=1e-5)


LABELS = np.array([[7, 3, 8], [4, 0, 2], [5, 5, 1], [6, 2, 4]])


def test_losses_are_those_of_the_oracle():
    losses, has_slot = lexical_memory.losses(source(), QUERIES.astype(np.float32), LABELS)
    for row, words in enumerate(WORDS):
        of_row = [betas(row, query) for query in range(3)]
        mean = oracle.memory_loss(of_row, words, LABELS[row].tolist())
        count = sum(label in words for label in LABELS[row].tolist())
        assert has_slot.numpy()[row].sum() == count
        np.testing.assert_allclose(losses.numpy()[row].sum(), mean * count, rtol=1e-4, atol=1e-6)
    assert not losses.numpy()[1].any() and losses.numpy()[0].any()


@pytest.mark.parametrize("name", list(WEIGHTS))
def test_gradients_are_those_of_finite_differences(name):
    def loss(value):
        memory = source(weights={**WEIGHTS, name: value})
        return tf.reduce_sum(lexical_memory.losses(memory, QUERIES.astype(np.float32), LABELS)[0])

    value = tf.constant(WEIGHTS[name], tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(value)
        result = loss(value)
    direction = np.random.default_rng(3).normal(size=WEIGHTS[name].shape)
    step = 3e-3
    difference = loss(WEIGHTS[name] + step * direction) - loss(WEIGHTS[name] - step * direction)
    expected = float(difference) / (2 * step)
    assert float(tf.reduce_sum(tape.gradient(result, value) * direction)) == pytest.approx(
        expected, rel=2e-2, abs=2e-3
    )


def test_empty_slots_are_the_last():
    memory = source()
    assert memory.words.shape == (4, lexical_memory.MOST_SLOTS)
    assert memory.keys.shape == (4, 5, A)
    assert (memory.words.numpy()[:, 5:] == NO_WORD).all()
