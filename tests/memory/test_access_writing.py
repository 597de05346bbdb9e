"""Writing to a memory: against the oracle, and its written-out gradient against automatic ones."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from oracles import ntm as oracle

from tfmann.memory import access
from tfmann.ops import row_products

BATCH, SLOTS, WIDTH = 3, 5, 4
CONTEXTS = (contextlib.nullcontext, row_products.row_by_row)  # plain, and as XLA compiles it


def arguments(heads, seed=0):
    stream = np.random.default_rng(seed)
    memory = stream.normal(size=[BATCH, SLOTS, WIDTH])
    weights = stream.dirichlet(np.ones(SLOTS), [BATCH, heads])
    erase = stream.uniform(size=[BATCH, heads, WIDTH])
    add = stream.normal(size=[BATCH, heads, WIDTH])
    return [values.astype(np.float32) for values in (memory, weights, erase, add)]


def erase_and_add_by_head(memory, weights, erase, add):
    """Equations 9 and 10, one head after the other."""
    for head in range(weights.shape[1]):
        memory *= 1.0 - weights[:, head, :, None] * erase[:, head, None]
    return memory + tf.einsum("bhn,bhw->bnw", weights, add)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_erase_and_add_equals_the_oracle(heads, context):
    inputs = arguments(heads)
    with context():
        actual = access.erase_and_add(*inputs).numpy()
    for row in range(BATCH):
        np.testing.assert_allclose(
            actual[row], oracle.erase_and_add(*(values[row] for values in inputs)), atol=1e-6
        )


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_its_gradient_is_that_of_the_equations(heads, context):
    inputs = [tf.constant(values) for values in arguments(heads)]
    direction = np.random.default_rng(1).normal(size=[BATCH, SLOTS, WIDTH]).astype(np.float32)
    slopes = []
    for function in (access.erase_and_add, erase_and_add_by_head):
        with context(), tf.GradientTape() as tape:
            tape.watch(inputs)
            total = tf.reduce_sum(function(*inputs) * direction)
        slopes.append(tape.gradient(total, inputs))
    for written_out, automatic in zip(*slopes):
        np.testing.assert_allclose(written_out, automatic, atol=1e-5)


def test_no_weight_leaves_the_memory_as_it_is():
    memory, weights, erase, add = arguments(2)
    unchanged = access.erase_and_add(memory, np.zeros_like(weights), erase, add)
    np.testing.assert_array_equal(unchanged, memory)


def test_a_full_write_of_one_slot_replaces_it():
    memory, _, _, add = arguments(1)
    weights = np.tile(np.eye(SLOTS, dtype=np.float32)[None, 2:3], [BATCH, 1, 1])
    written = access.erase_and_add(memory, weights, np.ones_like(add), add).numpy()
    np.testing.assert_allclose(written[:, 2], add[:, 0], atol=1e-6)
    np.testing.assert_array_equal(np.delete(written, 2, axis=1), np.delete(memory, 2, axis=1))
