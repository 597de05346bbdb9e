"""Tests of the oracle of the repaired DNC by the properties that its equations have."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers.oracle_weights import (
    HEADS,
    dnc_numbers,
    random_dnc,
    random_repaired_dnc,
    repaired_interface,
)
from oracles import dnc, dnc_repairs
from oracles.addressing import softmax
from oracles.dnc_interface import Options, interface_size, split
from oracles.recurrent import sigmoid

WIDTH, SLOTS = 3, 4
EVERYTHING = Options(masking=True, mask_floor=0.1, deallocation=True, sharp_links=True)
SEVERAL = [
    EVERYTHING,
    Options(masking=True),
    Options(deallocation=True),
    Options(sharp_links=True),
    Options(content_only=True),
    EVERYTHING._replace(sharp_links=False, content_only=True),
]


def random_state(rng, num_read, num_write, options=dnc_repairs.PLAIN):
    """A state of the middle of a sequence."""
    weights = random_repaired_dnc(rng, num_read, num_write, options)
    del weights["interface_gain"]
    inputs = rng.normal(size=(5, 2))
    result = dnc_repairs.run(weights, inputs, num_read, num_write, SLOTS, options=options)
    return dnc.State(*(result[name][-1] for name in dnc.State._fields))


def assert_same(result, expected):
    assert set(result) == set(expected)
    for name, value in expected.items():
        # NumPy may sum the same numbers in another order where they lie elsewhere in memory.
        np.testing.assert_allclose(result[name], value, rtol=1e-12, atol=1e-14, err_msg=name)


@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_without_options_it_is_the_dnc(num_read, num_write):
    rng = np.random.default_rng(1)
    weights, inputs = random_dnc(rng, num_read, num_write), rng.normal(size=(6, 2))
    plain = dnc.run(weights, inputs, num_read, num_write, SLOTS)
    assert_same(dnc_repairs.run(weights, inputs, num_read, num_write, SLOTS), plain)
    one_hop = Options(hops=1)
    result = dnc_repairs.run(weights, inputs, num_read, num_write, SLOTS, options=one_hop)
    assert_same(result, plain)
    state = random_state(rng, num_read, num_write)
    raw = rng.normal(size=dnc_numbers(num_read, num_write, WIDTH))
    expected, quantities = dnc.step(raw, state)
    after, again = dnc_repairs.step(raw, state)
    assert_same(after._asdict(), expected._asdict())
    assert_same(again, quantities)


def test_interface_sizes_are_those_of_the_papers():
    for r, w in itertools.product((1, 4), (1, 64)):
        graves = r * w + 3 * w + 5 * r + 3
        assert interface_size(w, r, 1) == graves
        msd = Options(masking=True, deallocation=True, sharp_links=True)
        assert interface_size(w, r, 1, msd) == graves + (r + 1) * w + 2 * r
        content_only = Options(content_only=True)
        assert interface_size(w, r, 1, content_only) == r * w + 3 * w + 2 * r + 3
    for (r, h), options in itertools.product(HEADS, SEVERAL):
        assert dnc_repairs.slot_width(interface_size(7, r, h, options), r, h, options) == 7
        with pytest.raises(ValueError, match="fit no width"):
            dnc_repairs.slot_width(interface_size(7, r, h, options) + 1, r, h, options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(content_only=True, sharp_links=True), "no links"),
        (Options(hops=0), "hops 0"),
        (Options(masking=True, mask_floor=1.5), "mask_floor 1.5"),
    ],
)
def test_options_must_fit_each_other(options, message):
    with pytest.raises(ValueError, match=message):
        interface_size(2, 1, 1, options)


def test_added_parts_lie_at_the_end():
    r, h = 2, 3
    rng = np.random.default_rng(2)
    raw = rng.normal(size=interface_size(WIDTH, r, h, EVERYTHING))
    interface = split(raw, r, h, EVERYTHING)
    graves = dnc_numbers(r, h, WIDTH)
    expected = dnc.split(raw[:graves], r, h)
    for name in dnc.Interface._fields:
        np.testing.assert_array_equal(getattr(interface, name), getattr(expected, name))
    read_masks, write_masks, s_f, s_b = np.split(raw[graves:], np.cumsum([6, 9, 2]))
    mask = 0.1 + 0.9 / (1.0 + np.exp(-read_masks.reshape(r, WIDTH)))
    np.testing.assert_allclose(interface.read_masks, mask)
    mask = 0.1 + 0.9 / (1.0 + np.exp(-write_masks.reshape(h, WIDTH)))
    np.testing.assert_allclose(interface.write_masks, mask)
    np.testing.assert_allclose(interface.forward_sharpness, 1.0 + np.log1p(np.exp(s_f)))
    np.testing.assert_allclose(interface.backward_sharpness, 1.0 + np.log1p(np.exp(s_b)))
    # Without read modes the rest moves up.
    content_only = EVERYTHING._replace(sharp_links=False, content_only=True)
    modes = r * (1 + 2 * h)
    shorter = np.concatenate([raw[: graves - modes], raw[graves : graves + 15]])
    interface = split(shorter, r, h, content_only)
    assert interface.read_modes is None
    np.testing.assert_allclose(interface.write_masks, mask)
    np.testing.assert_array_equal(interface.write_gates, expected.write_gates)


@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_masks_of_ones_are_no_masks(num_read, num_write):
    rng = np.random.default_rng(3)
    masking = Options(masking=True)
    state = random_state(rng, num_read, num_write)
    raw = rng.normal(size=dnc_numbers(num_read, num_write, WIDTH))
    masks = np.zeros((num_read + num_write) * WIDTH)
    expected, _ = dnc.step(raw, state)
    after, _ = dnc_repairs.step(np.concatenate([raw, masks + 50.0]), state, masking)
    assert_same(after._asdict(), expected._asdict())
    shut = np.concatenate([raw, masks - 50.0])
    after, _ = dnc_repairs.step(shut, state, masking._replace(mask_floor=1.0))
    assert_same(after._asdict(), expected._asdict())
    _, quantities = dnc_repairs.step(shut, state, masking)  # nothing to tell the slots apart
    np.testing.assert_allclose(quantities["content_weights"], 1.0 / SLOTS)


def test_masks_hide_components_of_their_own_head():
    memory = np.array([[1.0, 5.0, 0.0], [0.0, 5.0, 1.0], [1.0, -9.0, 0.0], [-1.0, 0.0, 0.0]])
    masks = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    keys = np.array([[3.0, -4.0, 0.0], [0.0, -2.0, 7.0]])
    weights = dnc_repairs.content(keys, [50.0, 50.0], memory, masks)
    np.testing.assert_allclose(weights[0], [0.5, 0.0, 0.5, 0.0], atol=1e-6)
    np.testing.assert_allclose(weights[1], np.eye(SLOTS)[2], atol=1e-6)
    # A mask scales key and slots alike.
    masks = np.array([[0.5, 2.0, 0.25], [1.0, 0.3, 2.0]])
    for key, mask, row in zip(keys, masks, dnc_repairs.content(keys, [2.0, 3.0], memory, masks)):
        beta = 2.0 if key[0] else 3.0
        lengths = np.linalg.norm(memory * mask, axis=1) * np.linalg.norm(key * mask)
        expected = softmax(beta * ((memory * mask**2) @ key) / lengths)
        np.testing.assert_allclose(row, expected, rtol=1e-4)


@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_nothing_is_taken_out_while_the_free_gates_are_shut(num_read, num_write):
    rng = np.random.default_rng(4)
    options = Options(deallocation=True)
    state = random_state(rng, num_read, num_write)
    raw = rng.normal(size=dnc_numbers(num_read, num_write, WIDTH))
    free = num_read * (WIDTH + 1) + num_write * (3 * WIDTH + 1)  # what lies before them
    raw[free : free + num_read] = -1000.0
    after, quantities = dnc_repairs.step(raw, state, options)
    np.testing.assert_array_equal(quantities["free_gate"], np.zeros(num_read))
    np.testing.assert_array_equal(quantities.pop("retention"), np.ones(SLOTS))
    expected, plain = dnc.step(raw, state)
    assert_same(after._asdict(), expected._asdict())
    assert_same(quantities, plain)


def test_freed_slots_are_emptied_after_the_write_lookup():
    options = Options(deallocation=True)
    memory = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 4.0, 4.0]])
    state = dnc.initial_state(3, WIDTH, 2, 1)
    read_weights = np.array([[1.0, 0.0, 0.0], [0.5, 0.25, 0.0]])
    state = state._replace(memory=memory, read_weights=read_weights, usage=np.ones(3))
    parts = {"free_gates": [100.0, 0.0], "write_keys": [1.0, 0.0, 2.0]}
    parts.update(write_strengths=100.0, allocation_gates=-100.0, write_gates=100.0, erase=-100.0)
    raw = repaired_interface(2, 1, options, add=[0.0, 7.0, 0.0], **parts)
    after, quantities = dnc_repairs.step(raw, state, options)
    psi = np.array([0.0, 1.0 - 0.5 * 0.25, 1.0])
    np.testing.assert_allclose(quantities["retention"], psi)
    np.testing.assert_allclose(after.usage, psi)
    # The lookup finds slot 0 as it was, and the write stays in it.
    np.testing.assert_allclose(after.write_weights, np.eye(3)[:1], atol=1e-9)
    expected = memory * psi[:, None] + np.array([[0.0, 7.0, 0.0], [0.0] * 3, [0.0] * 3])
    np.testing.assert_allclose(after.memory, expected, atol=1e-8)


def test_sharpness_one_keeps_a_normalised_address():
    rng = np.random.default_rng(5)
    d = softmax(rng.normal(size=9))
    np.testing.assert_allclose(dnc_repairs.sharpen_link(d, 1.0), d, atol=1e-5)
    for s in (1.0, 2.5, 8.0):
        power = (d + 1e-6) ** s
        np.testing.assert_allclose(dnc_repairs.sharpen_link(d, s), power / power.sum())
    peak = dnc_repairs.sharpen_link(0.01 * d, 200.0)
    np.testing.assert_allclose(peak, np.eye(9)[d.argmax()], atol=1e-9)
    np.testing.assert_allclose(dnc_repairs.sharpen_link(np.zeros(4), 7.0), [0.25] * 4)


@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_sharp_links_move_distributions(num_read, num_write):
    rng = np.random.default_rng(6)
    options = Options(sharp_links=True)
    state = random_state(rng, num_read, num_write, options)
    raw = rng.normal(size=interface_size(WIDTH, num_read, num_write, options))
    interface = split(raw, num_read, num_write, options)
    after, quantities = dnc_repairs.step(raw, state, options)
    np.testing.assert_allclose(after.read_weights.sum(axis=1), 1.0)
    for head in range(num_read):
        expected = np.zeros(SLOTS)
        modes = interface.read_modes[head]
        for number, link in enumerate(after.link):
            for mode, moved, s in [
                (modes[number], link.T, interface.backward_sharpness[head]),
                (modes[num_write + 1 + number], link, interface.forward_sharpness[head]),
            ]:
                power = (moved @ state.read_weights[head] + 1e-6) ** s
                expected += mode * power / power.sum()
        expected += modes[num_write] * quantities["content_weights"][head]
        np.testing.assert_allclose(after.read_weights[head], expected)


def test_at_the_first_step_sharp_links_are_uniform():
    options = Options(sharp_links=True)
    state = dnc.initial_state(SLOTS, WIDTH, 1, 1)
    for mode in (0, 2):
        raw = repaired_interface(1, 1, options, read_modes=100.0 * np.eye(3)[mode])
        np.testing.assert_allclose(dnc_repairs.step(raw, state, options)[0].read_weights, 0.25)


@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_a_content_only_memory_reads_by_content(num_read, num_write):
    rng = np.random.default_rng(7)
    options = Options(content_only=True)
    weights, inputs = (
        random_repaired_dnc(rng, num_read, num_write, options),
        rng.normal(size=(5, 2)),
    )
    result = dnc_repairs.run(weights, inputs, num_read, num_write, SLOTS, options=options)
    assert not {"link", "precedence", "read_modes"} & set(result)
    np.testing.assert_allclose(result["read_weights"].sum(axis=-1), 1.0)
    content = result["content_weights"][:, :num_read]
    np.testing.assert_array_equal(result["read_weights"], content)
    # A DNC whose read modes are all content is the same memory.
    state = random_state(rng, num_read, num_write)
    raw = rng.normal(size=interface_size(WIDTH, num_read, num_write, options))
    modes = np.tile(1000.0 * np.eye(1 + 2 * num_write)[num_write], num_read)
    expected, _ = dnc.step(np.concatenate([raw, modes]), state)
    linkless = state._replace(link=state.link[:0], precedence=state.precedence[:0])
    after, _ = dnc_repairs.step(raw, linkless, options)
    for name in ("memory", "usage", "read_weights", "write_weights", "reads"):
        np.testing.assert_allclose(getattr(after, name), getattr(expected, name), atol=1e-14)


def test_layer_normalisation_is_of_the_whole_vector():
    rng = np.random.default_rng(8)
    x, gain, offset = rng.normal(size=(3, 11))
    result = dnc_repairs.layer_norm(x, gain, offset)
    np.testing.assert_allclose(result, (x - x.mean()) / x.std() * gain + offset, rtol=1e-5)
    plain = dnc_repairs.layer_norm(1e-3 * x, np.ones(11), np.zeros(11))
    assert plain.mean() == pytest.approx(0.0, abs=1e-12)
    variance = 1e-6 * x.var()  # as small as epsilon
    assert plain.var() == pytest.approx(variance / (variance + 1e-6))
    # The scale of the layer makes no difference to the memory.
    weights, inputs = random_repaired_dnc(rng, 1, 1, EVERYTHING), rng.normal(size=(4, 2))
    larger = {**weights, "interface_bias": 7.0 * weights["interface_bias"]}
    larger["interface_kernel"] = 7.0 * weights["interface_kernel"]
    outputs = [
        dnc_repairs.run(w, inputs, 1, 1, SLOTS, options=EVERYTHING)["outputs"]
        for w in (weights, larger)
    ]
    np.testing.assert_allclose(*outputs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("hops", [1, 3])
def test_bypass_dropout_is_of_the_output_layer_alone(hops):
    rng = np.random.default_rng(9)
    options = Options(hops=hops)
    weights, inputs = random_repaired_dnc(rng, 2, 1, options), rng.normal(size=(4, 2))
    whole = dnc_repairs.run(weights, inputs, 2, 1, SLOTS, options=options)
    ones = dnc_repairs.run(weights, inputs, 2, 1, SLOTS, options=options, bypass=np.ones((4, 4)))
    assert_same(ones, whole)
    factors = np.array([[0.0, 2.0, 0.0, 2.0], [0.0] * 4, [2.0] * 4, [2.0, 2.0, 0.0, 0.0]])
    dropped = dnc_repairs.run(weights, inputs, 2, 1, SLOTS, options=options, bypass=factors)
    outputs = dropped.pop("outputs")
    assert_same(dropped, {name: value for name, value in whole.items() if name != "outputs"})
    reads = whole["reads"].reshape(4, -1) @ weights["output_kernel"][4:] + weights["output_bias"]
    np.testing.assert_allclose(outputs[1], reads[1])
    np.testing.assert_allclose(outputs[2] - reads[2], 2.0 * (whole["outputs"][2] - reads[2]))


@pytest.mark.parametrize("options", SEVERAL)
@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_repaired_dnc_invariants(num_read, num_write, hops, options):
    rng = np.random.default_rng(11)
    options = options._replace(hops=hops)
    weights, inputs = (
        random_repaired_dnc(rng, num_read, num_write, options),
        rng.normal(size=(6, 2)),
    )
    result = dnc_repairs.run(weights, inputs, num_read, num_write, SLOTS, options=options)
    sums = result["read_weights"].sum(axis=-1)
    assert sums.max() <= 1.0 + 1e-12
    if options.sharp_links or options.content_only:
        np.testing.assert_allclose(sums, 1.0)
    assert result["write_weights"].sum(axis=-1).max() <= 1.0 + 1e-12
    assert 0.0 <= result["usage"].min() <= result["usage"].max() <= 1.0
    if options.deallocation:
        before = np.concatenate([np.zeros((1, num_read, SLOTS)), result["read_weights"][:-1]])
        psi = np.prod(1.0 - result["free_gate"][..., None] * before, axis=1)
        np.testing.assert_allclose(result["retention"], psi)
    if options.masking:
        assert result["read_masks"].shape == (6, num_read, WIDTH)
        assert result["write_masks"].shape == (6, num_write, WIDTH)
        assert result["read_masks"].min() >= options.mask_floor
    np.testing.assert_allclose(
        result["reads"], np.einsum("lrn,lnw->lrw", result["read_weights"], result["memory"])
    )


def test_repaired_dnc_can_be_stopped_and_taken_up_again():
    rng = np.random.default_rng(12)
    options = EVERYTHING._replace(hops=2)
    weights, inputs = random_repaired_dnc(rng, 2, 2, options), rng.normal(size=(4, 2))
    uninterrupted = dnc_repairs.run(weights, inputs, 2, 2, SLOTS, options=options)
    left = dnc_repairs.run(weights, inputs[:2], 2, 2, SLOTS, options=options)
    start = dnc.State(*(left[name][-1] for name in dnc.State._fields))
    rest = dnc_repairs.run(weights, inputs[2:], 2, 2, SLOTS, "lstm", left["state"], start, options)
    for name in ("outputs", *dnc.State._fields):
        np.testing.assert_allclose(rest[name], uninterrupted[name][2:], rtol=1e-6, atol=1e-12)


def test_a_mask_is_a_sigmoid_raised_to_its_floor():
    options = Options(masking=True, mask_floor=0.25)
    raw = repaired_interface(
        1, 1, options, read_masks=[-1000.0, 0.0, 1000.0], write_masks=[1.0, 2.0, -3.0]
    )
    interface = split(raw, 1, 1, options)
    np.testing.assert_allclose(interface.read_masks, [[0.25, 0.625, 1.0]])
    np.testing.assert_allclose(interface.write_masks, [0.25 + 0.75 * sigmoid([1.0, 2.0, -3.0])])
