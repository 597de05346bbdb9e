"""Tests of the oracles of recurrent units and of addressing, with values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.oracle_weights import random_unit, zero_unit
from oracles import addressing, recurrent

# --- recurrent ---------------------------------------------------------------------------


def test_sigmoid_at_known_points_and_without_overflow():
    x = [0.0, math.log(3.0), -1e4]
    np.testing.assert_allclose(recurrent.sigmoid(x), [0.5, 0.75, 0.0], atol=1e-15)


def test_gru_gates_are_ordered_update_reset_candidate():
    # One unit; h = 0.5; U_c = 2. A bias of +-100 opens or shuts a gate.
    def step(z, r, bias_c):
        return recurrent.gru_step(
            [0.0], [0.5], np.zeros((1, 3)), np.array([[0.0, 0.0, 2.0]]), [z, r, bias_c]
        )[0]

    assert step(100, 0, 0.3) == pytest.approx(0.5)  # z = 1 keeps the state
    assert step(-100, 100, 0.3) == pytest.approx(math.tanh(0.3 + 1.0))  # all new
    # r = 0 removes the recurrent product and leaves the bias, which is outside it.
    assert step(-100, -100, 0.3) == pytest.approx(math.tanh(0.3))
    assert step(0, 0, 0.3) == pytest.approx(0.5 * 0.5 + 0.5 * math.tanh(0.3 + 0.5 * 1.0))


def test_gru_reads_its_input():
    kernel = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 10.0]])
    h = recurrent.gru_step([0.2, 0.03], [0.0], kernel, np.zeros((1, 3)), np.zeros(3))
    assert h[0] == pytest.approx(0.5 * math.tanh(0.5))


def test_lstm_with_zero_weights_halves_its_cell():
    weights = zero_unit(3, 2, 4)
    h, c = recurrent.lstm_step(np.ones(3), (np.ones(2), np.array([0.8, -2.0])), **weights)
    np.testing.assert_allclose(c, [0.4, -1.0])  # sigmoid(0) c + sigmoid(0) tanh(0)
    np.testing.assert_allclose(h, 0.5 * np.tanh([0.4, -1.0]))


def test_lstm_gates_are_ordered_input_forget_candidate_output():
    def step(i, f, g, o):
        kernel, recurrent_kernel = np.zeros((1, 4)), np.zeros((1, 4))
        h, c = recurrent.lstm_step([0.0], ([0.0], [0.7]), kernel, recurrent_kernel, [i, f, g, o])
        return h[0], c[0]

    assert step(-100, 100, 9, 100) == pytest.approx((math.tanh(0.7), 0.7))  # keep
    assert step(100, -100, 0.3, 100) == pytest.approx((math.tanh(math.tanh(0.3)), math.tanh(0.3)))
    assert step(100, 100, 0.3, -100) == pytest.approx((0.0, 0.7 + math.tanh(0.3)))  # shut


def test_lstm_reads_input_and_state():
    kernel, recurrent_kernel = np.zeros((1, 4)), np.zeros((1, 4))
    kernel[0, 2], recurrent_kernel[0, 2] = 1.0, 2.0
    _, c = recurrent.lstm_step([0.3], ([0.1], [0.0]), kernel, recurrent_kernel, np.zeros(4))
    assert c[0] == pytest.approx(0.5 * math.tanh(0.3 + 0.2))


def test_float32_arguments_are_computed_in_float64():
    unit = {
        name: w.astype(np.float32)
        for name, w in random_unit(np.random.default_rng(0), 2, 3, 3).items()
    }
    h = recurrent.gru_step(np.ones(2, np.float32), np.ones(3, np.float32), **unit)
    assert h.dtype == np.float64


@pytest.mark.parametrize(("unit", "gates"), [("gru", 3), ("lstm", 4)])
def test_bidirectional_layer_ignores_padding(unit, gates):
    rng = np.random.default_rng(1)
    forward, backward = random_unit(rng, 2, 3, gates), random_unit(rng, 2, 3, gates)
    xs = rng.normal(size=(5, 2))
    padded = recurrent.bidirectional_layer(xs, 3, unit, forward, backward)
    short = recurrent.bidirectional_layer(xs[:3], 3, unit, forward, backward)
    np.testing.assert_array_equal(padded[0][:3], short[0])
    np.testing.assert_array_equal(padded[0][3:], np.zeros((2, 6)))
    for final, expected in zip(padded[1:], short[1:]):
        np.testing.assert_array_equal(final, expected)


def test_bidirectional_layer_reads_both_ways():
    rng = np.random.default_rng(2)
    forward, backward = random_unit(rng, 2, 3, 3), random_unit(rng, 2, 3, 3)
    xs = rng.normal(size=(2, 2))
    outputs, last_forward, last_backward = recurrent.bidirectional_layer(
        xs, 2, "gru", forward, backward
    )
    first = recurrent.gru_step(xs[0], np.zeros(3), **forward)
    second = recurrent.gru_step(xs[1], first, **forward)
    from_end = recurrent.gru_step(xs[1], np.zeros(3), **backward)
    to_start = recurrent.gru_step(xs[0], from_end, **backward)
    np.testing.assert_array_equal(outputs[0], np.concatenate([first, to_start]))
    np.testing.assert_array_equal(outputs[1], np.concatenate([second, from_end]))
    np.testing.assert_array_equal(last_forward, second)
    np.testing.assert_array_equal(last_backward, to_start)
    summed, _, _ = recurrent.bidirectional_layer(xs, 2, "gru", forward, backward, merge="sum")
    np.testing.assert_allclose(summed, outputs[:, :3] + outputs[:, 3:])


def test_stack_feeds_each_layer_with_the_one_below():
    rng = np.random.default_rng(3)
    layers = [random_unit(rng, 2, 3, 3), random_unit(rng, 3, 3, 3)]
    states = [rng.normal(size=3), rng.normal(size=3)]
    top, next_states = recurrent.stack_step("gru", layers, np.ones(2), states)
    below = recurrent.gru_step(np.ones(2), states[0], **layers[0])
    np.testing.assert_array_equal(next_states[0], below)
    np.testing.assert_array_equal(top, recurrent.gru_step(below, states[1], **layers[1]))
    np.testing.assert_array_equal(next_states[1], top)


# --- addressing --------------------------------------------------------------------------


def test_masked_softmax_of_known_scores():
    scores = [0.0, math.log(3.0), 500.0]
    np.testing.assert_allclose(addressing.masked_softmax(scores, 2), [0.25, 0.75, 0.0])


def test_masked_softmax_does_not_overflow():
    weights = addressing.masked_softmax([1e4, 0.0, 1e9], 2)
    np.testing.assert_array_equal(weights, [1.0, 0.0, 0.0])


def test_content_dot_multiplies_by_the_strength():
    keys = [[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]]
    weights = addressing.content_dot(2.0, [0.0, math.log(2.0)], keys, length=2)
    np.testing.assert_allclose(weights, [0.2, 0.8, 0.0])  # 1 : 2^2
    np.testing.assert_allclose(addressing.content_dot(0.0, [1.0, 1.0], keys), [1 / 3] * 3)


def test_cosine_similarity():
    assert addressing.cosine_similarity([3.0, 4.0], [4.0, 3.0]) == pytest.approx(0.96)
    assert addressing.cosine_similarity([1.0, 0.0], [-2.0, 0.0]) == pytest.approx(-1.0)
    assert addressing.cosine_similarity([0.0, 0.0], [1.0, 1.0]) == 0.0
    # The epsilon is added to the product of the norms, here as large as they are.
    assert addressing.cosine_similarity([1e-4, 0.0], [1e-4, 0.0]) == pytest.approx(0.5)


def test_interpolate_gate_one_takes_the_content():
    content, previous = [0.2, 0.8], [1.0, 0.0]
    np.testing.assert_allclose(addressing.interpolate(1.0, content, previous), content)
    np.testing.assert_allclose(addressing.interpolate(0.0, content, previous), previous)
    np.testing.assert_allclose(addressing.interpolate(0.25, content, previous), [0.8, 0.2])


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ([0, 0, 1], [0, 0, 1, 0, 0]),  # +1: one position forward
        ([0, 1, 0], [0, 1, 0, 0, 0]),
        ([1, 0, 0], [1, 0, 0, 0, 0]),  # -1: one position back
        ([0.5, 0.2, 0.3], [0.5, 0.2, 0.3, 0, 0]),
        ([0, 0, 0, 0, 1], [0, 0, 0, 1, 0]),  # J = 5: two positions forward
    ],
)
def test_shift_moves_a_one_hot_address(kernel, expected):
    weights = np.eye(5)[1]
    np.testing.assert_allclose(addressing.circular_shift(weights, kernel, 5), expected)


def test_shift_goes_round_the_true_length():
    forward, back = [0, 0, 1], [1, 0, 0]
    np.testing.assert_array_equal(
        addressing.circular_shift([0, 0, 1, 0, 0], forward, 3), [1, 0, 0, 0, 0]
    )
    np.testing.assert_array_equal(
        addressing.circular_shift([1, 0, 0, 0, 0], back, 3), [0, 0, 1, 0, 0]
    )


def test_shift_of_a_sentence_of_one_position_stays_there():
    np.testing.assert_allclose(addressing.circular_shift([1, 0], [0.2, 0.3, 0.5], 1), [1, 0])


def test_shift_kernel_must_be_odd():
    with pytest.raises(ValueError, match="odd"):
        addressing.circular_shift([1.0, 0.0], [0.5, 0.5], 2)


def test_sharpening():
    weights = np.array([0.5, 0.3, 0.2, 0.0])
    np.testing.assert_allclose(addressing.sharpen(weights, 1.0, 3), weights)
    np.testing.assert_allclose(addressing.sharpen(weights, 2.0, 3), np.array([25, 9, 4, 0]) / 38)


def test_sharpening_holds_where_float32_would_not():
    weights = np.zeros(520)
    weights[:512] = 1 / 512
    sharpened = addressing.sharpen(weights, 21.0, 512)
    np.testing.assert_allclose(sharpened, weights)
    one_hot = addressing.sharpen(np.eye(4)[2], 21.0, 4)
    np.testing.assert_allclose(one_hot, np.eye(4)[2], atol=1e-200)
    assert one_hot[0] > 0.0  # the floor of 1e-12
