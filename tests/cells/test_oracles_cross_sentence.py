"""Tests of the oracles of the two cross-sentence baselines, with values known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.oracle_weights import random_unit, zero_unit
from oracles import cross_sentence, recurrent, rnnsearch

SYSTEMS = {
    "summary": cross_sentence.decode_summary,
    "previous": cross_sentence.decode_previous,
}


def random_weights(rng, embedding=2, units=3, attention=5, readout=6):
    """The weights of both systems; annotations are 2U wide."""
    annotation = 2 * units
    names = "forward_gru", "backward_gru", "previous_forward_gru", "previous_backward_gru"
    encoders = {name: random_unit(rng, embedding, units, 3) for name in names}
    shapes = {
        "query_kernel": (units, attention),
        "memory_kernel": (annotation, attention),
        "score_vector": (attention,),
        "readout_kernel": (units + embedding + annotation, readout),
        "initial_kernel": (annotation, units),
        "initial_bias": (units,),
        "summary_initial_kernel": (units, units),
        "summary_state_kernel": (units, 3 * units),
        "gate_query_kernel": (units, units),
        "gate_context_kernel": (annotation, units),
        "gate_summary_kernel": (units, units),
        "previous_query_kernel": (units, attention),
        "previous_memory_kernel": (annotation, attention),
        "previous_score_vector": (attention,),
        "previous_state_kernel": (annotation, 3 * units),
        "previous_readout_kernel": (annotation, readout),
    }
    return {
        **encoders,
        "query_gru": random_unit(rng, embedding, units, 3),
        "state_gru": random_unit(rng, annotation, units, 3),
        "sentence_gru": random_unit(rng, embedding, units, 3),
        "document_gru": random_unit(rng, units, units, 3),
        **{name: rng.normal(size=shape) for name, shape in shapes.items()},
    }


def random_sentences(rng, lengths):
    return [rng.normal(size=(length, 2)) for length in lengths]


def softmax_of(scores):
    return np.exp(scores) / np.exp(scores).sum()


def last_state(gru, inputs, state):
    for x in inputs:
        state = recurrent.gru_step(x, state, **gru)
    return state


def annotate(forward, backward, xs, start):
    rows = []
    for position in range(len(xs)):
        left = last_state(forward, xs[: position + 1], start)
        right = last_state(backward, xs[position:][::-1], start)
        rows.append(np.r_[left, right])
    return np.array(rows)


def append_rows(gru, extra):
    return {**gru, "kernel": np.concatenate([gru["kernel"], extra])}


# --- what both see -----------------------------------------------------------------------


def test_history_is_the_previous_sentences_and_no_more():
    document = ["a", "b", "c", "d", "e"]
    history = [cross_sentence.history_of(document, i, cross_sentence.HISTORY) for i in range(5)]
    assert ["".join(before) for before in history] == ["", "a", "ab", "abc", "bcd"]
    assert cross_sentence.history_of(document, 2, 1) == ["b"]


def test_encode_without_a_beginning_is_the_bidirectional_layer():
    rng = np.random.default_rng(1)
    forward, backward = random_unit(rng, 2, 3, 3), random_unit(rng, 2, 3, 3)
    xs = rng.normal(size=(4, 2))
    plain, _, _ = recurrent.bidirectional_layer(xs, 4, "gru", forward, backward)
    encoded = cross_sentence.encode(forward, backward, xs, np.zeros(3))
    np.testing.assert_array_equal(encoded, plain)
    beginning = rng.normal(size=3)
    from_beginning = cross_sentence.encode(forward, backward, xs, beginning)
    np.testing.assert_allclose(from_beginning, annotate(forward, backward, xs, beginning))
    assert np.all(from_beginning != plain)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_first_sentence_of_a_document_is_rnnsearch(system):
    rng = np.random.default_rng(2)
    weights = random_weights(rng)
    xs, ys = rng.normal(size=(4, 2)), rng.normal(size=(5, 2))
    result = SYSTEMS[system](weights, xs, [], ys)
    h, _, _ = recurrent.bidirectional_layer(
        xs, 4, "gru", weights["forward_gru"], weights["backward_gru"]
    )
    plain = rnnsearch.decode(weights, h, ys)
    later = SYSTEMS[system](weights, xs, random_sentences(rng, [3]), ys)
    for name in ("outputs", "alignments", "states"):
        np.testing.assert_allclose(result[name], plain[name], rtol=1e-12)
        assert not np.allclose(later[name], plain[name])


# --- Wang et al. 2017a -------------------------------------------------------------------


def test_summary_by_hand():
    # GRUs that halve what they hold and add half of tanh(x); one unit, one number a word.
    weights = {name: zero_unit(1, 1, 3) for name in ("sentence_gru", "document_gru")}
    for gru in weights.values():
        gru["kernel"][0, 2] = 1.0
    history = [[[0.4], [0.8]], [[-0.6]]]
    first = 0.25 * math.tanh(0.4) + 0.5 * math.tanh(0.8)
    second = 0.5 * math.tanh(-0.6)  # each sentence starts from zero
    summary = cross_sentence.summarise(weights, history)
    np.testing.assert_allclose(summary, [0.25 * math.tanh(first) + 0.5 * math.tanh(second)])
    np.testing.assert_array_equal(cross_sentence.summarise(weights, []), [0.0])


def test_summary_gate_by_hand():
    weights = {
        "gate_query_kernel": np.array([[1.0, 2.0], [0.0, 0.0]]),
        "gate_context_kernel": np.array([[0.5, 0.0]]),
        "gate_summary_kernel": np.array([[0.0, 0.0], [0.0, 0.25]]),
    }
    z = cross_sentence.summary_gate(
        weights, np.array([1.0, 9.0]), np.array([4.0]), np.array([7.0, -4.0])
    )
    np.testing.assert_allclose(z, [1 / (1 + math.exp(-3.0)), 1 / (1 + math.exp(-1.0))])


@pytest.mark.parametrize("lengths", [[3], [1, 4], [2, 3, 1]])
def test_every_number_of_summary(lengths):
    rng = np.random.default_rng(sum(lengths))
    w, history = random_weights(rng), random_sentences(rng, lengths)
    xs, ys = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    result = cross_sentence.decode_summary(w, xs, history, ys)
    last = [last_state(w["sentence_gru"], words, np.zeros(3)) for words in history]
    d = last_state(w["document_gru"], last, np.zeros(3))
    h = annotate(w["forward_gru"], w["backward_gru"], xs, d)
    np.testing.assert_allclose(result["summary"], d)
    np.testing.assert_allclose(result["annotations"], h)
    s = h.mean(axis=0) @ w["initial_kernel"] + d @ w["summary_initial_kernel"]
    s = np.tanh(s + w["initial_bias"])
    for t, y in enumerate(ys):
        q = recurrent.gru_step(y, s, **w["query_gru"])
        a = softmax_of(np.tanh(q @ w["query_kernel"] + h @ w["memory_kernel"]) @ w["score_vector"])
        c = a @ h
        z = q @ w["gate_query_kernel"] + c @ w["gate_context_kernel"]
        z = 1 / (1 + np.exp(-(z + d @ w["gate_summary_kernel"])))
        gru = append_rows(w["state_gru"], w["summary_state_kernel"])
        s = recurrent.gru_step(np.r_[c, z * d], q, **gru)
        np.testing.assert_allclose(result["alignments"][t], a)
        np.testing.assert_allclose(result["gates"][t], z)
        np.testing.assert_allclose(result["states"][t], s)
        output = np.tanh(np.r_[s, y, c] @ w["readout_kernel"])
        np.testing.assert_allclose(result["outputs"][t], output)


def test_the_order_of_the_sentences_matters_and_the_last_weighs_most():
    weights = {name: zero_unit(1, 1, 3) for name in ("sentence_gru", "document_gru")}
    for gru in weights.values():
        gru["kernel"][0, 2] = 1.0
    history = [[[0.9]], [[0.0]]]
    late, early = (cross_sentence.summarise(weights, h) for h in (history[::-1], history))
    np.testing.assert_allclose(late, 2 * early)


# --- Jean et al. 2017 --------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [[3], [1], [2, 4]])
def test_every_number_of_previous(lengths):
    rng = np.random.default_rng(10 + sum(lengths))
    w, history = random_weights(rng), random_sentences(rng, lengths)
    xs, ys = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    result = cross_sentence.decode_previous(w, xs, history, ys)
    h = annotate(w["forward_gru"], w["backward_gru"], xs, np.zeros(3))
    before = annotate(
        w["previous_forward_gru"], w["previous_backward_gru"], history[-1], np.zeros(3)
    )
    s = np.tanh(h.mean(axis=0) @ w["initial_kernel"] + w["initial_bias"])
    for t, y in enumerate(ys):
        q = recurrent.gru_step(y, s, **w["query_gru"])
        a = softmax_of(np.tanh(q @ w["query_kernel"] + h @ w["memory_kernel"]) @ w["score_vector"])
        hidden = np.tanh(q @ w["previous_query_kernel"] + before @ w["previous_memory_kernel"])
        b = softmax_of(hidden @ w["previous_score_vector"])
        c, p = a @ h, b @ before
        s = recurrent.gru_step(
            np.r_[c, p], q, **append_rows(w["state_gru"], w["previous_state_kernel"])
        )
        output = np.r_[s, y, c] @ w["readout_kernel"] + p @ w["previous_readout_kernel"]
        np.testing.assert_allclose(result["alignments"][t], a)
        np.testing.assert_allclose(result["previous_alignments"][t], b)
        np.testing.assert_allclose(result["previous_contexts"][t], p)
        np.testing.assert_allclose(result["states"][t], s)
        np.testing.assert_allclose(result["outputs"][t], np.tanh(output))


def test_only_the_last_sentence_is_looked_at():
    rng = np.random.default_rng(20)
    weights, (first, last) = random_weights(rng), random_sentences(rng, [3, 3])
    xs, ys = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    outputs = [
        cross_sentence.decode_previous(weights, xs, history, ys)["outputs"]
        for history in ([last], [first, last], [first])
    ]
    np.testing.assert_array_equal(outputs[1], outputs[0])
    assert not np.allclose(outputs[2], outputs[0])


def test_without_history_there_is_nothing_to_look_at():
    rng = np.random.default_rng(21)
    xs, ys = rng.normal(size=(2, 2)), rng.normal(size=(3, 2))
    result = cross_sentence.decode_previous(random_weights(rng), xs, [], ys)
    assert result["previous_alignments"].shape == (3, 0)
    np.testing.assert_array_equal(result["previous_contexts"], np.zeros((3, 6)))


# --- parameters --------------------------------------------------------------------------


def test_the_counts_are_those_of_the_weights():
    def sizes(*names):
        parts = [weights[name] for name in names]
        arrays = [a for p in parts for a in (p.values() if isinstance(p, dict) else [p])]
        return sum(array.size for array in arrays)

    weights = random_weights(np.random.default_rng(0))
    assert cross_sentence.summary_parameters(2, 3, 6) == {
        "sentence_gru": sizes("sentence_gru"),
        "document_gru": sizes("document_gru"),
        "initial_state": sizes("summary_initial_kernel"),
        "gate": sizes("gate_query_kernel", "gate_context_kernel", "gate_summary_kernel"),
        "state_gru": sizes("summary_state_kernel"),
    }
    attention = "previous_query_kernel", "previous_memory_kernel", "previous_score_vector"
    assert cross_sentence.previous_parameters(2, 3, 6, 5, 6) == {
        "encoder": sizes("previous_forward_gru", "previous_backward_gru"),
        "attention": sizes(*attention),
        "state_gru": sizes("previous_state_kernel"),
        "readout": sizes("previous_readout_kernel"),
    }
