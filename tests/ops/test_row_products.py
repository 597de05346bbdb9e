"""Products of a few rows with one matrix a sentence: as NumPy's, row by row or together."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf

from tfmann.ops import row_products

BATCH, SLOTS, WIDTH = 2, 5, 4
CASES = [("times", SLOTS, "bhn,bnw->bhw"), ("times_transposed", WIDTH, "bhw,bnw->bhn")]


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=[BATCH, *shape]).astype(np.float32)


def contexts():
    return contextlib.nullcontext(), row_products.row_by_row()


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("name,size,equation", CASES)
def test_products_and_their_gradients_are_those_of_numpy(name, size, equation, heads):
    rows, matrix = draw(heads, size), draw(SLOTS, WIDTH)
    direction = draw(heads, SLOTS + WIDTH - size)
    inputs, result = equation.split("->")
    of_rows, of_matrix = inputs.split(",")
    for context in contexts():
        with context, tf.GradientTape() as tape:
            variables = [tf.constant(rows), tf.constant(matrix)]
            tape.watch(variables)
            value = getattr(row_products, name)(*variables)
            total = tf.reduce_sum(value * direction)
        np.testing.assert_allclose(value, np.einsum(equation, rows, matrix), atol=1e-5)
        d_rows, d_matrix = tape.gradient(total, variables)
        expected = np.einsum(f"{result},{of_matrix}->{of_rows}", direction, matrix)
        np.testing.assert_allclose(d_rows, expected, atol=1e-5)
        expected = np.einsum(f"{result},{of_rows}->{of_matrix}", direction, rows)
        np.testing.assert_allclose(d_matrix, expected, atol=1e-5)


@pytest.mark.parametrize("heads", [1, 3])
def test_outer_products_are_summed_over_heads(heads):
    columns, rows = draw(heads, SLOTS), draw(heads, WIDTH)
    for context in contexts():
        with context:
            actual = row_products.outer(columns, rows)
        np.testing.assert_allclose(actual, np.einsum("bhn,bhw->bnw", columns, rows), atol=1e-5)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_squared_lengths_and_their_gradient_at_a_row_of_zeros_too(jit_compile):
    matrix = draw(SLOTS, WIDTH)
    matrix[1, 2] = 0.0
    direction = draw(SLOTS)

    @tf.function(jit_compile=jit_compile)
    def lengths_and_gradient(variable):
        with tf.GradientTape() as tape:
            tape.watch(variable)
            lengths = row_products.squared_lengths(variable)
            total = tf.reduce_sum(lengths * direction)
        return lengths, tape.gradient(total, variable)

    lengths, gradient = lengths_and_gradient(tf.constant(matrix))
    np.testing.assert_allclose(lengths, np.sum(matrix**2, axis=-1), rtol=1e-5)
    np.testing.assert_allclose(gradient, 2.0 * direction[..., None] * matrix, rtol=1e-5)
