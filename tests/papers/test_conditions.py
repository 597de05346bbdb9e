"""Conditions of a verdict: convergence, the size of the corpus, and its kind."""

import json
import math
import statistics

import pytest
from helpers.claims import FLAT, claim, history, judge_claim, resampled, runs, status
from helpers.records import record

from benchmarks.speed import cells
from tfmann.evaluation.verdicts import FAILS, HOLDS, INCONCLUSIVE
from tfmann.papers import conditions, judgement, metrics, speeds
from tfmann.papers.claim import MemoryClaim, SpeedClaim
from tfmann.papers.claims import CLAIMS
from tfmann.papers.judgement import NOT_MEASURED
from tfmann.utils import resources


def test_runs_that_have_not_converged_prove_nothing():
    for ours in ([12.0, 12.1, 12.2], [8.0, 8.1, 8.2]):
        records = runs(ours, [10.0] * 3)
        # in the last fifth 0.27 more than ever before, of one run alone; then 0.33
        records[-1]["history"] = history(9.0, 10.0, 10.0, 10.0, 10.27)
        assert status(claim(), records) != INCONCLUSIVE
        records[-1]["history"] = history(9.0, 10.0, 10.0, 10.0, 10.33)
        (verdict,) = judge_claim(claim(), records)
        assert verdict.status == INCONCLUSIVE and verdict.evidence.startswith("not converged; ")
        assert "contrary" in verdict.evidence and "not adjusted" in verdict.evidence
        assert verdict.conditions.endswith(
            "3 seeds; not converged: dev BLEU was still rising, luong by 0.11"
        )
    records = runs([12.0, 12.1, 12.2], [10.0] * 3)
    records[0]["history"] = []
    (verdict,) = judge_claim(claim(), records)
    assert verdict.status == INCONCLUSIVE
    assert "the record of mad_1 is too short to tell" in verdict.conditions


def test_a_row_without_training_has_converged_if_that_with_its_weights_has():
    records = runs([12.0, 12.1, 12.2], [10.0] * 3)
    for run in records[::2]:  # those of mad_1
        del run["history"]
        run["weights"] = "luong"
    assert status(claim(), records) == HOLDS
    records[1]["history"] = history(9.0, 10.0, 10.0, 10.0, 11.0)
    (verdict,) = judge_claim(claim(), records)
    assert "not converged: dev BLEU was still rising, luong by 0.33" in verdict.conditions


def test_every_seed_counts_of_a_row_whose_weights_another_has():
    records = runs([12.0, 12.1, 12.2], [10.0] * 3)
    for run in records[::2]:  # those of mad_1
        del run["history"]
        run["weights"] = "base"
    bases = [record("base", seed=seed, **FLAT) for seed in (1, 2, 3)]
    assert status(claim(), [*records, *bases]) == HOLDS
    bases[-1]["history"] = history(9.0, 10.0, 10.0, 10.0, 11.0)
    (verdict,) = judge_claim(claim(), [*records, *bases])
    assert verdict.conditions.endswith("dev BLEU was still rising, base by 0.33")


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([10.0, 11.0, 12.0, 13.0, 13.5], 0.5),
        ([10.0, 13.0, 12.0, 11.0, 12.5], -0.5),
        ([10.0, 12.0], 2.0),  # the second is at the end
        ([10.0], None),
        ([], None),
        # steps 900 and 1000 are after 800
        ([1, 2, 3, 4, 5, 6, 7, 8, 8.75, 8.25], 0.75),
    ],
)
def test_a_rise_is_that_of_the_last_fifth(scores, expected):
    assert conditions.rise_at_end({"history": history(*scores)}) == expected
    assert conditions.rise_at_end({}) is None


def test_a_verdict_states_its_basis():
    pairs = {"pairs": {"train": 90_000, "test": 500}}
    (verdict,) = judge_claim(claim(), runs([12.0, 12.1], [10.0] * 2, **pairs))
    assert verdict.corpus == "a part of the paper's corpus"
    assert verdict.conditions == "90,000 pairs (paper: 133,000); 2 seeds; converged"
    records = runs([12.0], [10.0], **pairs)
    records[0] = record("mad_1", 12.0, brevity=0.921, seed=1, **pairs, **FLAT)
    (verdict,) = judge_claim(claim(), records)
    assert verdict.conditions == (
        "90,000 pairs (paper: 133,000); one seed; converged; brevity penalties differ: "
        "0.921 against 0.900"
    )


