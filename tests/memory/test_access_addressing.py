"""Addressing and attention against plain NumPy, in value, at the edges, and in the gradient."""

import numpy as np
import pytest
import tensorflow as tf
from oracles import addressing as oracle

from tfmann.memory import access

LENGTHS = [1, 2, 3, 7, 9]  # of a padded batch; 9 is the whole width
WIDTH = max(LENGTHS)
MASK = (np.arange(WIDTH) < np.array(LENGTHS)[:, None]).astype(np.float32)  # [B, S]
LAST = (np.arange(WIDTH) == np.array(LENGTHS)[:, None] - 1).astype(np.float32)


@pytest.fixture(params=["eager", "compiled"])
def run(request):
    """Calls a function of tensors, as it is or traced, and checks that no number is NaN."""

    def call(function, *arrays):
        tensors = [tf.constant(array, tf.float32) for array in arrays]
        wrapped = (
            tf.function(function, autograph=False) if request.param == "compiled" else function
        )
        result = wrapped(*tensors).numpy()
        assert np.all(np.isfinite(result))
        return result

    return call


def gradients(function, *arrays):
    """Gradients of a weighted sum of the result with respect to every argument, all finite."""
    tensors = [tf.constant(array, tf.float32) for array in arrays]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        result = function(*tensors)
        stream = np.random.default_rng(0)
        loss = tf.reduce_sum(result * stream.normal(size=result.shape).astype(np.float32))
    slopes = [g.numpy() for g in tape.gradient(loss, tensors)]
    assert all(np.all(np.isfinite(g)) for g in slopes)
    return slopes


def weights_of(stream, heads=2):
    """Random addresses `[B, heads, S]`, zero at padding."""
    samples = stream.uniform(0.01, 1.0, [len(LENGTHS), heads, WIDTH]) * MASK[:, None]
    return (samples / samples.sum(axis=-1, keepdims=True)).astype(np.float32)


def kernels_of(stream, taps, heads=2):
    samples = stream.dirichlet(np.ones(taps), [len(LENGTHS), heads])
    return samples.astype(np.float32)


def stack_rows_and_heads(arrays, expected):
    """Stacks `expected(length, *rows of the arrays)` over batch and heads."""
    return np.array(
        [
            [
                expected(length, *(a[row, head] for a in arrays))
                for head in range(arrays[0].shape[1])
            ]
            for row, length in enumerate(LENGTHS)
        ]
    )


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_masked_softmax(run, scale):
    scores = scale * np.random.default_rng(1).normal(size=[len(LENGTHS), 2, WIDTH])
    actual = run(lambda s: access.masked_softmax(s, MASK[:, None]), scores)
    expected = stack_rows_and_heads(
        (scores,), lambda length, row: oracle.masked_softmax(row, length)
    )
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    assert np.all(actual[np.broadcast_to(MASK[:, None] == 0, actual.shape)] == 0)


def test_masked_softmax_ignores_padding(run):
    scores = np.random.default_rng(1).normal(size=[len(LENGTHS), WIDTH])
    high = np.where(MASK > 0, scores, 1e9)
    mask = tf.constant(MASK)
    weights = run(lambda s: access.masked_softmax(s, mask), scores)
    assert np.array_equal(weights, run(lambda s: access.masked_softmax(s, mask), high))
    (gradient,) = gradients(lambda s: access.masked_softmax(s, mask), high)
    assert np.all(gradient[MASK == 0] == 0) and np.any(gradient != 0)


def test_softmax_without_a_mask(run):
    scores = np.random.default_rng(2).normal(size=[3, 5])
    weights = run(lambda s: access.masked_softmax(s, None), scores)
    np.testing.assert_allclose(weights, [oracle.softmax(row) for row in scores], atol=1e-6)


def test_interpolate(run):
    stream = np.random.default_rng(3)
    content, previous = weights_of(stream), weights_of(stream)
    gate = stream.uniform(size=[len(LENGTHS), 2, 1])
    gate[0, 0], gate[0, 1] = 0.0, 1.0
    actual = run(access.interpolate, gate, content, previous)
    expected = stack_rows_and_heads(
        (gate, content, previous), lambda length, g, c, p: oracle.interpolate(g[0], c, p)
    )
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    for gradient in gradients(access.interpolate, gate, content, previous):
        assert np.any(gradient != 0)


@pytest.mark.parametrize("taps", [1, 3, 5])
def test_shift_is_a_circular_convolution(run, taps):
    stream = np.random.default_rng(taps)
    weights = stream.dirichlet(np.ones(WIDTH), [4])
    kernel = stream.dirichlet(np.ones(taps), [4])
    actual = run(access.shift, weights, kernel)
    expected = [oracle.circular_shift(w, k, WIDTH) for w, k in zip(weights, kernel)]
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    for gradient in gradients(access.shift, weights, kernel):
        assert np.all(gradient != 0)


@pytest.mark.parametrize("slots", [1, 2])
def test_shift_round_a_memory_smaller_than_the_kernel(run, slots):
    kernel = np.random.default_rng(0).dirichlet(np.ones(5), [1])
    weights = np.array([[0.9, 0.1][:slots]])
    actual = run(access.shift, weights, kernel)
    expected = [oracle.circular_shift(weights[0], kernel[0], slots)]
    np.testing.assert_allclose(actual, expected, atol=1e-6)


