"""Claims are judged as the rules say, on records whose answer is known."""

import json
import math
from pathlib import Path

import pytest
from helpers.claims import FLAT, NO_FOLDER, claim, judge_claim, resampled, runs, status
from helpers.records import comparison, record

from tfmann.evaluation.verdicts import FAILS, HOLDS, INCONCLUSIVE
from tfmann.papers import judgement, metrics, seed_pairs
from tfmann.papers.claim import Claim, UntestedClaim
from tfmann.papers.claims import CLAIMS
from tfmann.papers.judgement import NOT_MEASURED
from tfmann.papers.tables import TABLES


@pytest.mark.parametrize(
    ("ours", "spread", "expected"),
    # differences 1.8, 2, 2.2: error 0.2 / sqrt(3) = 0.115, of the sentences `spread`
    [
        ([11.8, 12.0, 12.2], 0.1, HOLDS),
        ([11.8, 12.0, 12.2], 1.5, INCONCLUSIVE),
        ([8.2, 8.0, 7.8], 0.1, FAILS),
        ([13.0, 12.0, 9.0], 0.1, INCONCLUSIVE),
        ([12.0], 0.1, INCONCLUSIVE),
    ],
)
def test_a_claim_of_a_higher_score_is_judged_over_the_seeds(ours, spread, expected):
    records = runs(ours, [10.0] * len(ours), spread)
    assert status(claim(), records) == expected
    mirrored = {HOLDS: FAILS, FAILS: HOLDS}
    assert status(claim("lower"), records) == mirrored.get(expected, expected)


@pytest.mark.parametrize(
    ("expect", "ours", "spread", "expected"),
    [
        # margin 0.7, error of the seeds 0.058: 2.92 of them are 0.17
        ("alike", [10.0, 10.1, 10.2], 0.0, HOLDS),
        ("alike", [9.5, 9.6, 9.4], 0.0, HOLDS),
        ("alike", [10.5, 10.6, 10.7], 0.0, INCONCLUSIVE),
        ("alike", [10.0, 10.1, 10.2], 0.9, INCONCLUSIVE),  # not significant, which proves nothing
        ("alike", [11.5, 11.6, 11.7], 0.0, FAILS),
        ("alike", [8.5, 8.6, 8.7], 0.0, FAILS),
        ("no gain", [10.0, 10.1, 10.2], 0.0, HOLDS),
        ("no gain", [5.0, 5.1, 5.2], 0.0, HOLDS),
        ("no gain", [11.5, 11.6, 11.7], 0.0, FAILS),
        ("no gain", [15.0, 15.1, 15.2], 0.1, FAILS),
        ("no gain", [13.2, 8.3, 10.4], 0.1, INCONCLUSIVE),  # significant in both directions
        ("no gain", [10.0], 0.0, INCONCLUSIVE),
    ],
)
def test_no_difference_has_to_be_proven(expect, ours, spread, expected):
    records = runs(ours, [10.0] * len(ours), spread)
    assert status(claim(expect, margin=0.7), records) == expected


@pytest.mark.parametrize(
    ("ours", "spread", "expected"),
    [
        ([10.29, 10.30, 10.31], 0.0, HOLDS),
        ([10.29, 10.30, 10.31], 0.5, INCONCLUSIVE),
        ([10.59, 10.60, 10.61], 0.0, FAILS),  # more than the paper says
        ([10.09, 10.10, 10.11], 0.0, FAILS),
        ([10.29, 10.30, 12.31], 0.0, INCONCLUSIVE),
    ],
)
def test_an_amount_has_to_be_proven_between_both_its_limits(ours, spread, expected):
    amount = claim("between", between=(0.15, 0.55))
    (verdict,) = judge_claim(amount, runs(ours, [10.0] * 3, spread))
    assert verdict.status == expected
    assert "; in the paper: from +0.15 to +0.55, rounding included)" in verdict.evidence
    mirrored = claim("between", between=(-0.55, -0.15))
    lower = [20 - bleu for bleu in ours]
    assert status(mirrored, runs(lower, [10.0] * 3, spread)) == expected


