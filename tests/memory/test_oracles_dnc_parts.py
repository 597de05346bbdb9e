"""Tests of the parts of the DNC's oracle: usage, allocation, link, modes, each by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.oracle_weights import dnc_numbers
from oracles import dnc


def test_dnc_numbers_are_cut_in_order_and_activated():
    num_read, num_write, width = 2, 3, 2
    numbers = dnc_numbers(num_read, num_write, width)
    raw = np.arange(numbers) / 10.0
    interface = dnc.split(raw, num_read, num_write)
    bounds = np.cumsum([4, 2, 6, 3, 6, 6, 2, 3, 3, 14])
    assert bounds[-1] == numbers
    keys, strengths, write_keys, write_strengths, erase, add, free, allocate, write, modes = (
        np.split(raw, bounds[:-1])
    )
    np.testing.assert_array_equal(interface.read_keys, keys.reshape(2, 2))
    np.testing.assert_allclose(interface.read_strengths, 1 + np.log1p(np.exp(strengths)))
    np.testing.assert_array_equal(interface.write_keys, write_keys.reshape(3, 2))
    np.testing.assert_allclose(interface.write_strengths, 1 + np.log1p(np.exp(write_strengths)))
    np.testing.assert_allclose(interface.erase, 1 / (1 + np.exp(-erase.reshape(3, 2))))
    np.testing.assert_array_equal(interface.add, add.reshape(3, 2))  # linear, not clipped
    np.testing.assert_allclose(interface.free_gates, 1 / (1 + np.exp(-free)))
    np.testing.assert_allclose(interface.allocation_gates, 1 / (1 + np.exp(-allocate)))
    np.testing.assert_allclose(interface.write_gates, 1 / (1 + np.exp(-write)))
    exponentials = np.exp(modes.reshape(2, 7))
    np.testing.assert_allclose(
        interface.read_modes, exponentials / exponentials.sum(axis=1, keepdims=True)
    )
    assert interface.read_modes.shape == (2, 1 + 2 * num_write)


def test_dnc_numbers_must_fit_the_heads():
    assert dnc.slot_width(dnc_numbers(2, 3, 5), 2, 3) == 5
    with pytest.raises(ValueError, match="no width"):
        dnc.slot_width(dnc_numbers(2, 3, 5) + 1, 2, 3)


def test_content_with_strength_one_is_the_softmax_of_the_cosines():
    rng = np.random.default_rng(5)
    keys, memory = rng.normal(size=(3, 4)), rng.normal(size=(6, 4))
    norms = np.linalg.norm(keys, axis=1)[:, None] * np.linalg.norm(memory, axis=1)
    cosines = keys @ memory.T / norms
    for strength in (1.0, 2.5):
        expected = np.exp(strength * cosines)
        expected /= expected.sum(axis=1, keepdims=True)
        weights = dnc.content(keys, [strength] * 3, memory)
        np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_content_of_strength_100_is_the_matching_row():
    memory = [[1.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]
    weights = dnc.content([[0.0, 5.0], [-0.1, 0.0]], [100.0, 100.0], memory)
    np.testing.assert_allclose(weights, np.eye(3)[[1, 2]], atol=1e-12)


def test_content_of_zero_rows():
    weights = dnc.content([[1.0, 1.0], [0.0, 0.0]], [2.0, 2.0], [[0.0, 0.0], [1.0, 1.0]])
    first = 1.0 / (1.0 + math.exp(2.0))
    np.testing.assert_allclose(weights, [[first, 1.0 - first], [0.5, 0.5]], rtol=1e-6)


def test_usage_after_a_full_write_is_one_and_after_a_full_free_is_zero():
    usage, nothing = np.array([0.3, 0.6, 0.9]), np.zeros((1, 3))
    written = dnc.usage_after(usage, [np.eye(3)[1]], [1.0], nothing)
    np.testing.assert_allclose(written, [0.3, 1.0, 0.9])
    freed = dnc.usage_after(usage, nothing, [1.0], [np.eye(3)[2]])
    np.testing.assert_allclose(freed, [0.3, 0.6, 0.0])
    retained = dnc.usage_after(usage, nothing, [0.0], [np.eye(3)[2]])
    np.testing.assert_allclose(retained, usage)
    # The slot was written before it is freed: nothing of the write is left.
    written_and_freed = dnc.usage_after(usage, [np.eye(3)[1]], [1.0], [np.eye(3)[1]])
    np.testing.assert_allclose(written_and_freed, [0.3, 0.0, 0.9])


def test_usage_of_several_heads_is_a_product():
    usage = dnc.usage_after([0.2], [[0.5], [0.5]], [0.5, 1.0], [[0.4], [0.25]])
    written = 1.0 - 0.5 * 0.5
    expected = (0.2 + written - 0.2 * written) * (1.0 - 0.2) * (1.0 - 0.25)
    np.testing.assert_allclose(usage, [expected])


def test_allocation_is_the_reverse_of_usage():
    rng = np.random.default_rng(6)
    for _ in range(20):
        usage = rng.uniform(0.0, 1.0, size=6)
        weights = dnc.allocation(usage)
        assert np.argmax(weights) == np.argmin(usage)
        assert np.argmin(weights) == np.argmax(usage)
        assert (weights >= 0.0).all()
        # What is not allocated is the product of all usages.
        assert weights.sum() == pytest.approx(1.0 - np.prod(usage), abs=1e-5)


def test_allocation_by_hand():
    np.testing.assert_allclose(
        dnc.allocation([0.5, 0.9, 0.2]), [0.5 * 0.2, 0.1 * 0.5 * 0.2, 0.8], atol=1e-6
    )
    np.testing.assert_allclose(dnc.allocation([1.0, 1.0, 0.0]), np.eye(3)[2], atol=1e-5)
    np.testing.assert_array_equal(dnc.allocation(np.ones(3)), np.zeros(3))  # nothing is free


def test_allocation_of_ties_begins_at_the_lowest_index():
    free = 1.0 - 1e-6  # the usage 0 counts as 1e-6
    np.testing.assert_allclose(dnc.allocation(np.zeros(3)), [free, free * 1e-6, free * 1e-12])
    tied = dnc.allocation([0.5, 0.25, 0.5, 0.25])
    expected = [0.0625 * 0.5, 0.75, 0.0625 * 0.5 * 0.5, 0.25 * 0.75]
    np.testing.assert_allclose(tied, expected, atol=1e-5)
    # Usages that float32 cannot tell apart are ties too.
    assert np.argmax(dnc.allocation([0.5, 0.5 - 1e-9])) == 0
    assert np.argmax(dnc.allocation([0.5, 0.5 - 1e-6])) == 1


def test_write_heads_allocate_one_after_the_other():
    usage = np.array([0.9, 0.001, 0.8, 0.002])
    weights = dnc.write_allocation(usage, [1.0, 1.0], [1.0, 1.0])
    np.testing.assert_array_equal(np.argmax(weights, axis=1), [1, 3])
    np.testing.assert_allclose(weights.sum(axis=1), [1.0, 1.0], atol=1e-2)
    assert weights.max(axis=1).min() > 0.99


@pytest.mark.parametrize(("write_gate", "allocation_gate"), [(0.0, 1.0), (1.0, 0.0)])
def test_a_shut_gate_leaves_the_allocation_to_the_next_head(write_gate, allocation_gate):
    usage = np.array([0.9, 0.3, 0.6])
    shut = dnc.write_allocation(usage, [write_gate, 1.0], [allocation_gate, 1.0])
    np.testing.assert_array_equal(shut[0], shut[1])
    np.testing.assert_array_equal(shut[0], dnc.allocation(usage))
    half = dnc.write_allocation(usage, [0.5, 1.0], [0.5, 1.0])
    raised = usage + (1.0 - usage) * 0.25 * dnc.allocation(usage)
    np.testing.assert_array_equal(half[1], dnc.allocation(raised))
    assert not np.allclose(half[0], half[1])


def test_write_weights_are_gated():
    content, allocated = [[0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]
    weights = dnc.write_weights(content, allocated, [0.8, 1.0], [0.25, 1.0])
    np.testing.assert_allclose(weights, [[0.2, 0.6], [1.0, 0.0]])
    np.testing.assert_allclose(weights.sum(axis=1), [0.8, 1.0])  # the write gates


def scripted_link():
    """Head 0 writes slot 0, then 1; head 1 writes slot 3, then 2."""
    link, precedence = np.zeros((2, 4, 4)), np.zeros((2, 4))
    for written in ([0, 3], [1, 2]):
        link, precedence = dnc.link_and_precedence(link, precedence, np.eye(4)[written])
    return link, precedence


def test_link_says_what_was_written_after_what():
    link, precedence = scripted_link()
    expected = np.zeros((2, 4, 4))
    expected[0, 1, 0] = expected[1, 2, 3] = 1.0
    np.testing.assert_array_equal(link, expected)
    np.testing.assert_array_equal(precedence, np.eye(4)[[1, 2]])


def test_directions_follow_the_link():
    link, _ = scripted_link()
    slot = np.eye(4)
    np.testing.assert_array_equal(dnc.forward(link[0], slot[0]), slot[1])
    np.testing.assert_array_equal(dnc.backward(link[0], slot[1]), slot[0])
    np.testing.assert_array_equal(dnc.forward(link[1], slot[3]), slot[2])
    np.testing.assert_array_equal(dnc.backward(link[1], slot[2]), slot[3])
    for weights in (slot[1], slot[2], slot[3]):
        np.testing.assert_array_equal(dnc.forward(link[0], weights), np.zeros(4))


def test_a_slot_written_again_leaves_its_old_neighbours():
    link, precedence = scripted_link()
    link, _ = dnc.link_and_precedence(link, precedence, np.eye(4)[[0, 0]])
    expected = np.zeros((2, 4, 4))
    expected[0, 0, 1] = expected[1, 0, 2] = expected[1, 2, 3] = 1.0
    np.testing.assert_array_equal(link, expected)


def test_link_by_hand_with_partial_writes():
    link, _ = dnc.link_and_precedence(
        [[[0.0, 0.4], [0.5, 0.0]]], [[0.3, 0.6]], np.array([[0.2, 0.1]])
    )
    expected = [[0.0, 0.7 * 0.4 + 0.2 * 0.6], [0.7 * 0.5 + 0.1 * 0.3, 0.0]]
    np.testing.assert_allclose(link, [expected])


def test_precedence():
    old, link = np.array([[0.5, 0.25, 0.0]]), np.zeros((1, 3, 3))

    def after(write):
        return dnc.link_and_precedence(link, old, np.array([write]))[1]

    np.testing.assert_array_equal(after([0.0, 0.0, 0.0]), old)  # no write keeps it
    np.testing.assert_array_equal(after([0.0, 0.0, 1.0]), [[0.0, 0.0, 1.0]])
    np.testing.assert_allclose(after([0.0, 0.2, 0.2]), [[0.3, 0.35, 0.2]])


@pytest.mark.parametrize(
    ("mode", "before", "after"),
    [(0, 1, 0), (1, 2, 3), (2, 1, 1), (3, 0, 1), (4, 3, 2)],
)
def test_read_modes_are_ordered_backward_content_forward(mode, before, after):
    link, _ = scripted_link()
    content = np.eye(4)[[1]]
    # The other four roads from `before` lead to another slot or to none.
    weights = dnc.read_weights(content, link, np.eye(4)[[before]], np.eye(5)[[mode]])
    np.testing.assert_array_equal(weights, np.eye(4)[[after]])


def test_read_heads_mix_their_own_modes():
    link, _ = scripted_link()
    modes = [[0.125, 0.0, 0.25, 0.5, 0.125], [0.0, 0.0, 1.0, 0.0, 0.0]]
    content = [[0.0, 0.0, 0.5, 0.5], [0.1, 0.2, 0.3, 0.4]]
    before = [[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]
    weights = dnc.read_weights(content, link, before, modes)
    np.testing.assert_allclose(weights, [[0.0625, 0.25, 0.125, 0.125], content[1]])
