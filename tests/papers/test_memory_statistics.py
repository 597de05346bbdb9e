"""Statistics of heads as evidence for a claim."""

import numpy as np
import pytest
from helpers.claims import NO_FOLDER
from helpers.records import record

from tfmann.evaluation.head_statistics import SOURCE, TARGET
from tfmann.evaluation.inspection import DESCRIPTIONS
from tfmann.evaluation.verdicts import FAILS, HOLDS, INCONCLUSIVE
from tfmann.papers import judgement, memory_statistics
from tfmann.papers.claim import MemoryClaim
from tfmann.papers.claims import CLAIMS
from tfmann.papers.judgement import NOT_MEASURED
from tfmann.papers.tables import TABLES

CLAIM = MemoryClaim(
    "Collier & Beel 2019",
    "5.1",
    "text",
    "ntm_1",
    ("ro-en", "vi-en"),
    "write_head_0",
    "source",
    "successive",
    above=0.5,
)
FLAT = {"history": [{"step": 100 * i, "dev_bleu": 10.0} for i in range(1, 6)]}


def entry(mean, spread=0.01, untrained=0.1, name="successive"):
    return {
        "head": "write_head_0", "phase": "source", "name": name, "mean": mean,
        "interval": [mean - spread, mean + spread], "sentences": 500,
        "untrained": {"mean": untrained, "interval": None, "sentences": 500},
    }  # fmt: skip


def runs(*means, spread=0.01, untrained=0.1, unit="sentence", units=500, of_file=500, **more):
    return [
        record(
            "ntm_1", seed=seed, **{**FLAT, **more},
            inspection={
                "statistics": [entry(mean, spread, untrained)], "unit": unit, "units": units,
                "sentences": 500, "sentences_of_file": of_file,
            },
        )
        for seed, mean in enumerate(means, start=1)
    ]  # fmt: skip


def judge_records(records, claim=CLAIM):
    ((_, verdict),) = judgement.judge([claim], {("vi-en", "cpu"): records}, NO_FOLDER)
    return verdict


@pytest.mark.parametrize(
    ("means", "spread", "expected"),
    [
        ((0.70, 0.72, 0.74), 0.01, HOLDS),
        ((0.30, 0.32, 0.34), 0.01, FAILS),
        ((0.51, 0.52, 0.53), 0.1, INCONCLUSIVE),  # the sentences allow less than a half
        ((0.70, 0.72, 0.20), 0.01, INCONCLUSIVE),
        ((0.72,), 0.01, INCONCLUSIVE),
    ],
)
def test_a_statistic_has_to_be_proven_beyond_its_limit(means, spread, expected):
    assert judge_records(runs(*means, spread=spread)).status == expected
    mirrored = {HOLDS: FAILS, FAILS: HOLDS}.get(expected, expected)
    below = CLAIM._replace(above=-float("inf"), below=0.5)
    assert judge_records(runs(*means, spread=spread, untrained=0.9), below).status == mirrored


def test_what_untrained_weights_do_has_not_been_learned():
    verdict = judge_records(runs(0.70, 0.72, 0.74, untrained=0.96))
    assert verdict.status == INCONCLUSIVE
    assert "with untrained weights 0.96, which agree with the claim more; " in verdict.evidence
    assert judge_records(runs(0.70, 0.72, 0.74, untrained=0.73)).status == INCONCLUSIVE
    assert judge_records(runs(0.70, 0.72, 0.74, untrained=0.55)).status == HOLDS
    assert judge_records(runs(0.30, 0.32, 0.34, untrained=0.96)).status == FAILS
    below = CLAIM._replace(above=-float("inf"), below=0.5)
    for untrained, status in (
        (0.9, HOLDS),
        (0.45, HOLDS),
        (0.33, INCONCLUSIVE),
        (0.1, INCONCLUSIVE),
    ):
        assert judge_records(runs(0.30, 0.32, 0.34, untrained=untrained), below).status == status
    unmeasured = runs(0.70, 0.72, 0.74)
    for run in unmeasured:
        del run["inspection"]["statistics"][0]["untrained"]
    verdict = judge_records(unmeasured)
    assert verdict.status == INCONCLUSIVE
    assert verdict.evidence.startswith("without untrained weights; ")


def test_evidence_shows_seeds_and_untrained_weights():
    verdict = judge_records(runs(0.70, 0.72, 0.74))
    assert verdict.measured == "vi-en, scale cpu"
    assert verdict.evidence.startswith(
        f"{DESCRIPTIONS['successive']}: 0.72 [0.71, 0.73] (seeds 0.70, 0.72, 0.74); the claim: "
        "above 0.5; with untrained weights 0.10; 500 sentences; p 0.00"
    )
    assert verdict.conditions.endswith("3 seeds; converged")
    one_seed = judge_records(runs(0.72, unit="document"))
    assert one_seed.evidence.startswith("one seed only, which another could contradict; ")
    assert one_seed.evidence.endswith(
        ": 0.72 [0.71, 0.73]; the claim: above 0.5; with untrained weights 0.10; 500 sentences in "
        "500 documents"
    )