def test_the_p_values_of_a_paper_are_adjusted_together():
    # t = 3.46 with two degrees of freedom: p 0.037
    tested_claim = claim("higher", text="a")
    results = {("vi-en", "cpu"): runs([11, 12, 13], [10, 10, 10])}

    def first_verdict(*more):
        return judgement.judge([tested_claim, *more], results, NO_FOLDER)[0][1]

    assert (
        first_verdict().status == HOLDS
        and "adjusted for 1 test: p 0.037" in first_verdict().evidence
    )
    several = first_verdict(claim("lower", text="b"))
    assert several.status == INCONCLUSIVE
    assert "p 0.037 (contrary p 0.963); adjusted for 2 tests: p 0.074" in several.evidence
    assert first_verdict(claim("lower", paper="another")).status == HOLDS
    # what no test decides is not counted
    counted = claim("higher", text="c", measure="million parameters")
    assert first_verdict(counted, claim(row="mad_2")).status == HOLDS


def test_an_inconclusive_verdict_has_the_first_thing_in_its_way():
    def obstacle(ours, spread=0.1, **settings):
        (verdict,) = judge_claim(claim(), runs(ours, [10.0] * len(ours), spread, **settings))
        assert (verdict.obstacle == "") == (verdict.status != INCONCLUSIVE)
        return verdict.obstacle

    assert obstacle([11.8, 12.0, 12.2]) == obstacle([8.2, 8.0, 7.8]) == ""
    assert obstacle([11.8, 12.0, 12.2], 1.5) == judgement.UNPROVEN
    assert obstacle([12.0, 12.1], history=[]) == judgement.RISING
    assert obstacle([12.0], history=[]) == judgement.ONE_SEED
    records = runs([12.0, 12.1, 12.2], [10.0] * 3)
    records[0]["hparams"] = {**records[0]["hparams"], "head_scale": 0.5}
    (verdict,) = judge_claim(claim(), records)
    assert verdict.obstacle == judgement.OTHER


def test_equal_seeds_prove_nothing_whatever_the_sentences_say():
    (verdict,) = judge_claim(claim(), runs([12.0] * 3, [10.0] * 3, spread=0.1))
    assert (verdict.status, verdict.obstacle) == (INCONCLUSIVE, judgement.OTHER)
    assert verdict.evidence.startswith("all seeds differ by the same amount")


@pytest.mark.parametrize("expect", ["alike", "no gain"])
def test_seeds_that_are_all_alike_do_not_show_that_others_are(expect):
    similar = claim(expect, margin=0.7)
    (verdict,) = judge_claim(similar, runs([10.0] * 7, [10.0] * 7, spread=0.0))
    assert (verdict.status, verdict.obstacle) == (INCONCLUSIVE, judgement.OTHER)
    assert verdict.evidence.startswith("all seeds differ by the same amount")
    assert "adjusted for" not in verdict.evidence
    assert status(similar, runs([10.0] * 6 + [10.01], [10.0] * 7, spread=0.0)) == HOLDS


def test_a_seed_to_the_contrary_counts_in_the_error_and_more_seeds_outweigh_it():
    few = judge_claim(claim(), runs([12.0] * 3 + [9.5], [10.0] * 4))[0]
    assert few.status == INCONCLUSIVE and "seeds +2.00, +2.00, +2.00, -0.50" in few.evidence
    many = judge_claim(claim(), runs([12.0] * 9 + [9.5], [10.0] * 10))[0]
    assert many.status == HOLDS and "+2.00, -0.50" in many.evidence


def test_evidence_names_every_seed():
    (verdict,) = judge_claim(claim(), runs([11, 12, 13], [10, 10, 10]))
    assert verdict.evidence.startswith(
        "test BLEU 12.00 against 10.00 (+2.00, standard error 0.58, seeds +1.00, +2.00, "
        "+3.00); p 0.037"
    )
    (verdict,) = judge_claim(claim("alike", margin=0.7), runs([12.0], [10.0]))
    assert verdict.evidence == (
        "one seed only, which another could contradict; test BLEU 12.00 against 10.00 (+2.00; "
        "alike in the paper: within 0.7)"
    )


