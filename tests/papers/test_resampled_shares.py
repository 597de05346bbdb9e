"""Shares of words, sentences and n-grams on resamples, and what verdicts take from them."""

import numpy as np
import pytest
from helpers.claims import FLAT, claim, judge_claim
from helpers.records import record

from tfmann.evaluation import significance
from tfmann.papers import resampled_shares, seed_pairs

DRAWS = np.random.default_rng(7)


def scores_of(sentences):
    """Counts of invented sentences."""
    sure = DRAWS.integers(3, 9, sentences)
    in_sure = DRAWS.binomial(sure, 0.6)
    judged = DRAWS.integers(4, 9, sentences)
    return {
        "alignment": {"aer": 0.4, "by_sentence": {
            "in_sure": in_sure.tolist(), "in_possible": (in_sure + 1).tolist(),
            "links": (sure + 1).tolist(), "sure": sure.tolist()}},
        "adequacy": {"under": 0.1, "by_sentence": {
            "judged": judged.tolist(), "under": DRAWS.binomial(judged, 0.1).tolist(),
            "reworded": [0] * sentences, "over": DRAWS.binomial(judged, 0.02).tolist()}},
    }  # fmt: skip


@pytest.mark.parametrize("documents", [None, 2, 30])
def test_a_resample_has_the_shares_of_its_sentences(documents):
    sentences = 60
    scores = scores_of(sentences)
    aligned, judged = (dict(scores[group]["by_sentence"]) for group in ("alignment", "adequacy"))
    ids = None if documents is None else [i * documents // sentences for i in range(sentences)]
    resamples = resampled_shares.take(scores, ids)
    assert scores == {"alignment": {"aer": 0.4}, "adequacy": {"under": 0.1}}
    units = [[i] for i in range(sentences)]
    if documents == 30:  # two sentences each; two documents are too few to be drawn
        units = [[2 * i, 2 * i + 1] for i in range(30)]
    drawn = np.random.default_rng(12345).integers(0, len(units), (1000, len(units)))
    for number in (0, 1, 999):
        rows = [row for unit in drawn[number] for row in units[unit]]
        total = {name: sum(column[row] for row in rows)
                 for name, column in {**aligned, **judged}.items()}  # fmt: skip
        right = total["in_sure"] + total["in_possible"]
        expected = [1 - right / (total["links"] + total["sure"]),
                    total["under"] / total["judged"], total["over"] / total["judged"]]  # fmt: skip
        actual = [resamples["alignment"]["aer"][number],
                  *(resamples["adequacy"][name][number] for name in ("under", "over"))]  # fmt: skip
        np.testing.assert_allclose(actual, np.multiply(expected, 10_000), atol=0.51)
    for of_group in resamples.values():
        assert (of_group["sentences"], of_group["seed"]) == (60, significance.RESAMPLES_SEED)
        assert of_group.get("documents") == (30 if documents == 30 else None)
        assert of_group.get("few_documents") == (2 if documents == 2 else None)


def test_scores_without_counts_have_no_resamples():
    assert resampled_shares.take({"adequacy": {"under": 0.1}}, None) == {}
    ntm = {"adequacy": scores_of(20)["adequacy"]}
    assert set(resampled_shares.take(ntm, None)) == {"adequacy"}


@pytest.mark.parametrize("group", ["tense", "senses", "repetition", "lexical_consistency"])
def test_a_share_is_a_part_of_a_whole(group):
    part, whole = {
        "tense": ("right", "sentences"), "senses": ("right", "nouns"),
        "repetition": ("repeated", "ngrams"), "lexical_consistency": ("alike", "pairs"),
    }[group]  # fmt: skip
    wholes = DRAWS.integers(0, 3, 40)
    parts = DRAWS.binomial(wholes, 0.7)
    drawn = np.random.default_rng(significance.RESAMPLES_SEED).integers(0, 40, (1000, 40))
    expected = 10_000 * parts[drawn].sum(axis=1) / wholes[drawn].sum(axis=1)
    by_sentence = resampled_shares.of_sentences(group, {part: parts, whole: wholes}, None)
    np.testing.assert_allclose(by_sentence[part], expected, atol=0.51)
    # 40 documents of two sentences each
    counts, numbers = {part: parts, whole: wholes}, np.repeat(np.arange(40), 2)
    by_document = resampled_shares.of_documents(group, [counts], [numbers.tolist()])
    assert by_document == {**by_sentence, "sentences": 80, "documents": 40}


def test_counts_of_several_tests_are_summed_by_resample():
    tests = [
        {"alike": DRAWS.integers(0, 5, documents), "pairs": np.full(documents, 5)}
        for documents in (20, 30)
    ]
    numbers = [list(range(20)), list(range(30))]
    entry = resampled_shares.of_documents("lexical_consistency", tests, numbers)
    drawn = [
        np.random.default_rng(significance.seed_of_test(number)).integers(0, size, (1000, size))
        for number, size in enumerate((20, 30))
    ]
    alike = sum(test["alike"][rows].sum(axis=1) for test, rows in zip(tests, drawn))
    np.testing.assert_allclose(entry["alike"], 10_000 * alike / 250, atol=0.51)
    assert entry["documents"] == 50
    assert resampled_shares.of_documents("lexical_consistency", tests, [[1], numbers[1]]) == {}


def test_a_resample_without_nouns_has_no_right_ones():
    counts = {"right": [0, 1], "nouns": [0, 1]}
    shares = resampled_shares.of_sentences("senses", counts, None)["right"]
    assert set(shares) == {0, 10_000}


def runs_with_aer(ours, theirs, moves, resampled_seeds):
    """Records whose AER moves by `moves` percent on the resamples, in the first row alone."""
    records = []
    for seed, pair in enumerate(zip(ours, theirs), start=1):
        for row, aer, moved in zip(("mad_1", "luong"), pair, (moves, 0 * moves)):
            resamples = {"sentences": 50, "seed": 1, "aer": np.rint(100 * (aer + moved)).tolist()}
            more = {"alignment": resamples} if seed in resampled_seeds else {}
            records.append(
                record(row, seed=seed, alignment={"aer": aer / 100}, resampled=more, **FLAT)
            )
    return records


def test_the_error_of_aer_counts_the_sentences():
    lower = claim("lower", measure="AER")
    ours, theirs, moves = [20.0, 20.1, 20.2], [22.0] * 3, np.tile([-1.0, 1.0], 500)
    for seeds, note in (((1, 2, 3), ""), ((2,), "that of 1 of 3 seeds"), ((), "sentences only")):
        records = runs_with_aer(ours, theirs, moves, seeds)
        pairs = seed_pairs.pair_seeds("AER", records, "mad_1", "luong")
        of_sentences = 1000 / 999 if seeds else 0.0
        assert pairs.estimate().error == pytest.approx((0.01 / 3 + of_sentences) ** 0.5)
        (verdict,) = judge_claim(lower, records)
        assert (verdict.status == "holds") == (not seeds) and note in verdict.evidence