def test_few_documents_prove_nothing():
    verdict = judge_records(runs(0.70, 0.72, 0.74, unit="document", units=19))
    assert verdict.status == INCONCLUSIVE
    assert verdict.evidence.startswith("of 19 documents only, too few to speak for others; ")
    enough = judge_records(runs(0.70, 0.72, 0.74, unit="document", units=20))
    assert enough.status == HOLDS


def test_only_documents_that_have_the_statistic_count():
    records = runs(0.70, 0.72, 0.74, unit="document", units=100)
    for number, run in enumerate(records):
        run["inspection"]["statistics"][0]["units"] = 19 + number
    verdict = judge_records(records)
    assert verdict.status == INCONCLUSIVE
    assert verdict.evidence.startswith("of 19 documents only, too few to speak for others; ")
    for run in records:
        del run["inspection"]["statistics"][0]["units"]
        run["inspection"]["statistics"][0]["sentences"] = 18  # so they are in 18 documents at most
    assert judge_records(records).evidence.startswith("of 18 documents only, ")


def test_a_statistic_of_one_document_proves_nothing():
    records = runs(0.70, 0.72, 0.74, unit="document", units=100)
    for run in records:
        run["inspection"]["statistics"][0].update(interval=None, units=1)
    assert judge_records(records).status == INCONCLUSIVE


def test_documents_fewer_than_seeds_count_as_seeds_do():
    means = [0.7] * 30
    thirty = memory_statistics.measured_runs(CLAIM, runs(*means, spread=0.1, units=20)).estimate()
    assert thirty.freedom == 19
    assert thirty.error == pytest.approx(0.1 / 1.96 * (20 / 19) ** 0.5, rel=1e-3)


def test_a_table_of_the_paper_is_its_corpus_even_if_it_is_not_the_claim_s_first():
    verdict = judge_records(runs(0.70, 0.72, 0.74, pairs={"train": 133_166}))
    assert verdict.corpus == "the paper's corpus"
    assert verdict.conditions.startswith("133,166 pairs (paper: 133,000); ")


def test_the_first_part_of_a_test_set_is_called_so():
    evidence = judge_records(runs(0.70, 0.72, 0.74, of_file=1000)).evidence
    assert "; 500 sentences, of the first 500 of 1,000; p 0.00" in evidence


def test_runs_that_have_not_converged_prove_nothing():
    rising = [{"step": 100 * i, "dev_bleu": 2.0 * i} for i in range(1, 6)]
    verdict = judge_records(runs(0.70, 0.72, 0.74, history=rising))
    assert verdict.status == INCONCLUSIVE and verdict.evidence.startswith("not converged; ")
    assert verdict.conditions.endswith("dev BLEU was still rising, ntm_1 by 2.00")


def test_what_no_record_has_is_not_measured():
    entropy_record = record("ntm_1", inspection={"statistics": [entry(0.7, name="entropy")]})
    for records in ([], [record("ntm_1")], [entropy_record], [record("ntm_1", inspection=None)]):
        assert judge_records(records).status == NOT_MEASURED


def of_gate_alone(records, means):
    """Runs of the gate alone with the seeds of a cache's, and with other means of its statistic."""
    controls = []
    for run, mean in zip(records, means):
        (of_cache,) = run["inspection"]["statistics"]
        statistics = [{**of_cache, **entry(mean, untrained=0.0, name=of_cache["name"]),
                       "head": "cache", "phase": "target"}]  # fmt: skip
        inspected = {**run["inspection"], "statistics": statistics}
        controls.append({**run, "row": "cache_nothing", "inspection": inspected})
    return controls


def test_what_the_gate_alone_gains_is_no_gain_of_the_history():
    (claim,) = [claim for claim in CLAIMS if isinstance(claim, MemoryClaim)
                and claim.statistic == "word_gain_not_in_cache"]  # fmt: skip
    records = runs(0.25, 0.26, 0.27, unit="document")
    for run in records:
        run["row"] = "cache"
        run["inspection"]["statistics"][0].update(
            head="cache", phase="target", name=claim.statistic
        )

    def judged(means):
        results = {("bcontrast-de-en", "cpu"): [*of_gate_alone(records, means), *records]}
        ((_, verdict),) = judgement.judge([claim], results, NO_FOLDER)
        return verdict

    assert judged([0.05, 0.06, 0.04]).status == HOLDS
    alike = judged([0.26, 0.25, 0.28])
    assert alike.status == INCONCLUSIVE and "; of cache_nothing 0.26 [0.25, 0.27]" in alike.evidence
    for means in ([], [0.05, 0.06]):  # of no seed, of two
        verdict = judged(means)
        assert verdict.status == INCONCLUSIVE
        assert verdict.evidence.startswith("without cache_nothing, the control; ")


