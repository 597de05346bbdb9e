"""Writing to a memory: against the oracle, and its written-out gradient against automatic ones."""

import numpy as np
import pytest
import tensorflow as tf
from oracles import ntm as oracle

from tfmann.memory import access

BATCH, SLOTS, WIDTH = 3, 5, 4


def arguments(heads, seed=0):
    stream = np.random.default_rng(seed)
    memory = stream.normal(size=[BATCH, SLOTS, WIDTH])
    weights = stream.dirichlet(np.ones(SLOTS), [BATCH, heads])
    erase = stream.uniform(size=[BATCH, heads, WIDTH])
    add = stream.normal(size=[BATCH, heads, WIDTH])
    return [values.astype(np.float32) for values in (memory, weights, erase, add)]


def plain(memory, weights, erase, add):
    """Equations 9 and 10 as they stand."""
    for head in range(weights.shape[1]):
        memory *= 1.0 - weights[:, head, :, None] * erase[:, head, None]
    return memory + tf.einsum("bhn,bhw->bnw", weights, add)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_erase_and_add_equals_the_oracle(heads):
    given = arguments(heads)
    got = access.erase_and_add(*given).numpy()
    for row in range(BATCH):
        np.testing.assert_allclose(
            got[row], oracle.erase_and_add(*(values[row] for values in given)), atol=1e-6
        )


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_its_gradient_is_that_of_the_equations(heads):
    given = [tf.constant(values) for values in arguments(heads)]
    direction = np.random.default_rng(1).normal(size=[BATCH, SLOTS, WIDTH]).astype(np.float32)
    found = []
    for function in (access.erase_and_add, plain):
        with tf.GradientTape() as tape:
            tape.watch(given)
            total = tf.reduce_sum(function(*given) * direction)
        found.append(tape.gradient(total, given))
    for written_out, automatic in zip(*found):
        np.testing.assert_allclose(written_out, automatic, atol=1e-5)


def test_no_weight_leaves_the_memory_as_it_is():
    memory, weights, erase, add = arguments(2)
    same = access.erase_and_add(memory, np.zeros_like(weights), erase, add)
    np.testing.assert_array_equal(same, memory)


def test_a_full_write_of_one_slot_replaces_it():
    memory, _, _, add = arguments(1)
    weights = np.tile(np.eye(SLOTS, dtype=np.float32)[None, 2:3], [BATCH, 1, 1])
    got = access.erase_and_add(memory, weights, np.ones_like(add), add).numpy()
    np.testing.assert_allclose(got[:, 2], add[:, 0], atol=1e-6)
    np.testing.assert_array_equal(np.delete(got, 2, axis=1), np.delete(memory, 2, axis=1))
