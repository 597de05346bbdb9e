"""Tests of the memory hops of the oracles of NTM and DNC."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.oracle_weights import (
    HEADS,
    random_hop,
    random_ntm,
    random_repaired_dnc,
    repaired_interface,
)
from oracles import dnc, dnc_repairs, ntm
from oracles.dnc_interface import Options, split
from oracles.recurrent import gru_step, lstm_step

UNITS, WIDTH, SLOTS = 4, 3, 4
VARIANTS = [
    Options(),
    Options(masking=True, mask_floor=0.1, deallocation=True, sharp_links=True),
    Options(masking=True, deallocation=True, content_only=True),
]


def random_hopping_ntm(rng, num_read, num_write):
    """Weights of an NTM with GRU_hop, W = 3."""
    hop = random_hop(rng, num_read * WIDTH)
    return {**random_ntm(rng, num_read, num_write), "hop": hop}


@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_one_hop_is_the_step_of_the_ntm_bit_for_bit(num_read, num_write):
    rng = np.random.default_rng(1)
    weights = random_ntm(rng, num_read, num_write)
    state = expected = ntm.initial_state(weights, num_read)
    for h in rng.normal(size=(4, UNITS)):
        query, state, quantities = ntm.hop_steps(weights, h, state)
        raw = h @ weights["head_kernel"] + weights["head_bias"]
        expected, plain = ntm.step(raw, expected)
        np.testing.assert_array_equal(query, h)
        assert set(quantities) == set(plain)
        for name, value in plain.items():
            np.testing.assert_array_equal(quantities[name], value, err_msg=name)
        for name, value in expected._asdict().items():
            np.testing.assert_array_equal(getattr(state, name), value, err_msg=name)


def test_hops_must_be_one_or_more():
    weights = random_hopping_ntm(np.random.default_rng(2), 1, 1)
    with pytest.raises(ValueError, match="hops 0"):
        ntm.run(weights, np.zeros((1, 2)), 1, 1, hops=0)


def shifting_weights():
    """One read and one write head that shift by +1 in every hop; W = 2, U = 1."""
    head = [0.0, 0.0, 0.0, -50.0, -50.0, -50.0, 50.0, 50.0]  # gate shut, tap +1, sharp
    raw = np.array([*head, *head, 50.0, 50.0, 0.5, -0.5])
    hop = {"kernel": np.zeros((2, 3)), "recurrent_kernel": np.zeros((1, 3))}
    hop["bias"] = np.array([100.0, 0.0, 0.0])  # the update gate keeps o
    return {"head_kernel": raw[None], "head_bias": np.zeros(len(raw)), "hop": hop}


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_a_read_head_shifts_once_a_hop_and_a_write_head_once_a_step(hops):
    memory = np.arange(1.0, 13.0).reshape(6, 2)
    state = ntm.State(memory, np.eye(6)[:1], np.eye(6)[2:3], np.zeros((1, 2)))
    _, after, quantities = ntm.hop_steps(shifting_weights(), np.ones(1), state, hops)
    np.testing.assert_allclose(after.read_weights, np.eye(6)[[hops]], atol=1e-6)
    np.testing.assert_allclose(after.write_weights, np.eye(6)[[3]], atol=1e-6)
    # The read is of the memory before the write, at slot 3 too.
    np.testing.assert_allclose(after.reads, memory[[hops]], atol=1e-4)
    written = memory.copy()
    written[3] = np.tanh([0.5, -0.5])
    np.testing.assert_allclose(after.memory, written, atol=1e-4)
    if hops > 1:
        addresses = quantities["hop_read_weights"][:, 0]
        np.testing.assert_allclose(addresses, np.eye(6)[1 : hops + 1], atol=1e-6)


@pytest.mark.parametrize(("num_read", "num_write"), HEADS)
def test_ntm_hops_are_wired_to_their_query_and_to_the_next_step(num_read, num_write):
    rng = np.random.default_rng(3)
    weights, inputs = random_hopping_ntm(rng, num_read, num_write), rng.normal(size=(3, 2))
    result = ntm.run(weights, inputs, num_read, num_write, hops=3)
    state = ntm.initial_state(weights, num_read)
    memory, addresses, before = state.memory, state.read_weights, state.reads.ravel()
    states = [(np.zeros(UNITS), np.zeros(UNITS))] * 2
    for t, x in enumerate(inputs):
        x = np.concatenate([x, before])
        for layer, unit in enumerate(weights["layers"]):
            arrays = unit["kernel"], unit["recurrent_kernel"], unit["bias"]
            states[layer] = lstm_step(x, states[layer], *arrays)
            x = states[layer][0]
        query = x
        for hop in range(3):
            raw = query @ weights["head_kernel"] + weights["head_bias"]
            heads, _, _ = ntm.split(raw, num_read, num_write, 3)
            moved = zip(heads, addresses)
            addresses = np.array([ntm.address(head, memory, w)[1] for head, w in moved])
            np.testing.assert_allclose(result["hop_read_weights"][t, hop], addresses)
            reads = addresses @ memory
            if hop < 2:
                query = gru_step(reads.ravel(), query, *weights["hop"].values())
        np.testing.assert_allclose(result["reads"][t], reads)
        before = reads.ravel()
        expected = np.concatenate([query, before]) @ weights["output_kernel"]
        np.testing.assert_allclose(result["outputs"][t], expected + weights["output_bias"])
        # The write heads move once, on the last query, from their weights of the step before.
        previous = state.write_weights if t == 0 else result["write_weights"][t - 1]
        for head, weight, old in zip(heads[num_read:], result["write_weights"][t], previous):
            np.testing.assert_allclose(weight, ntm.address(head, memory, old)[1])
        memory = result["memory"][t]


def chain(slots):
    """A DNC of one read and one write head that has written its slots from 0 on, and reads 0."""
    state = dnc.initial_state(slots, WIDTH, 1, 1)
    return state._replace(
        memory=np.arange(1.0, 1.0 + slots * WIDTH).reshape(slots, WIDTH),
        usage=np.ones(slots),
        link=np.eye(slots, k=-1)[None],
        precedence=np.eye(slots)[-1:],
        read_weights=np.eye(slots)[:1],
    )


def fixed_weights(raw):
    """Weights that say the interface vector `raw` in every hop; U = 1."""
    hop = {"kernel": np.zeros((WIDTH, 3)), "recurrent_kernel": np.zeros((1, 3))}
    hop["bias"] = np.array([100.0, 0.0, 0.0])  # the update gate keeps o
    return {"interface_kernel": raw[None], "interface_bias": np.zeros(len(raw)), "hop": hop}


@pytest.mark.parametrize("sharp_links", [False, True])
@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_dnc_hops_follow_a_chain_of_links(hops, sharp_links):
    options = Options(hops=hops, sharp_links=sharp_links)
    parts = {"forward_sharpness": 20.0, "backward_sharpness": 20.0} if sharp_links else {}
    # Modes are backward, content, forward; the write gate is shut.
    modes = 100.0 * np.eye(3)
    raw = repaired_interface(1, 1, options, write_gates=-100.0, read_modes=modes[2], **parts)
    output, after, _ = dnc_repairs.hop_steps(fixed_weights(raw), np.ones(1), chain(6), options)
    np.testing.assert_array_equal(output, np.ones(1))
    np.testing.assert_allclose(after.read_weights, np.eye(6)[[hops]], atol=1e-9)
    np.testing.assert_allclose(after.reads, chain(6).memory[[hops]])
    raw = repaired_interface(1, 1, options, write_gates=-100.0, read_modes=modes[0], **parts)
    _, back, _ = dnc_repairs.hop_steps(fixed_weights(raw), np.ones(1), after, options)
    np.testing.assert_allclose(back.read_weights, np.eye(6)[:1], atol=1e-9)


def test_only_the_first_hop_of_a_dnc_writes():
    raw = repaired_interface(
        1, 1, Options(), add=[1.0, -2.0, 0.5], allocation_gates=9.0, write_gates=9.0
    )
    state = chain(4)._replace(usage=np.array([0.9, 0.9, 0.1, 0.9]))
    results = {}
    for hops in (1, 3):
        options = Options(hops=hops)
        weights = fixed_weights(raw)
        _, results[hops], _ = dnc_repairs.hop_steps(weights, np.ones(1), state, options)
    for name in ("memory", "usage", "link", "precedence", "write_weights"):
        np.testing.assert_array_equal(getattr(results[3], name), getattr(results[1], name))
    assert np.abs(results[3].read_weights - results[1].read_weights).max() > 1e-3


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize(("num_read", "num_write"), [(1, 1), (2, 3)])
def test_dnc_hops_are_wired_to_their_query_and_to_the_next_step(num_read, num_write, options):
    rng = np.random.default_rng(10)
    options = options._replace(hops=3)
    weights, inputs = (
        random_repaired_dnc(rng, num_read, num_write, options),
        rng.normal(size=(3, 2)),
    )
    result = dnc_repairs.run(weights, inputs, num_read, num_write, SLOTS, options=options)
    assert result["hop_read_weights"].shape == (3, 3, num_read, SLOTS)
    np.testing.assert_array_equal(result["hop_read_weights"][:, -1], result["read_weights"])
    states, before = [(np.zeros(4), np.zeros(4))] * 2, np.zeros(num_read * WIDTH)
    for t, x in enumerate(inputs):
        x = np.concatenate([x, before])
        for layer, unit in enumerate(weights["layers"]):
            arrays = unit["kernel"], unit["recurrent_kernel"], unit["bias"]
            states[layer] = lstm_step(x, states[layer], *arrays)
            x = states[layer][0]
        query = x
        for hop in range(2):
            reads = result["hop_read_weights"][t, hop] @ result["memory"][t]
            query = gru_step(reads.ravel(), query, *weights["hop"].values())
        before = result["reads"][t].ravel()
        expected = np.concatenate([query, before]) @ weights["output_kernel"]
        np.testing.assert_allclose(result["outputs"][t], expected + weights["output_bias"])
        raw = dnc_repairs.interface_vector(weights, query)
        last = split(raw, num_read, num_write, options)
        content = dnc_repairs.content(
            last.read_keys, last.read_strengths, result["memory"][t], last.read_masks
        )
        np.testing.assert_allclose(result["content_weights"][t, :num_read], content)
        first = split(dnc_repairs.interface_vector(weights, x), num_read, num_write, options)
        np.testing.assert_allclose(result["write_gate"][t], first.write_gates)
        np.testing.assert_allclose(result["free_gate"][t], first.free_gates)
