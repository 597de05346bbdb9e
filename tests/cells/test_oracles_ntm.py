"""Tests of the oracle of the NTM; the states are made so that the answer is known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.oracle_weights import HEADS, assert_wired, random_ntm, weights_of_program
from oracles import ntm
from oracles.addressing import softmax


def ntm_head(key=(0.0, 0.0), strength=0.0, gate=-50.0, shift=0, sharpening=50.0, taps=3):
    """The numbers of one head, before activation: by default it stays where it is."""
    return [*key, strength, gate, *(100.0 * np.eye(taps)[shift + taps // 2]), sharpening]


def ntm_state(memory, read_weights, write_weights):
    memory = np.array(memory, dtype=float)
    reads = np.zeros((len(read_weights), memory.shape[1]))
    return ntm.State(memory, np.array(read_weights), np.array(write_weights), reads)


KEEP = [-50.0, -50.0, 0.0, 0.0]  # erase nothing, add nothing, W = 2


def test_ntm_numbers_are_cut_in_order_clipped_and_activated():
    log3 = math.log(3.0)
    read = [0.5, -0.5, log3, log3, 0.0, 0.0, math.log(2.0), log3]
    write = [1000.0, 0.0, 1000.0, -1000.0, 0.0, 1000.0, 0.0, 0.0]
    vectors = [log3, -1000.0, 0.3, -1000.0]
    heads, erase, add = ntm.split(np.array(read + write + vectors), 1, 1, width=2)
    np.testing.assert_allclose(heads[0].key, np.tanh([0.5, -0.5]))
    assert heads[0].strength == pytest.approx(math.log(4.0))
    assert heads[0].gate == pytest.approx(0.75)
    np.testing.assert_allclose(heads[0].shift, [0.25, 0.25, 0.5])
    assert heads[0].sharpening == pytest.approx(1.0 + math.log(4.0))
    assert heads[1].strength == pytest.approx(20.0)
    assert heads[1].gate == pytest.approx(1.0 / (1.0 + math.exp(20.0)))
    np.testing.assert_allclose(heads[1].shift, softmax([0.0, 20.0, 0.0]))
    np.testing.assert_allclose(erase, [[0.75, 1.0 / (1.0 + math.exp(20.0))]])
    np.testing.assert_allclose(add, [[math.tanh(0.3), -math.tanh(20.0)]])


def test_ntm_vectors_of_two_write_heads_lie_head_by_head():
    raw = np.zeros(3 * 7 + 4)  # W = 1, R = 1, H = 2
    raw[-4:] = [50.0, 0.1, -50.0, 0.2]
    heads, erase, add = ntm.split(raw, 1, 2, width=1)
    assert len(heads) == 3
    np.testing.assert_allclose(erase, [[1.0], [0.0]], atol=1e-8)
    np.testing.assert_allclose(add, np.tanh([[0.1], [0.2]]))


def test_ntm_content_is_by_direction_and_not_by_size():
    memory = [[5.0, 0.0], [0.0, 0.1], [-3.0, 0.0]]
    weights = ntm.content_address(math.log(2.0), [2.0, 0.0], memory)
    np.testing.assert_allclose(weights, np.array([2.0, 1.0, 0.5]) / 3.5)  # cosines 1, 0, -1
    one_hot = ntm.content_address(100.0, [0.0, 3.0], memory)
    np.testing.assert_allclose(one_hot, np.eye(3)[1], atol=1e-12)


def test_ntm_content_of_zero_rows_is_uniform_and_of_tiny_ones_is_not():
    np.testing.assert_array_equal(
        ntm.content_address(9.0, [1.0, 2.0], np.zeros((4, 2))), [0.25] * 4
    )
    np.testing.assert_array_equal(ntm.content_address(9.0, [0.0, 0.0], np.ones((4, 2))), [0.25] * 4)
    tiny = ntm.content_address(1.0, [1.0, 0.0], [[1e-6, 0.0], [0.0, 0.0]])
    assert tiny[0] == pytest.approx(1.0 / (1.0 + math.exp(-1.0 / 1.01)))


@pytest.mark.parametrize(("shift", "slot"), [(1, 2), (0, 1), (-1, 0)])
def test_ntm_shift_moves_each_head_from_its_own_weights(shift, slot):
    state = ntm_state(np.zeros((4, 2)), [np.eye(4)[1]], [np.eye(4)[3]])
    raw = ntm_head(shift=shift) + ntm_head(shift=1) + KEEP
    after, quantities = ntm.step(np.array(raw), state)
    np.testing.assert_allclose(after.read_weights, [np.eye(4)[slot]], atol=1e-6)
    np.testing.assert_allclose(after.write_weights, [np.eye(4)[0]], atol=1e-6)  # round the end
    np.testing.assert_allclose(quantities["sharpening"], [21.0, 21.0])
    np.testing.assert_allclose(quantities["interpolation_gate"], [0.0, 0.0], atol=1e-8)
    np.testing.assert_allclose(quantities["shift_kernel"][1], [0, 0, 1], atol=1e-8)


def test_ntm_wide_shift_moves_two_slots():
    state = ntm_state(np.zeros((5, 2)), [np.eye(5)[1]], [np.eye(5)[4]])
    raw = ntm_head(shift=2, taps=5) + ntm_head(shift=-2, taps=5) + KEEP
    after, _ = ntm.step(np.array(raw), state)
    np.testing.assert_allclose(after.read_weights, [np.eye(5)[3]], atol=1e-6)
    np.testing.assert_allclose(after.write_weights, [np.eye(5)[2]], atol=1e-6)


def test_ntm_addresses_by_content_then_gate_then_shift_then_sharpening():
    memory = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]
    half = math.log(math.expm1(math.log(2.0)))  # softplus of it is log 2
    shift = np.log([0.2, 0.3, 0.5])
    head = [50.0, 0.0, half, -math.log(3.0), *shift, half]  # gate 1/4, gamma 1 + log 2
    state = ntm_state(memory, [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]])
    after, quantities = ntm.step(np.array(head + ntm_head() + KEEP), state)
    content = np.array([4.0, 2.0, 1.0]) / 7.0
    np.testing.assert_allclose(quantities["content_weights"][0], content)
    a, b, c = 0.25 * content + 0.75 * np.array([0.0, 0.0, 1.0])
    shifted = np.array(
        [0.2 * b + 0.3 * a + 0.5 * c, 0.2 * c + 0.3 * b + 0.5 * a, 0.2 * a + 0.3 * c + 0.5 * b]
    )
    sharp = shifted ** (1.0 + math.log(2.0))
    np.testing.assert_allclose(after.read_weights[0], sharp / sharp.sum())


def test_ntm_reads_the_memory_before_the_write():
    state = ntm_state([[0.5, 0.25], [9.0, 9.0]], [[1.0, 0.0]], [[1.0, 0.0]])
    raw = ntm_head() + ntm_head() + [50.0, 50.0, 50.0, 0.0]
    after, _ = ntm.step(np.array(raw), state)
    np.testing.assert_allclose(after.reads, [[0.5, 0.25]], atol=1e-6)
    np.testing.assert_allclose(after.memory, [[1.0, 0.0], [9.0, 9.0]], atol=1e-6)
    second, _ = ntm.step(np.array(raw), after)
    np.testing.assert_allclose(second.reads, [[1.0, 0.0]], atol=1e-6)


def test_every_head_erases_before_any_head_adds():
    arguments = {
        "memory": [[8.0, 8.0], [2.0, 2.0]],
        "write_weights": [[0.5, 0.0], [1.0, 0.0]],
        "erase": [[1.0, 0.5], [0.5, 0.0]],
        "add": [[2.0, 4.0], [10.0, 0.0]],
    }
    # 8 * (1 - 0.5) * (1 - 0.5) + 0.5 * 2 + 10; were the heads to write one after the
    # other, the second would also halve the first one's 1.
    expected = [[13.0, 8.0 * 0.75 + 2.0], [2.0, 2.0]]
    np.testing.assert_allclose(ntm.erase_and_add(**arguments), expected)
    swapped = {name: value[::-1] for name, value in arguments.items() if name != "memory"}
    np.testing.assert_allclose(ntm.erase_and_add(arguments["memory"], **swapped), expected)


def test_reading_is_a_weighted_sum():
    np.testing.assert_allclose(ntm.read([[1.0, 2.0], [3.0, 5.0]], [0.25, 0.5]), [1.75, 3.0])


def test_ntm_copies_by_hand_made_head_numbers():
    items = np.array([[0.5, -0.25], [-0.75, 0.5], [0.125, 0.875]])
    still, walk = ntm_head(), ntm_head(shift=1)
    store = [still + walk + [50.0, 50.0, *np.arctanh(item)] for item in items]
    recall = [walk + still + KEEP] * 3
    weights = {
        **weights_of_program(store + recall, reads=2, layer="head"),
        "initial_memory": np.full((6, 2), 1e-6),
        "initial_weights": 1000.0 * np.eye(6)[[5, 5]],  # both heads before slot 0
        "initial_reads": np.array([[0.3, 0.4]]),
    }
    result = ntm.run(weights, np.eye(6), num_read=1, num_write=1, unit="gru")
    np.testing.assert_allclose(result["outputs"][3:], items, atol=1e-5)
    np.testing.assert_allclose(result["outputs"][:3], np.zeros((3, 2)), atol=1e-5)
    written = np.eye(6)[[0, 1, 2, 2, 2, 2]][:, None]
    np.testing.assert_allclose(result["write_weights"], written, atol=1e-5)
    read = np.eye(6)[[5, 5, 5, 0, 1, 2]][:, None]
    np.testing.assert_allclose(result["read_weights"], read, atol=1e-5)
    np.testing.assert_allclose(result["memory"][-1][:3], items, atol=1e-5)


def test_ntm_begins_with_what_it_learnt():
    rng = np.random.default_rng(0)
    weights = random_ntm(rng, 2, 1)
    state = ntm.initial_state(weights, 2)
    np.testing.assert_array_equal(state.memory, weights["initial_memory"])
    logits = np.exp(weights["initial_weights"])
    expected = logits / logits.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(state.read_weights, expected[:2])
    np.testing.assert_allclose(state.write_weights, expected[2:])
    np.testing.assert_allclose(state.reads, np.tanh(weights["initial_reads"]))


@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_ntm_is_wired_to_its_controller(num_read, num_write):
    rng = np.random.default_rng(1)
    weights, inputs = random_ntm(rng, num_read, num_write), rng.normal(size=(4, 2))
    result = ntm.run(weights, inputs, num_read, num_write)
    assert_wired(weights, inputs, result, np.tanh(weights["initial_reads"]).ravel())


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_ntm_invariants(num_read, num_write, scale):
    rng = np.random.default_rng(2)
    weights = random_ntm(rng, num_read, num_write, scale=scale)
    result = ntm.run(weights, rng.normal(size=(8, 2)), num_read, num_write)
    heads = num_read + num_write
    shapes = {
        "outputs": (8, 4),
        "memory": (8, 5, 3),
        "read_weights": (8, num_read, 5),
        "write_weights": (8, num_write, 5),
        "content_weights": (8, heads, 5),
        "interpolation_gate": (8, heads),
        "shift_kernel": (8, heads, 3),
        "sharpening": (8, heads),
        "reads": (8, num_read, 3),
        "erase": (8, num_write, 3),
        "add": (8, num_write, 3),
    }
    assert {name: result[name].shape for name in shapes} == shapes
    assert set(result) == {*shapes, "state"}
    for name in ("read_weights", "write_weights", "content_weights", "shift_kernel"):
        assert (result[name] >= 0.0).all()
        np.testing.assert_allclose(result[name].sum(axis=-1), 1.0)
    # The memory is the one before, erased and added to; the reads are of the one before.
    before = np.array([weights["initial_memory"], *result["memory"][:-1]])
    written = np.einsum("lhn,lhw->lhnw", result["write_weights"], result["erase"])
    added = np.einsum("lhn,lhw->lnw", result["write_weights"], result["add"])
    np.testing.assert_allclose(result["memory"], before * np.prod(1 - written, axis=1) + added)
    read = np.einsum("lrn,lnw->lrw", result["read_weights"], before)
    np.testing.assert_allclose(result["reads"], read)


def test_ntm_can_be_stopped_and_taken_up_again():
    rng = np.random.default_rng(3)
    weights, inputs = random_ntm(rng, 1, 1), rng.normal(size=(3, 2))
    uninterrupted = ntm.run(weights, inputs, 1, 1)
    start = ntm.run(weights, inputs[:2], 1, 1)
    rest = {
        **weights,
        "initial_memory": start["memory"][-1],
        "initial_weights": np.log(np.r_[start["read_weights"][-1], start["write_weights"][-1]]),
        "initial_reads": np.arctanh(np.clip(start["reads"][-1], -0.99, 0.99)),
    }
    assert np.abs(start["reads"][-1]).max() < 0.99
    end = ntm.run(rest, inputs[2:], 1, 1, initial_states=start["state"])
    np.testing.assert_allclose(end["outputs"][0], uninterrupted["outputs"][2])


def test_ntm_heads_must_fit_the_weights():
    rng = np.random.default_rng(4)
    with pytest.raises(ValueError, match="initial_weights"):
        ntm.run(random_ntm(rng, 2, 1), np.zeros((1, 2)), 1, 1)
