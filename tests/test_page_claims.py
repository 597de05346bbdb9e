"""Claims are judged as the rules say, on records whose answer is known."""

import json

import pytest
from test_tables import compared, record

from tfmann.report import claims, measures
from tfmann.report.claimed import CLAIMS
from tfmann.report.claims import FAILS, HOLDS, NOT_MEASURED, UNSURE, UNTESTED, Claim, Speed
from tfmann.report.systems import TABLES


def claim(expect="higher", **changes):
    made = Claim("P", "1", "text", expect, "mad_1", "luong", ("vi-en",))
    return made._replace(**changes)


def runs(ours, theirs, p=None, **more):
    """Records of two rows, a seed a number; `p` of both tests, where they were compared."""
    found = []
    for seed, (a, b) in enumerate(zip(ours, theirs), start=1):
        tests = [compared("luong", a - b, None, p, p)] if p is not None else []
        found.append(record("mad_1", a, seed=seed, significance=tests, **more))
        found.append(record("luong", b, seed=seed, **more))
    return found


def judged(one, records, name="vi-en", scale="cpu", folder=None):
    return claims.judge(one, {(name, scale): records} if records else {}, folder)


def status(one, records):
    (verdict,) = judged(one, records)
    return verdict.status


@pytest.mark.parametrize(
    ("ours", "theirs", "p", "expected"),
    [
        ([12.0], [10.0], 0.001, HOLDS),
        ([10.0], [12.0], 0.001, FAILS),
        ([12.0], [10.0], 0.01, UNSURE),  # below the level, not at it
        ([12.0], [10.0], None, UNTESTED),
        ([12.0, 13.0], [10.0, 10.0], 0.001, HOLDS),
        ([12.0, 9.0], [10.0, 10.0], 0.001, UNSURE),  # each seed is sure of another thing
    ],
)
def test_higher(ours, theirs, p, expected):
    assert status(claim(), runs(ours, theirs, p)) == expected
    mirrored = {HOLDS: FAILS, FAILS: HOLDS}
    assert status(claim("lower"), runs(ours, theirs, p)) == mirrored.get(expected, expected)


@pytest.mark.parametrize(
    ("ours", "p", "expected"),
    [
        (12.0, 0.001, FAILS), (12.0, 0.2, HOLDS), (12.0, None, UNTESTED), (9.0, 0.001, HOLDS),
        (9.0, None, HOLDS),
    ],
)  # fmt: skip
def test_no_gain(ours, p, expected):
    assert status(claim("no gain"), runs([ours], [10.0], p)) == expected


@pytest.mark.parametrize(
    ("ours", "p", "expected"),
    [(10.5, None, HOLDS), (9.5, 0.001, HOLDS), (9.0, 0.001, FAILS), (9.0, 0.5, UNSURE),
     (9.0, None, UNTESTED)],
)  # fmt: skip
def test_alike(ours, p, expected):
    assert status(claim("alike", margin=0.7), runs([ours], [10.0], p)) == expected


def test_the_level_is_the_paper_s():
    assert status(claim(level=0.05), runs([12.0], [10.0], 0.03)) == HOLDS
    assert status(claim(), runs([12.0], [10.0], 0.03)) == UNSURE


@pytest.mark.parametrize(("bootstrap", "sign"), [(0.001, 0.2), (0.2, 0.001)])
def test_both_tests_have_to_be_sure(bootstrap, sign):
    records = runs([12.0], [10.0])
    records[0]["significance"] = [compared("luong", 2.0, None, bootstrap, sign)]
    assert status(claim(), records) == UNSURE


def test_a_comparison_counts_whichever_row_was_the_baseline():
    turned = claim(row="luong", rival="mad_1")
    assert status(turned, runs([12.0], [10.0], 0.001)) == FAILS


