"""Verdicts on simulated tables with known truth are rarely false, and often find what is true."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import report, verdict_records, verdict_scores, verdict_speeds, verdicts
from benchmarks.verdict_records import (
    ADDRESSES,
    DOCUMENTS,
    FEW_DOCUMENTS,
    IN_FEW,
    NO_RESAMPLES,
    SKEWED,
    UNTRAINED,
    Case,
)
from benchmarks.verdict_speeds import (
    CLAIMS,
    FALSE_BY_MORE,
    FASTER,
    JUST_FALSE,
    TRUE_CLAIM,
    SpeedCase,
)
from benchmarks.verdicts import Scenario, Sizes
from tfmann.evaluation.verdicts import FAILS, HOLDS, LEVEL
from tfmann.papers import judgement, speeds

TABLES = 400
# Of so many papers with 5% false proofs, more than these have one in less than 1 of 1,000 tries.
MOST = LEVEL + 3.1 * math.sqrt(LEVEL * (1 - LEVEL) / TABLES)
SMALL = Sizes(seeds=3, sentences=30, resamples=30)
LARGER = Sizes(seeds=5, sentences=100, resamples=40)


@pytest.mark.parametrize(
    ("expect", "gap", "luck", "claims"),
    [("higher", 0.0, 0.0, 1), ("lower", 0.0, 0.5, 1), ("alike", 0.15, 0.0, 1),
     ("no gain", 0.15, 0.5, 1), ("higher", 0.0, 0.5, 10), ("alike", 0.15, 0.5, 10)],
)  # fmt: skip
def test_barely_false_claims_seldom_hold(expect, gap, luck, claims):
    scenario = Scenario(expect, gap, None, SMALL._replace(luck=luck), claims)
    shares = verdicts.simulate(scenario, TABLES, seed=1)
    assert shares[HOLDS] <= MOST and shares[FAILS] <= MOST


def test_barely_false_claims_seldom_hold_if_seeds_are_added():
    sizes = SMALL._replace(seeds=8, luck=0.5)
    shares = verdicts.simulate(Scenario("higher", 0.0, None, sizes, first=3), TABLES, seed=8)
    once = verdicts.simulate(Scenario("higher", 0.0, None, sizes), TABLES, seed=8)
    assert once[HOLDS] <= shares[HOLDS] <= MOST and once[FAILS] <= shares[FAILS] <= MOST


@pytest.mark.parametrize(
    ("expect", "gap", "margin", "status"),
    [("higher", 0.6, 0.0, HOLDS), ("lower", 0.6, 0.0, FAILS), ("alike", 0.0, 9.0, HOLDS),
     ("alike", 0.6, 1.0, FAILS), ("no gain", 0.0, 9.0, HOLDS), ("no gain", 0.6, 1.0, FAILS)],
)  # fmt: skip
def test_what_is_clearly_true_is_mostly_found(expect, gap, margin, status):
    shares = verdicts.simulate(Scenario(expect, gap, margin, LARGER), 50, seed=2)
    assert shares[status] > 0.8


def test_the_sentences_of_one_seed_are_no_proof():
    shares = verdicts.simulate(Scenario("higher", 0.0, None, SMALL._replace(luck=0.2)), TABLES, 3)
    assert shares["one_seed"] > 0.1 > MOST


def test_the_true_difference_is_that_of_many_runs():
    sizes = Sizes(seeds=300, sentences=1000, resamples=1, luck=0.1)
    scores = verdicts.scores(np.random.default_rng(4), np.array([0.0, 0.3]), sizes)[:, :, 0]
    error = math.sqrt(scores.var(axis=1).sum() / sizes.seeds)
    measured = scores[1].mean() - scores[0].mean()
    assert measured == pytest.approx(verdicts.true_difference(0.3, 0.1), abs=4 * error)


def test_the_true_difference_is_that_of_many_documents():
    sizes = Sizes(seeds=2, sentences=2000, resamples=1, luck=0.0, documents=2000)
    rng = np.random.default_rng(5)
    tables = [verdicts.scores(rng, np.array([0.0, 0.5]), sizes)[:, :, 0] for _ in range(40)]
    measured = [float((scores[1] - scores[0]).mean()) for scores in tables]
    true = verdicts.true_difference(0.5, 0.0, in_documents=True)
    assert np.mean(measured) == pytest.approx(true, abs=4 * np.std(measured) / math.sqrt(40))


def test_balanced_documents_have_the_difference_that_is_wanted():
    rng = np.random.default_rng(6)
    sizes = Sizes(seeds=100, sentences=600, resamples=1, luck=0.1, documents=3)
    effects = verdict_scores.document_effects(rng, 3, 3)
    effects = verdict_scores.balance(effects, 0.2, 0.1, 1.5)
    gaps = np.array([0.0, 0.2, 0.2])
    tables = [verdicts.scores(rng, gaps, sizes, effects)[:, :, 0] for _ in range(20)]
    differences = np.array([(scores[1:] - scores[0]).mean(axis=1) for scores in tables])
    error = differences.std(axis=0).max() / math.sqrt(20)
    np.testing.assert_allclose(differences.mean(axis=0), 1.5, atol=4 * error)
    assert error < 0.1


BARELY_FALSE = [
    Case(ADDRESSES, "higher", 0.0, Sizes(4, 40, luck=0.0, documents=2)),  # 18% if ignored
    Case(UNTRAINED, "higher", 0.0, Sizes(3, 40, luck=0.5)),  # 10% if it were a constant
    Case(IN_FEW, "higher", 0.0, Sizes(4, 40, luck=0.0, documents=8)),  # 18% if ignored
    Case(DOCUMENTS, "no gain", 0.3, Sizes(4, 60, 60, 0.5, documents=20), 5),
    Case(NO_RESAMPLES, "alike", 0.3, Sizes(4, 40, 200, 0.5), 5),
]
MORE_BARELY_FALSE = [
    Case(ADDRESSES, "higher", 0.0, Sizes(4, 40, luck=0.0)),
    Case(SKEWED, "higher", 0.0, Sizes(4, 40, luck=0.2, documents=20)),
    Case(IN_FEW, "higher", 0.0, Sizes(4, 200, luck=0.0, documents=100)),
    Case(DOCUMENTS, "higher", 0.0, Sizes(30, 60, 60, 0.0, documents=20)),
    Case(FEW_DOCUMENTS, "higher", 0.0, Sizes(4, 60, 60, 0.2, documents=2)),
    Case(NO_RESAMPLES, "higher", 0.0, Sizes(6, 40, 200, 0.0)),
]


@pytest.mark.parametrize(
    "case",
    [
        *BARELY_FALSE,
        *(pytest.param(case, marks=pytest.mark.thorough) for case in MORE_BARELY_FALSE),
    ],
)
def test_barely_false_claims_seldom_hold_by_their_records(case):
    tables = 100
    most = LEVEL + 3.1 * math.sqrt(LEVEL * (1 - LEVEL) / tables)
    shares = verdicts.simulate_records(case, tables, seed=6)
    assert shares[HOLDS] <= most and shares[FAILS] <= most


def test_records_can_prove_what_is_true():
    """Else no false claim holding would mean nothing."""
    rng = np.random.default_rng(7)
    for evidence, documents in ((DOCUMENTS, 20), (NO_RESAMPLES, 0)):
        sizes = Sizes(5, 100, 200, 0.0, documents)
        case = Case(evidence, "higher", 0.8, sizes)
        claims, runs = verdict_records.paper(rng, case, 0.0)
        ((_, verdict),) = judgement.judge(claims, {verdict_records.TABLE: runs}, Path())
        assert verdict.status == HOLDS, verdict
    claims, runs = verdict_records.paper(rng, Case(ADDRESSES, "higher", 0.0, Sizes(5)), 0.0)
    claim = claims[0]._replace(above=0.4)
    ((_, verdict),) = judgement.judge([claim], {verdict_records.TABLE: runs}, Path())
    assert verdict.status == HOLDS, verdict


@pytest.mark.parametrize(
    "case",
    [
        SpeedCase(JUST_FALSE, CLAIMS[0], 31, 0.3),  # 11% by the mean of the ratios
        SpeedCase(JUST_FALSE, CLAIMS[1], 5, 0.06, 3),
        SpeedCase(JUST_FALSE, FASTER, 31, 0.3),  # 22%
        SpeedCase(FALSE_BY_MORE, CLAIMS[1], 11, 0.02),
        SpeedCase(FALSE_BY_MORE, FASTER, 300, 0.01),  # 20% if the timing error were ignored
        SpeedCase(TRUE_CLAIM, CLAIMS[0], 300, 0.02),  # 51%
    ],
)
def test_barely_false_claims_about_speed_seldom_hold(case):
    shares = verdicts.simulate_speeds(case, 200, seed=8)
    most = LEVEL + 3.1 * math.sqrt(LEVEL * (1 - LEVEL) / 200)
    assert case.truth == TRUE_CLAIM or shares[HOLDS] <= most
    assert case.truth == FALSE_BY_MORE or shares[FAILS] <= most


def test_timings_have_the_share_of_speed_that_is_wanted(tmp_path):
    for claim in CLAIMS:
        case = SpeedCase(JUST_FALSE, claim, 4000, 0.2)
        (timed,) = verdict_speeds.paper(np.random.default_rng(9), case, tmp_path)
        lines = (tmp_path / timed.file).read_text().splitlines()
        ((_, runs),) = speeds.shares(timed, [json.loads(line) for line in lines])
        logarithms = np.log(runs)
        error = logarithms.std() / math.sqrt(4000)
        assert logarithms.mean() == pytest.approx(math.log(case.share), abs=4 * error)
        assert 0.2 < logarithms.std() < 0.3  # with the disturbances


def test_timings_can_prove_what_is_true(tmp_path):
    case = SpeedCase(JUST_FALSE, FASTER._replace(least=1.5), 5, 0.06)
    claims = verdict_speeds.paper(np.random.default_rng(10), case, tmp_path)
    for least, most, status in ((1.0, math.inf, HOLDS), (0.8, 1.2, FAILS)):
        claim = claims[0]._replace(least=least, most=most)
        ((_, verdict),) = judgement.judge([claim], {}, tmp_path)
        assert verdict.status == status, verdict


def test_figures_are_recorded_line_by_line_and_shown(tmp_path, monkeypatch, capsys):
    out = tmp_path / "verdicts.jsonl"
    few = {kind: scenarios[:2] for kind, scenarios in verdicts.SCENARIOS.items()}
    monkeypatch.setattr(verdicts, "SCENARIOS", few)
    monkeypatch.setattr(verdicts, "RECORDS", verdicts.RECORDS[-1:])
    monkeypatch.setattr(verdicts, "SPEEDS", verdicts.SPEEDS[-1:])
    verdicts.main(["--tables=2", f"--out={out}"])
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert [record["claim_is"] for record in records] == [
        "false", "false", "true", "true", "extended", "extended", "records", "speeds",
    ]  # fmt: skip
    for record in records[:4]:  # judged once, of one claim
        assert record["holds"] + record["does not hold"] + record["inconclusive"] == 1
    monkeypatch.setattr(report, "read_benchmark", lambda name: records)
    lines = report.verdicts()
    assert sum(line.startswith("| higher | ") for line in lines) == 6
    assert sum(line.startswith("| higher | 3 | 8 | ") for line in lines) == 2
    assert sum(line.startswith(f"| {UNTRAINED} | ") for line in lines) == 1
    (line,) = (line for line in lines if line.startswith("| faster than a rival | false | 100% |"))
    assert line.endswith(" | - |")
    assert "2 papers per line." in lines and "revision" in capsys.readouterr().out
