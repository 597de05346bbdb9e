"""Special cases of key-value memory attention, obtained by setting its weights.

Meng et al. 2018, section 3, say that it subsumes coverage models and interactive attention, MemAtt.
Coverage without a learned fertility is a special case. MemAtt is one only where what it rewrites is
not read as content: KVMemAtt reads its context from values that never change, MemAtt from what it
has rewritten. The cells compute what the oracles here compute (test_cells.py).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers.oracle_weights import random_unit
from oracles import coverage, kvmematt, rnnsearch

E, U, D, A, READOUT, S, T = 2, 5, 4, 6, 7, 5, 6  # as in the oracle; S source positions, T steps


def random_weights(rng):
    """Weights of one round; unit 0 of s_t is always 1, so that F and A can be any constants."""
    weights = {
        "query_gru": random_unit(rng, E, U, 3),
        "readout_kernel": rng.normal(size=(U + E + D, READOUT)),
        "initial_kernel": rng.normal(size=(D, U)),
        "initial_bias": rng.normal(size=U),
    }
    round_weights = {
        "query_kernel": rng.normal(size=(U, A)),
        "memory_kernel": rng.normal(size=(D, A)),
        "score_vector": rng.normal(size=A),
        "state_gru": random_unit(rng, D, U, 3),
        "write_query_kernel": rng.normal(size=(U, A)),
        "write_memory_kernel": rng.normal(size=(D, A)),
        "write_score_vector": rng.normal(size=A),
        "forget_kernel": rng.normal(size=(U, D)),
        "add_kernel": rng.normal(size=(U, D)),
    }
    gru = round_weights["state_gru"]
    for part in ("kernel", "recurrent_kernel"):
        gru[part][:, [0, 2 * U]] = 0.0
    gru["bias"][[0, 2 * U]] = -1000.0, 100.0  # the update gate is shut; tanh(100) is 1
    return {**weights, "rounds": [round_weights]}


def never_write(round_weights, columns):
    """Makes F and A exactly 0 in some columns of the keys."""
    for name in ("forget_kernel", "add_kernel"):
        round_weights[name][:, columns] = 0.0
        round_weights[name][0, columns] = -1000.0


def random_sentence(rng):
    return rng.normal(size=(S, D)), rng.normal(size=(T, E))


@pytest.mark.parametrize("seed", range(3))
def test_interactive_attention_whose_content_is_not_rewritten(seed):
    rng = np.random.default_rng(seed)
    weights, (annotations, words) = random_weights(rng), random_sentence(rng)
    (round_weights,) = weights["rounds"]
    rewritten, content = slice(0, 2), slice(2, D)
    never_write(round_weights, content)
    round_weights["state_gru"]["kernel"][rewritten] = (
        0.0  # what reads the context sees its content alone
    )
    weights["readout_kernel"][U + E :][rewritten] = 0.0
    ours = kvmematt.decode(weights, annotations, words)
    interactive = kvmematt.decode(weights, annotations, words, single_memory=True)
    for name in ("outputs", "states", "alignments", "keys"):
        np.testing.assert_allclose(ours[name], interactive[name], rtol=1e-12, err_msg=name)
    assert np.all(ours["key_drift"] > 0.1)  # it is rewritten, and the attention depends on it
    plain = rnnsearch.decode({**weights, **round_weights}, annotations, words)
    assert not np.allclose(ours["alignments"], plain["alignments"], atol=1e-3)


def test_interactive_attention_in_general_is_no_special_case():
    rng = np.random.default_rng(0)
    weights, (annotations, words) = random_weights(rng), random_sentence(rng)
    annotations -= 5.0  # far from 0, to which forgetting leads
    ours = kvmematt.decode(weights, annotations, words)
    interactive = kvmematt.decode(weights, annotations, words, single_memory=True)
    # With values that do not change, the context stays among the annotations' means ...
    low, high = annotations.min(axis=0), annotations.max(axis=0)
    assert np.all((low <= ours["contexts"]) & (ours["contexts"] <= high))
    # ... whatever the weights; what MemAtt reads leaves them.
    assert not np.all((low <= interactive["contexts"]) & (interactive["contexts"] <= high))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [0.25, 0.5])
def test_linguistic_coverage_is_a_special_case(seed, share):
    rng = np.random.default_rng(10 + seed)
    weights, (annotations, words) = random_weights(rng), random_sentence(rng)
    (round_weights,) = weights["rounds"]
    annotations[:, 0] = 0.0  # a number of each key that is free to count
    # Units 1 and 2 of s_t are those of q_t, and both addresses are queried with them alone.
    round_weights["state_gru"]["bias"][[1, 2]] = 1000.0
    round_weights["query_kernel"][[0, 3, 4]] = 0.0
    for name in ("query_kernel", "memory_kernel", "score_vector"):
        round_weights[f"write_{name}"] = round_weights[name]  # so that w_t is a_t
    never_write(round_weights, slice(0, D))
    round_weights["add_kernel"][:, 0] = 0.0
    round_weights["add_kernel"][0, 0] = math.log(share / (1 - share))  # A adds this share of a_t
    ours = kvmematt.decode(weights, annotations, words)
    covering = {
        **weights,
        **round_weights,
        "coverage_kernel": share * round_weights["memory_kernel"][:1],
    }
    covered = coverage.decode(covering, "linguistic", annotations, words)
    for name in ("outputs", "states", "alignments"):
        np.testing.assert_allclose(ours[name], covered[name], rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(ours["keys"][:, :, 0], share * covered["coverage"], rtol=1e-12)
    np.testing.assert_array_equal(ours["keys"][:, :, 1:], np.array([annotations[:, 1:]] * T))
    plain = rnnsearch.decode({**weights, **round_weights}, annotations, words)
    assert not np.allclose(ours["alignments"], plain["alignments"], atol=1e-3)
