"""The encoder's loop: values against the oracle, hand-written gradients against autodiff."""

import numpy as np
import pytest
import tensorflow as tf
from oracles import recurrent

from tfmann.layers.rnn import GATES, recurrent_step
from tfmann.ops.encoder_scan import scan

UNITS, BATCH = 5, 3
# unit, and which of its outputs the loss looks at
OUTPUTS = [("gru", (1.0,)), ("lstm", (1.0, 0.0)), ("lstm", (0.0, 1.0)), ("lstm", (1.0, 1.0))]


def inputs(unit, steps, chains, seed=0):
    stream = np.random.default_rng(seed)
    width = GATES[unit] * UNITS
    projected = stream.normal(scale=1.5, size=(steps, chains, BATCH, width))
    kernel = stream.normal(scale=0.8, size=(chains, UNITS, width))
    return tf.constant(projected, tf.float32), tf.constant(kernel, tf.float32)


def unroll(unit, projected, kernel, initial=None):
    """The same recurrence, step by step and chain by chain, left to autodiff."""
    chains = []
    for chain in range(kernel.shape[0]):
        state = (tf.zeros([BATCH, UNITS]),) * (2 if unit == "lstm" else 1)
        if initial is not None:
            state = (initial[chain], *state[1:])
        states = []
        for time in range(projected.shape[0]):
            products = tf.matmul(state[0], kernel[chain])
            state = recurrent_step(unit, projected[time, chain], products, state)
            states.append(state)
        chains.append([tf.stack(part) for part in zip(*states)])
    return tuple(tf.stack(part, axis=1) for part in zip(*chains))


def gradients(run, projected, kernel, weights):
    """Gradients of a random linear function of the outputs; `weights` scale each of them."""
    stream = np.random.default_rng(7)
    with tf.GradientTape() as tape:
        tape.watch([projected, kernel])
        parts = run(projected, kernel)
        loss = 0.0
        for part, weight in zip(parts, weights):
            direction = tf.constant(stream.normal(size=part.shape), tf.float32)
            if weight:
                loss += weight * tf.reduce_sum(direction * part)
    return [g.numpy() for g in tape.gradient(loss, [projected, kernel])]


def compiled(unit, chains):
    """The scan in a graph that does not know how many steps and rows there are."""
    return tf.function(
        lambda projected, kernel: scan(unit, projected, kernel, tf.float32),
        input_signature=[
            tf.TensorSpec([None, chains, None, GATES[unit] * UNITS]),
            tf.TensorSpec([chains, UNITS, GATES[unit] * UNITS]),
        ],
        autograph=False,
    )


@pytest.mark.parametrize("steps,chains", [(1, 1), (1, 2), (6, 1), (6, 2)])
@pytest.mark.parametrize("unit", ["gru", "lstm"])
def test_scan_equals_the_oracle(unit, steps, chains):
    projected, kernel = inputs(unit, steps, chains)
    actual = scan(unit, projected, kernel, tf.float32)
    assert len(actual) == (2 if unit == "lstm" else 1)
    for chain in range(chains):
        weights = {
            "kernel": np.eye(GATES[unit] * UNITS),
            "recurrent_kernel": kernel[chain].numpy().astype(np.float64),
            "bias": np.zeros(GATES[unit] * UNITS),
        }
        for row in range(BATCH):
            state = recurrent.zero_state(unit, weights)
            for time in range(steps):
                x = projected[time, chain, row].numpy()
                _, state = recurrent.unit_step(unit, x, state, weights)
                expected = state if unit == "lstm" else (state,)
                for part, value in zip(actual, expected):
                    np.testing.assert_allclose(part[time, chain, row], value, atol=1e-5)