def test_last_tap_moves_an_address_forward(run):
    first = np.eye(1, 5)
    assert np.array_equal(run(access.shift, first, [[0, 0, 1]]), np.eye(1, 5, 1))
    assert np.array_equal(run(access.shift, first, [[1, 0, 0]]), np.eye(1, 5, 4))
    mask, last = np.array([[1, 1, 1, 0, 0]]), np.array([[0, 0, 1, 0, 0]])
    shift = access.shift_within
    assert np.array_equal(run(shift, first, [[0, 0, 1]], mask, last), np.eye(1, 5, 1))
    assert np.array_equal(run(shift, first, [[1, 0, 0]], mask, last), np.eye(1, 5, 2))


@pytest.mark.parametrize("taps", [1, 3, 5])
def test_shift_within_goes_round_each_sentences_own_length(run, taps):
    stream = np.random.default_rng(taps)
    weights, kernel = weights_of(stream), kernels_of(stream, taps)
    mask, last = MASK[:, None], LAST[:, None]
    actual = run(access.shift_within, weights, kernel, mask, last)
    expected = stack_rows_and_heads(
        (weights, kernel), lambda length, w, k: oracle.circular_shift(w, k, length)
    )
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    assert np.all(actual[np.broadcast_to(mask == 0, actual.shape)] == 0)

    def shift(weights, kernel):
        return access.shift_within(weights, kernel, mask, last)

    by_weights, by_kernel = gradients(shift, weights, kernel)
    assert np.all(by_weights[np.broadcast_to(mask > 0, by_weights.shape)] != 0)
    assert np.all(by_kernel != 0)


@pytest.mark.parametrize("gamma", [1.0, 3.7, 21.0])
def test_sharpen_normalises_powers_over_real_locations(run, gamma):
    weights = weights_of(np.random.default_rng(4))
    weights[3, 0] = np.eye(1, WIDTH, 2)  # a sure address
    gammas = np.full([len(LENGTHS), 2, 1], gamma)
    actual = run(lambda w, g: access.sharpen(w, g, MASK[:, None]), weights, gammas)
    expected = stack_rows_and_heads(
        (weights, gammas), lambda length, w, g: oracle.sharpen(w, g[0], length)
    )
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert np.all(actual[np.broadcast_to(MASK[:, None] == 0, actual.shape)] == 0)
    gradients(lambda w, g: access.sharpen(w, g, MASK[:, None]), weights, gammas)


@pytest.mark.parametrize("slots", [1, 128, 512])
def test_sharpen_of_uniform_weights_leaves_them_uniform(run, slots):
    uniform = np.full([2, slots], 1.0 / slots)
    gamma = np.array([[20.0], [21.0]])
    sharpened = run(lambda w, g: access.sharpen(w, g, None), uniform, gamma)
    np.testing.assert_allclose(sharpened, uniform, rtol=1e-4)
    by_weights, _ = gradients(lambda w, g: access.sharpen(w, g, None), uniform, gamma)
    assert slots == 1 or np.any(by_weights != 0)


def test_sharpen_of_512_random_slots(run):
    weights = np.random.default_rng(5).dirichlet(np.ones(512), [3])
    actual = run(lambda w, g: access.sharpen(w, g, None), weights, np.full([3, 1], 21.0))
    expected = [oracle.sharpen(row, 21.0, 512) for row in weights]
    np.testing.assert_allclose(actual, expected, atol=1e-5)


@pytest.mark.parametrize("gamma", [1.0, 21.0])
def test_rows_of_zeros_have_finite_values_and_gradients(run, gamma):
    zeros, gammas = np.zeros([len(LENGTHS), WIDTH]), np.full([len(LENGTHS), 1], gamma)
    actual = run(lambda w, g: access.sharpen(w, g, MASK), zeros, gammas)
    expected = [oracle.sharpen(row, gamma, length) for row, length in zip(zeros, LENGTHS)]
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    gradients(lambda w, g: access.sharpen(w, g, MASK), zeros, gammas)
    kernel = np.full([len(LENGTHS), 3], 1 / 3)
    assert not run(access.shift, zeros, kernel).any()
    gradients(access.shift, zeros, kernel)
    assert not run(access.shift_within, zeros, kernel, MASK, LAST).any()
    gradients(lambda w, k: access.shift_within(w, k, MASK, LAST), zeros, kernel)
    actual = run(lambda s: access.masked_softmax(s, MASK), zeros)
    np.testing.assert_allclose(actual, MASK / MASK.sum(axis=1, keepdims=True), atol=1e-6)
    gradients(lambda s: access.masked_softmax(s, MASK), zeros)


def test_dot_scores_with_strength_are_the_content_address(run):
    stream = np.random.default_rng(7)
    query, keys = stream.normal(size=[2, 3, 4]), stream.normal(size=[2, WIDTH, 4])
    strength, mask = stream.uniform(0, 5, [2, 3, 1]), MASK[3:, None]

    def address(strength, query, keys):
        return access.masked_softmax(strength * tf.matmul(query, keys, transpose_b=True), mask)

    expected = [
        [oracle.content_dot(strength[b, k, 0], query[b, k], keys[b], length) for k in range(3)]
        for b, length in enumerate(LENGTHS[3:])
    ]
    np.testing.assert_allclose(run(address, strength, query, keys), expected, atol=1e-5)
