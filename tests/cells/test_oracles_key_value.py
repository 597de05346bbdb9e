"""Tests of the oracle of key-value attention and its relatives, with values known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.oracle_weights import random_unit, zero_unit
from oracles import key_value, recurrent

SYSTEMS = key_value.SYSTEMS


def decoder_weights(rng, system, width=4, layers=2):
    half = width // 2
    weights = {
        "layers": [random_unit(rng, width, width, 4) for _ in range(layers)],
        "initial_kernel": rng.normal(size=(width, width)),
    }
    if system == "key-value":
        weights["key_kernel"] = rng.normal(size=(width, half))
        weights["value_kernel"] = rng.normal(size=(width, half))
        weights["readout_kernel"] = rng.normal(size=(width + half, width))
    else:
        weights["annotation_kernel"] = rng.normal(size=(2 * width, width))
        weights["readout_kernel"] = rng.normal(size=(2 * width, width))
    return weights


# --- the encoder -------------------------------------------------------------------------


def test_encoder_is_one_stack_each_way():
    rng = np.random.default_rng(40)
    weights = {
        f"{name}_layers": [random_unit(rng, 2, 2, 4), random_unit(rng, 2, 2, 4)]
        for name in ("forward", "backward")
    }
    xs = rng.normal(size=(3, 2))

    def through(layers, inputs):
        for layer in layers:
            state, outputs = (np.zeros(2), np.zeros(2)), []
            for x in inputs:
                state = recurrent.lstm_step(x, state, **layer)
                outputs.append(state[0])
            inputs = outputs
        return np.array(inputs)

    encoded = key_value.encode(weights, xs)
    np.testing.assert_allclose(encoded[:, :2], through(weights["forward_layers"], xs))
    np.testing.assert_allclose(encoded[::-1, 2:], through(weights["backward_layers"], xs[::-1]))


def test_encoder_of_one_layer_is_the_bidirectional_layer():
    rng = np.random.default_rng(41)
    forward, backward = random_unit(rng, 2, 2, 4), random_unit(rng, 2, 2, 4)
    xs = rng.normal(size=(4, 2))
    encoded = key_value.encode({"forward_layers": [forward], "backward_layers": [backward]}, xs)
    layer, _, _ = recurrent.bidirectional_layer(xs, 4, "lstm", forward, backward)
    np.testing.assert_array_equal(encoded, layer)


# --- the memory --------------------------------------------------------------------------


def test_halves_of_each_direction_are_key_and_value():
    # K = 2: forward [k v] = [1 2], backward [k v] = [3 4]; the second position ten times that.
    weights = {"key_kernel": np.array([[1.0], [10.0]]), "value_kernel": np.array([[1.0], [100.0]])}
    states = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]])
    keys, values, last = key_value.memory(weights, "key-value", states)
    np.testing.assert_array_equal(keys, [[31.0], [310.0]])
    np.testing.assert_array_equal(values, [[402.0], [4020.0]])
    np.testing.assert_array_equal(last, [310.0, 4020.0])


def test_single_memory_is_key_and_value_or_masked():
    weights = {"annotation_kernel": np.array([[1.0, 0.0], [0.0, 1.0], [10.0, 0.0], [0.0, 10.0]])}
    states = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    annotations = [[31.0, 42.0], [75.0, 86.0]]
    keys, values, last = key_value.memory(weights, "attn", states)
    np.testing.assert_array_equal(keys, annotations)
    np.testing.assert_array_equal(values, annotations)
    np.testing.assert_array_equal(last, annotations[1])
    keys, values, last = key_value.memory(weights, "modifying-IW", states)
    np.testing.assert_array_equal(keys, [[31.0, 0.0], [75.0, 0.0]])
    np.testing.assert_array_equal(values, annotations)
    np.testing.assert_array_equal(last, annotations[1])


def test_a_system_it_does_not_know_and_an_odd_width_are_refused():
    with pytest.raises(ValueError, match="attn, key-value, modifying-IW"):
        key_value.memory({}, "value-key", np.ones((1, 4)))
    with pytest.raises(ValueError, match="even"):
        key_value.memory({"annotation_kernel": np.ones((6, 3))}, "modifying-IW", np.ones((1, 6)))


# --- the decoder -------------------------------------------------------------------------


def idle_weights(system, start, readout):
    """K = 2; d_0 is the last annotation times `start`; the LSTM then answers 0 to everything."""
    weights = {
        "layers": [zero_unit(2, 2, 4)],
        "initial_kernel": np.asarray(start, dtype=float),
        "readout_kernel": np.asarray(readout, dtype=float),
    }
    if system == "key-value":
        weights["key_kernel"] = weights["value_kernel"] = np.array([[1.0], [0.0]])
    else:
        weights["annotation_kernel"] = np.concatenate([np.eye(2), np.zeros((2, 2))])
    return weights


def test_key_value_by_hand():
    # Keys ln 3 and 0, values 5 and 1; [k_M; v_M] = [0, 1] and the map give d_0 = [1, 9].
    # The query is 1, the scores ln 3 : 0, the weights 3/4 and 1/4, the context 4.
    weights = idle_weights("key-value", [[0, 0], [1, 9]], [[0, 0], [0, 0], [0.1, 0.2]])
    states = [[math.log(3.0), 5.0, 7.0, 7.0], [0.0, 1.0, 7.0, 7.0]]
    result = key_value.decode(weights, "key-value", states, np.zeros((2, 2)))
    # At the second step d_1 = 0: every score is 0, the context (5 + 1) / 2.
    np.testing.assert_allclose(result["alignments"], [[0.75, 0.25], [0.5, 0.5]])
    np.testing.assert_allclose(result["contexts"], [[4.0], [3.0]])
    np.testing.assert_allclose(result["outputs"], np.tanh([[0.4, 0.8], [0.3, 0.6]]))


def test_attn_and_modifying_iw_by_hand():
    # h_1 = [ln 3, ln 2], h_2 = [0, 0] but for its last number, 1, which starts d_0 = [1, 1].
    # attn scores ln 3 + ln 2 : 1; modifying-IW drops the lower half: ln 3 : 0.
    states = [[math.log(3.0), math.log(2.0), 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    readout = [[0, 0], [0, 0], [1, 0], [0, 1]]
    weights = idle_weights("attn", [[0, 0], [1, 1]], readout)
    a = 6.0 / (6.0 + math.e)
    result = key_value.decode(weights, "attn", states, np.zeros((1, 2)))
    np.testing.assert_allclose(result["alignments"], [[a, 1.0 - a]])
    context = [a * math.log(3.0), a * math.log(2.0) + 1.0 - a]
    np.testing.assert_allclose(result["outputs"], [np.tanh(context)])
    result = key_value.decode(weights, "modifying-IW", states, np.zeros((1, 2)))
    np.testing.assert_allclose(result["alignments"], [[0.75, 0.25]])
    context = [0.75 * math.log(3.0), 0.75 * math.log(2.0) + 0.25]  # of the whole values
    np.testing.assert_allclose(result["outputs"], [np.tanh(context)])


@pytest.mark.parametrize("system", SYSTEMS)
def test_three_steps_from_their_parts(system):
    rng = np.random.default_rng(42)
    weights = decoder_weights(rng, system)
    states, ys = 0.5 * rng.normal(size=(5, 8)), rng.normal(size=(3, 4))
    result = key_value.decode(weights, system, states, ys)
    if system == "key-value":
        keys = states[:, [0, 1, 4, 5]] @ weights["key_kernel"]
        values = states[:, [2, 3, 6, 7]] @ weights["value_kernel"]
        last = np.r_[keys[4], values[4]]
    else:
        keys = values = states @ weights["annotation_kernel"]
        last = values[4]
    half = slice(0, 4) if system == "attn" else slice(0, 2)
    before = last @ weights["initial_kernel"]
    bottom = top = (before, np.zeros(4))  # h of every layer, c = 0
    for t in range(3):
        scores = keys[:, : before[half].size] @ top[0][half]
        alignment = np.exp(scores) / np.exp(scores).sum()
        bottom = recurrent.lstm_step(ys[t], bottom, **weights["layers"][0])
        top = recurrent.lstm_step(bottom[0], top, **weights["layers"][1])
        context = alignment @ values
        output = np.tanh(np.r_[top[0], context] @ weights["readout_kernel"])
        np.testing.assert_allclose(result["alignments"][t], alignment)
        np.testing.assert_allclose(result["states"][t], top[0])
        np.testing.assert_allclose(result["contexts"][t], context)
        np.testing.assert_allclose(result["outputs"][t], output)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_context_asks_before_the_word_is_read(system):
    rng = np.random.default_rng(43)
    weights, states = decoder_weights(rng, system), rng.normal(size=(3, 8))
    results = [key_value.decode(weights, system, states, rng.normal(size=(2, 4))) for _ in "ab"]
    first, second = (result["alignments"] for result in results)
    np.testing.assert_array_equal(first[0], second[0])
    assert not np.allclose(first[1], second[1])


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_source_reaches_the_state_only_through_its_start(system):
    # No input feeding: other positions change the contexts and leave the states.
    rng = np.random.default_rng(44)
    weights, ys = decoder_weights(rng, system), rng.normal(size=(3, 4))
    states = rng.normal(size=(3, 8))
    changed = np.concatenate([rng.normal(size=(2, 8)), states[2:]])
    first = key_value.decode(weights, system, states, ys)
    second = key_value.decode(weights, system, changed, ys)
    np.testing.assert_array_equal(first["states"], second["states"])
    assert not np.allclose(first["outputs"], second["outputs"])


# --- modifying-IW ------------------------------------------------------------------------


def as_single_memory(weights, width):
    """The single memory whose upper half is the keys and whose lower half the values."""
    half = width // 2
    annotation = np.zeros((2 * width, width))
    for direction in range(2):  # rows: k_fwd, v_fwd, k_bwd, v_bwd
        rows, key_rows = slice(direction * half, (direction + 1) * half), direction * width
        annotation[key_rows : key_rows + half, :half] = weights["key_kernel"][rows]
        annotation[key_rows + half : key_rows + width, half:] = weights["value_kernel"][rows]
    return annotation


def test_modifying_iw_starts_as_a_key_value_attention():
    # W_e keeps keys and values apart, and W_d starts with zeros: the whole sentence is
    # then the same, until training moves the one or the other.
    rng = np.random.default_rng(45)
    pairs = decoder_weights(rng, "key-value")
    full = rng.normal(size=(8, 4))
    modified = key_value.modified_readout(full)
    pairs["readout_kernel"] = full[[0, 1, 2, 3, 6, 7]]
    single = {**pairs, "annotation_kernel": as_single_memory(pairs, 4)}
    arguments = rng.normal(size=(5, 8)), rng.normal(size=(3, 4))
    expected = key_value.decode(pairs, "key-value", *arguments)
    start = {**single, "readout_kernel": modified}
    actual = key_value.decode(start, "modifying-IW", *arguments)
    for name in ("outputs", "alignments", "states"):
        np.testing.assert_allclose(actual[name], expected[name])
    np.testing.assert_allclose(actual["contexts"][:, 2:], expected["contexts"])
    moved = {**single, "readout_kernel": full}
    actual = key_value.decode(moved, "modifying-IW", *arguments)
    assert not np.allclose(actual["outputs"][0], expected["outputs"][0])
    # Without the mask the values would take part in the score.
    unmasked = key_value.decode(start, "attn", *arguments)
    assert not np.allclose(unmasked["alignments"][0], expected["alignments"][0])


def test_modified_readout_zeroes_the_upper_half_of_the_context():
    kernel = np.arange(1.0, 33.0).reshape(8, 4)
    modified = key_value.modified_readout(kernel)
    np.testing.assert_array_equal(modified[4:6], np.zeros((2, 4)))
    unchanged = [0, 1, 2, 3, 6, 7]
    np.testing.assert_array_equal(modified[unchanged], kernel[unchanged])
    assert kernel[4, 0] == 17.0  # the argument is left alone


def test_word_probabilities_have_a_bias():
    weights = {
        "projection_kernel": np.array([[math.log(2.0), 0.0], [0.0, 0.0]]),
        "projection_bias": np.array([0.0, math.log(3.0)]),
    }
    probabilities = key_value.word_probabilities(weights, np.array([[0.0, 9.0], [1.0, 9.0]]))
    np.testing.assert_allclose(probabilities, [[0.25, 0.75], [0.4, 0.6]])