def test_a_control_that_has_not_converged_proves_nothing():
    claim = CLAIM._replace(row="cache", head="cache", phase="target", control="cache_nothing")
    records = runs(0.70, 0.72, 0.74)
    for run in records:
        run["row"] = "cache"
        run["inspection"]["statistics"][0].update(head="cache", phase="target")
    controls = of_gate_alone(records, [0.20, 0.22, 0.21])
    assert judge_records([*controls, *records], claim).status == HOLDS
    rising = [{"step": 100 * i, "dev_bleu": 2.0 * i} for i in range(1, 6)]
    controls = [{**run, "history": rising} for run in controls]
    verdict = judge_records([*controls, *records], claim)
    assert verdict.status == INCONCLUSIVE and verdict.evidence.startswith("not converged; ")
    assert verdict.conditions.endswith("dev BLEU was still rising, cache_nothing by 2.00")


def test_the_patterns_in_a_cache_are_judged_where_a_record_has_them():
    claims = [
        claim for claim in CLAIMS if isinstance(claim, MemoryClaim)
        and claim.statistic in ("phrase_gain", "word_gain_in_cache", "word_gain_not_in_cache")
    ]  # fmt: skip
    assert len(claims) == 3
    for claim in claims:
        old, new = (
            [
                {**run, "row": "cache", "inspection": {**run["inspection"], "statistics": [
                    {**entry(mean, untrained=0.0, name=name), "head": "cache", "phase": "target"}
                ]}}
                for mean, run in zip((0.05, 0.06, 0.07), runs(0, 0, 0, unit="document"))
            ]
            for name in ("phrase", claim.statistic)
        )  # fmt: skip
        if claim.control:
            new += of_gate_alone(new, [0.0, 0.0, 0.0])
        for records, status in ((old, NOT_MEASURED), (new, HOLDS)):
            results = {("bcontrast-de-en", "cpu"): records}
            ((_, verdict),) = judgement.judge([claim], results, NO_FOLDER)
            assert verdict.status == status, verdict


def of_cache(row, seed, weights, spread=0.001):
    """A run whose cache matches its slots with these probabilities, the latest first."""
    half = {**entry(0.9, name="recent_half"), "head": "cache", "phase": "target"}
    inspected = {
        "unit": "document", "units": 100, "statistics": [half],
        "recency": weights, "recency_intervals": [[w - spread, w + spread] for w in weights],
        "recency_untrained": [0.02] * len(weights), "recency_untrained_intervals":
        [[0.02, 0.02]] * len(weights),
    }  # fmt: skip
    return record(row, seed=seed, inspection=inspected, **FLAT)


@pytest.mark.parametrize(
    ("decay", "expected"),
    [(0.96, INCONCLUSIVE), (0.93, INCONCLUSIVE), (0.8, HOLDS)],  # of the larger cache
)
def test_a_larger_cache_has_to_attend_more_to_as_many_of_the_latest_slots(decay, expected):
    """The smaller one decays by 0.93 a slot; in half of the larger one there are more slots."""
    (claim,) = [claim for claim in CLAIMS if getattr(claim, "statistic", "") == "latest_slots"]
    records = []
    for seed in (1, 2, 3):
        for row, size, rate in (("cache", 25, 0.93), ("cache_100", 100, decay)):
            weights = (rate + seed / 1000) ** np.arange(size)
            records.append(of_cache(row, seed, list(weights / weights.sum())))
    results = {("synthetic-tense", "tiny"): records}
    ((_, verdict),) = judgement.judge([claim], results, NO_FOLDER)
    assert verdict.status == expected, verdict
    assert verdict.evidence.count("matching of the 12 latest slots: ") == 1


def test_older_records_have_no_intervals_of_the_slots():
    (claim,) = [claim for claim in CLAIMS if getattr(claim, "statistic", "") == "latest_slots"]
    records = [of_cache(row, 1, [0.04] * 25) for row in ("cache", "cache_100")]
    for run in records:
        del run["inspection"]["recency_intervals"]
    ((_, verdict),) = judgement.judge([claim], {("synthetic-tense", "tiny"): records}, NO_FOLDER)
    assert verdict.status == INCONCLUSIVE and "latest slots: 0.48; " in verdict.evidence


