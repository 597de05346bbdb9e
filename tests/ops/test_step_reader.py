"""Inputs that a loop reads: their values, and their gradients, which are stacked, not added."""

import numpy as np
import tensorflow as tf

from tfmann.ops import step_reader

VALUES = np.random.default_rng(1).normal(size=(4, 2, 3)).astype(np.float32)


def run_loop(read, count):
    """`sum_t (t + 1) x_t^2` over the first `count` steps of what is read."""

    def step(time, total):
        square = tf.reduce_sum(read(time) ** 2)
        return time + 1, total + tf.cast(time + 1, tf.float32) * square

    return tf.while_loop(lambda time, _: time < count, step, (0, 0.0))[1]


SIGNATURE = [tf.TensorSpec([None, None, 3]), tf.TensorSpec([], tf.int32)]


@tf.function(autograph=False, input_signature=SIGNATURE)
def gradient_of_steps(values, count):
    with tf.GradientTape() as tape:
        tape.watch(values)
        total = run_loop(step_reader.StepReader(values).read, count)
    return total, tape.gradient(total, values)


def test_values_and_gradients_are_the_steps_own():
    total, gradient = gradient_of_steps(tf.constant(VALUES), 4)
    weights = np.arange(1, 5)[:, None, None]
    np.testing.assert_allclose(total, (weights * VALUES**2).sum(), rtol=1e-5)
    np.testing.assert_allclose(gradient, 2 * weights * VALUES, rtol=1e-5)


def test_steps_that_were_not_read_have_no_gradient():
    _, gradient = gradient_of_steps(tf.constant(VALUES), 2)
    assert np.abs(gradient[:2]).min() > 0 and not np.any(gradient[2:])
    total, gradient = gradient_of_steps(tf.constant(VALUES), 0)
    assert total == 0 and not np.any(gradient)


def test_a_step_that_is_read_twice_counts_twice():
    @tf.function(autograph=False)
    def run():
        with tf.GradientTape() as tape:
            values = tf.constant(VALUES)
            tape.watch(values)
            read = step_reader.StepReader(values).read
            total = run_loop(lambda time: read(time) + read(0), 4)
        return tape.gradient(total, values)

    factors = 2 * np.arange(1, 5)[:, None, None] * (VALUES + VALUES[0])
    expected = factors.copy()
    expected[0] += factors.sum(axis=0)
    np.testing.assert_allclose(run(), expected, rtol=1e-5)
