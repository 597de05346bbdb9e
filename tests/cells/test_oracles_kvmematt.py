"""Tests of the oracle of KVMemAtt and MemAtt, with values known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.oracle_weights import random_unit
from oracles import kvmematt, recurrent, rnnsearch

# --- weights -----------------------------------------------------------------------------


def outer_weights(rng, embedding=2, units=3, annotation=4, readout=6):
    return {
        "query_gru": random_unit(rng, embedding, units, 3),
        "readout_kernel": rng.normal(size=(units + embedding + annotation, readout)),
        "initial_kernel": rng.normal(size=(annotation, units)),
        "initial_bias": rng.normal(size=units),
    }


def round_weights(rng, units=3, annotation=4, attention=5):
    return {
        "query_kernel": rng.normal(size=(units, attention)),
        "memory_kernel": rng.normal(size=(annotation, attention)),
        "score_vector": rng.normal(size=attention),
        "state_gru": random_unit(rng, annotation, units, 3),
        "write_query_kernel": rng.normal(size=(units, attention)),
        "write_memory_kernel": rng.normal(size=(annotation, attention)),
        "write_score_vector": rng.normal(size=attention),
        "forget_kernel": rng.normal(size=(units, annotation)),
        "add_kernel": rng.normal(size=(units, annotation)),
    }


def random_weights(rng, rounds):
    return {**outer_weights(rng), "rounds": [round_weights(rng) for _ in range(rounds)]}


def constant_gru(inputs, units, value):
    """A GRU whose output is `value` for every input: the update gate is shut."""
    bias = np.repeat([-1000.0, 0.0, math.atanh(value) if value < 1.0 else 100.0], units)
    zeros = np.zeros((inputs, 3 * units)), np.zeros((units, 3 * units))
    return {"kernel": zeros[0], "recurrent_kernel": zeros[1], "bias": bias}


def scalar_weights(forget, add, rounds=1, sharpness=1e5, write_sharpness=1e5):
    """One unit, one number a position; reads and writes look where tanh(k) is largest.

    F = sigmoid(forget), A = sigmoid(add): +-1000 makes them 1 and 0 exactly.
    """
    weights_of_round = {
        "query_kernel": np.zeros((1, 1)),
        "memory_kernel": np.ones((1, 1)),
        "score_vector": np.array([sharpness]),
        "state_gru": constant_gru(1, 1, 1.0),
        "write_query_kernel": np.zeros((1, 1)),
        "write_memory_kernel": np.ones((1, 1)),
        "write_score_vector": np.array([write_sharpness]),
        "forget_kernel": np.array([[float(forget)]]),
        "add_kernel": np.array([[float(add)]]),
    }
    return {
        "query_gru": constant_gru(1, 1, 1.0),
        "readout_kernel": np.ones((3, 1)),
        "initial_kernel": np.zeros((1, 1)),
        "initial_bias": np.zeros(1),
        "rounds": [weights_of_round] * rounds,
    }


# --- a step ------------------------------------------------------------------------------


def test_one_position_one_unit_by_hand():
    # One position: a = w = 1, so c = h = 0.8 and k' = k (1 - F) + A, at every step.
    # The query GRU keeps its state, s_0 = 0.5, so q_1 = 0.5; GRU2 gives 0.25: s_1 = 0.25.
    weights = scalar_weights(2.0, -4.0)
    weights["query_gru"]["bias"] = np.array([1000.0, 0.0, 0.0])
    weights["initial_bias"] = np.array([math.atanh(0.5)])
    weights["rounds"][0]["state_gru"] = constant_gru(1, 1, 0.25)
    weights["readout_kernel"] = np.array([[2.0], [3.0], [5.0]])
    result = kvmematt.decode(weights, [[0.8]], [[0.1], [-0.2]])
    forget, add = 1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(1.0))
    first = 0.8 * (1 - forget) + add
    second = first * (1 - forget) + add
    np.testing.assert_allclose(result["keys"], [[[first]], [[second]]])
    np.testing.assert_allclose(result["key_drift"], [abs(first - 0.8), abs(second - 0.8)])
    np.testing.assert_allclose(result["forget_norms"], [[forget], [forget]])
    np.testing.assert_allclose(result["add_norms"], [[add], [add]])
    np.testing.assert_allclose(result["alignments"], [[1.0], [1.0]])
    np.testing.assert_allclose(result["write_weights"], [[[1.0]], [[1.0]]])
    np.testing.assert_allclose(result["states"], [[0.25], [0.25]])
    np.testing.assert_allclose(result["contexts"], [[0.8], [0.8]])
    outputs = [math.tanh(0.5 + 0.3 + 4.0), math.tanh(0.5 - 0.6 + 4.0)]
    np.testing.assert_allclose(result["outputs"], np.array(outputs)[:, None])


def softmax_of(scores):
    return np.exp(scores) / np.exp(scores).sum()


def test_mematt_has_one_round():
    weights = random_weights(np.random.default_rng(0), 2)
    with pytest.raises(ValueError, match="MemAtt has one"):
        kvmematt.decode(weights, np.ones((1, 4)), [], single_memory=True)


@pytest.mark.parametrize(
    ("rounds", "single_memory"), [(1, False), (2, False), (3, False), (1, True)]
)
def test_every_number_of_two_steps(rounds, single_memory):
    rng = np.random.default_rng(20 + rounds)
    weights, h, ys = random_weights(rng, rounds), rng.normal(size=(3, 4)), rng.normal(size=(2, 2))
    result = kvmematt.decode(weights, h, ys, single_memory)
    s = np.tanh(h.mean(axis=0) @ weights["initial_kernel"] + weights["initial_bias"])
    k = h
    for t in range(2):
        q = recurrent.gru_step(ys[t], s, **weights["query_gru"])
        for r, w in enumerate(weights["rounds"]):
            hidden = np.tanh(q @ w["query_kernel"] + k @ w["memory_kernel"])
            a = softmax_of(hidden @ w["score_vector"])
            c = a @ (k if single_memory else h)
            s = recurrent.gru_step(c, q, **w["state_gru"])
            hidden = np.tanh(s @ w["write_query_kernel"] + k @ w["write_memory_kernel"])
            where = softmax_of(hidden @ w["write_score_vector"])
            forget = 1 / (1 + np.exp(-s @ w["forget_kernel"]))
            add = 1 / (1 + np.exp(-s @ w["add_kernel"]))
            k = k * (1 - np.outer(where, forget)) + np.outer(where, add)
            np.testing.assert_allclose(result["round_alignments"][t, r], a)
            np.testing.assert_allclose(result["write_weights"][t, r], where)
            np.testing.assert_allclose(result["forget_norms"][t, r], np.sqrt(sum(forget**2)))
            np.testing.assert_allclose(result["add_norms"][t, r], np.sqrt(sum(add**2)))
        np.testing.assert_allclose(result["alignments"][t], a)
        np.testing.assert_allclose(result["contexts"][t], c)
        np.testing.assert_allclose(result["states"][t], s)
        np.testing.assert_allclose(result["keys"][t], k)
        drift = np.sqrt(((k - h) ** 2).sum(axis=1)).mean()
        np.testing.assert_allclose(result["key_drift"][t], drift)
        readout = np.tanh(np.r_[s, ys[t], c] @ weights["readout_kernel"])
        np.testing.assert_allclose(result["outputs"][t], readout)
    assert result["round_alignments"].shape == result["write_weights"].shape == (2, rounds, 3)


def test_without_forget_and_add_one_round_is_rnnsearch():
    rng = np.random.default_rng(30)
    weights, h, ys = random_weights(rng, 1), rng.normal(size=(4, 4)), rng.normal(size=(5, 2))
    only = weights["rounds"][0]
    for part in ("kernel", "recurrent_kernel"):  # unit 0 of GRU2 is always 1 ...
        only["state_gru"][part][:, [0, 6]] = 0.0
    only["state_gru"]["bias"][[0, 6]] = -1000.0, 100.0
    for name in ("forget_kernel", "add_kernel"):  # ... which alone shuts F and A
        only[name] = np.zeros((3, 4))
        only[name][0] = -1000.0
    result = kvmematt.decode(weights, h, ys)
    plain = rnnsearch.decode({**weights, **only}, h, ys)
    for name in ("outputs", "alignments", "states"):
        np.testing.assert_array_equal(result[name], plain[name])
    np.testing.assert_array_equal(result["keys"], np.array([h] * 5))
    np.testing.assert_array_equal(result["key_drift"], np.zeros(5))
    assert not np.allclose(result["write_weights"][0], result["write_weights"][1])


# --- the write ---------------------------------------------------------------------------


def test_write_forgets_then_adds_where_it_looks():
    keys = np.array([[4.0, 8.0], [4.0, 8.0], [4.0, 8.0]])
    written = kvmematt.write(keys, [0.0, 0.5, 1.0], np.array([0.5, 1.0]), np.array([0.2, 0.4]))
    # Half a weight: 4 (1 - 1/4) + 0.1 and 8 (1 - 1/2) + 0.2; a whole one: 2 + 0.2 and 0.4.
    np.testing.assert_allclose(written, [[4.0, 8.0], [3.1, 4.2], [2.2, 0.4]])
    np.testing.assert_array_equal(keys, np.full((3, 2), [4.0, 8.0]))


def test_a_full_forget_zeroes_the_key_looked_at_and_the_reader_moves_on():
    # Reading and writing look at the largest key, which is then forgotten: the reader
    # walks through the sentence, though the values stay what they were.
    result = kvmematt.decode(scalar_weights(1000, -1000), [[2.0], [3.0], [1.0]], np.ones((3, 1)))
    walk = np.eye(3)[[1, 0, 2]]
    np.testing.assert_array_equal(result["alignments"], walk)
    np.testing.assert_array_equal(result["write_weights"][:, 0], walk)
    np.testing.assert_array_equal(result["keys"][..., 0], [[2, 0, 1], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(result["contexts"], [[3.0], [2.0], [1.0]])
    np.testing.assert_allclose(result["key_drift"], [1.0, 5 / 3, 2.0])


def test_a_full_add_touches_only_the_key_looked_at():
    result = kvmematt.decode(scalar_weights(-1000, 1000), [[2.0], [3.0], [1.0]], np.ones((2, 1)))
    np.testing.assert_array_equal(result["keys"][..., 0], [[2, 4, 1], [2, 5, 1]])


def test_the_second_round_sees_the_keys_after_the_first():
    weights = scalar_weights(1000, -1000, rounds=2)
    result = kvmematt.decode(weights, [[2.0], [3.0], [1.0], [0.5]], np.ones((2, 1)))
    np.testing.assert_array_equal(result["round_alignments"][0], np.eye(4)[[1, 0]])
    np.testing.assert_array_equal(result["round_alignments"][1], np.eye(4)[[2, 3]])
    np.testing.assert_array_equal(result["alignments"], np.eye(4)[[0, 3]])
    np.testing.assert_array_equal(result["keys"][..., 0], [[0, 0, 1, 0.5], [0, 0, 0, 0]])
    np.testing.assert_array_equal(result["contexts"], [[2.0], [0.5]])  # the last round's


def test_every_round_asks_with_the_query_and_not_with_the_state_before():
    # Round 1's GRU2 gives 0, round 2's leaves its query alone: s_t is q_t = 0.5.
    weights = scalar_weights(0, 0, rounds=2)
    weights["query_gru"] = constant_gru(1, 1, 0.5)
    first, second = dict(weights["rounds"][0]), dict(weights["rounds"][1])
    first["state_gru"] = constant_gru(1, 1, 0.0)
    second["state_gru"] = {**constant_gru(1, 1, 0.0), "bias": np.array([1000.0, 0.0, 0.0])}
    result = kvmematt.decode({**weights, "rounds": [first, second]}, [[1.0]], [[0.0]])
    np.testing.assert_allclose(result["states"], [[0.5]])


def test_keys_change_and_values_never():
    rng = np.random.default_rng(31)
    h = rng.normal(size=(3, 4))
    before = h.copy()
    result = kvmematt.decode(random_weights(rng, 2), h, rng.normal(size=(4, 2)))
    np.testing.assert_array_equal(h, before)
    np.testing.assert_allclose(result["contexts"], result["alignments"] @ before)
    assert np.all(np.diff(result["keys"], axis=0) != 0.0)
    assert np.all(result["key_drift"] > 0.0)
    for name in ("round_alignments", "write_weights"):
        np.testing.assert_allclose(result[name].sum(axis=-1), np.ones((4, 2)))
    np.testing.assert_array_equal(result["alignments"], result["round_alignments"][:, -1])


def test_mematt_reads_the_memory_it_rewrites():
    arguments = [[2.0], [3.0], [0.6]], np.ones((4, 1))
    # Half of the key looked at is forgotten: what is read shrinks with it.
    result = kvmematt.decode(scalar_weights(0, -1000), *arguments, single_memory=True)
    np.testing.assert_array_equal(result["alignments"], np.eye(3)[[1, 0, 1, 0]])
    np.testing.assert_array_equal(result["contexts"][:, 0], [3.0, 2.0, 1.5, 1.0])
    fixed = kvmematt.decode(scalar_weights(0, -1000), *arguments)
    np.testing.assert_array_equal(fixed["contexts"][:, 0], [3.0, 2.0, 3.0, 2.0])


def test_writing_and_reading_look_by_their_own_networks():
    # With a score vector of the other sign the write goes to the smallest key.
    weights = scalar_weights(-1000, 1000, write_sharpness=-1e5)
    result = kvmematt.decode(weights, [[0.2], [0.9], [-0.5]], np.ones((1, 1)))
    np.testing.assert_array_equal(result["alignments"], [[0.0, 1.0, 0.0]])
    np.testing.assert_array_equal(result["write_weights"], [[[0.0, 0.0, 1.0]]])
    np.testing.assert_array_equal(result["keys"][0, :, 0], [0.2, 0.9, 0.5])


# --- parameters --------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 2])
def test_the_count_is_that_of_the_weights(rounds):
    def sizes(weights):
        if isinstance(weights, dict):
            return sum(sizes(part) for part in weights.values())
        return sum(map(sizes, weights)) if isinstance(weights, list) else weights.size

    parts = kvmematt.parameter_parts(2, 3, 4, 5, 6, 11, 13, rounds)
    weights = random_weights(np.random.default_rng(0), rounds)
    outside_the_cell = parts.pop("embeddings"), parts.pop("encoder"), parts.pop("projection")
    assert sum(parts.values()) == sizes(weights)
    assert outside_the_cell == (24 * 2, 2 * 3 * (2 * 3 + 3 * 3 + 3), 6 * 13 + 13)
