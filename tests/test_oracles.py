"""Tests of the oracles themselves, with values that can be computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import addressing, beam, luong, ntm_attention, objective, recurrent, rnnsearch


def random_unit(rng, inputs, units, gates):
    return {
        "kernel": rng.normal(size=(inputs, gates * units)),
        "recurrent_kernel": rng.normal(size=(units, gates * units)),
        "bias": rng.normal(size=gates * units),
    }


def zero_unit(inputs, units, gates):
    return {
        "kernel": np.zeros((inputs, gates * units)),
        "recurrent_kernel": np.zeros((units, gates * units)),
        "bias": np.zeros(gates * units),
    }


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
    # r = 0 removes the recurrent product and leaves the bias, which stands outside it.
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
    # The epsilon stands beside the product of the norms, here as large as they are.
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


# --- beam --------------------------------------------------------------------------------


def table_step(table, alignments=None):
    """A model whose next-word probabilities depend on the last token only."""
    alignments = alignments or {}

    def step(token, state):
        return np.log(table[token]), state + 1, alignments.get(token, np.array([1.0]))

    return step


def random_step(seed, vocab_size=4, positions=2):
    """A model whose probabilities and attention depend on the whole history."""

    def step(token, history):
        history = (*history, token)
        rng = np.random.default_rng([seed, *history])
        log_probs = np.log(rng.dirichlet(np.ones(vocab_size)))
        return log_probs, history, rng.dirichlet(np.ones(positions))

    return step


def test_length_penalty_of_wu_et_al():
    assert beam.length_penalty(1, 0.7) == 1.0
    assert beam.length_penalty(7, 1.0) == pytest.approx(2.0)
    assert beam.length_penalty(19, 0.5) == pytest.approx(2.0)


def test_coverage_penalty_clips_at_one_and_at_the_floor():
    alignments = np.array([[0.25, 0.75, 0.0], [0.25, 0.75, 0.0]])
    expected = math.log(0.5) + 0.0 + math.log(1e-9)
    assert beam.coverage_penalty(alignments) == pytest.approx(expected)


GARDEN_PATH = {
    # Greedy takes 3 (0.6), whose continuations are poor; 0 then </s> is likelier.
    1: [0.4, 1e-9, 1e-9, 0.6],
    3: [0.3, 0.3, 0.2, 0.2],
    0: [0.05, 0.03, 0.9, 0.02],
}


def test_beam_of_two_leaves_the_garden_path():
    step = table_step(GARDEN_PATH)
    assert beam.greedy(step, 0, limit=2).ids == (3, 2)
    assert beam.greedy(step, 0, limit=2).log_prob == pytest.approx(math.log(0.6 * 0.2))
    best, second = beam.beam_search(step, 0, beam_width=2, limit=2)
    assert best.ids == (0, 2)
    assert best.score == best.log_prob == pytest.approx(math.log(0.4 * 0.9))
    # Forced at the limit, and paid for: 0.2, though 0 was likelier there.
    assert second.ids == (3, 2)
    assert second.log_prob == pytest.approx(math.log(0.6 * 0.2))


def test_limit_of_one_leaves_the_empty_translation():
    hypotheses = beam.beam_search(table_step(GARDEN_PATH), 0, beam_width=3, limit=1)
    assert [hypothesis.ids for hypothesis in hypotheses] == [(2,)]
    assert hypotheses[0].log_prob == pytest.approx(math.log(1e-9))


def test_finished_hypotheses_stay_and_compete():
    # </s> at once has 0.5; everything else is worse; the beam of 1 stops there, and the
    # beam of 2 still has it first after the other has finished.
    table = {1: [0.3, 0.1, 0.5, 0.1], 0: [0.1, 0.1, 0.7, 0.1]}
    calls = []

    def step(token, state):
        calls.append(token)
        return table_step(table)(token, state)

    assert [h.ids for h in beam.beam_search(step, 0, beam_width=1, limit=9)] == [(2,)]
    assert calls == [1]  # a finished hypothesis is not continued
    hypotheses = beam.beam_search(step, 0, beam_width=2, limit=9)
    assert [h.ids for h in hypotheses] == [(2,), (0, 2)]
    assert hypotheses[0].log_prob == pytest.approx(math.log(0.5))
    assert calls == [1, 1, 0]


def test_end_is_counted_only_after_the_step_that_chooses_it():
    # alpha = 2 and a long limit. At the first step </s> has length 0 and word 0 has
    # length 1, so that </s> (log 0.4 / (25/36)) loses to word 0 (log 0.35 / 1), although
    # its settled score, log 0.4, is the better one.
    table = {1: [0.35, 0.125, 0.4, 0.125], 0: [0.001, 0.001, 0.997, 0.001]}
    step = table_step(table)
    (best,) = beam.beam_search(step, 0, beam_width=1, limit=5, alpha=2.0)
    assert math.log(0.4) / beam.length_penalty(0, 2.0) < math.log(0.35)
    assert best.ids == (0, 2)
    # The settled score counts </s>: length 2.
    assert best.score == pytest.approx(math.log(0.35 * 0.997) / (7 / 6) ** 2)
    # Once in the beam, </s> is counted: in a beam of 2 its score is log 0.4 / 1.
    by_ids = {h.ids: h.score for h in beam.beam_search(step, 0, 2, limit=5, alpha=2.0)}
    assert by_ids[(2,)] == pytest.approx(math.log(0.4))


def test_a_finished_hypothesis_competes_with_its_settled_score():
    # alpha = 2. At step 1 the continuations 3 0 and 3 3 score about log(0.26) / (7/6)^2,
    # -0.99. The hypothesis </s> scored log 0.4 / (5/6)^2 = -1.32 when it was chosen and
    # would be pushed out by both; its settled score of log 0.4 = -0.92 keeps it.
    table = {1: [0.01, 0.01, 0.4, 0.58], 3: [0.46, 0.01, 0.08, 0.45], 0: [0.01, 0.01, 0.97, 0.01]}
    hypotheses = beam.beam_search(table_step(table), 0, beam_width=2, limit=3, alpha=2.0)
    scores = {h.ids: h.score for h in hypotheses}
    assert set(scores) == {(2,), (3, 0, 2)}
    assert scores[(2,)] == pytest.approx(math.log(0.4))
    assert scores[(3, 0, 2)] == pytest.approx(math.log(0.58 * 0.46 * 0.97) / (8 / 6) ** 2)


def test_coverage_prefers_the_hypothesis_that_saw_the_whole_source():
    # Words 0 and 3 are equally likely; after 0 the second position is looked at.
    table = {1: [0.5, 1e-9, 1e-9, 0.5], 0: [1e-9, 1e-9, 1.0, 1e-9], 3: [1e-9, 1e-9, 1.0, 1e-9]}
    looks = {1: np.array([1.0, 0.0]), 0: np.array([0.5, 0.5]), 3: np.array([1.0, 0.0])}
    step = table_step(table, looks)
    hypotheses = beam.beam_search(step, 0, beam_width=2, limit=4, beta=0.1)
    assert [h.ids for h in hypotheses] == [(0, 2), (3, 2)]
    np.testing.assert_array_equal(hypotheses[0].alignments, [[1.0, 0.0], [0.5, 0.5]])
    expected = math.log(0.5) + 0.1 * (math.log(1.0) + math.log(0.5))
    assert hypotheses[0].score == pytest.approx(expected)
    assert hypotheses[1].score == pytest.approx(math.log(0.5) + 0.1 * math.log(1e-9))


def test_coverage_counts_when_candidates_are_chosen():
    # 3 </s> is the likeliest, but both continuations of 0 have seen the second position.
    table = {1: [0.5, 1e-9, 1e-9, 0.5], 0: [0.3, 0.01, 0.4, 0.29], 3: [0.01, 0.01, 0.97, 0.01]}
    looks = {1: np.array([1.0, 0.0]), 0: np.array([0.5, 0.5]), 3: np.array([1.0, 0.0])}
    hypotheses = beam.beam_search(table_step(table, looks), 0, beam_width=2, limit=3, beta=0.1)
    assert {h.ids for h in hypotheses} == {(0, 2), (0, 0, 2)}


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (0.9, 0.0), (0.6, 0.2)])
@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_is_the_exhaustive_search(seed, alpha, beta):
    step = random_step(seed)
    everything = beam.exhaustive(step, (), vocab_size=4, limit=4, alpha=alpha, beta=beta)
    assert len(everything) == 1 + 3 + 9 + 27
    found = beam.beam_search(step, (), beam_width=200, limit=4, alpha=alpha, beta=beta)
    assert [h.ids for h in found] == [h.ids for h in everything]
    np.testing.assert_allclose([h.score for h in found], [h.score for h in everything])
    for hypothesis, expected in zip(found, everything):
        np.testing.assert_array_equal(hypothesis.alignments, expected.alignments)


def test_exhaustive_probabilities_and_the_unfinished_ones_sum_to_one():
    # All mass but that of the sequences cut off by the limit is among the finished ones.
    table = {token: [0.1, 0.2, 0.4, 0.3] for token in (0, 1, 3)}
    found = beam.exhaustive(table_step(table), 0, vocab_size=4, limit=3)
    total = sum(math.exp(h.log_prob) for h in found)
    assert total == pytest.approx(1.0 - 0.6**3)


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_of_one_is_greedy(seed):
    step = random_step(seed, vocab_size=6)
    alone = beam.greedy(step, (), limit=6)
    (best,) = beam.beam_search(step, (), beam_width=1, limit=6)
    assert best.ids == alone.ids
    assert len(best.ids) <= 6
    assert best.ids[-1] == 2
    assert best.score == alone.score
    np.testing.assert_array_equal(best.alignments, alone.alignments)


@pytest.mark.parametrize("seed", range(5))
def test_a_hypothesis_has_the_score_of_its_forced_decoding(seed):
    step = random_step(seed, vocab_size=5)
    for hypothesis in beam.beam_search(step, (), beam_width=4, limit=5, alpha=0.8, beta=0.1):
        token, state, log_prob, alignments = 1, (), 0.0, []
        for next_token in hypothesis.ids:
            log_probs, state, alignment = step(token, state)
            log_prob += log_probs[next_token]
            alignments.append(alignment)
            token = next_token
        np.testing.assert_array_equal(hypothesis.alignments, alignments)
        assert hypothesis.log_prob == pytest.approx(log_prob)
        cov = np.minimum(np.sum(alignments, axis=0), 1.0)
        expected = log_prob / ((5 + len(hypothesis.ids)) / 6) ** 0.8 + 0.1 * np.log(cov).sum()
        assert hypothesis.score == pytest.approx(expected)


# --- objective ---------------------------------------------------------------------------


def test_cross_entropy_of_known_probabilities():
    logits = [np.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]), np.log([[0.2, 0.2, 0.6]])]
    targets = [[0, 2], [1]]
    total = -math.log(0.5) - math.log(0.8) - math.log(0.2)
    assert objective.cross_entropy(logits, targets, "sentence") == pytest.approx(total / 2)
    assert objective.cross_entropy(logits, targets, "token") == pytest.approx(total / 3)


def test_label_smoothing_spreads_over_the_whole_vocabulary():
    logits = np.log([0.5, 0.25, 0.25])
    expected = -(0.8 + 0.1 - 1 / 30) * math.log(0.5) - 2 * (0.1 - 1 / 30) * math.log(0.25)
    loss = objective.token_cross_entropy(logits, 0, label_smoothing=0.2)
    assert loss == pytest.approx(expected)
    uniform = objective.token_cross_entropy(np.zeros(4), 1, label_smoothing=0.3)
    assert uniform == pytest.approx(math.log(4.0))


def test_cross_entropy_does_not_overflow():
    assert objective.token_cross_entropy([1e4, 0.0], 1) == pytest.approx(1e4)


def test_luong234_halves_four_times_at_the_end_of_12000_steps():
    def rate(step):
        return objective.learning_rate(step, 1.0, decay_scheme="luong234", num_train_steps=12000)

    for step, expected in [
        (0, 1.0),
        (8000, 1.0),
        (8999, 1.0),
        (9000, 0.5),
        (9999, 0.5),
        (10000, 0.25),
        (11000, 0.125),
        (11999, 0.125),
        (12000, 0.0625),
    ]:
        assert rate(step) == expected, step


@pytest.mark.parametrize(
    ("scheme", "interval", "times"), [("luong5", 1200, 5), ("luong10", 600, 10)]
)
def test_luong5_and_luong10_start_half_way(scheme, interval, times):
    def factor(step):
        return objective.decay_factor(step, scheme, 12000)

    assert factor(6000) == 1.0
    for halving in range(1, times + 1):
        step = 6000 + halving * interval
        assert factor(step - 1) == 0.5 ** (halving - 1)
        assert factor(step) == 0.5**halving
    assert step == 12000


def test_start_and_interval_are_rounded_down():
    # 1000 steps of luong234: start 666, interval 334 // 4 = 83.
    factors = [objective.decay_factor(step, "luong234", 1000) for step in (748, 749, 998)]
    assert factors == [1.0, 0.5, 0.0625]
    assert objective.decay_factor(2, "luong10", 3) == 0.5  # an interval of one step


def test_warmup_rises_a_hundredfold():
    rates = [objective.learning_rate(step, 0.5, warmup_steps=100) for step in (0, 50, 100, 101)]
    assert rates == pytest.approx([0.005, 0.05, 0.5, 0.5])
    both = objective.learning_rate(
        9000, 1.0, warmup_steps=18000, decay_scheme="luong234", num_train_steps=12000
    )
    assert both == pytest.approx(0.1 * 0.5)


def test_sgd():
    np.testing.assert_allclose(objective.sgd_step([1.0, 2.0], [0.5, -1.0], 0.1), [0.95, 2.1])


def test_adam_first_steps_move_by_the_learning_rate():
    # With a constant gradient m / sqrt(v) is sign(g) after correction, at every step.
    variable, m, v = np.zeros(2), np.zeros(2), np.zeros(2)
    for time in (1, 2, 3):
        variable, m, v = objective.adam_step(variable, [2.0, -0.1], m, v, time, 0.01)
    np.testing.assert_allclose(variable, [-0.03, 0.03], rtol=1e-5)
    np.testing.assert_allclose(m, np.array([2.0, -0.1]) * (1 - 0.9**3))
    np.testing.assert_allclose(v, np.array([4.0, 0.01]) * (1 - 0.999**3))


def test_adam_epsilon_is_not_corrected_for_bias():
    # g = epsilon / sqrt(1 - beta2) makes sqrt(v) = epsilon, which halves the first step.
    epsilon = 1e-8
    gradient = epsilon / math.sqrt(0.001)
    variable, _, _ = objective.adam_step(0.0, gradient, 0.0, 0.0, time=1, learning_rate=0.01)
    assert variable == pytest.approx(-0.005)


def test_adadelta_two_steps():
    x, squared_g, squared_dx = objective.adadelta_step(1.0, 2.0, 0.0, 0.0)
    first = math.sqrt(1e-6) / math.sqrt(0.05 * 4.0 + 1e-6) * 2.0
    assert x == pytest.approx(1.0 - first)
    assert squared_g == pytest.approx(0.2)
    assert squared_dx == pytest.approx(0.05 * first**2)
    y, squared_g, _ = objective.adadelta_step(x, -1.0, squared_g, squared_dx, learning_rate=0.5)
    assert squared_g == pytest.approx(0.95 * 0.2 + 0.05)
    second = math.sqrt(0.05 * first**2 + 1e-6) / math.sqrt(0.24 + 1e-6)
    assert y == pytest.approx(1.0 - first + 0.5 * second)


def test_adadelta_gathers_the_update_before_the_learning_rate():
    _, _, full = objective.adadelta_step(0.0, 1.0, 0.0, 0.0, learning_rate=1.0)
    _, _, tenth = objective.adadelta_step(0.0, 1.0, 0.0, 0.0, learning_rate=0.1)
    assert full == tenth > 0.0


def test_clip_by_global_norm():
    gradients = [np.array([3.0, 0.0]), np.array([[4.0]])]
    clipped, norm = objective.clip_by_global_norm(gradients, 2.5)
    assert norm == 5.0
    np.testing.assert_allclose(clipped[0], [1.5, 0.0])
    np.testing.assert_allclose(clipped[1], [[2.0]])
    untouched, _ = objective.clip_by_global_norm(gradients, 50.0)
    np.testing.assert_array_equal(untouched[0], gradients[0])
