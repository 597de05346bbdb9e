from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
import sacrebleu
from helpers.simulated_systems import corpus, damage

from tfmann.errors import UsageError, UserError
from tfmann.evaluation import significance


def corpus_bleu(lines, references, tokenize="none"):
    return sacrebleu.corpus_bleu(lines, references, tokenize=tokenize, force=True).score


def naive_swaps(baseline, system, references, tokenize):
    score = corpus_bleu(baseline, references, tokenize)
    counts = {1: 0, -1: 0, 0: 0}
    for i in range(len(baseline)):
        swapped = baseline[:i] + [system[i]] + baseline[i + 1 :]
        new = corpus_bleu(swapped, references, tokenize)
        counts[(new > score) - (new < score)] += 1
    return counts[1], counts[-1], counts[0]


@pytest.mark.parametrize("tokenize", ["none", "13a"])
@pytest.mark.parametrize("sets", [1, 2])
def test_swaps_equal_a_naive_recomputation(sets, tokenize):
    truth = corpus(1, 30)
    references = [truth, damage(truth, 2, 0.3)][:sets]
    baseline, system = damage(truth, 3, 0.4), damage(truth, 4, 0.25)
    system[:4] = baseline[:4]
    result = significance.compare(baseline, system, references, tokenize)
    counts = (result.better, result.worse, result.ties)
    assert counts == naive_swaps(baseline, system, references, tokenize)
    assert result.ties >= 4
    assert result.better > result.worse > 0
    assert result.baseline_bleu == corpus_bleu(baseline, references, tokenize)
    assert result.system_bleu == corpus_bleu(system, references, tokenize)
    assert f"tok:{tokenize}" in result.signature


def test_case_counts_only_where_set():
    truth = corpus(1, 30)
    baseline = damage(truth, 3, 0.4)
    shouted = [line.upper() for line in baseline]
    assert significance.compare(baseline, shouted, [truth]).worse > 20
    result = significance.compare(baseline, shouted, [truth], lowercase=True)
    assert (result.better, result.worse, result.bootstrap_p) == (0, 0, 1.0)
    assert result.system_bleu == result.baseline_bleu == corpus_bleu(baseline, [truth])
    assert "case:lc" in result.signature and "case:lc" in result.bootstrap_signature


def test_identical_systems_do_not_differ():
    truth = corpus(5, 20)
    system = damage(truth, 6, 0.3)
    result = significance.compare(system, list(system), [truth])
    assert (result.better, result.worse, result.ties) == (0, 0, 20)
    assert result.sign_test_p == 1.0
    assert result.bootstrap_p == 1.0


def test_a_clear_difference_is_significant_both_ways_round():
    truth = corpus(7, 120)
    poor, good = damage(truth, 8, 0.6), damage(truth, 9, 0.1)
    for baseline, system in ((poor, good), (good, poor)):
        result = significance.compare(baseline, system, [truth])
        assert result.sign_test_p < 1e-6
        assert result.bootstrap_p < 0.01
    assert result.worse > result.better


def test_equally_damaged_systems_are_not_significant():
    truth = corpus(10, 100)
    result = significance.compare(damage(truth, 11, 0.3), damage(truth, 13, 0.3), [truth])
    assert result.sign_test_p > 0.05
    assert result.bootstrap_p > 0.05


def test_bootstrap_is_reproducible_and_says_how_it_was_taken():
    truth = corpus(14, 25)
    lines = damage(truth, 15, 0.3), damage(truth, 16, 0.2)
    first, second = (significance.compare(*lines, [truth]) for _ in range(2))
    assert first == second
    assert "bs:1000" in first.bootstrap_signature
    assert "seed:" in first.bootstrap_signature


@pytest.mark.parametrize(
    ("better", "worse", "expected"),
    [(0, 0, 1.0), (1, 0, 1.0), (5, 0, 2 / 32), (0, 5, 2 / 32), (8, 2, 112 / 1024), (6, 6, 1.0)],
)
def test_sign_test_by_hand(better, worse, expected):
    assert significance.sign_test_p(better, worse) == expected


def test_sign_test_is_exact_for_many_sentences():
    tail = sum(comb(3000, k) for k in range(1401))
    assert significance.sign_test_p(1600, 1400) == float(Fraction(2 * tail, 2**3000))
    assert significance.sign_test_p(0, 5000) == 0.0  # 2**-4999 is below the smallest float


