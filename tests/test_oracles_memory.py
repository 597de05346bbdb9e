"""Tests of the oracles of the NTM, the DNC and the memory-augmented decoder.

The states are constructed so that the answer is known by hand.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import dnc, mad, ntm, recurrent
from oracles.addressing import softmax

HEADS = [(1, 1), (2, 1), (1, 2), (2, 3), (3, 2)]


def random_unit(rng, inputs, units, gates):
    return {
        "kernel": rng.normal(size=(inputs, gates * units)),
        "recurrent_kernel": rng.normal(size=(units, gates * units)),
        "bias": rng.normal(size=gates * units),
    }


def programmed_controller(steps, reads):
    """A GRU that answers the input e_t by the state e_t, whatever it has read before.

    Row t of a head or interface layer is then what the memory is told at step t.
    """
    kernel = np.zeros((steps + reads, 3 * steps))
    kernel[:steps, 2 * steps :] = 100.0 * np.eye(steps)
    bias = np.zeros(3 * steps)
    bias[:steps] = -100.0  # the update gate is shut: all new
    return {"kernel": kernel, "recurrent_kernel": np.zeros((steps, 3 * steps)), "bias": bias}


def programmed(rows, reads, layer):
    """Weights that say `rows` [L, P] to the memory and put out what it reads."""
    rows = np.asarray(rows, dtype=float)
    steps, numbers = rows.shape
    return {
        "layers": [programmed_controller(steps, reads)],
        f"{layer}_kernel": rows,
        f"{layer}_bias": np.zeros(numbers),
        "output_kernel": np.concatenate([np.zeros((steps, reads)), np.eye(reads)]),
        "output_bias": np.zeros(reads),
    }


def random_controller(rng, inputs, units, reads, numbers, layer, scale=1.0):
    return {
        "layers": [random_unit(rng, inputs + reads, units, 4), random_unit(rng, units, units, 4)],
        f"{layer}_kernel": scale * rng.normal(size=(units, numbers)),
        f"{layer}_bias": scale * rng.normal(size=numbers),
        "output_kernel": rng.normal(size=(units + reads, units)),
        "output_bias": rng.normal(size=units),
    }


def assert_wired(weights, inputs, result, before):
    """The controller read [x; r_{t-1}], and the output is of [h_t; r_t]."""
    states = [recurrent.zero_state("lstm", layer) for layer in weights["layers"]]
    for t, x in enumerate(inputs):
        h, states = recurrent.stack_step("lstm", weights["layers"], np.r_[x, before], states)
        before = np.concatenate(list(result["reads"][t]))
        expected = np.r_[h, before] @ weights["output_kernel"] + weights["output_bias"]
        np.testing.assert_allclose(result["outputs"][t], expected)
    np.testing.assert_allclose(result["state"], states)


# --- ntm ---------------------------------------------------------------------------------


def ntm_head(key=(0.0, 0.0), strength=0.0, gate=-50.0, shift=0, sharpening=50.0, taps=3):
    """The numbers of one head, before activation: by default it stays where it is."""
    return [*key, strength, gate, *(100.0 * np.eye(taps)[shift + taps // 2]), sharpening]


def ntm_state(memory, read_weights, write_weights):
    memory = np.array(memory, dtype=float)
    reads = np.zeros((len(read_weights), memory.shape[1]))
    return ntm.State(memory, np.array(read_weights), np.array(write_weights), reads)


KEEP = [-50.0, -50.0, 0.0, 0.0]  # erase nothing, add nothing, W = 2


def random_ntm(rng, num_read, num_write, slots=5, width=3, inputs=2, taps=3, scale=1.0):
    heads = num_read + num_write
    numbers = heads * (width + taps + 3) + 2 * num_write * width
    return {
        **random_controller(rng, inputs, 4, num_read * width, numbers, "head", scale),
        "initial_memory": rng.normal(size=(slots, width)),
        "initial_weights": rng.normal(size=(heads, slots)),
        "initial_reads": rng.normal(size=(num_read, width)),
    }


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
    again, _ = ntm.step(np.array(raw), after)
    np.testing.assert_allclose(again.reads, [[1.0, 0.0]], atol=1e-6)


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
        **programmed(store + recall, reads=2, layer="head"),
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
    whole = ntm.run(weights, inputs, 1, 1)
    start = ntm.run(weights, inputs[:2], 1, 1)
    rest = {
        **weights,
        "initial_memory": start["memory"][-1],
        "initial_weights": np.log(np.r_[start["read_weights"][-1], start["write_weights"][-1]]),
        "initial_reads": np.arctanh(np.clip(start["reads"][-1], -0.99, 0.99)),
    }
    assert np.abs(start["reads"][-1]).max() < 0.99
    end = ntm.run(rest, inputs[2:], 1, 1, initial_states=start["state"])
    np.testing.assert_allclose(end["outputs"][0], whole["outputs"][2])


def test_ntm_heads_must_fit_the_weights():
    rng = np.random.default_rng(4)
    with pytest.raises(ValueError, match="initial_weights"):
        ntm.run(random_ntm(rng, 2, 1), np.zeros((1, 2)), 1, 1)


# --- dnc ---------------------------------------------------------------------------------


def dnc_numbers(num_read, num_write, width):
    return num_read * (width + 3 + 2 * num_write) + num_write * (3 * width + 3)


def random_dnc(rng, num_read, num_write, width=3, inputs=2, scale=1.0):
    numbers = dnc_numbers(num_read, num_write, width)
    return random_controller(rng, inputs, 4, num_read * width, numbers, "interface", scale)


def interface(
    read_key=(0.0, 0.0),
    write_key=(0.0, 0.0),
    add=(0.0, 0.0),
    erase=50.0,
    free=-50.0,
    allocate=50.0,
    write=-50.0,
    mode=1,
    read_strength=99.0,
    write_strength=99.0,
):
    """The numbers of a DNC of one read and one write head before activation, W = 2."""
    modes = 100.0 * np.eye(3)[mode]  # backward, content, forward
    heads = [*read_key, read_strength, *write_key, write_strength, erase, erase, *add]
    return np.array([*heads, free, allocate, write, *modes])


def test_dnc_numbers_are_cut_in_order_and_activated():
    num_read, num_write, width = 2, 3, 2
    numbers = dnc_numbers(num_read, num_write, width)
    raw = np.arange(numbers) / 10.0
    face = dnc.split(raw, num_read, num_write)
    bounds = np.cumsum([4, 2, 6, 3, 6, 6, 2, 3, 3, 14])
    assert bounds[-1] == numbers
    keys, strengths, write_keys, write_strengths, erase, add, free, allocate, write, modes = (
        np.split(raw, bounds[:-1])
    )
    np.testing.assert_array_equal(face.read_keys, keys.reshape(2, 2))
    np.testing.assert_allclose(face.read_strengths, 1 + np.log1p(np.exp(strengths)))
    np.testing.assert_array_equal(face.write_keys, write_keys.reshape(3, 2))
    np.testing.assert_allclose(face.write_strengths, 1 + np.log1p(np.exp(write_strengths)))
    np.testing.assert_allclose(face.erase, 1 / (1 + np.exp(-erase.reshape(3, 2))))
    np.testing.assert_array_equal(face.add, add.reshape(3, 2))  # linear, not clipped
    np.testing.assert_allclose(face.free_gates, 1 / (1 + np.exp(-free)))
    np.testing.assert_allclose(face.allocation_gates, 1 / (1 + np.exp(-allocate)))
    np.testing.assert_allclose(face.write_gates, 1 / (1 + np.exp(-write)))
    exponentials = np.exp(modes.reshape(2, 7))
    np.testing.assert_allclose(
        face.read_modes, exponentials / exponentials.sum(axis=1, keepdims=True)
    )
    assert face.read_modes.shape == (2, 1 + 2 * num_write)


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
    kept = dnc.usage_after(usage, nothing, [0.0], [np.eye(3)[2]])
    np.testing.assert_allclose(kept, usage)
    # The slot was written before it is freed: nothing of the write is left.
    both = dnc.usage_after(usage, [np.eye(3)[1]], [1.0], [np.eye(3)[1]])
    np.testing.assert_allclose(both, [0.3, 0.0, 0.9])


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


def dnc_state(memory, usage):
    """A DNC of one read and one write head that has these slots, W = 2."""
    start = dnc.initial_state(len(memory), 2, 1, 1)
    return start._replace(memory=np.array(memory), usage=np.array(usage))


def test_dnc_gates_are_each_at_its_place():
    state = dnc_state([[0.0, 0.0], [4.0, 0.0], [0.0, -4.0]], usage=[0.0, 1.0, 1.0])
    add = (-3.0, 30.0)  # write vectors are linear and the memory is not clipped
    after, quantities = dnc.step(interface(add=add, write=50.0, read_key=add), state)
    np.testing.assert_allclose(after.write_weights, [np.eye(3)[0]], atol=1e-5)
    np.testing.assert_allclose(after.memory[0], add, rtol=1e-5)
    np.testing.assert_allclose(after.read_weights, [np.eye(3)[0]], atol=1e-5)
    np.testing.assert_allclose(after.reads, [add], rtol=1e-5)  # of the new memory
    assert quantities["write_gate"][0] == pytest.approx(1.0)
    assert quantities["allocation_gate"][0] == pytest.approx(1.0)
    assert quantities["free_gate"][0] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_array_equal(after.usage, state.usage)  # of the writes before this one
    # By content: the matching slot is erased and written over.
    over = interface(write_key=(1.0, 0.0), add=(7.0, 8.0), allocate=-50.0, write=50.0)
    after, quantities = dnc.step(over, after)
    np.testing.assert_allclose(after.usage, np.ones(3), atol=1e-5)
    np.testing.assert_allclose(after.write_weights, [np.eye(3)[1]], atol=1e-5)
    np.testing.assert_allclose(after.memory, [add, [7.0, 8.0], [0.0, -4.0]], atol=1e-3)
    assert quantities["allocation_gate"][0] == pytest.approx(0.0, abs=1e-12)
    # The address is of the memory before the write, not of what is being written.
    moved = interface(write_key=(7.0, 8.0), add=(-1.0, 0.0), allocate=-50.0, write=50.0)
    np.testing.assert_allclose(dnc.step(moved, after)[0].write_weights, [np.eye(3)[1]], atol=1e-5)
    # A write gate that is shut changes nothing.
    kept, _ = dnc.step(interface(add=(3.0, 3.0)), after)
    np.testing.assert_allclose(kept.memory, after.memory)
    np.testing.assert_allclose(kept.link, after.link)
    np.testing.assert_allclose(kept.precedence, after.precedence)


def dnc_program(rows, slots, **state):
    """Runs interface rows of one read and one write head through the whole machine."""
    weights = programmed(rows, reads=2, layer="interface")
    return dnc.run(weights, np.eye(len(rows)), 1, 1, num_slots=slots, unit="gru", **state)


ITEMS = np.array([[0.5, -3.0], [-0.75, 0.5], [2.0, 0.25]])


def store(item, **numbers):
    return interface(add=item, write=50.0, **numbers)


def test_dnc_recalls_in_order_along_the_link():
    rows = [store(item) for item in ITEMS]
    rows += [interface(read_key=ITEMS[0]), interface(mode=2), interface(mode=2)]
    rows += [interface(mode=0), interface(mode=0)]
    result = dnc_program(rows, slots=3)
    np.testing.assert_allclose(result["outputs"][3:], ITEMS[[0, 1, 2, 1, 0]], atol=1e-4)
    # The second of three free slots gets a millionth of the first write, the third a
    # millionth of that: the third is the freest one then.
    written = np.eye(3)[[0, 2, 1]][:, None]
    np.testing.assert_allclose(result["write_weights"][:3], written, atol=1e-4)
    usage = [[0, 0, 0], [1, 0, 0], [1, 0, 1], [1, 1, 1]]
    np.testing.assert_allclose(result["usage"][:4], usage, atol=1e-4)
    link = np.zeros((1, 3, 3))
    link[0, 2, 0] = link[0, 1, 2] = 1.0
    np.testing.assert_allclose(result["link"][-1], link, atol=1e-4)
    np.testing.assert_allclose(result["precedence"][-1], [np.eye(3)[1]], atol=1e-4)


def test_dnc_frees_what_was_read_and_writes_there():
    rows = [store(item) for item in ITEMS[:2]]
    rows += [interface(read_key=ITEMS[0]), store(ITEMS[2], free=50.0)]
    result = dnc_program(rows, slots=2)
    # The free gate of step 3 is on the reads of step 2, and its write is at the slot
    # that it has freed, whose old content it erases.
    np.testing.assert_allclose(result["usage"][2:], [[1.0, 1.0], [0.0, 1.0]], atol=1e-4)
    np.testing.assert_allclose(result["memory"][-1], ITEMS[[2, 1]], atol=1e-4)
    kept = dnc_program([*rows[:3], store(ITEMS[2])], slots=2)
    np.testing.assert_allclose(kept["usage"][3], [1.0, 1.0], atol=1e-4)
    np.testing.assert_allclose(kept["memory"][-1], ITEMS[:2], atol=1e-4)  # nothing was free


def test_two_write_heads_fill_two_free_slots():
    # R = 1, H = 2, W = 1; both heads allocate and write at once.
    raw = np.zeros(dnc_numbers(1, 2, 1))
    raw[6:8] = 50.0  # erase
    raw[8:10] = [3.0, -4.0]  # write vectors
    raw[11:15] = 50.0  # allocation and write gates
    after, quantities = dnc.step(raw, dnc.initial_state(3, 1, 1, 2))
    np.testing.assert_allclose(quantities["write_gate"], [1.0, 1.0])
    np.testing.assert_allclose(after.write_weights, np.eye(3)[[0, 2]], atol=1e-4)
    np.testing.assert_allclose(after.memory, [[3.0], [0.0], [-4.0]], atol=1e-4)
    np.testing.assert_allclose(after.precedence, np.eye(3)[[0, 2]], atol=1e-4)
    nothing, _ = dnc.step(np.full(len(raw), -50.0), after)
    np.testing.assert_allclose(nothing.usage, [1.0, 0.0, 1.0], atol=1e-4)


@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_dnc_is_wired_to_its_controller(num_read, num_write):
    rng = np.random.default_rng(7)
    weights, inputs = random_dnc(rng, num_read, num_write), rng.normal(size=(4, 2))
    result = dnc.run(weights, inputs, num_read, num_write, num_slots=4)
    assert np.abs(result["outputs"]).max() < 20.0
    assert_wired(weights, inputs, result, np.zeros(num_read * 3))


def test_dnc_clips_controller_and_output_and_not_the_memory():
    weights = programmed([store((500.0, -1.0), read_key=(1.0, 0.0))] * 25, 2, "interface")
    weights["output_bias"] = np.array([0.0, -100.0])
    unit = {"kernel": np.zeros((27, 100)), "recurrent_kernel": np.zeros((25, 100))}
    unit["bias"] = np.repeat([100.0, 100.0, 100.0, 0.0], 25)  # c grows by 1 a step
    weights["layers"] = [unit]
    weights["interface_kernel"] = weights["interface_kernel"] / 12.5  # h = 1/2, 25 times
    result = dnc.run(weights, np.zeros((25, 25)), 1, 1, num_slots=3)
    ((h, c),) = result["state"]
    np.testing.assert_allclose(c, np.full(25, 20.0))
    np.testing.assert_allclose(h, np.full(25, 0.5))
    assert result["memory"].max() > 100.0
    np.testing.assert_array_equal(result["outputs"][-1], [20.0, -20.0])


def test_dnc_can_be_stopped_and_taken_up_again():
    rng = np.random.default_rng(13)
    weights, inputs = random_dnc(rng, 2, 2), rng.normal(size=(4, 2))
    whole = dnc.run(weights, inputs, 2, 2, num_slots=4)
    left = dnc.run(weights, inputs[:2], 2, 2, num_slots=4)
    start = dnc.State(*(left[name][-1] for name in dnc.State._fields))
    rest = dnc.run(weights, inputs[2:], 2, 2, 4, initial_states=left["state"], start=start)
    for name in ("outputs", *dnc.State._fields):
        np.testing.assert_allclose(rest[name], whole[name][2:], rtol=1e-6, atol=1e-12)


def test_dnc_clips_the_controllers_states_that_it_is_given():
    weights = programmed([interface()], 2, "interface")
    weights["layers"][0]["bias"][0] = 100.0  # the GRU keeps its state
    start = [np.array([-70.0])]
    result = dnc.run(weights, np.zeros((1, 1)), 1, 1, 2, unit="gru", initial_states=start)
    np.testing.assert_allclose(result["state"], [[-20.0]])


@pytest.mark.parametrize("scale", [1.0, 10.0])
@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_dnc_invariants(num_read, num_write, scale):
    rng = np.random.default_rng(8)
    weights = random_dnc(rng, num_read, num_write, scale=scale)
    result = dnc.run(weights, rng.normal(size=(9, 2)), num_read, num_write, num_slots=4)
    shapes = {
        "outputs": (9, 4),
        "memory": (9, 4, 3),
        "usage": (9, 4),
        "link": (9, num_write, 4, 4),
        "precedence": (9, num_write, 4),
        "read_weights": (9, num_read, 4),
        "write_weights": (9, num_write, 4),
        "reads": (9, num_read, 3),
        "allocation": (9, num_write, 4),
        "content_weights": (9, num_read + num_write, 4),
        "allocation_gate": (9, num_write),
        "write_gate": (9, num_write),
        "free_gate": (9, num_read),
        "read_modes": (9, num_read, 1 + 2 * num_write),
    }
    assert {name: result[name].shape for name in shapes} == shapes
    assert set(result) == {*shapes, "state"}
    for name in ("read_modes", "content_weights"):
        np.testing.assert_allclose(result[name].sum(axis=-1), 1.0)
    for name in ("read_weights", "write_weights", "precedence", "allocation", "usage", "link"):
        assert result[name].min() >= -1e-12
        assert result[name].max() <= 1.0 + 1e-12
    for name in ("read_weights", "write_weights", "precedence", "allocation"):
        assert result[name].sum(axis=-1).max() <= 1.0 + 1e-12
    assert (result["write_weights"].sum(axis=-1) <= result["write_gate"] + 1e-12).all()
    link = result["link"]
    assert (np.einsum("lhnn->lhn", link) == 0.0).all()
    assert link.sum(axis=-1).max() <= 1.0 + 1e-12
    assert link.sum(axis=-2).max() <= 1.0 + 1e-12
    assert link.max() > 0.0
    np.testing.assert_allclose(
        result["reads"], np.einsum("lrn,lnw->lrw", result["read_weights"], result["memory"])
    )


@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_dnc_quantities_are_of_one_chain(num_read, num_write):
    rng = np.random.default_rng(9)
    weights = random_dnc(rng, num_read, num_write)
    result = dnc.run(weights, rng.normal(size=(5, 2)), num_read, num_write, num_slots=4)
    for t in range(1, 5):
        now = {name: value[t] for name, value in result.items() if name != "state"}
        before = {name: value[t - 1] for name, value in result.items() if name != "state"}
        unwritten = np.prod(1 - before["write_weights"], axis=0)
        kept = np.prod(1 - now["free_gate"][:, None] * before["read_weights"], axis=0)
        np.testing.assert_allclose(now["usage"], (1 - (1 - before["usage"]) * unwritten) * kept)
        g_a, w = now["allocation_gate"][:, None], now["write_weights"]
        mixed = g_a * now["allocation"] + (1 - g_a) * now["content_weights"][num_read:]
        np.testing.assert_allclose(w, now["write_gate"][:, None] * mixed)
        link = (1 - w[:, :, None] - w[:, None]) * before["link"]
        link += np.einsum("hi,hj->hij", w, before["precedence"])
        link *= 1 - np.eye(4)
        np.testing.assert_allclose(now["link"], link, atol=1e-15)
        modes = now["read_modes"]
        looked_at = np.einsum(
            "rh,hji,rj->ri", modes[:, :num_write], link, before["read_weights"]
        ) + np.einsum("rh,hij,rj->ri", modes[:, num_write + 1 :], link, before["read_weights"])
        looked_at += modes[:, num_write, None] * now["content_weights"][:num_read]
        np.testing.assert_allclose(now["read_weights"], looked_at)


# --- mad ---------------------------------------------------------------------------------


def random_mad(rng, addressing, num_read, num_write, width=2, embedding=2, annotation=3, units=4):
    reads = num_read * width
    if addressing == "ntm":
        weights = random_ntm(rng, num_read, num_write, slots=3, width=width)
    else:
        weights = random_dnc(rng, num_read, num_write, width=width)
    weights["layers"][0] = random_unit(rng, embedding + annotation + reads, units, 4)
    return {
        **weights,
        "memory_kernel": rng.normal(size=(annotation, units)),
        "attention_scale": 1.5,
        "output_kernel": rng.normal(size=(units + annotation + reads, units)),
    }


def lstm_states(rng, units=4):
    return [(rng.normal(size=units), rng.normal(size=units)) for _ in range(2)]


@pytest.mark.parametrize("addressing", ["ntm", "dnc"])
@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_mad_is_controller_attention_and_external_memory(addressing, num_read, num_write):
    rng = np.random.default_rng(10)
    weights = random_mad(rng, addressing, num_read, num_write)
    annotations, states = rng.normal(size=(5, 3)), lstm_states(rng)
    xs = rng.normal(size=(3, 2))
    result = mad.decode(
        weights, annotations, states, xs, num_read, num_write, addressing, num_slots=3
    )
    if addressing == "ntm":
        memory, layer, step = ntm.initial_state(weights, num_read), "head", ntm.step
    else:
        memory, layer, step = dnc.initial_state(3, 2, num_read, num_write), "interface", dnc.step
    context = np.zeros(3)
    for t, x in enumerate(xs):
        x = np.r_[x, context, memory.reads.flatten()]
        h, states = recurrent.stack_step("lstm", weights["layers"], x, states)
        scores = np.exp(1.5 * annotations @ weights["memory_kernel"] @ h)
        alignment = scores / scores.sum()
        context = alignment @ annotations
        memory, quantities = step(h @ weights[f"{layer}_kernel"] + weights[f"{layer}_bias"], memory)
        output = np.r_[h, context, memory.reads.flatten()] @ weights["output_kernel"]
        np.testing.assert_allclose(result["alignments"][t], alignment)
        np.testing.assert_allclose(result["contexts"][t], context)
        np.testing.assert_allclose(result["outputs"][t], output + weights["output_bias"])
        for name, value in quantities.items():
            np.testing.assert_allclose(result[name][t], value)
    np.testing.assert_allclose(result["state"], states)
    expected = {"outputs", "alignments", "contexts", "state", *quantities}
    assert set(result) == expected


def test_mad_dominating_score_picks_that_annotation():
    rng = np.random.default_rng(11)
    weights = random_mad(rng, "ntm", 1, 1)
    # A GRU whose update gate is open keeps h = 1, so the score is the key's sum.
    unit = {"kernel": np.zeros((7, 12)), "recurrent_kernel": np.zeros((4, 12))}
    weights["layers"] = [{**unit, "bias": np.repeat([100.0, 0.0, 0.0], 4)}]
    weights["attention_scale"] = 1e4
    annotations = rng.normal(size=(5, 3))
    best = int(np.argmax((annotations @ weights["memory_kernel"]).sum(axis=1)))
    result = mad.decode(
        weights, annotations, [np.ones(4)], rng.normal(size=(2, 2)), 1, 1, unit="gru"
    )
    np.testing.assert_allclose(result["alignments"], np.eye(5)[[best, best]], atol=1e-12)
    np.testing.assert_allclose(result["contexts"], annotations[[best, best]])


def test_mad_refuses_an_addressing_it_does_not_know():
    rng = np.random.default_rng(12)
    with pytest.raises(ValueError, match="'ntm' or 'dnc'"):
        mad.decode(random_mad(rng, "ntm", 1, 1), np.ones((2, 3)), lstm_states(rng), [], 1, 1, "lru")