def test_the_sign_test_is_shown_where_the_paper_has_it():
    records = runs([12.0, 12.0], [10.0, 10.0])
    for number, sign_p in ((0, 0.2), (2, 0.3)):
        records[number]["significance"] = [comparison("luong", 2.0, None, 0.001, sign_p)]
    bootstrap = "paired bootstrap of each seed: p 0.001 / 0.001"
    (verdict,) = judge_claim(claim(sign_test=True), records)
    assert f"{bootstrap}, sign test: p 0.200 / 0.300" in verdict.evidence
    (verdict,) = judge_claim(claim(), records)
    assert bootstrap in verdict.evidence and "sign" not in verdict.evidence
    turned = claim(row="luong", rival="mad_1")  # whichever row was the baseline
    assert bootstrap in judge_claim(turned, records)[0].evidence


def test_tests_of_an_earlier_decoding_are_left_out():
    records = runs([12.0], [10.0])
    for difference, is_shown in ((2.0, True), (2.02, False)):
        records[0]["significance"] = [comparison("luong", difference, None, 0.001, 0.2)]
        for tested_claim in (claim(), claim(row="luong", rival="mad_1")):
            evidence = judge_claim(tested_claim, records)[0].evidence
            assert ("paired bootstrap of each seed: p 0.001" in evidence) == is_shown


def test_manifests_call_another_corpus_a_stand_in():
    """By that word the tables and claims know that a corpus is not the one of their title."""
    stand_ins = {}
    for path in (Path(__file__).resolve().parents[2] / "data").glob("*.json"):
        for entry in json.loads(path.read_text("utf-8"))["files"]:
            for variant in entry.get("accept_lines", ()):
                stand_ins[path.stem, variant["note"]] = metrics.stand_in(
                    [{"variants": {"train": variant["note"]}}]
                )
    assert {(name, replaced) for (name, _), replaced in stand_ins.items() if replaced} == {
        ("iwslt07_en_ja", "a stand-in for the paper's corpus"),
        ("wmt16_ro_en", "a stand-in for the paper's training text"),
    }  # fmt: skip
    assert all(
        note.startswith("not ") == bool(replaced) for (_, note), replaced in stand_ins.items()
    )


def test_the_luck_of_the_sentences_is_counted():
    def error(records):
        return seed_pairs.pair_seeds("test BLEU", records, "mad_1", "luong").estimate().error

    of_seeds = math.sqrt(1 / 3)
    assert error(runs([11, 12, 13], [10] * 3)) == pytest.approx(of_seeds)
    # +-0.5 in every seed: variance 0.25 x 1000 / 999
    with_sentences = math.hypot(of_seeds, 0.5 * math.sqrt(1000 / 999))
    assert error(runs([11, 12, 13], [10] * 3, 0.5)) == pytest.approx(with_sentences)
    # resamples of other sentences, or drawn otherwise, do not pair
    for unpaired in (resampled([10.0] * 1000, sentences=99), resampled([10.0] * 1000, seed=2),
                  resampled([10.0] * 999)):  # fmt: skip
        records = runs([11, 12, 13], [10] * 3, 0.5)
        records[1]["resampled"] = unpaired
        assert error(records) == pytest.approx(of_seeds)


def test_without_resamples_the_error_of_the_sentences_is_unknown():
    records = runs([11, 12], [10, 10])
    for run in records:
        del run["resampled"]
    pairs = seed_pairs.pair_seeds("test BLEU", records, "mad_1", "luong")
    assert pairs.sentence_variance() == (0.0, "valid for these test sentences only")
    assert pairs.sentence_errors() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("documents", "note", "freedom"),
    [
        ({}, "", 2),
        ({"few_documents": 2}, "valid for these 2 documents only, too few to resample", 2),
        ({"documents": 40}, "resampled by document, of which there are 40", 2),
        ({"documents": 2}, "resampled by document, of which there are 2", 1),
    ],
)
def test_evidence_says_of_which_documents_it_is(documents, note, freedom):
    records = runs([12.0, 12.1, 12.2], [10.0, 10.0, 10.0], 0.5)
    for run in records:
        run["resampled"]["test"].update(documents)
    pairs = seed_pairs.pair_seeds("test BLEU", records, "mad_1", "luong")
    variance, written = pairs.sentence_variance()
    assert written == note and (
        not note or f"; {note}; p" in judge_claim(claim(), records)[0].evidence
    )
    number = documents.get("documents", math.inf)
    factor = 1 / (1 - 1 / number)
    estimate = pairs.estimate()
    assert estimate.freedom == freedom
    assert estimate.error**2 == pytest.approx(0.01 / 3 + variance * factor)


