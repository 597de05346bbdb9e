"""The DNC's usage, allocation and links: against the oracle, constructed states, gradients."""

import contextlib

import numpy as np
import pytest
import tensorflow as tf
from oracles import dnc as oracle

from tfmann.memory import access, allocation
from tfmann.ops import row_products

BATCH, SLOTS = 4, 5
CONTEXTS = (contextlib.nullcontext, row_products.row_by_row)  # plain, and as XLA compiles it
STREAM = np.random.default_rng(8)


def gates(heads):
    return STREAM.uniform(size=[BATCH, heads, 1]).astype(np.float32)


def weights(heads, slots=SLOTS):
    """Rows that sum to at most 1."""
    samples = STREAM.dirichlet(np.ones(slots), [BATCH, heads]) * gates(heads)
    return samples.astype(np.float32)


def numeric_gradient(function, values, step=1e-6):
    """Central differences of a number, in float64."""
    result = np.zeros_like(values)
    for index in np.ndindex(values.shape):
        moved = [values.copy(), values.copy()]
        moved[0][index] += step
        moved[1][index] -= step
        result[index] = (function(moved[0]) - function(moved[1])) / (2 * step)
    return result


@pytest.mark.parametrize("readers,writers", [(1, 1), (2, 3), (3, 2)])
def test_usage_equals_the_oracle(readers, writers):
    usage = STREAM.uniform(size=[BATCH, SLOTS]).astype(np.float32)
    written, read, free = weights(writers), weights(readers), gates(readers)
    actual = allocation.update_usage(usage, written, allocation.retention(free, read)).numpy()
    for row in range(BATCH):
        expected = oracle.usage_after(usage[row], written[row], free[row, :, 0], read[row])
        np.testing.assert_allclose(actual[row], expected, atol=1e-6)
    assert np.all((actual >= 0) & (actual <= 1))


def test_a_full_write_uses_a_slot_and_a_full_free_read_gives_it_back():
    full = np.eye(SLOTS, dtype=np.float32)[None, None, 2]
    nothing = np.zeros_like(full)
    keep, free = np.zeros([1, 1, 1], np.float32), np.ones([1, 1, 1], np.float32)
    retained = allocation.retention(keep, nothing)
    used = allocation.update_usage(np.zeros([1, SLOTS], np.float32), full, retained)
    np.testing.assert_array_equal(used, full[:, 0])
    freed = allocation.update_usage(used, nothing, allocation.retention(free, full))
    np.testing.assert_array_equal(freed, np.zeros([1, SLOTS]))


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("slots", [1, 2, 7, 128])
def test_allocation_equals_the_oracle(slots, context):
    usage = STREAM.uniform(size=[BATCH, slots]).astype(np.float32)
    usage[0] = 0.0  # ties, as before the first write
    usage[1] = 1.0
    with context():
        actual = allocation.allocation(usage).numpy()
    for row in range(BATCH):
        np.testing.assert_allclose(actual[row], oracle.allocation(usage[row]), atol=1e-5)
    assert np.argmax(actual[0]) == 0  # of ties, the lowest index
    assert actual[2].argmax() == usage[2].argmin()
    np.testing.assert_allclose(actual[2].sum() + usage[2].prod(), 1.0, atol=1e-3)


@pytest.mark.parametrize("writers", [1, 2, 3])
def test_write_allocation_equals_the_oracle(writers):
    usage = STREAM.uniform(size=[BATCH, SLOTS]).astype(np.float32)
    write, allocate = gates(writers), gates(writers)
    actual = allocation.allocate(usage, write, allocate).numpy()
    for row in range(BATCH):
        expected = oracle.write_allocation(usage[row], write[row, :, 0], allocate[row, :, 0])
        np.testing.assert_allclose(actual[row], expected, atol=1e-5)


def test_two_heads_take_the_two_free_slots_and_a_shut_one_leaves_its_own():
    usage = np.array([[1.0, 0.0, 1.0, 0.0, 1.0]], np.float32)
    open_gates, shut = np.ones([1, 2, 1], np.float32), np.array([[[0.0], [1.0]]], np.float32)
    two_writes = allocation.allocate(usage, open_gates, open_gates).numpy()[0]
    np.testing.assert_allclose(two_writes, np.eye(5)[[1, 3]], atol=1e-4)
    for write, allocate in ((shut, open_gates), (open_gates, shut)):
        one_write = allocation.allocate(usage, write, allocate).numpy()[0]
        np.testing.assert_allclose(one_write, np.eye(5)[[1, 1]], atol=1e-4)


@pytest.mark.parametrize("writers", [1, 2, 3])
def test_links_and_precedence_equal_the_oracle_over_time(writers):
    link = np.zeros([BATCH, writers, SLOTS, SLOTS], np.float32)
    precedence = np.zeros([BATCH, writers, SLOTS], np.float32)
    expected_link, expected_precedence = link.astype(np.float64), precedence.astype(np.float64)
    for _ in range(6):
        written = weights(writers)
        read = weights(2)
        link = allocation.update_link(link, precedence, written).numpy()
        precedence = allocation.update_precedence(precedence, written).numpy()
        for row in range(BATCH):
            expected_link[row], expected_precedence[row] = oracle.link_and_precedence(
                expected_link[row], expected_precedence[row], written[row]
            )
        np.testing.assert_allclose(link, expected_link, atol=1e-6)
        np.testing.assert_allclose(precedence, expected_precedence, atol=1e-6)
        assert np.all((link >= 0) & (link <= 1))
        assert np.all(np.diagonal(link, axis1=2, axis2=3) == 0)
        assert np.all(link.sum(axis=2) <= 1 + 1e-6) and np.all(link.sum(axis=3) <= 1 + 1e-6)
        backward, forward = (d.numpy() for d in allocation.follow_links(link, read))
        for row in range(BATCH):
            expected_forward = np.einsum("hij,rj->rhi", link[row], read[row])
            np.testing.assert_allclose(forward[row], expected_forward, atol=1e-6)
            expected_backward = np.einsum("hij,ri->rhj", link[row], read[row])
            np.testing.assert_allclose(backward[row], expected_backward, atol=1e-6)


