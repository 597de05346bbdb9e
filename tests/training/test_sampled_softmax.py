"""Sampled softmax: its words and weights against the oracle, its mean, its gradient, its place."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from oracles import sampled_softmax as oracle

from tfmann.config import HParams
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.ops.projected_cross_entropy import projected_cross_entropy
from tfmann.training.objective import sum_loss
from tfmann.training.sampled_softmax import draw

ROWS, WIDTH, WORDS = 9, 6, 40
LENGTHS = [(5, 4), (1, 6), (3, 1)]


def problem(with_bias=True):
    """readout, kernel, bias, labels."""
    stream = np.random.default_rng(4)
    readout = tf.constant(stream.normal(size=(ROWS, WIDTH)), tf.float32)
    kernel = tf.constant(stream.normal(size=(WIDTH, WORDS)), tf.float32)
    bias = tf.constant(stream.normal(size=WORDS), tf.float32) if with_bias else None
    return readout, kernel, bias, tf.constant(stream.integers(0, WORDS, ROWS), tf.int32)


def sampled_cross_entropy(readout, kernel, bias, labels, sample, dtype):
    projection = sample.projection(kernel, bias, labels)
    return projected_cross_entropy(readout, *projection, 0.0, dtype)


def uniform(seed=0):
    return tf.constant(np.random.default_rng(seed).random(WORDS), tf.float32)


def logits_of(readout, kernel, bias):
    logits = readout.numpy().astype(np.float64) @ kernel.numpy()
    return logits if bias is None else logits + bias.numpy()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [1, 7, WORDS - 4, WORDS - 3, WORDS + 5])
@pytest.mark.parametrize("labels", [[0], [5, 2, 5, 39], []])
def test_words_and_their_probabilities_equal_the_oracles(labels, size, seed):
    sample = draw(tf.constant(labels, tf.int32), size, uniform(seed))
    expected = oracle.draw(labels, uniform(seed).numpy(), size)
    words = sample.words.numpy().tolist()
    assert sorted(words) == expected.words
    assert set(labels) <= set(words)
    assert len(words) == min(WORDS, len(set(labels)) + size)
    inclusion = np.exp(-sample.log_weights.numpy())
    np.testing.assert_allclose(inclusion, [expected.inclusion[w] for w in words], rtol=1e-4)
    positions = sample.positions.numpy()
    assert [
        words.index(w) if w in words else len(words) for w in range(WORDS)
    ] == positions.tolist()


def test_frequent_words_are_drawn_more_often():
    draws = [draw(tf.constant([3]), 5, uniform(seed)).words.numpy() for seed in range(300)]
    times = np.bincount(np.concatenate(draws), minlength=WORDS)
    assert times[3] == 300
    assert times[0] > 1.5 * times[4] > 1.5 * 1.5 * times[39]


@pytest.mark.parametrize("size", [6, 20])
def test_normaliser_is_right_in_the_mean(size):
    """Over many draws; and far from right without the weights."""
    readout, kernel, bias, labels = problem()
    logits = logits_of(readout, kernel, bias)[0]
    compiled, estimates, unweighted = tf.function(draw, autograph=False), [], []
    for seed in range(2000):
        sample = compiled(labels, size, uniform(seed))
        terms = np.exp(logits[sample.words.numpy()])
        estimates.append(np.sum(terms * np.exp(sample.log_weights.numpy())))
        unweighted.append(np.sum(terms))
    expected = np.exp(logits).sum()
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert 0 < error < 0.05 * expected
    assert abs(np.mean(estimates) - expected) < 4 * error
    assert np.mean(unweighted) < expected - 4 * error


def sums(function, values, watched):
    """The sums, and the gradients of 3 times the first."""
    with tf.GradientTape() as tape:
        tape.watch(watched)
        total, plain = function(*values)
        scaled = 3.0 * total
    return float(total), float(plain), [g.numpy() for g in tape.gradient(scaled, watched)]


def naive(readout, kernel, bias, labels, sample):
    """The oracle's loss by operations that TensorFlow differentiates."""
    logits = tf.matmul(readout, kernel)
    logits = logits if bias is None else logits + bias
    weights = np.zeros(WORDS)
    for word in sample.words:
        weights[word] = 1.0 / sample.inclusion[word]
    normaliser = tf.reduce_sum(tf.exp(logits) * tf.constant(weights, tf.float32), axis=1)
    of_labels = tf.gather(logits, labels, batch_dims=1)
    total = tf.reduce_sum(tf.math.log(normaliser) - of_labels)
    return total, total


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_loss_and_gradients_equal_the_oracles(with_bias, compiled):
    readout, kernel, bias, labels = values = problem(with_bias)
    oracle_sample = oracle.draw(labels.numpy().tolist(), uniform().numpy(), 8)
    watched = [readout, kernel, *([bias] if with_bias else [])]

    def ours(readout, kernel, bias, labels):
        sample = draw(labels, 8, uniform())
        return sampled_cross_entropy(readout, kernel, bias, labels, sample, tf.float32)

    total, plain, gradients = sums(
        tf.function(ours, autograph=False) if compiled else ours, values, watched
    )
    oracle_loss = oracle.cross_entropy(
        logits_of(readout, kernel, bias), labels.numpy(), oracle_sample
    )
    assert total == pytest.approx(oracle_loss, rel=1e-5)
    assert plain == total
    _, _, expected = sums(naive, (*values, oracle_sample), watched)
    absent = [word for word in range(WORDS) if word not in oracle_sample.words]
    assert len(absent) > 10
    for actual, value in zip(gradients, expected):
        assert np.abs(value).max() > 0.1
        np.testing.assert_allclose(actual, value, atol=2e-5)
    assert all(np.all(g[..., absent] == 0) for g in gradients[1:])


