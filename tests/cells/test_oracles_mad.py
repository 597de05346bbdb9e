"""Tests of the oracle of the memory-augmented decoder."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.oracle_weights import HEADS, random_dnc, random_ntm, random_unit
from oracles import dnc, mad, ntm, recurrent


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
    with pytest.raises(ValueError, match="'ntm', or 'dnc'"):
        mad.decode(random_mad(rng, "ntm", 1, 1), np.ones((2, 3)), lstm_states(rng), [], 1, 1, "lru")
