"""The statistics of verdicts agree with the oracle's, and say only what is proven."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import verdicts as oracle

from tfmann.evaluation import verdicts
from tfmann.evaluation.verdicts import FAILS, HOLDS, INCONCLUSIVE, Estimate


def test_an_estimate_is_the_oracle_s():
    rng = np.random.default_rng(1)
    scores = rng.normal(0.4, 1.0, (3, 7)) + rng.normal(0, 0.3, (3, 1))
    resamples = rng.integers(0, 7, (50, 7))
    of_seeds, of_sentences = oracle.errors(scores, resamples)
    resampled = scores[:, resamples].mean(axis=2)
    variance = verdicts.sentence_variance(resampled)
    assert variance == pytest.approx(of_sentences)
    estimate = verdicts.estimate(scores.mean(axis=1), variance)
    assert estimate.mean == pytest.approx(scores.mean())
    assert estimate.error == pytest.approx(math.sqrt(of_seeds + of_sentences))
    assert estimate.freedom == 2


def test_the_error_is_that_of_drawing_seeds_and_sentences():
    # The closed form against a bootstrap that draws both. Its expectation has the seeds' variance
    # of every resample, times (S - 1) / S: at least ours with that factor.
    rng = np.random.default_rng(2)
    scores = rng.normal(0, 1, (4, 40)) + rng.normal(0, 0.5, (4, 1))
    resamples = rng.integers(0, 40, (4000, 40))
    resampled = scores[:, resamples].mean(axis=2)
    seeds = rng.integers(0, 4, (4000, 4))
    pigeonhole = np.take_along_axis(resampled.T, seeds, axis=1).mean(axis=1).var(ddof=1)
    of_sentences = verdicts.sentence_variance(resampled)
    expected = of_sentences + resampled.var(axis=0).mean() / 4
    assert pigeonhole == pytest.approx(expected, rel=0.15)  # 4,000 draws: 2 * sqrt(2 / 4000) is 5%
    of_seeds = verdicts.estimate(scores.mean(axis=1)).error ** 2
    assert of_seeds * 3 / 4 + of_sentences <= expected


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 31, 200])
@pytest.mark.parametrize("t", [-2.5, 0.0, 0.3, 2.0, 8.0])
def test_student_s_tail_is_the_integral(t, freedom):
    assert verdicts.student_tail(t, freedom) == pytest.approx(oracle.tail(t, freedom), abs=1e-6)


@pytest.mark.parametrize("freedom", [1, 2, 9, 30])
def test_an_interval_leaves_half_of_the_level_on_either_side(freedom):
    reach = 0.3 * oracle.quantile(0.025, freedom)
    assert verdicts.interval(Estimate(1.0, 0.3, freedom, True)) == pytest.approx(
        (1.0 - reach, 1.0 + reach), rel=1e-4
    )
    assert verdicts.interval(Estimate(1.0, math.inf, 0, False)) == (-math.inf, math.inf)


@pytest.mark.parametrize("mean", [-0.9, -0.2, 0.0, 0.3, 0.6, 1.4])
@pytest.mark.parametrize(("error", "freedom"), [(0.05, 2), (0.2, 3), (0.15, 40)])
def test_equivalence_is_an_interval_within_the_margins(mean, error, freedom):
    p = verdicts.p_inside(Estimate(mean, error, freedom, error > 0), -0.7, 0.7)
    for level in (0.01, 0.05):
        expected = oracle.equivalent(mean, error, freedom, -0.7, 0.7, level)
        assert (p < level) == expected


def test_holm_rejects_what_the_procedure_rejects():
    rng = np.random.default_rng(3)
    for count in (1, 2, 5, 12):
        for _ in range(30):
            p = list(rng.uniform(0, 1, count) ** 3)
            adjusted = verdicts.holm(p)
            assert [value <= 0.05 for value in adjusted] == oracle.holm_rejected(p, 0.05)
    assert verdicts.holm([]) == []
    assert verdicts.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def verdict_of(expect, mean, error=0.1, freedom=2, margin=0.7):
    low, high = verdicts.bounds(expect, margin)
    estimate = Estimate(mean, error, freedom, error > 0)
    return verdicts.verdict(
        verdicts.p_inside(estimate, low, high), verdicts.p_outside(estimate, low, high)
    )


@pytest.mark.parametrize(
    ("expect", "mean", "expected"),
    # 2.92 errors are 5% one-sided with two degrees of freedom, 4.30 errors 2.5%
    [
        ("higher", 0.30, HOLDS), ("higher", 0.28, INCONCLUSIVE), ("higher", -0.28, INCONCLUSIVE),
        ("higher", -0.30, FAILS), ("lower", -0.30, HOLDS), ("lower", 0.30, FAILS),
        ("alike", 0.0, HOLDS), ("alike", 0.40, HOLDS), ("alike", -0.40, HOLDS),
        ("alike", 0.42, INCONCLUSIVE), ("alike", 1.0, INCONCLUSIVE), ("alike", 1.14, FAILS),
        ("alike", -1.14, FAILS), ("no gain", 0.40, HOLDS), ("no gain", 0.42, INCONCLUSIVE),
        ("no gain", 0.98, INCONCLUSIVE), ("no gain", 1.0, FAILS), ("no gain", -9.0, HOLDS),
    ],
)  # fmt: skip
def test_only_proven_verdicts_are_given(expect, mean, expected):
    assert verdict_of(expect, mean) == expected


def test_a_noisy_difference_is_no_proof_that_there_is_none():
    for expect in ("alike", "no gain"):
        assert verdict_of(expect, 0.0, error=5.0) == INCONCLUSIVE


def test_one_seed_proves_nothing():
    estimate = verdicts.estimate([5.0], sentence_variance=0.01)
    assert estimate.freedom == 0
    for low, high in ((0.0, math.inf), (-math.inf, 0.0), (-9.0, 9.0)):
        assert (
            verdicts.p_inside(estimate, low, high) == verdicts.p_outside(estimate, low, high) == 1.0
        )


@pytest.mark.parametrize("difference", [0.0, 0.1])  # of counts, such as one sentence more
def test_seeds_that_all_differ_by_the_same_prove_nothing_of_others(difference):
    estimate = verdicts.estimate([difference] * 7)
    assert (estimate.error, estimate.freedom) == (0.0, 6)
    assert verdicts.p_above(estimate, 0.0) == verdicts.p_below(estimate, 0.0) == 1.0
    assert verdicts.p_inside(estimate, -0.5, 0.5) == 1.0
    assert verdicts.p_outside(estimate, -0.05, 0.05) == 1.0