@pytest.mark.parametrize(("brevity", "expected"), [(0.92, False), (0.921, True)])
def test_a_difference_of_just_the_tolerance_is_none(brevity, expected):
    """0.92 - 0.9 is above 0.02 in floating point."""
    runs_of_pair = record("mad_1", brevity=brevity), record("luong", brevity=0.9)
    assert metrics.lengths_differ(*runs_of_pair) == expected


def test_brevity_penalties_are_those_of_the_split_that_is_compared():
    records = runs([12.0, 12.1], [10.0] * 2)
    details = records[0]["best"]["test"][0]["details"].replace("BP = 0.900", "BP = 0.800")
    dev = [{**records[0]["best"]["dev"][0], "details": details}]
    records[0]["best"] = {**records[0]["best"], "dev": dev}
    apart = "brevity penalties differ: 0.800 / 0.900 against 0.900 / 0.900"
    for measure, is_said in (("dev BLEU", True), ("test BLEU", False)):
        (verdict,) = judge_claim(claim(measure=measure), records)
        assert verdict.conditions.endswith(apart) == is_said, verdict.conditions


@pytest.mark.parametrize("change", ["signature", "beam_width"])
def test_runs_that_were_searched_or_scored_otherwise_are_not_compared(change):
    records = runs([11.0, 11.1, 11.2], [10.0, 10.0, 10.0], 0.01)
    assert status(claim(), records) == HOLDS
    for number, run in enumerate(records):  # another version of sacreBLEU changes nothing
        run["best"]["test"][0]["signature"] = f"case:lc|version:2.{number}"
    assert status(claim(), records) == HOLDS
    if change == "signature":
        records[3]["best"]["test"][0]["signature"] = "case:mixed|version:2.0"
    else:
        records[3]["hparams"]["beam_width"] = 1
    (verdict,) = judge_claim(claim(), records)
    assert verdict.status == INCONCLUSIVE
    assert verdict.evidence.startswith("not the same search or scores; ")


def test_runs_that_start_from_other_weights_are_named():
    base = [record("rnnsearch", seed=seed, weights_sha256=f"w{seed}", **FLAT) for seed in (1, 2)]
    longer, cache = (
        [
            record(row, 11.0, seed=seed, start="rnnsearch", init_sha256=f"w{seed}", **FLAT)
            for seed in (1, 2)
        ]
        for row in ("rnnsearch_longer", "cache")
    )

    def conditions(rival, *records):
        tested = claim(row="cache", rival=rival, tables=("cache-subtitle",))
        (verdict,) = judge_claim(tested, list(records), "cache-subtitle", "cpu")
        return verdict.conditions

    def words(rival, *records):
        return conditions(rival, *records).partition("not from the same start with ")[2]

    assert words("rnnsearch", *base, *cache) == words("rnnsearch_longer", *longer, *cache) == ""
    cache[1]["init_sha256"] = "other"
    assert (
        words("rnnsearch", *base, *cache) == words("rnnsearch_longer", *longer, *cache) == "seed 2"
    )
    del cache[1]["init_sha256"]  # of an older version
    assert words("rnnsearch", *base, *cache) == words("rnnsearch_longer", *longer, *cache) == ""
    # and then known to be trained elsewhere
    cache[1]["hardware"] = {"cpu": "d", "gpus": []}
    for rival, of_rival in (("rnnsearch", base), ("rnnsearch_longer", longer)):
        assert conditions(rival, *of_rival, *cache).endswith(
            "on other processors, and perhaps not from the same start with seed 2"
        )