def test_the_claims_name_statistics_and_rows_that_exist():
    claims = [claim for claim in CLAIMS if isinstance(claim, MemoryClaim)]
    assert {claim.paper for claim in claims} == {"Collier & Beel 2019", "Tu et al. 2018"}
    for claim in claims:
        assert memory_statistics.describe(claim.statistic) and claim.phase in (SOURCE, TARGET)
        for name in claim.tables:
            rows = {row.name for row in TABLES[name].rows}
            assert {claim.row, claim.control or claim.row} <= rows, claim


def test_evidence_names_a_statistic_without_the_one_before_it():
    for claim in CLAIMS:
        if isinstance(claim, MemoryClaim):
            words = memory_statistics.describe(claim.statistic)
            assert not words.startswith(("the same", "difference")), claim


def test_the_tests_that_were_measured_are_named():
    for tests, more, expected in (
        (None, {}, ""), (1, {}, ""), (3, {"b": ()}, ", of 3 test sets"),
        (None, {"b": ()}, ", of the first test set"),
    ):  # fmt: skip
        records = runs(0.70, 0.72, 0.74, **({"more_tests": more} if more else {}))
        for run in records if tests else ():
            run["inspection"]["tests"] = tests
        measured = memory_statistics.measured_runs(CLAIM, records)
        assert memory_statistics.evidence(CLAIM, measured).endswith(f"; 500 sentences{expected}")


@pytest.mark.parametrize(
    ("unit", "documents", "note"),
    [
        ("sentence", {"few_documents": 18}, "; valid for these 18 documents only"),
        ("sentence", {"documents": 40}, ""),
        ("sentence", {}, ""),
        ("document", {"few_documents": 18}, ""),  # too few to prove anything, which is said
    ],
)
def test_sentences_of_few_documents_speak_for_these_documents_only(unit, documents, note):
    scores = {"test": {"sentences": 500, "seed": 1, "bleu": [1000] * 9, **documents}}
    measured = memory_statistics.measured_runs(
        CLAIM, runs(0.70, 0.72, 0.74, unit=unit, units=18, resampled=scores)
    )
    of_documents = " in 18 documents" * (unit == "document")
    assert memory_statistics.evidence(CLAIM, measured).endswith(
        f"; 500 sentences{of_documents}{note}"
    )


def of_seeds(trained, untrained, spread=0.001):
    """Runs whose untrained weights differ from seed to seed."""
    records = runs(*trained, spread=spread)
    for run, mean in zip(records, untrained):
        null = {"mean": mean, "interval": [mean - spread, mean + spread], "sentences": 500}
        run["inspection"]["statistics"][0]["untrained"] = null
    return records


def test_untrained_weights_have_a_chance_of_their_own():
    """The claim: above 0.5. On average the weights are further in, but not certainly."""
    trained = (0.66, 0.67, 0.68)
    assert judge_records(of_seeds(trained, (0.10, 0.12, 0.11))).status == HOLDS
    spread_out = judge_records(of_seeds(trained, (0.50, 0.66, 0.52)))
    assert spread_out.status == INCONCLUSIVE
    # Of equal means, whatever they are, nothing is proven.
    assert judge_records(of_seeds(trained, (0.67, 0.66, 0.68))).status == INCONCLUSIVE


@pytest.mark.parametrize(("spread", "expected"), [(0.01, HOLDS), (0.6, INCONCLUSIVE)])
def test_untrained_weights_may_differ_on_other_sentences(spread, expected):
    records = runs(0.70, 0.72, 0.74)
    for run in records:
        null = {"mean": 0.1, "interval": [0.1 - spread, 0.1 + spread], "sentences": 500}
        run["inspection"]["statistics"][0]["untrained"] = null
    assert judge_records(records).status == expected


def test_a_seed_below_its_untrained_weights_counts_in_the_error():
    trained, untrained = (0.90, 0.91, 0.92), (0.10, 0.11, 0.95)
    assert judge_records(of_seeds(trained, untrained)).status == INCONCLUSIVE
    assert judge_records(of_seeds(trained * 4, (0.10, 0.11) * 5 + (0.10, 0.95))).status == HOLDS


def test_only_seeds_with_a_null_are_compared_with_it():
    records = of_seeds((0.70, 0.72, 0.74), (0.10, 0.12, 0.11))
    for run in records[1:]:
        del run["inspection"]["statistics"][0]["untrained"]
    (null,) = memory_statistics.measured_runs(CLAIM, records).nulls_passed(0.5)
    assert null.differences == [0.70 - 0.10]
    assert judge_records(records).status == INCONCLUSIVE