def test_only_seeds_that_both_have_are_compared():
    records = runs([12.0, 12.0], [10.0, 10.0])[:3]
    assert "12.00 against 10.00 (+2.00)" in judge_claim(claim(), records)[0].evidence


def test_parameters_need_no_test():
    records = [record("mad_1", parameters=3_000_000), record("luong", parameters=2_000_000)]
    tested_claim = claim("lower", measure="million parameters")
    assert status(tested_claim, records) == FAILS
    assert "3.00 against 2.00 (+50.00%), counted" in judge_claim(tested_claim, records)[0].evidence
    for between, expected in (((49.9, 50.1), HOLDS), ((50.1, 51), FAILS), ((-1, 49.9), FAILS)):
        assert status(tested_claim._replace(expect="between", between=between), records) == expected


def test_what_no_record_can_say_is_listed_with_what_is_lacking():
    untested = UntestedClaim("P", "1", "text", "a benchmark of it")
    ((claim_, verdict),) = judgement.judge([untested], {}, NO_FOLDER)
    assert claim_ is untested
    assert verdict == judgement.Verdict(NOT_MEASURED, "", "missing: a benchmark of it")


def test_other_measures_are_tested_over_the_seeds_alone():
    shares = [0.30, 0.31, 0.32]
    records = [
        record(row, seed=seed, alignment={"aer": share + more}, **FLAT)
        for seed, share in enumerate(shares, 1)
        for row, more in (("mad_1", -0.1 - seed / 1000), ("luong", 0.0))
    ]
    (verdict,) = judge_claim(claim("lower", measure="AER"), records)
    assert (
        verdict.status == HOLDS
        and "; valid for these test sentences only; p < 0.001" in verdict.evidence
    )


def test_what_has_no_records_is_not_measured():
    for records in ([], [record("mad_1")], [record("luong")]):
        assert judge_claim(claim(), records) == [judgement.Verdict(NOT_MEASURED, "", "")]
    assert status(claim(measure="AER"), runs([1.0], [2.0])) == NOT_MEASURED


def test_every_claim_is_of_rows_tables_and_measures_that_there_are():
    for tested_claim in CLAIMS:
        if not isinstance(tested_claim, Claim):
            continue
        assert tested_claim.measure in metrics.MEASURES, tested_claim
        for name in tested_claim.tables:
            tables = [TABLES[name].at(scale) for scale in TABLES[name].scales]
            names = {row.name for table in tables for row in table.rows}
            without_histories = {
                row.partition(":")[0] for row in (tested_claim.row, tested_claim.rival)
            }
            assert without_histories <= names, (tested_claim, name)
        assert (tested_claim.margin > 0) == (tested_claim.expect in ("alike", "no gain"))
        assert tested_claim.expect in ("higher", "lower", "no gain", "alike", "between")
        assert (tested_claim.between is not None) == (tested_claim.expect == "between")
        assert (
            tested_claim.between is None
            or tested_claim.measure == "test BLEU"
            or tested_claim.measure in metrics.COUNTED
        )
    texts = [(listed.paper, listed.text) for listed in CLAIMS]
    assert len(texts) == len(set(texts))


def test_seeds_with_other_resamples_are_not_averaged():
    records = runs([12.0, 12.1, 12.2], [10.0] * 3, spread=0.1)
    (verdict,) = judge_claim(claim(), records)
    assert "valid for these test sentences only" not in verdict.evidence
    for changes in ({"bleu": [1200] * 50}, {"sentences": 90}, {"seed": 2}, {"documents": 30}):
        changed = [
            {**run, "resampled": {"test": {**run["resampled"]["test"], **changes}}}
            if run["seed"] == 3 else run
            for run in records
        ]  # fmt: skip
        (verdict,) = judge_claim(claim(), changed)
        assert "valid for these test sentences only" in verdict.evidence, changes