def test_the_paper_s_own_corpus_is_distinguished_from_others():
    def corpus(tested_claim, name, scale, **more):
        records = [record(row, **more) for row in (tested_claim.row, tested_claim.rival)]
        return judge_claim(tested_claim, records, name, scale)[0].corpus

    episodes = {"variants": {"train": "the first 100 of 2,959 episodes"}}
    cache = claim(row="cache", rival="rnnsearch", tables=("cache-news", "cache-subtitle"))
    for pairs, part in ((1_900_000, "a part of "), (2_000_000, ""), (None, "")):
        more = {**episodes, "pairs": {"train": pairs}} if pairs else episodes
        assert corpus(cache._replace(paper="Tu et al. 2018"), "cache-subtitle", "cpu", **more) == (
            f"{part}the paper's corpus (train: the first 100 of 2,959 episodes)"
        )
    assert corpus(cache, "cache-subtitle", "cpu") == "not the paper's corpus"  # but Tu's
    alignment_claim = claim(paper="Meng et al. 2018", row="kvmematt_r2_eos",
                            rival="rnnsearch_longer", tables=("alignment",))  # fmt: skip
    assert corpus(alignment_claim, "alignment", "paper") == "the paper's corpus"
    tanaka = {"train": "not IWSLT'07: the Tanaka corpus, a stand-in, dev and test too"}
    mino = claim(paper="Mino et al. 2017", row="key_value", rival="attn", tables=("en-ja",))
    assert corpus(mino, "en-ja", "cpu", variants=tanaka) == (
        "a stand-in for the paper's corpus (train: not IWSLT'07: the Tanaka corpus, a stand-in, "
        "dev and test too)"
    )
    not_the_papers = "not the paper's corpus"
    assert corpus(alignment_claim, "alignment", "cpu") == not_the_papers  # the Hansards
    meng = alignment_claim._replace(tables=("zh-en", "multi30k"))
    assert corpus(meng, "multi30k", "cpu") == not_the_papers
    tense = cache._replace(paper="Tu et al. 2018", tables=("synthetic-tense",))
    assert corpus(tense, "synthetic-tense", "tiny") == not_the_papers