def test_the_written_out_gradient_of_links_is_the_automatic_one():
    inputs = [tf.constant(weights(n, SLOTS)) for n in (2 * SLOTS, 2, 2)]
    inputs[0] = tf.reshape(inputs[0], [BATCH, 2, SLOTS, SLOTS])
    direction = STREAM.normal(size=inputs[0].shape).astype(np.float32)
    links, slopes = [], []
    for context in CONTEXTS:
        with context(), tf.GradientTape() as tape:
            tape.watch(inputs)
            links.append(allocation.update_link(*inputs))
            total = tf.reduce_sum(links[-1] * direction)
        slopes.append(tape.gradient(total, inputs))
    np.testing.assert_allclose(links[1], links[0], atol=1e-6)
    for automatic, written_out in zip(*slopes):
        np.testing.assert_allclose(written_out, automatic, atol=1e-5)


def test_links_lead_from_what_was_written_first_to_what_came_next():
    one_hot = np.eye(SLOTS, dtype=np.float32)
    orders = [(0, 3), (1, 2), (4, 0)]  # of head 0 and of head 1
    link = np.zeros([1, 2, SLOTS, SLOTS], np.float32)
    precedence = np.zeros([1, 2, SLOTS], np.float32)
    for first, second in orders:
        written = one_hot[None, [first, second]]
        link = allocation.update_link(link, precedence, written)
        precedence = allocation.update_precedence(precedence, written)
    backward, forward = allocation.follow_links(link, one_hot[None, [1, 2]])
    np.testing.assert_array_equal(forward[0, 0, 0], one_hot[4])  # head 0 wrote 4 after 1
    np.testing.assert_array_equal(backward[0, 0, 0], one_hot[0])
    np.testing.assert_array_equal(forward[0, 1, 1], one_hot[0])  # head 1 wrote 0 after 2
    np.testing.assert_array_equal(backward[0, 1, 1], one_hot[3])
    # a slot written again leaves its chain
    rewritten = one_hot[None, [1, 2]]
    link = allocation.update_link(link, precedence, rewritten)
    np.testing.assert_array_equal(link[0, 0, 1], one_hot[4])
    np.testing.assert_array_equal(link[0, 0, :, 0], np.zeros(SLOTS))


def test_precedence_stays_without_a_write_and_is_replaced_by_a_full_one():
    before = weights(2)
    unchanged = allocation.update_precedence(before, np.zeros_like(before))
    np.testing.assert_array_equal(unchanged, before)
    full = np.tile(np.eye(SLOTS, dtype=np.float32)[[1, 3]], [BATCH, 1, 1])
    np.testing.assert_array_equal(allocation.update_precedence(before, full), full)


@pytest.mark.parametrize("mode", range(5))
def test_read_modes_pick_their_way(mode):
    backward, forward, content = weights(4), weights(4), weights(2)
    shape = [BATCH, 2, 2, SLOTS]
    backward, forward = backward.reshape(shape), forward.reshape(shape)
    modes = np.tile(np.eye(5, dtype=np.float32)[mode], [BATCH, 2, 1])
    actual = allocation.mix_read_weights(modes, backward, content, forward).numpy()
    addresses = [*np.moveaxis(backward, 2, 0), content, *np.moveaxis(forward, 2, 0)]
    np.testing.assert_array_equal(actual, addresses[mode])


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("writers", [1, 2])
def test_gradients_of_the_allocation_are_the_numeric_ones(writers, context):
    usage = np.random.default_rng(1).permutation(SLOTS)[None] / SLOTS + 0.05  # no ties nearby
    write, allocate = gates(writers)[:1], gates(writers)[:1]
    direction = np.random.default_rng(2).normal(size=[1, writers, SLOTS])

    def in_numpy(values):
        actual = oracle.write_allocation(values[0], write[0, :, 0], allocate[0, :, 0])
        return float(np.sum(np.asarray(actual) * direction[0]))

    watched = tf.constant(usage, tf.float32)
    with context(), tf.GradientTape() as tape:
        tape.watch(watched)
        result = allocation.allocate(watched, write, allocate)
        total = tf.reduce_sum(result * tf.cast(direction, tf.float32))
    expected = numeric_gradient(in_numpy, usage)
    np.testing.assert_allclose(tape.gradient(total, watched), expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("usage", [np.zeros([1, 6]), np.ones([1, 6])])
def test_gradients_of_the_allocation_are_finite_at_the_ends(usage, context):
    watched = tf.constant(usage, tf.float32)
    with context(), tf.GradientTape() as tape:
        tape.watch(watched)
        total = tf.reduce_sum(tf.square(allocation.allocation(watched)))
    assert np.all(np.isfinite(tape.gradient(total, watched)))


def test_a_faint_copy_is_not_read_as_the_item():
    item = STREAM.normal(size=[1, 8]).astype(np.float32)
    memory = np.concatenate([item, 1e-6 * np.repeat(item, 7, axis=0)])[None]
    squares = np.sum(memory**2, axis=-1)
    dots = item[None] @ np.swapaxes(memory, 1, 2)

    def weight_of_item(**floor):
        return tf.nn.softmax(20.0 * access.cosine_similarity(dots, item[None], squares, **floor))[
            0, 0, 0
        ]

    assert weight_of_item() < 0.9 < 0.999 < weight_of_item(floor=1e-6)
