"""Verdicts on simulated tables with known truth are rarely false, and often find what is true."""

import json
import math

import numpy as np
import pytest

from benchmarks import report, verdicts
from benchmarks.verdicts import Scenario, Sizes
from tfmann.evaluation.verdicts import FAILS, HOLDS, LEVEL

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


def test_figures_are_recorded_line_by_line_and_shown(tmp_path, monkeypatch, capsys):
    out = tmp_path / "verdicts.jsonl"
    few = {kind: scenarios[:2] for kind, scenarios in verdicts.SCENARIOS.items()}
    monkeypatch.setattr(verdicts, "SCENARIOS", few)
    verdicts.main(["--tables=2", f"--out={out}"])
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert [record["claim_is"] for record in records] == ["false"] * 2 + ["true"] * 2
    for record in records:
        assert (
            record["holds"] + record["does not hold"] + record["inconclusive"] == 1
        )  # one claim a paper
    monkeypatch.setattr(report, "read_benchmark", lambda name: records)
    lines = report.verdicts()
    assert sum(line.startswith("| higher | ") for line in lines) == 4
    assert "2 papers per line." in lines and "revision" in capsys.readouterr().out