def test_texts_that_cannot_be_compared_are_refused():
    lines = corpus(17, 3)
    with pytest.raises(UserError, match="baseline.* and the system.* 3 lines against 2"):
        significance.compare(lines, lines[:2], [lines])
    with pytest.raises(UserError, match="reference set 1 .* 3 lines against 2"):
        significance.compare(lines, lines, [lines[:2]])
    with pytest.raises(UserError, match="at least one reference"):
        significance.compare(lines, lines, [])
    with pytest.raises(UserError, match="nothing to score"):
        significance.compare([], [], [[]])
    with pytest.raises(UsageError, match="tokeniser"):
        significance.compare(lines, lines, [lines], tokenize="moses")


def test_resamples_are_scored_as_sacrebleu_scores_them_and_shared():
    truth = corpus(18, 12)
    lines = damage(truth, 19, 0.3)
    scores = significance.resampled_bleu(lines, [truth], resamples=4, seed=7)
    resamples = np.random.default_rng(7).integers(0, 12, (4, 12))
    assert scores == [
        corpus_bleu([lines[i] for i in resample], [[truth[i] for i in resample]])
        for resample in resamples
    ]
    shared = significance.resampled_bleu(truth, [truth], resamples=4, seed=7)
    assert all(value == pytest.approx(100) for value in shared)
    with pytest.raises(UserError, match="3 lines against 2"):
        significance.resampled_bleu(truth[:3], [truth[:2]])


def test_whole_documents_are_resampled_where_they_are_given():
    truth = corpus(18, 12)
    lines = damage(truth, 19, 0.3)
    documents = [5, 5, 5, 2, 5, 5, 9, 9, 9, 9, 9, 9]
    members = [[0, 1, 2], [3], [4, 5], [6, 7, 8, 9, 10, 11]]
    scores = significance.resampled_bleu(lines, [truth], resamples=4, seed=7, documents=documents)
    resamples = np.random.default_rng(7).integers(0, 4, (4, 4))
    sentences = [[i for document in resample for i in members[document]] for resample in resamples]
    assert scores == [
        corpus_bleu([lines[i] for i in numbers], [[truth[i] for i in numbers]])
        for numbers in sentences
    ]
    assert significance.count_documents(documents) == 4 and significance.count_documents(None) == 0


def test_several_tests_are_compared_by_their_mean():
    truths = [corpus(20, 60), corpus(21, 30)]
    tests = [
        (damage(truth, 22 + i, 0.4), damage(truth, 24 + i, rate), [truth])
        for i, (truth, rate) in enumerate(zip(truths, (0.4, 0.1)))
    ]
    assert significance.compare_over_tests(tests[:1]) == significance.compare(*tests[0])
    results = [significance.compare(*test) for test in tests]
    mean = significance.compare_over_tests(tests)
    assert mean.system_bleu == pytest.approx(sum(result.system_bleu for result in results) / 2)
    assert (mean.better, mean.worse) == (
        sum(result.better for result in results), sum(result.worse for result in results)
    )  # fmt: skip
    # nothing on the first test, much on the second: the mean is sure, the first alone is not
    assert results[0].bootstrap_p > 0.05 > 0.01 > mean.bootstrap_p
    exchanged = significance.compare_over_tests([(b, a, references) for a, b, references in tests])
    assert exchanged.bootstrap_p == mean.bootstrap_p
    unchanged = [(test[0], test[0], test[2]) for test in tests]
    assert significance.compare_over_tests(unchanged).bootstrap_p == 1.0


def test_equal_scores_are_no_difference_whatever_their_counts():
    baseline, system = ["x"] * 30, ["y z w"] * 30  # no word of either is right
    compared = significance.compare(baseline, system, [["a b c d e f g"] * 30])
    assert compared.baseline_bleu == compared.system_bleu == 0.0
    assert compared.bootstrap_p == compared.sign_test_p == 1.0


def test_equally_long_tests_have_draws_of_their_own():
    """What one test has more, the other has less: the mean does not differ, but it varies."""
    references = corpus(3, 40)
    good, bad = references, damage(references, 4, 0.3)
    tests = [(good, bad, [references]), (bad, good, [references])]
    compared = significance.compare_over_tests(tests)
    assert compared.baseline_bleu == pytest.approx(compared.system_bleu)
    assert 0.3 < compared.bootstrap_p < 0.6  # 1 if both tests had the same draws
    drawn = [
        significance.resampled_bleu(bad, [references], seed=significance.seed_of_test(number))
        for number in (0, 1)
    ]
    assert drawn[0] == significance.resampled_bleu(bad, [references]) != drawn[1]
