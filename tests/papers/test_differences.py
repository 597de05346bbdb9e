"""Differences from baselines: means over the seeds, with the error of a verdict."""

import math

import numpy as np
import pytest
from helpers.claims import FLAT, history, resampled, runs
from helpers.records import record, table
from oracles import verdicts as oracle

from tfmann.papers.differences import comparisons, overview
from tfmann.papers.table import Row

SHOWN = table(
    Row("luong", "L", paper_test=23.3), Row("mad_1", "M", paper_test=23.1), baselines=("luong",)
)
OURS, THEIRS = [12.0, 12.5, 11.5], [11.0, 11.0, 11.0]


def only(records, shown=SHOWN):
    (comparison,) = comparisons(shown, records)
    (difference,) = comparison.differences
    return difference


def test_an_interval_has_the_error_of_seeds_and_of_sentences():
    difference = only(runs(OURS, THEIRS, spread=0.4))
    assert difference.title == "M" and difference.by_seed == [1.0, 1.5, 0.5]
    assert difference.mean == pytest.approx(1.0)
    # half of the 1,000 resamples 0.4 below, half above, alike for all seeds
    of_seeds, of_sentences = np.var([1.0, 1.5, 0.5], ddof=1) / 3, 0.4**2 * 1000 / 999
    reach = oracle.quantile(0.025, 2) * math.sqrt(of_seeds + of_sentences)
    assert (difference.low, difference.high) == pytest.approx((1 - reach, 1 + reach), rel=1e-4)
    assert difference.is_evidence
    assert difference.paper == pytest.approx(-0.2)


def test_one_seed_is_no_evidence_and_its_interval_is_of_sentences():
    difference = only(runs([12.0], [11.0], spread=0.4))
    reach = 1.959964 * 0.4 * math.sqrt(1000 / 999)
    assert (difference.low, difference.high) == pytest.approx((1 - reach, 1 + reach), rel=1e-4)
    assert not difference.is_evidence


@pytest.mark.parametrize(
    "changes",
    [
        {"history": history(9.0, 10.0, 10.0, 10.0, 10.5)},  # still rising
        {"hparams": {"learning_rate": 0.1}},  # of one seed
        {"pairs": {"train": 5}},  # of one run
    ],
)
def test_runs_that_cannot_be_compared_are_no_evidence(changes):
    records = runs(OURS, THEIRS, pairs={"train": 7})
    assert only(records).is_evidence
    records[0].update(changes)
    assert not only(records).is_evidence


def test_a_baseline_with_a_start_is_compared_with_as_many_updates_from_there():
    rows = Row("rnn", "R"), Row("longer", "R more", start="rnn"), Row("mem", "M", start="rnn")
    shown = table(*rows, baselines=("rnn", "longer"))
    records = [
        record("rnn", 10.0, **FLAT), record("longer", 11.0, start="rnn", **FLAT),
        record("mem", 12.0, start="rnn", **FLAT),
    ]  # fmt: skip

    def titles():
        return {
            comparison.rival.name: [difference.title for difference in comparison.differences]
            for comparison in comparisons(shown, records)
        }

    assert titles() == {"rnn": ["R more", "M"], "longer": ["M"]}
    records[2]["steps"] += 1
    assert titles() == {"rnn": ["R more", "M"]}


def test_without_resamples_or_tests_there_is_no_interval():
    difference = only([record("luong", 10.0), record("mad_1", 11.0)])
    assert (difference.low, difference.mean, difference.high) == (1.0, 1.0, 1.0)


def test_seeds_that_only_one_row_has_are_left_out():
    records = runs(OURS, THEIRS)
    records.append(record("mad_1", 30.0, seed=4, resampled=resampled([30.0] * 1000), **FLAT))
    assert only(records).by_seed == [1.0, 1.5, 0.5]
    assert comparisons(SHOWN, records[-1:]) == []
    assert comparisons(SHOWN, []) == []


def test_the_overview_has_each_row_once_where_three_converged_seeds_are_evidence():
    names = ("luong", "longer", "mad_1", "few", "one", "rising")
    rows = (Row(name, name.upper()) for name in names)
    shown = table(*rows, baselines=("luong", "longer"))
    base = [r for r in runs(OURS, THEIRS) if r["row"] == "luong"]
    ours = [r for r in runs(OURS, THEIRS) if r["row"] == "mad_1"]

    def of(row, records, **changes):
        return [{**record, "row": row, **changes} for record in records]

    rising = {"history": history(9.0, 10.0, 10.0, 10.0, 10.5)}
    records = [
        *base, *of("longer", base), *ours, *of("few", ours[:2]), *of("one", ours[:1]),
        *of("rising", ours, **rising),
    ]  # fmt: skip
    (part,) = overview(shown, records)
    assert part.rival.name == "longer"
    assert [difference.title for difference in part.differences] == ["MAD_1"]
    (part,) = overview(shown, [*base, *ours])  # without runs of the closer baseline
    assert part.rival.name == "luong"
    assert overview(shown, [*base, *of("rising", ours, **rising)]) == []
    assert overview(shown, [*base, *of("mad_1", ours, steps=5)]) == []  # more or fewer updates


def test_seeds_that_all_have_the_same_difference_are_no_evidence():
    records = runs([11.0] * 3, [11.0] * 3, spread=0.0)
    assert not only(records).is_evidence and only(records).mean == 0.0
    assert overview(SHOWN, records) == []
    assert not only(runs([11.0] * 3, [11.0] * 3, spread=0.4)).is_evidence  # another seed may not


def test_the_overview_compares_a_row_with_the_baseline_that_it_names():
    rows = Row("luong", "L"), Row("longer", "LONGER"), Row("mad_1", "M", closest="luong")
    shown = table(*rows, baselines=("luong", "longer"))
    records = runs(OURS, THEIRS)
    rising = {"row": "longer", "history": history(9.0, 10.0, 10.0, 10.0, 10.5)}
    records += [{**record, **rising} for record in records if record["row"] == "luong"]
    (part,) = overview(shown, records)
    assert part.rival.name == "luong"
    assert [difference.title for difference in part.differences] == ["M"]


def test_a_row_without_training_is_compared_with_its_weights_and_what_starts_from_them():
    shown = table(
        Row("base", "B"), Row("other", "O"), Row("gate", "G", start="other"),
        Row("free", "F", weights="other"), baselines=("base", "gate"),
    )  # fmt: skip
    assert shown.shown_rivals("free") == ["gate", "other"]
    assert shown.shown_rivals("other") == ["base", "gate"] == shown.shown_rivals("unknown")
    assert shown.shown_baselines == ["base", "gate", "other"]
    records = [
        record(row, bleu, seed=seed, **FLAT)
        for seed in (1, 2, 3)
        for row, bleu in (("base", 10.0), ("other", 11.0), ("free", 12.0 + seed / 10))
    ]
    compared = [
        (c.rival.name, [d.title for d in c.differences]) for c in comparisons(shown, records)
    ]
    assert compared == [("base", ["O"]), ("other", ["F"])]
    ((rival, (difference,)),) = overview(shown, records)
    assert rival.name == "other" and difference.mean == pytest.approx(1.2)
