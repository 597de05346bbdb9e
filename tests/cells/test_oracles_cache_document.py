"""Tests of the oracle of the continuous cache over documents, with values known by hand."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.oracle_weights import random_unit
from oracles import cache, kvmematt, recurrent, rnnsearch

FUSIONS = ("deep", "shallow")
TARGETS = [[3, 0, 2], [5, 3, 6, 3, 2], [4, 2]]  # 0 is `<unk>`, 2 is `</s>`: both are written


def random_weights(rng, fusion, units=3, annotation=4, embedding=2, readout=5, vocabulary=7):
    width = units if fusion == "deep" else 1
    return {
        "query_gru": random_unit(rng, embedding, units, 3),
        "state_gru": random_unit(rng, annotation, units, 3),
        "query_kernel": rng.normal(size=(units, 6)),
        "memory_kernel": rng.normal(size=(annotation, 6)),
        "score_vector": rng.normal(size=6),
        "readout_kernel": rng.normal(size=(units + embedding + annotation, readout)),
        "initial_kernel": rng.normal(size=(annotation, units)),
        "initial_bias": rng.normal(size=units),
        "gate_state_kernel": rng.normal(size=(units, width)),
        "gate_context_kernel": rng.normal(size=(annotation, width)),
        "gate_retrieved_kernel": rng.normal(size=(units, width)),
        "projection_kernel": rng.normal(size=(readout, vocabulary)),
        "projection_bias": rng.normal(size=vocabulary),
    }


def random_document(rng, targets):
    """Sentences whose words are given, annotations 4 wide, embeddings 2 wide."""
    return [
        cache.Sentence(
            rng.normal(size=(2 + len(words), 4)), rng.normal(size=(len(words), 2)), words
        )
        for words in targets
    ]


# --- a document --------------------------------------------------------------------------


def softmax_of(scores):
    return np.exp(scores) / np.exp(scores).sum()


@pytest.mark.parametrize("fusion", FUSIONS)
def test_every_number_of_a_document(fusion):
    rng = np.random.default_rng(30)
    w, document = random_weights(rng, fusion), random_document(rng, TARGETS)
    result = cache.decode_document(w, document, slots=3, fusion=fusion)
    keys, values, words = np.zeros((0, 4)), np.zeros((0, 3)), []  # the last written last
    for sentence, actual in zip(document, result):
        s = np.tanh(sentence.annotations.mean(axis=0) @ w["initial_kernel"] + w["initial_bias"])
        to_write = []
        for t, y in enumerate(sentence.target_embeddings):
            q = recurrent.gru_step(y, s, **w["query_gru"])
            hidden = np.tanh(q @ w["query_kernel"] + sentence.annotations @ w["memory_kernel"])
            a = softmax_of(hidden @ w["score_vector"])
            c = a @ sentence.annotations
            s = recurrent.gru_step(c, q, **w["state_gru"])
            to_write.append((c, s))
            np.testing.assert_allclose(actual["alignments"][t], a)
            np.testing.assert_allclose(actual["contexts"][t], c)
            np.testing.assert_allclose(actual["states"][t], s)
            plain = np.tanh(np.r_[s, y, c] @ w["readout_kernel"])
            plain_p = softmax_of(plain @ w["projection_kernel"] + w["projection_bias"])
            np.testing.assert_allclose(actual["plain_outputs"][t], plain)
            np.testing.assert_allclose(actual["plain_probabilities"][t], plain_p)
            p = softmax_of(keys @ c)
            m = p @ values
            scores = s @ w["gate_state_kernel"] + c @ w["gate_context_kernel"]
            gate = 1 / (1 + np.exp(-(scores + m @ w["gate_retrieved_kernel"]))) * bool(words)
            np.testing.assert_allclose(np.sort(actual["match"][t])[3 - len(words) :], np.sort(p))
            np.testing.assert_allclose(actual["retrieved"][t], m)
            np.testing.assert_allclose(actual["gates"][t], gate)
            output, expected = plain, plain_p
            if fusion == "deep":
                mixed = s + gate * (m - s)
                output = np.tanh(np.r_[mixed, y, c] @ w["readout_kernel"])
                expected = softmax_of(output @ w["projection_kernel"] + w["projection_bias"])
            else:
                expected = (1 - gate) * plain_p
                np.add.at(expected, words, gate * p)
            np.testing.assert_allclose(actual["outputs"][t], output)
            np.testing.assert_allclose(actual["probabilities"][t], expected)
        for (c, s), word in zip(to_write, sentence.target_words):
            if word in words:
                slot = words.index(word)
                c, s = (keys[slot] + c) / 2, (values[slot] + s) / 2
            else:
                slot = 0 if len(words) == 3 else len(words)
            unchanged = [i for i in range(len(words)) if i != slot]
            keys, values = np.r_[keys[unchanged], [c]], np.r_[values[unchanged], [s]]
            words = [words[i] for i in unchanged] + [word]
        order = np.argsort(-actual["cache"].ages)
        assert list(actual["cache"].words[order]) == words
        np.testing.assert_allclose(actual["cache"].keys[order], keys)
        np.testing.assert_allclose(actual["cache"].values[order], values)
    assert words == [3, 4, 2]
    assert result[-1]["gates"].shape == (2, 3 if fusion == "deep" else 1)


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("slots", [0, 25])
def test_an_empty_cache_is_rnnsearch_to_the_last_bit(fusion, slots):
    rng = np.random.default_rng(31)
    weights, document = random_weights(rng, fusion), random_document(rng, TARGETS)
    result = cache.decode_document(weights, document, slots, fusion)
    for index, (sentence, actual) in enumerate(zip(document, result)):
        arguments = sentence.annotations, sentence.target_embeddings
        plain = rnnsearch.decode(weights, *arguments)
        for name in ("alignments", "states"):  # whatever the cache holds
            np.testing.assert_array_equal(actual[name], plain[name])
        np.testing.assert_array_equal(actual["plain_outputs"], plain["outputs"])
        if slots == 0 or index == 0:
            np.testing.assert_array_equal(actual["outputs"], plain["outputs"])
            np.testing.assert_array_equal(actual["probabilities"], actual["plain_probabilities"])
            assert not actual["gates"].any() and not actual["match"].any()
        else:
            assert np.all(actual["gates"] > 0.0)
            assert np.all(actual["probabilities"] != actual["plain_probabilities"])
            assert np.any(actual["outputs"] != plain["outputs"]) == (fusion == "deep")
        np.testing.assert_allclose(actual["probabilities"].sum(axis=1), np.ones(len(arguments[1])))


def test_a_sentence_does_not_see_its_own_words_and_a_document_begins_empty():
    rng = np.random.default_rng(32)
    weights, document = random_weights(rng, "deep"), random_document(rng, TARGETS)
    result = cache.decode_document(weights, document, 25)
    filled = [np.count_nonzero(decoded["match"], axis=1) for decoded in result]
    assert [list(counts) for counts in filled] == [[0] * 3, [3] * 5, [5] * 2]
    without_first = cache.decode_document(weights, document[1:], 25)
    np.testing.assert_array_equal(without_first[0]["outputs"], result[1]["plain_outputs"])


def test_overwriting_reaches_the_document():
    rng = np.random.default_rng(33)
    weights, document = random_weights(rng, "deep"), random_document(rng, TARGETS)
    for overwrite, words in ((True, [3, 0, 2, 5, 6, 4]), (False, sum(TARGETS, []))):
        entries = cache.decode_document(weights, document, 12, overwrite=overwrite)[-1]["cache"]
        assert list(entries.words) == words + [cache.EMPTY] * (12 - len(words))


def test_an_open_gate_shows_the_cache_and_a_shut_one_rnnsearch():
    rng = np.random.default_rng(34)
    document = random_document(rng, [[3], [4]])
    for fusion in FUSIONS:
        for sign in (1.0, -1.0):
            weights = random_weights(rng, fusion)
            # What the first sentence wrote decides: m_t is its only state.
            first = cache.decode_document(weights, document, 1, fusion)[0]
            for name in ("gate_state_kernel", "gate_context_kernel"):
                weights[name] = np.zeros_like(weights[name])
            direction = sign * 1e4 * np.sign(first["states"][0])
            width = weights["gate_retrieved_kernel"].shape[1]
            weights["gate_retrieved_kernel"] = np.tile(direction[:, None], width)
            actual = cache.decode_document(weights, document, 1, fusion)[1]
            np.testing.assert_array_equal(actual["gates"][0], [float(sign > 0)] * width)
            if sign < 0:
                np.testing.assert_array_equal(
                    actual["probabilities"], actual["plain_probabilities"]
                )
            elif fusion == "shallow":
                np.testing.assert_array_equal(actual["probabilities"], np.eye(7)[[3]])
            else:
                inputs = first["states"][0], document[1].target_embeddings[0], actual["contexts"][0]
                readout = np.tanh(np.concatenate(inputs) @ weights["readout_kernel"])
                np.testing.assert_array_equal(actual["outputs"][0], readout)


def test_an_unknown_fusion_is_refused():
    with pytest.raises(ValueError, match="expected one of deep, shallow"):
        cache.decode_document({}, [], 1, "medium")


# --- parameters --------------------------------------------------------------------------


def test_the_4_million_of_table_5():
    assert cache.count_parameters(1000, 2000) == round((88.2 - 84.2) * 1e6)
    assert cache.count_parameters(1000, 2000, "shallow") == 4_000
    # Annotations 1000 wide, as a sum of the two directions would be, give 3.0M.
    assert cache.count_parameters(1000, 1000) == 3_000_000
    # A bias of 1000 would not show: equation 8 prints none.


def test_the_baseline_of_the_cache():
    # Table 5 has 84.2M, which a decoder of a single GRU would fit.
    sizes = {"embedding": 620, "units": 1000, "annotation": 2000, "attention": 1000}
    vocabularies = {"source_vocabulary": 30000, "target_vocabulary": 30000}
    total = kvmematt.count_parameters(**sizes, readout=620, **vocabularies, rounds=0)
    assert round(total / 1e6, 2) == 86.67


@pytest.mark.parametrize("fusion", FUSIONS)
def test_the_count_is_that_of_the_weights(fusion):
    weights = random_weights(np.random.default_rng(0), fusion)
    gates = [array.size for name, array in weights.items() if name.startswith("gate_")]
    assert len(gates) == 3
    assert cache.count_parameters(3, 4, fusion) == sum(gates)
