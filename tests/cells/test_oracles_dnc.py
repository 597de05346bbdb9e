"""Tests of the oracle of the whole DNC; the states are made so that the answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.oracle_weights import HEADS, assert_wired, dnc_numbers, random_dnc, weights_of_program
from oracles import dnc


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
    unchanged, _ = dnc.step(interface(add=(3.0, 3.0)), after)
    np.testing.assert_allclose(unchanged.memory, after.memory)
    np.testing.assert_allclose(unchanged.link, after.link)
    np.testing.assert_allclose(unchanged.precedence, after.precedence)


def dnc_program(rows, slots, **state):
    """Runs interface rows of one read and one write head through the whole machine."""
    weights = weights_of_program(rows, reads=2, layer="interface")
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
    unfreed = dnc_program([*rows[:3], store(ITEMS[2])], slots=2)
    np.testing.assert_allclose(unfreed["usage"][3], [1.0, 1.0], atol=1e-4)
    np.testing.assert_allclose(unfreed["memory"][-1], ITEMS[:2], atol=1e-4)  # nothing was free


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
    weights = weights_of_program([store((500.0, -1.0), read_key=(1.0, 0.0))] * 25, 2, "interface")
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
    uninterrupted = dnc.run(weights, inputs, 2, 2, num_slots=4)
    left = dnc.run(weights, inputs[:2], 2, 2, num_slots=4)
    start = dnc.State(*(left[name][-1] for name in dnc.State._fields))
    rest = dnc.run(weights, inputs[2:], 2, 2, 4, initial_states=left["state"], start=start)
    for name in ("outputs", *dnc.State._fields):
        np.testing.assert_allclose(rest[name], uninterrupted[name][2:], rtol=1e-6, atol=1e-12)


def test_dnc_clips_the_controllers_states_that_it_is_given():
    weights = weights_of_program([interface()], 2, "interface")
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
        retention = np.prod(1 - now["free_gate"][:, None] * before["read_weights"], axis=0)
        np.testing.assert_allclose(
            now["usage"], (1 - (1 - before["usage"]) * unwritten) * retention
        )
        g_a, w = now["allocation_gate"][:, None], now["write_weights"]
        mixed = g_a * now["allocation"] + (1 - g_a) * now["content_weights"][num_read:]
        np.testing.assert_allclose(w, now["write_gate"][:, None] * mixed)
        link = (1 - w[:, :, None] - w[:, None]) * before["link"]
        link += np.einsum("hi,hj->hij", w, before["precedence"])
        link *= 1 - np.eye(4)
        np.testing.assert_allclose(now["link"], link, atol=1e-15)
        modes = now["read_modes"]
        addressed = np.einsum(
            "rh,hji,rj->ri", modes[:, :num_write], link, before["read_weights"]
        ) + np.einsum("rh,hij,rj->ri", modes[:, num_write + 1 :], link, before["read_weights"])
        addressed += modes[:, num_write, None] * now["content_weights"][:num_read]
        np.testing.assert_allclose(now["read_weights"], addressed)