@pytest.mark.parametrize("steps,chains", [(1, 1), (1, 2), (6, 1), (6, 2)])
@pytest.mark.parametrize("unit,weights", OUTPUTS)
def test_gradients_equal_autodiff(unit, weights, steps, chains):
    projected, kernel = inputs(unit, steps, chains)
    expected = gradients(lambda p, k: unroll(unit, p, k), projected, kernel, weights)
    for run in (lambda p, k: scan(unit, p, k, tf.float32), compiled(unit, chains)):
        actual = gradients(run, projected, kernel, weights)
        np.testing.assert_allclose(actual[0], expected[0], atol=2e-5, err_msg="to the inputs")
        np.testing.assert_allclose(actual[1], expected[1], atol=2e-5, err_msg="to the kernel")
    assert np.abs(expected[0]).max() > 0.1
    assert (np.abs(expected[1]).max() > 0.1) == (steps > 1)


@pytest.mark.parametrize("steps", [1, 6])
@pytest.mark.parametrize("unit,weights", OUTPUTS)
def test_a_given_first_state_is_where_it_begins_and_gets_a_gradient(unit, weights, steps):
    projected, kernel = inputs(unit, steps, 2)
    initial = np.random.default_rng(3).normal(size=(2, BATCH, UNITS))
    initial = tf.constant(initial, tf.float32)
    values = scan(unit, projected, kernel, tf.float32, initial)
    for actual, expected in zip(values, unroll(unit, projected, kernel, initial)):
        np.testing.assert_allclose(actual, expected, atol=1e-5)
    zero = scan(unit, projected, kernel, tf.float32, tf.zeros_like(initial))
    for actual, expected in zip(zero, scan(unit, projected, kernel, tf.float32)):
        np.testing.assert_array_equal(actual, expected)

    def slopes(run, first, second):
        """Of `gradients`, which knows two arguments."""
        return gradients(run, first, second, weights)

    expected = slopes(lambda p, i: unroll(unit, p, kernel, i), projected, initial)
    actual = slopes(lambda p, i: scan(unit, p, kernel, tf.float32, i), projected, initial)
    np.testing.assert_allclose(actual[0], expected[0], atol=2e-5, err_msg="to the inputs")
    np.testing.assert_allclose(actual[1], expected[1], atol=2e-5, err_msg="to the first state")
    assert np.abs(expected[1]).max() > 0.1
    expected = slopes(lambda p, k: unroll(unit, p, k, initial), projected, kernel)
    actual = slopes(lambda p, k: scan(unit, p, k, tf.float32, initial), projected, kernel)
    np.testing.assert_allclose(actual[1], expected[1], atol=2e-5, err_msg="to the kernel")


@pytest.mark.bfloat16
@pytest.mark.parametrize("unit,weights", OUTPUTS)
def test_bfloat16_is_close_to_float32(unit, weights):
    projected, kernel = inputs(unit, 6, 2)
    exact = scan(unit, projected, kernel, tf.float32)
    rounded = scan(unit, projected, kernel, tf.bfloat16)
    for part, expected in zip(rounded, exact):
        assert part.dtype == tf.float32
        error = np.abs(part - expected).max()
        assert 0 < error < 0.05
    actual, expected = (
        gradients(lambda p, k, t=dtype: scan(unit, p, k, t), projected, kernel, weights)
        for dtype in (tf.bfloat16, tf.float32)
    )
    for part, value in zip(actual, expected):
        assert part.dtype == np.float32
        error = np.linalg.norm(part - value) / np.linalg.norm(value)
        assert 0 < error < 0.03


@pytest.mark.parametrize("unit", ["gru", "lstm"])
def test_steps_without_influence_get_no_gradient(unit):
    """A loss of step 2 alone does not depend on the inputs of later steps."""
    projected, kernel = inputs(unit, 5, 2)
    with tf.GradientTape() as tape:
        tape.watch(projected)
        loss = tf.reduce_sum(scan(unit, projected, kernel, tf.float32)[0][2])
    gradient = tape.gradient(loss, projected).numpy()
    assert np.all(gradient[3:] == 0)
    assert np.all(np.abs(gradient[:3]).max(axis=(1, 2, 3)) > 1e-4)