def test_all_words_are_the_whole_softmax():
    readout, kernel, bias, labels = values = problem()
    watched = [readout, kernel, bias]

    def full_softmax(*values):
        return projected_cross_entropy(*values, 0.0, tf.float32)

    def sampled(*values):
        return sampled_cross_entropy(*values, draw(labels, WORDS, uniform()), tf.float32)

    actual, expected = sums(sampled, values, watched), sums(full_softmax, values, watched)
    assert actual[0] == pytest.approx(expected[0], rel=1e-6)
    for ours, theirs in zip(actual[2], expected[2]):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_no_word_at_all_costs_nothing():
    """A replica without rows."""
    readout, kernel, bias, labels = problem()
    values = (readout[:0], kernel, bias, labels[:0])

    def ours(*values):
        return sampled_cross_entropy(*values, draw(values[3], 5, uniform()), tf.float32)

    total, _, gradients = sums(ours, values, [kernel, bias])
    assert total == 0
    assert all(np.all(g == 0) for g in gradients)


@pytest.mark.bfloat16
def test_bfloat16_is_close_to_float32():
    values = problem()
    sample = draw(values[3], 8, uniform())

    def of(dtype):
        return sums(lambda *v: sampled_cross_entropy(*v, sample, dtype), values, list(values[:3]))

    rounded, exact = of(tf.bfloat16), of(tf.float32)
    assert rounded[0] == pytest.approx(exact[0], rel=0.01) and rounded[0] != exact[0]
    for actual, expected in zip(rounded[2], exact[2]):
        assert actual.dtype == np.float32
        assert np.linalg.norm(actual - expected) < 0.02 * np.linalg.norm(expected)


@pytest.mark.parametrize("variant", ["luong", "rnnsearch"])
def test_training_samples_and_validation_does_not(variant):
    batch = small_models.batch(LENGTHS)[:5]

    def loss(size, masks):
        model = small_models.model(variant, num_sampled_softmax=size)
        return float(sum_loss(model, batch, masks, tf.float32).total)

    def update(number):
        return DropoutMasks(tf.constant([1, number]))

    full_loss = loss(0, None)
    assert loss(2, None) == full_loss
    assert loss(small_models.TARGET_SIZE, update(1)) == full_loss
    assert loss(2, update(1)) == loss(2, update(1))
    assert len({full_loss, loss(2, update(1)), loss(2, update(2))}) == 3


@pytest.mark.parametrize(
    "wrong, setting",
    [
        ({"label_smoothing": 0.1}, "label_smoothing"),
        ({"cell": "cache", "unit_type": "gru", "cache_fusion": "shallow"}, "cache_fusion"),
    ],
)
def test_what_needs_all_words_is_refused(wrong, setting):
    assert HParams(**wrong)
    with pytest.raises(UsageError, match=f"{setting}.*num_sampled_softmax"):
        HParams(num_sampled_softmax=5, **wrong)
