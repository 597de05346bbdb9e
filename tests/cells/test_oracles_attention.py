"""Tests of the oracles of the decoders that attend to the source, with values known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.oracle_weights import random_unit, zero_unit
from oracles import addressing, luong, ntm_attention, recurrent, rnnsearch

# --- luong -------------------------------------------------------------------------------


def luong_weights(rng, embedding=2, units=3, annotation=4, gates=4, num_layers=2, heads=1):
    return {
        "layers": [
            random_unit(rng, embedding + units if layer == 0 else units, units, gates)
            for layer in range(num_layers)
        ],
        "memory_kernel": rng.normal(size=(annotation, units)),
        "attention_scale": 1.5,
        "attention_kernel": rng.normal(size=(heads * annotation + units, units)),
    }


def lstm_states(rng, units=3, num_layers=2):
    return [(rng.normal(size=units), rng.normal(size=units)) for _ in range(num_layers)]


def test_luong_dominating_score_picks_that_annotation():
    rng = np.random.default_rng(4)
    weights = luong_weights(rng, gates=3, num_layers=1)
    # A GRU whose update gate is open keeps h = 1, so the score is the key's sum.
    weights["layers"] = [zero_unit(5, 3, 3)]
    weights["layers"][0]["bias"][:3] = 100.0
    annotations = rng.normal(size=(5, 4))
    keys = annotations @ weights["memory_kernel"]
    best = int(np.argmax(keys.sum(axis=1)))
    weights["attention_scale"] = 1e4
    result = luong.decode(weights, annotations, [np.ones(3)], np.ones((2, 2)), unit="gru")
    np.testing.assert_allclose(result["alignments"], [np.eye(5)[best]] * 2, atol=1e-12)
    expected = np.concatenate([annotations[best], np.ones(3)]) @ weights["attention_kernel"]
    np.testing.assert_allclose(result["outputs"], [expected] * 2)


def test_luong_two_steps_with_input_feeding():
    rng = np.random.default_rng(5)
    weights, annotations = luong_weights(rng), rng.normal(size=(3, 4))
    states, xs = lstm_states(rng), rng.normal(size=(2, 2))
    result = luong.decode(weights, annotations, states, xs)
    fed, layers = np.zeros(3), list(states)
    for t in range(2):
        layers[0] = recurrent.lstm_step(np.r_[xs[t], fed], layers[0], **weights["layers"][0])
        layers[1] = recurrent.lstm_step(layers[0][0], layers[1], **weights["layers"][1])
        h = layers[1][0]
        scores = 1.5 * annotations @ weights["memory_kernel"] @ h
        alignment = np.exp(scores) / np.exp(scores).sum()
        fed = np.r_[alignment @ annotations, h] @ weights["attention_kernel"]
        np.testing.assert_allclose(result["alignments"][t], alignment)
        np.testing.assert_allclose(result["outputs"][t], fed)


def test_luong_options_change_what_they_say():
    rng = np.random.default_rng(6)
    weights, annotations = luong_weights(rng), rng.normal(size=(3, 4))
    arguments = (annotations, lstm_states(rng), rng.normal(size=(1, 2)))
    plain = luong.decode(weights, *arguments)
    squashed = luong.decode(weights, *arguments, tanh=True)
    np.testing.assert_allclose(squashed["outputs"], np.tanh(plain["outputs"]))
    unscaled = luong.decode(weights, *arguments, scaled=False)
    by_one = luong.decode({**weights, "attention_scale": 1.0}, *arguments)
    np.testing.assert_array_equal(unscaled["alignments"], by_one["alignments"])
    assert not np.allclose(unscaled["alignments"], plain["alignments"])


# --- ntm_attention -----------------------------------------------------------------------


def ntm_weights(rng, heads=1, taps=3, units=3, **sizes):
    columns = heads * (units + taps + 3)
    return {
        **luong_weights(rng, units=units, heads=heads, **sizes),
        "head_kernel": rng.normal(size=(units, columns)),
        "head_bias": rng.normal(size=columns),
    }


def test_heads_are_cut_and_clipped():
    raw = [0.5, -0.5] + [0.0] + [math.log(3.0)] + [0.0, 0.0, math.log(2.0)] + [1000.0]
    raw += [1000.0, 0.0] + [-1000.0] + [-1000.0] + [0.0, 1000.0, 0.0] + [0.0]
    first, second = ntm_attention.split_heads(np.array(raw), num_heads=2, units=2)
    np.testing.assert_allclose(first.key, np.tanh([0.5, -0.5]))
    assert first.strength == pytest.approx(math.log(2.0))  # softplus(0)
    assert first.gate == pytest.approx(0.75)
    np.testing.assert_allclose(first.shift, [0.25, 0.25, 0.5])
    assert first.sharpening == pytest.approx(1.0 + math.log1p(math.exp(20.0)))
    np.testing.assert_allclose(second.key, [math.tanh(20.0), 0.0])
    assert second.strength == pytest.approx(math.log1p(math.exp(-20.0)))
    assert second.gate == pytest.approx(1.0 / (1.0 + math.exp(20.0)))
    np.testing.assert_allclose(second.shift, addressing.softmax([0.0, 20.0, 0.0]))
    assert second.sharpening == pytest.approx(1.0 + math.log(2.0))


@pytest.mark.parametrize("taps", [3, 5])
def test_ntm_attention_walks_forward_from_position_zero(taps):
    rng = np.random.default_rng(7)
    weights = ntm_weights(rng, taps=taps)
    weights["head_kernel"] = np.zeros_like(weights["head_kernel"])
    bias = np.zeros(3 + taps + 3)
    bias[4] = -100.0  # gate shut: the content is not looked at
    bias[5 + taps // 2 + 1] = 100.0  # all on the tap +1
    bias[-1] = 100.0  # gamma 21
    weights["head_bias"] = bias
    result = ntm_attention.decode(
        weights, rng.normal(size=(3, 4)), lstm_states(rng), rng.normal(size=(4, 2))
    )
    walk = [np.eye(3)[position] for position in (1, 2, 0, 1)]
    np.testing.assert_allclose(result["alignments"], walk, atol=1e-6)
    np.testing.assert_allclose(result["sharpening"], np.full((4, 1), 21.0))


def test_ntm_attention_with_an_open_gate_is_luong_attention_by_strength():
    # Gate 1, no shift, gamma 1: the address is the content address, and the key is
    # constant, so that one step can be written down.
    rng = np.random.default_rng(8)
    weights = ntm_weights(rng)
    weights["head_kernel"] = np.zeros_like(weights["head_kernel"])
    weights["head_bias"] = np.array([0.1, 0.2, 0.3, 1.0, 100.0, -100.0, 100.0, -100.0, -100.0])
    annotations = rng.normal(size=(4, 4))
    result = ntm_attention.decode(
        weights, annotations, lstm_states(rng), rng.normal(size=(1, 2)), tanh=True
    )
    beta = math.log1p(math.e)
    scores = beta * annotations @ weights["memory_kernel"] @ np.tanh([0.1, 0.2, 0.3])
    content = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose(result["content_weights"][0, 0], content)
    np.testing.assert_allclose(result["alignments"][0], content, atol=1e-7)
    assert np.all(np.abs(result["outputs"]) < 1.0)  # tanh


def test_ntm_attention_heads_have_their_own_addresses_and_contexts():
    rng = np.random.default_rng(9)
    weights = ntm_weights(rng, heads=2)
    annotations, xs = rng.normal(size=(4, 4)), rng.normal(size=(3, 2))
    states = lstm_states(rng)
    result = ntm_attention.decode(weights, annotations, states, xs, num_heads=2)
    assert result["read_weights"].shape == (3, 2, 4)
    assert result["content_weights"].shape == (3, 2, 4)
    assert result["interpolation_gate"].shape == result["sharpening"].shape == (3, 2)
    assert result["shift_kernel"].shape == (3, 2, 3)
    np.testing.assert_allclose(result["read_weights"].sum(axis=-1), np.ones((3, 2)))
    np.testing.assert_allclose(result["alignments"], result["read_weights"].mean(axis=1))
    assert not np.allclose(result["read_weights"][:, 0], result["read_weights"][:, 1])
    # Step 0 from its parts: head 1's context first, then head 2's, then h.
    layers = weights["layers"]
    below = recurrent.lstm_step(np.r_[xs[0], np.zeros(3)], states[0], **layers[0])
    h, _ = recurrent.lstm_step(below[0], states[1], **layers[1])
    contexts = result["read_weights"][0] @ annotations
    expected = np.r_[contexts[0], contexts[1], h] @ weights["attention_kernel"]
    np.testing.assert_allclose(result["outputs"][0], expected)
    # Step 1 starts from each head's own address of step 0.
    for r in range(2):
        gate = result["interpolation_gate"][1, r]
        gated = gate * result["content_weights"][1, r] + (1 - gate) * result["read_weights"][0, r]
        shifted = sum(result["shift_kernel"][1, r, j] * np.roll(gated, j - 1) for j in range(3))
        sharpened = shifted ** result["sharpening"][1, r]
        np.testing.assert_allclose(
            result["read_weights"][1, r], sharpened / sharpened.sum(), rtol=1e-9
        )


def test_ntm_attention_of_one_position_is_all_on_it():
    rng = np.random.default_rng(10)
    weights = ntm_weights(rng, gates=3)
    states = [rng.normal(size=3), rng.normal(size=3)]
    result = ntm_attention.decode(
        weights, rng.normal(size=(1, 4)), states, rng.normal(size=(2, 2)), unit="gru"
    )
    np.testing.assert_allclose(result["alignments"], np.ones((2, 1)))


# --- rnnsearch ---------------------------------------------------------------------------


def rnnsearch_weights(rng, embedding=2, units=3, annotation=4, attention=5, readout=6):
    return {
        "query_gru": random_unit(rng, embedding, units, 3),
        "state_gru": random_unit(rng, annotation, units, 3),
        "query_kernel": rng.normal(size=(units, attention)),
        "memory_kernel": rng.normal(size=(annotation, attention)),
        "score_vector": rng.normal(size=attention),
        "readout_kernel": rng.normal(size=(units + embedding + annotation, readout)),
        "initial_kernel": rng.normal(size=(annotation, units)),
        "initial_bias": rng.normal(size=units),
    }


def test_rnnsearch_two_steps():
    rng = np.random.default_rng(11)
    weights, annotations = rnnsearch_weights(rng), rng.normal(size=(3, 4))
    ys = rng.normal(size=(2, 2))
    result = rnnsearch.decode(weights, annotations, ys)
    s = np.tanh(annotations.mean(axis=0) @ weights["initial_kernel"] + weights["initial_bias"])
    for t in range(2):
        q = recurrent.gru_step(ys[t], s, **weights["query_gru"])
        hidden = np.tanh(q @ weights["query_kernel"] + annotations @ weights["memory_kernel"])
        e = hidden @ weights["score_vector"]
        a = np.exp(e) / np.exp(e).sum()
        c = a @ annotations
        s = recurrent.gru_step(c, q, **weights["state_gru"])
        readout = np.tanh(np.r_[s, ys[t], c] @ weights["readout_kernel"])
        np.testing.assert_allclose(result["alignments"][t], a)
        np.testing.assert_allclose(result["states"][t], s)
        np.testing.assert_allclose(result["outputs"][t], readout)


def test_rnnsearch_equal_scores_attend_everywhere():
    rng = np.random.default_rng(12)
    weights = {**rnnsearch_weights(rng), "score_vector": np.zeros(5)}
    result = rnnsearch.decode(weights, rng.normal(size=(4, 4)), rng.normal(size=(2, 2)))
    np.testing.assert_allclose(result["alignments"], np.full((2, 4), 0.25))


def test_rnnsearch_initial_state_is_of_the_mean_annotation():
    weights = {"initial_kernel": np.array([[1.0], [0.0]]), "initial_bias": np.array([0.5])}
    state = rnnsearch.initial_state(weights, np.array([[1.0, 7.0], [3.0, 7.0]]))
    assert state[0] == pytest.approx(math.tanh(2.5))
