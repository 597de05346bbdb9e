"""Measures of claims about what a history is good for, from the record of a run."""

import copy
import math

import numpy as np
import pytest
from helpers.claims import FLAT, claim, judge_claim, resampled
from helpers.records import record

from tfmann.evaluation.verdicts import FAILS, INCONCLUSIVE
from tfmann.papers import metrics, seed_pairs

LOST = metrics.MEASURES["BLEU lost to errors in the history"]
ALIKE = metrics.MEASURES["repeated words translated alike"]
SENSES = metrics.MEASURES["nouns of the right sense"]
REPEATED = metrics.MEASURES["repeated bigrams"]


def test_bleu_lost_to_errors_is_what_the_references_would_add():
    with_references = {"test": record("x", 12.5)["best"]["test"]}
    assert LOST(record("cache", 12.0, histories={"reference": with_references})) == 0.5
    assert LOST(record("cache", 13.0, histories={"reference": with_references})) == -0.5


def test_bleu_with_a_history_is_the_mean_over_all_tests():
    own, first, second = (record("x", bleu)["best"]["test"] for bleu in (11.0, 12.0, 15.0))
    with_references = {"test": first, "more_tests": {"other": second}}
    run = record("cache", histories={"reference": with_references}, more_tests={"other": own})
    assert metrics.history_bleu(run, "reference") == 13.5
    assert LOST(run) == 13.5 - (10.0 + 11.0) / 2


def test_bleu_lost_to_errors_varies_with_the_sentences():
    """The loss is a difference of two scores, so each resample has one of its own."""
    draws = np.random.default_rng(3)
    moves = draws.normal(0, 0.3, [2, 2, 1000])  # of the row and the rival, with and without errors

    def run(row, seed, lost, moved):
        with_references = {
            "test": record(row, 12 + lost)["best"]["test"],
            "resampled": resampled(12 + lost + moved[0]),
        }
        histories = {"reference": with_references}
        own = resampled(12 + moved[1])
        return record(row, 12.0, seed=seed, resampled=own, histories=histories, **FLAT)

    records = []
    for seed, lost in enumerate((0.9, 1.0, 1.1), 1):
        records += [run("mad_1", seed, lost, moves[0]), run("luong", seed, 0.5, moves[1])]
    lower = claim("lower", measure="BLEU lost to errors in the history")
    pairs = seed_pairs.pair_seeds(lower.measure, records, "mad_1", "luong")
    losses = moves[:, 0] - moves[:, 1]
    of_sentences = np.var(losses[0] - losses[1], ddof=1)
    error = pairs.estimate().error
    assert error == pytest.approx(math.sqrt(0.01 / 3 + of_sentences), rel=0.01)
    assert pairs.sentence_errors() == pytest.approx([math.sqrt(of_sentences)] * 3, rel=0.01)
    assert "valid for these test sentences only" not in judge_claim(lower, records)[0].evidence
    for number in range(2):
        others = copy.deepcopy(records)
        changed = others[number]["histories"]["reference"]
        changed["resampled"] = {}
        pairs = seed_pairs.pair_seeds(lower.measure, others, "mad_1", "luong")
        variance, note = pairs.sentence_variance()
        assert variance == pytest.approx(of_sentences, rel=0.01) and "of 2 of 3 seeds" in note
        changed["resampled"] = resampled([12.0] * 1000, seed=2)  # drawn otherwise than the rest
        pairs = seed_pairs.pair_seeds(lower.measure, others, "mad_1", "luong")
        assert pairs.sentence_variance() == (0.0, "valid for these test sentences only")


def test_a_rival_that_does_not_use_its_history_loses_nothing_and_proves_nothing():
    def run(row, seed, lost):
        with_references = {"test": record(row, 12 + lost)["best"]["test"]}
        return record(row, 12.0, seed=seed, histories={"reference": with_references}, **FLAT)

    lower = claim("lower", measure="BLEU lost to errors in the history")
    losses = {1: 0.9, 2: 1.0, 3: 1.1}
    ours = [run("mad_1", seed, lost) for seed, lost in losses.items()]
    used = [run("luong", seed, 0.1 * seed) for seed in losses]
    (verdict,) = judge_claim(lower, [*ours, *used])
    assert verdict.status == FAILS
    (verdict,) = judge_claim(lower, [*ours, *(run("luong", seed, 0.0) for seed in losses)])
    assert verdict.status == INCONCLUSIVE
    assert "; luong without use of the history; BLEU lost" in verdict.evidence
    assert verdict.evidence.endswith("adjusted for 1 test: p 1.000 (contrary p 1.000)")


def test_shares_are_in_percent():
    counts = {"pairs": 8, "alike": 6, "other_pairs": 4, "other_alike": 1}
    assert ALIKE(record("cache", lexical_consistency=counts)) == 75.0
    assert SENSES(record("cache", senses={"nouns": 10, "right": 4, "other_right": 3})) == 40.0
    bigrams = [{"order": 1, "repeated": 9, "ngrams": 10}, {"order": 2, "repeated": 1, "ngrams": 4}]
    assert REPEATED(record("attn", repetition=bigrams)) == 25.0


def test_a_record_without_the_counts_has_no_measure():
    for measure in (LOST, ALIKE, SENSES, REPEATED):
        assert measure(record("cache")) is None