@pytest.mark.parametrize(
    ("runs_", "expected"),
    # limits 0.80 and 0.84
    [([0.82, 0.821, 0.819], HOLDS), ([0.6, 0.65, 0.7], FAILS), ([0.7, 0.82, 0.94], INCONCLUSIVE),
     ([0.95, 0.951, 0.949], FAILS), ([0.82], INCONCLUSIVE)],
)  # fmt: skip
def test_speed_is_of_a_benchmark(tmp_path, runs_, expected):
    speed_claim = SpeedClaim("P", "1", "text", "bench.jsonl", {"what": "a"}, 0.82, 0.82)
    assert judge_claim(speed_claim, [], folder=tmp_path)[0].status == NOT_MEASURED
    line = {"what": "a", "ratio": 9, "runs": runs_, "date": "2026-01-02T03:04:05",
            "hardware": {"gpus": [], "cpu": "a processor", "cores": 2}}  # fmt: skip
    lines = [{**line, "what": "b"}, line]
    (tmp_path / "bench.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    (verdict,) = judge_claim(speed_claim, [], folder=tmp_path)
    assert verdict.status == expected
    assert verdict.conditions == "a processor, 2 cores; 2026-01-02"
    mean = math.prod(runs_) ** (1 / len(runs_))
    assert (
        f"{mean:.0%} of the baseline's words/s on a CPU (mean of {len(runs_)}" in verdict.evidence
    )


def timing(cell, *seconds, words=1.0, **more):
    """A measurement; `words`: how many times as many words the reference takes its time for."""
    return {
        "what": "train", "cell": cell, "reference": "rnnsearch", "revision": "r",
        "ratio": statistics.median(2.0 / second for second in seconds) / words,
        "date": "2026-01-02T03:04:05", "hardware": {"gpus": [], "cpu": "a processor", "cores": 2},
        "turns": [{"reference": 2.0, "seconds": second} for second in seconds], **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rival", "expected"),
    [([2.5, 2.6, 2.4], HOLDS), ([0.5, 0.6, 0.4], FAILS), ([1.0, 1.2, 0.8], INCONCLUSIVE)],
)
def test_a_rival_is_timed_against_the_same_baseline(tmp_path, rival, expected):
    claim_ = SpeedClaim(
        "P", "1", "text", "bench.jsonl", {"what": "train", "cell": "a"}, 1.0, math.inf,
        {"cell": "b"},
    )  # fmt: skip
    ours = timing("a", 1.0, 1.02, 0.98)

    def judge_lines(*lines):
        (tmp_path / "bench.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return judge_claim(claim_, [], folder=tmp_path)

    (verdict,) = judge_lines(ours, timing("b", *rival), timing("c", 9.0, 9.0, 9.0))
    assert verdict.status == expected and verdict.measured == "benchmark bench, train, a"
    shares = [b / a for a, b in zip([1.0, 1.02, 0.98], rival)]
    mean = math.prod(shares) ** (1 / 3)
    assert f"{mean:.0%} of b's words/s on a CPU (mean of 3" in verdict.evidence
    assert "; the claim: faster, by more than 2 points)" in verdict.evidence
    (verdict,) = judge_lines(ours, timing("b", *rival, words=4.0))
    assert f"{mean * 4:.0%} of b's words/s" in verdict.evidence
    others = ({"revision": "s"}, {"reference": "luong"}, {"what": "beam"},
              {"hardware": {"gpus": [], "cpu": "another", "cores": 2}})  # fmt: skip
    for other in others:
        (verdict,) = judge_lines(ours, timing("b", *rival, **other))
        assert verdict.status == NOT_MEASURED


def test_the_error_of_timings_does_not_make_a_program_faster():
    faster = SpeedClaim("P", "1", "text", "bench.jsonl", {}, 1.0, math.inf)
    alike = faster._replace(least=0.9, most=1.1)

    def proven(claim_, share):
        p_inside, p_outside = speeds.p_values(claim_, [share * 0.9999, share * 1.0001, share])
        return HOLDS if p_inside < 0.05 else FAILS if p_outside < 0.05 else INCONCLUSIVE

    shares = (0.975, 0.985, 1.015, 1.025)
    assert [proven(faster, x) for x in shares] == [FAILS, INCONCLUSIVE, INCONCLUSIVE, HOLDS]
    shares = (0.875, 0.885, 1.115, 1.125)
    assert [proven(alike, x) for x in shares] == [FAILS, HOLDS, HOLDS, FAILS]


def test_turns_that_favour_either_program_prove_nothing():
    """Their mean is 25% above 1 from either side, that of their logarithms is 0."""
    faster = SpeedClaim("P", "1", "text", "bench.jsonl", {}, 1.0, math.inf)
    for turns in ([2.0, 0.5] * 20, [0.5, 2.0] * 20):
        assert speeds.p_values(faster, turns)[0] > 0.5


def test_parameters_are_counted_from_settings_where_nothing_was_trained(tmp_path):
    counted = claim("between", measure="million parameters", between=(49.9, 50.1))
    lines = [
        {"table": table, "scale": "paper", "row": row, "vocabulary": 30000, "parameters": number}
        for table, row, number in (
            ("vi-en", "mad_1", 3_000_000), ("vi-en", "luong", 2_000_000), ("ro-en", "luong", 5),
        )
    ]  # fmt: skip
    assert judge_claim(counted, [], folder=tmp_path)[0].status == NOT_MEASURED
    (tmp_path / "parameters.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (verdict,) = judge_claim(counted, [], folder=tmp_path)
    assert verdict == judgement.Verdict(
        HOLDS, "vi-en, scale paper",
        "million parameters 3.00 against 2.00 (+50.00%), counted", "",
        "counted from the settings, with vocabularies of 30,000 words on either side",
    )  # fmt: skip


def test_seeds_with_other_settings_prove_nothing():
    records = runs([12.0, 12.1, 12.2], [10.0] * 3)
    assert status(claim(), records) == HOLDS
    records[0]["hparams"] = {**records[0]["hparams"], "head_scale": 0.5, "random_seed": 7}
    (verdict,) = judge_claim(claim(), records)
    assert verdict.status == INCONCLUSIVE
    assert verdict.evidence.startswith("seeds with other settings; ")
    assert verdict.conditions.endswith("converged; seeds of mad_1 differ in head_scale")


def test_a_control_is_on_the_corpus_of_its_table():
    control = claim(paper="control (Li et al. 2020)", row="cache", rival="rnnsearch",
                    tables=("cache-subtitle",))  # fmt: skip
    records = [record(row, pairs={"train": 474_712}) for row in ("cache", "rnnsearch")]
    (verdict,) = judge_claim(control, records, "cache-subtitle", "cpu")
    assert verdict.corpus == "a part of the paper's corpus"
    assert verdict.conditions.startswith("474,712 pairs (paper: 2,150,000); ")


def test_runs_of_other_corpora_prove_nothing():
    pairs = {"train": 133_000, "dev": 1553, "test": 1268}
    for changed in ({"train": 50_000}, {"dev": 1000}, {"test": 1000}):
        for row in ("mad_1", "luong"):
            records = runs([12.0, 12.1, 12.2], [10.0] * 3, pairs=pairs)
            assert status(claim(), records) == HOLDS
            records = [
                {**run, "pairs": {**pairs, **changed}} if run["row"] == row else run
                for run in records
            ]
            (verdict,) = judge_claim(claim(), records)
            assert verdict.status == INCONCLUSIVE
            assert verdict.evidence.startswith("not the same corpus; ")
            if "train" in changed:
                assert verdict.conditions.startswith("50,000 and 133,000 pairs")
                assert verdict.corpus.startswith("a part of")


@pytest.mark.parametrize(
    ("resamples", "expected"),
    [(resampled([10.0] * 1000), HOLDS), (resampled([10.0] * 1000, 99), INCONCLUSIVE), ({}, HOLDS)],
)
def test_runs_with_other_tested_sentences_prove_nothing(resamples, expected):
    records = runs([12.0, 12.1, 12.2], [10.0] * 3)
    records[-1]["resampled"] = {**records[-1]["resampled"], "test": resamples.get("test", {})}
    (verdict,) = judge_claim(claim(), records)
    assert verdict.status == expected
    assert verdict.evidence.startswith("not the same corpus; ") == (expected == INCONCLUSIVE)


def test_runs_with_other_nouns_in_the_test_prove_nothing():
    for nouns, expected in ((899, HOLDS), (293, INCONCLUSIVE)):
        records = runs([12.0, 12.1, 12.2], [10.0] * 3)
        for run in records:  # the seeds of both rows are of the same corpus
            run["senses"] = {"nouns": 899 if run["seed"] < 3 else nouns, "right": 100}
        assert status(claim(), records) == expected


def test_a_seed_that_falls_hides_no_other_that_rises():
    records = runs([12.0, 12.1, 12.2], [10.0] * 3)
    of_row = [run for run in records if run["row"] == "luong"]
    for run, rise in zip(of_row, (1.0, 1.0, -3.0)):
        run["history"] = history(9.0, 10.0, 10.0, 10.0, 10.0 + rise)
    (verdict,) = judge_claim(claim(), records)
    assert verdict.status == INCONCLUSIVE and "luong by 0.63" in verdict.conditions
    for run, rise in zip(of_row, (0.19, 0.17, -0.17)):  # noise
        run["history"] = history(9.0, 10.0, 10.0, 10.0, 10.0 + rise)
    assert status(claim(), records) == HOLDS


@pytest.mark.parametrize(("share", "expected"), [(1.5, HOLDS), (1.0, HOLDS), (0.9, FAILS)])
def test_what_is_not_slower_may_be_faster(tmp_path, share, expected):
    not_slower = SpeedClaim("P", "1", "text", "bench.jsonl", {"what": "a"}, 1.0, math.inf,
                            not_slower=True)  # fmt: skip
    line = {"what": "a", "runs": [share, share + 0.001, share - 0.001], "date": "2026-01-02T03",
            "hardware": {"gpus": [], "cpu": "c", "cores": 2}}  # fmt: skip
    (tmp_path / "bench.jsonl").write_text(json.dumps(line) + "\n")
    (verdict,) = judge_claim(not_slower, [], folder=tmp_path)
    assert verdict.status == expected and "at least 100%, ± 2 points" in verdict.evidence


def test_a_system_has_not_converged_if_its_frozen_weights_have_not():
    def judged(rise, trained="cell/gate_*", recorded=True):
        gate = {"start": "luong", "hparams": {"trainable_parameters": trained}, **FLAT}
        records = [
            record(row, bleu + seed * bleu / 1000, seed=seed, **gate)
            for row, bleu in (("cache", 12.0), ("cache_shallow", 10.0))
            for seed in (1, 2, 3)
        ]
        weights = history(9.0, 10.0, 10.0, 10.0, 10.0 + rise)
        records += [record("luong", seed=seed, history=weights) for seed in (1, 2, 3)] * recorded
        deep = claim(row="cache", rival="cache_shallow")
        (verdict,) = judge_claim(deep, records)
        head = MemoryClaim("Collier & Beel 2019", "1", "text", "cache", ("vi-en",), "cache",
                            "target", "gate", above=0.5)  # fmt: skip
        for run in records:
            run["inspection"] = {"unit": "sentence", "units": 99, "statistics": [
                {"head": "cache", "phase": "target", "name": "gate",
                 "mean": 0.9 + run["seed"] / 1000, "interval": [0.89, 0.91],
                 "sentences": 99, "units": 99,
                 "untrained": {"mean": 0.1, "interval": [0.09, 0.11]}},
            ]}  # fmt: skip
        (of_head,) = judge_claim(head, records)
        assert of_head.conditions == verdict.conditions
        has_converged = verdict.conditions.endswith("; converged")
        assert of_head.status == (HOLDS if has_converged else INCONCLUSIVE)
        return verdict.conditions.split("; ")[-1]

    assert judged(0.1) == "converged"
    assert judged(0.5) == "not converged: dev BLEU was still rising, luong by 0.50"
    assert judged(0.5, trained="") == "converged"  # all of them were trained on
    assert judged(0.0, recorded=False) == "not converged: there is no record of luong"


def test_a_speed_of_other_models_than_the_paper_s_says_so(tmp_path):
    line = {"what": "a", "runs": [0.82], "date": "2026-01-02T03",
            "hardware": {"gpus": [], "cpu": "c", "cores": 2}}  # fmt: skip
    (tmp_path / "bench.jsonl").write_text(json.dumps(line) + "\n")
    small = SpeedClaim("P", "1", "text", "bench.jsonl", {"what": "a"}, 0.8, 0.9,
                       models="models of 5 units (paper: 9)")  # fmt: skip
    (verdict,) = judge_claim(small, [], folder=tmp_path)
    assert verdict.conditions == "c, 2 cores; 2026-01-02; models of 5 units (paper: 9)"


def test_claims_about_speed_state_the_size_of_both_models():
    """The benchmark of all cells has one size for all papers; others have each paper's settings."""
    of_paper = {
        paper: json.loads(resources.shipped("hparams", folder, "base.json").read_text("utf-8"))
        for paper, folder in (("Mino et al. 2017", "mino2017"), ("Tu et al. 2018", "tu2018"))
    }
    claims_of_speed = [claim_ for claim_ in CLAIMS if isinstance(claim_, SpeedClaim)]
    assert {claim_.file for claim_ in claims_of_speed} == {
        "speed.jsonl", "rewriting.jsonl", "cache.jsonl",
    }  # fmt: skip
    for claim_ in claims_of_speed:
        if claim_.file == "speed.jsonl":
            timed = cells.SIZES[claim_.record["size"]].units
            units = of_paper[claim_.paper]["num_units"]
            assert claim_.models == f"models of {timed} units (paper: {units:,})", claim_.text
        else:
            assert not claim_.models


def test_other_numbers_of_updates_are_stated():
    def conditions_of(row, rival, *records):
        tested = claim(paper="Tu et al. 2018", row=row, rival=rival, tables=("cache-subtitle",))
        (verdict,) = judge_claim(tested, list(records), "cache-subtitle", "cpu")
        return verdict

    gate = {"trainable_parameters": "cell/gate_*"}
    base, longer = (record("rnnsearch", steps=7500, **FLAT),
                    record("rnnsearch_longer", steps=3000, start="rnnsearch", **FLAT))  # fmt: skip
    cache = record("cache", 12.0, steps=1500, start="rnnsearch", hparams=gate, **FLAT)
    summary = {**cache, "row": "summary", "hparams": {}}
    words = conditions_of("cache", "rnnsearch", base, cache).conditions
    assert words.endswith("converged; updates: 7,500 + 1,500 of cell/gate_* against 7,500")
    reason = "not the same number of updates; "
    verdict = conditions_of("summary", "rnnsearch_longer", base, longer, summary)
    assert verdict.conditions.endswith("; updates: 7,500 + 1,500 against 7,500 + 3,000")
    assert reason in verdict.evidence  # the claim says that there are as many
    assert reason not in conditions_of("cache", "rnnsearch", base, cache).evidence
    summary["steps"] = 3000
    verdict = conditions_of("summary", "rnnsearch_longer", base, longer, summary)
    assert verdict.conditions.endswith("; converged") and reason not in verdict.evidence
    cache["steps"] = 3000  # as many, of other parameters
    words = conditions_of("cache", "summary", base, cache, summary).conditions
    assert words.endswith("updates: 7,500 + 3,000 of cell/gate_* against 7,500 + 3,000")
