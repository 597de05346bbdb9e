"""Tests of the oracle of beam search, with probabilities that can be multiplied by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import beam


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
    attention = {1: np.array([1.0, 0.0]), 0: np.array([0.5, 0.5]), 3: np.array([1.0, 0.0])}
    step = table_step(table, attention)
    hypotheses = beam.beam_search(step, 0, beam_width=2, limit=4, beta=0.1)
    assert [h.ids for h in hypotheses] == [(0, 2), (3, 2)]
    np.testing.assert_array_equal(hypotheses[0].alignments, [[1.0, 0.0], [0.5, 0.5]])
    expected = math.log(0.5) + 0.1 * (math.log(1.0) + math.log(0.5))
    assert hypotheses[0].score == pytest.approx(expected)
    assert hypotheses[1].score == pytest.approx(math.log(0.5) + 0.1 * math.log(1e-9))


def test_coverage_counts_when_candidates_are_chosen():
    # 3 </s> is the likeliest, but both continuations of 0 have seen the second position.
    table = {1: [0.5, 1e-9, 1e-9, 0.5], 0: [0.3, 0.01, 0.4, 0.29], 3: [0.01, 0.01, 0.97, 0.01]}
    attention = {1: np.array([1.0, 0.0]), 0: np.array([0.5, 0.5]), 3: np.array([1.0, 0.0])}
    hypotheses = beam.beam_search(table_step(table, attention), 0, beam_width=2, limit=3, beta=0.1)
    assert {h.ids for h in hypotheses} == {(0, 2), (0, 0, 2)}


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.0), (0.9, 0.0), (0.6, 0.2)])
@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_is_the_exhaustive_search(seed, alpha, beta):
    step = random_step(seed, vocab_size=5)
    everything = beam.exhaustive(step, (), vocab_size=5, limit=4, alpha=alpha, beta=beta)
    assert len(everything) == 1 + 3 + 9 + 27
    hypotheses = beam.beam_search(step, (), beam_width=200, limit=4, alpha=alpha, beta=beta)
    assert [h.ids for h in hypotheses] == [h.ids for h in everything]
    np.testing.assert_allclose([h.score for h in hypotheses], [h.score for h in everything])
    for hypothesis, expected in zip(hypotheses, everything):
        np.testing.assert_array_equal(hypothesis.alignments, expected.alignments)


def test_exhaustive_probabilities_and_the_unfinished_ones_sum_to_one():
    # All mass but that of <s> and of the sequences cut off by the limit is among the finished ones.
    table = {token: [0.1, 0.2, 0.4, 0.3] for token in (0, 1, 3)}
    hypotheses = beam.exhaustive(table_step(table), 0, vocab_size=4, limit=3)
    total = sum(math.exp(h.log_prob) for h in hypotheses)
    assert total == pytest.approx(0.4 * (1 + 0.4 + 0.4**2))


@pytest.mark.parametrize("seed", range(8))
def test_a_beam_of_one_is_greedy(seed):
    step = random_step(seed, vocab_size=6)
    greedy = beam.greedy(step, (), limit=6)
    (best,) = beam.beam_search(step, (), beam_width=1, limit=6)
    assert best.ids == greedy.ids
    assert len(best.ids) <= 6
    assert best.ids[-1] == 2
    assert best.score == greedy.score
    np.testing.assert_array_equal(best.alignments, greedy.alignments)


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