def test_seeds_without_a_test_are_tested_by_t():
    # differences 1, 2, 3: mean 2, error 1 / sqrt(3), t = 3.46 below 4.30
    unsure = runs([11, 12, 13], [10, 10, 10])
    assert status(claim(), unsure) == UNSURE
    assert "t = 3.5 over the seeds, 4.30 needed" in judged(claim(), unsure)[0].evidence
    # 2, 2.5, 3: error 0.5 / sqrt(3), t = 8.66
    assert status(claim(), runs([12, 12.5, 13], [10, 10, 10])) == HOLDS
    assert status(claim(), runs([12, 12], [10, 10])) == HOLDS  # always the same


def test_one_seed_without_a_test_has_its_intervals():
    def between(low, high):
        return {"interval": {"mean": (low + high) / 2, "ci": (high - low) / 2, "signature": "s"}}

    for low, high, expected in ((8.0, 10.9, HOLDS), (8.0, 11.5, UNSURE)):
        records = [record("mad_1", 12.0, **between(11, 13)),
                   record("luong", 10.0, **between(low, high))]  # fmt: skip
        assert status(claim(), records) == expected


def test_only_seeds_that_both_have_are_compared():
    records = runs([12.0, 12.0], [10.0, 10.0], 0.001)[:3]
    assert "12.00 against 10.00 (+2.00)" in judged(claim(), records)[0].evidence


def test_parameters_need_no_test():
    records = [record("mad_1", parameters=3_000_000), record("luong", parameters=2_000_000)]
    one = claim("lower", measure="million parameters")
    assert status(one, records) == FAILS
    assert "3.00 against 2.00 (+1.00); counted" in judged(one, records)[0].evidence


def test_what_has_no_records_is_not_measured():
    for records in ([], [record("mad_1")], [record("luong")]):
        assert judged(claim(), records) == [claims.Verdict(NOT_MEASURED, "", False, "")]
    assert status(claim(measure="AER"), runs([1.0], [2.0], 0.001)) == NOT_MEASURED


def test_the_paper_s_own_corpus_is_told_from_others():
    assert judged(claim(), runs([12.0], [10.0], 0.001))[0].own
    pair = [record("kvmematt_r2_eos"), record("rnnsearch_longer")]
    other = claim(row="kvmematt_r2_eos", rival="rnnsearch_longer", tables=("alignment",))
    (verdict,) = judged(other, pair, "alignment", "cpu")  # the Hansards stand in
    assert (verdict.own, verdict.measured) == (False, "alignment, scale cpu")
    assert judged(other, pair, "alignment", "paper")[0].own


@pytest.mark.parametrize(
    ("ratio", "runs_", "expected"),
    [(0.82, [0.8, 0.85], HOLDS), (0.65, [0.6, 0.7], FAILS), (0.75, [0.7, 0.85], UNSURE),
     (0.95, [0.9, 0.99], FAILS)],
)  # fmt: skip
def test_speed_is_of_a_benchmark(tmp_path, ratio, runs_, expected):
    one = Speed("P", "1", "text", "bench.jsonl", {"what": "a"}, 0.82, 0.82)
    assert judged(one, [], folder=tmp_path)[0].status == NOT_MEASURED
    line = {"what": "a", "ratio": ratio, "runs": runs_, "hardware": {"gpus": []}}
    lines = [{**line, "what": "b"}, line]
    (tmp_path / "bench.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    (verdict,) = judged(one, [], folder=tmp_path)
    assert verdict.status == expected
    assert f"{ratio:.0%} of the other's words/s on a CPU" in verdict.evidence


def test_every_claim_is_of_rows_tables_and_measures_that_there_are():
    for one in CLAIMS:
        if isinstance(one, Speed):
            continue
        assert one.measure in measures.MEASURES, one
        for name in one.tables:
            tables = [TABLES[name].at(scale) for scale in TABLES[name].scales]
            names = {row.name for table in tables for row in table.rows}
            assert {one.row, one.rival} <= names, (one, name)
        assert (one.margin > 0) == (one.expect == "alike")
        assert one.expect in ("higher", "lower", "no gain", "alike")
    texts = [(one.paper, one.text) for one in CLAIMS]
    assert len(texts) == len(set(texts))
