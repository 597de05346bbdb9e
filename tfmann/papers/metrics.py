"""The numbers in the record of a run, by name; shares are in percent."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Callable

from tfmann.evaluation import bleu

Record = dict[str, Any]

REPEATED_ORDER = 2  # the n of the repeated n-grams that tables show; records hold all orders
BREVITY_TOLERANCE = 0.02  # a greater difference in brevity penalty explains part of one in BLEU
RESAMPLED_UNITS = 100  # resampled BLEU is recorded in whole hundredths
SIGNIFICANCE_LEVEL = 0.01  # of Meng et al. 2018 and Tu et al. 2018; Mino et al. 2017 have 0.05
_ROUNDING = 0.005  # BLEU


def seed_of(record: Record) -> int:
    """Returns the random seed of a run; records from before there were several have none."""
    return record.get("seed", 1)


def by_run(records: Iterable[Record]) -> dict[tuple[str, int], Record]:
    """Returns records by row and seed."""
    return {(record["row"], seed_of(record)): record for record in records}


def by_row(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Returns the records of each row, in the order of their seeds."""
    rows: dict[str, list[Record]] = {}
    for record in records:
        rows.setdefault(record["row"], []).append(record)
    return {row: sorted(runs, key=seed_of) for row, runs in rows.items()}


def trained_part(record: Record) -> str:
    """Returns the names of the parameters that a run trained; '' if it trained all."""
    return record.get("hparams", {}).get("trainable_parameters") or ""


def devices(record: Record) -> list[str]:
    """Returns what a run was trained on: its GPUs or, without any, its processor."""
    return record["hardware"]["gpus"] or [record["hardware"]["cpu"]]


def dev_bleu(record: Record) -> float:
    """Returns BLEU on the development set."""
    return record["best"]["dev"][0]["value"]


def test_bleu(record: Record) -> float:
    """Returns BLEU, averaged over all test sets."""
    return _test_mean(record, 0)


def chrf(record: Record) -> float:
    """Returns chrF, averaged over all test sets."""
    return _test_mean(record, 1)


def _scores(record: Record, split: str) -> list[list[dict[str, Any]]]:
    """Returns the scores of dev, or of every test set."""
    more_tests = record.get("more_tests", {}) if split == "test" else {}
    return [record["best"][split], *more_tests.values()]


def _test_mean(record: Record, metric: int) -> float:
    return statistics.fmean(scores[metric]["value"] for scores in _scores(record, "test"))


def bleu_signature(record: Record) -> str | None:
    """Returns sacreBLEU's signature of test BLEU without its version; None of a run without it."""
    scores = record.get("best", {}).get("test")
    return scores[0]["signature"].split("|version:")[0] if scores else None


def brevity_penalty(record: Record, split: str = "test") -> float:
    """Returns BLEU's brevity penalty on dev, or averaged over all test sets; 1 if long enough."""
    return _mean_lengths(record, split)[0]


def length_ratio(record: Record) -> float:
    """Returns words of the translations per word of the references, averaged over all test sets."""
    return _mean_lengths(record, "test")[1]


def _mean_lengths(record: Record, split: str) -> tuple[float, float]:
    lengths = [bleu.lengths(scores[0]["details"]) for scores in _scores(record, split)]
    penalty, ratio = map(statistics.fmean, zip(*lengths))
    return penalty, ratio


def lengths_differ(record: Record, other: Record, split: str = "test") -> bool:
    """Returns whether lengths explain part of the difference in BLEU between two runs."""
    difference = abs(brevity_penalty(record, split) - brevity_penalty(other, split))
    return round(difference, 3) > BREVITY_TOLERANCE


def length_penalty_weight(record: Record) -> float:
    """Returns the search's length penalty: the one chosen on dev, or else that of the settings."""
    chosen = record.get("length_penalty", {}).get("weight")
    return record["hparams"]["length_penalty_weight"] if chosen is None else chosen


def confidence_interval(record: Record) -> tuple[float, float] | None:
    """Returns low and high of the 95% confidence interval of BLEU over resampled sentences."""
    interval = record.get("interval")
    if interval is None:
        return None
    return interval["mean"] - interval["ci"], interval["mean"] + interval["ci"]


def few_documents(resamples: Record) -> str:
    """Returns a note on a set of too few documents to resample them, or ''."""
    few = resamples.get("few_documents")
    return f"valid for these {few} documents only" if few else ""


def detokenised_bleu(record: Record, split: str) -> float | None:
    """Returns BLEU of the detokenised translations of dev or test."""
    return record["detokenised"][split]["value"] if "detokenised" in record else None


def percentage(record: Record, group: str, key: str) -> float | None:
    """Returns a share from `alignment` or `adequacy`, in percent."""
    share = record.get(group, {}).get(key)
    return None if share is None else 100 * share


def history_bleu(record: Record, history: str) -> float | None:
    """Returns test BLEU with another history than the document's own."""
    scores = record.get("histories", {}).get(history)
    if scores is None:
        return None
    tests = [scores["test"], *scores.get("more_tests", {}).values()]
    return statistics.fmean(test[0]["value"] for test in tests)


def bleu_lost_to_errors(record: Record) -> float | None:
    """Returns how much BLEU rises if the history has the reference translations."""
    with_references = history_bleu(record, "reference")
    return None if with_references is None else with_references - test_bleu(record)


def unseen_bleu(record: Record, history: str = "") -> float | None:
    """Returns BLEU of the test pairs that are not in training, with the own or another history."""
    scores = record.get("histories", {}).get(history, {}) if history else record
    return scores.get("unseen", {}).get("bleu")


def tense_percentage(record: Record, key: str) -> float | None:
    """Returns how many sentences have the reference's tense; `right` or `other_right`."""
    counts = record.get("tense", {})
    return 100 * counts[key] / counts["sentences"] if key in counts else None


def sense_percentage(record: Record, key: str) -> float | None:
    """Returns how many ambiguous nouns have the reference's sense; `right` or `other_right`."""
    counts = record.get("senses", {})
    return 100 * counts[key] / counts["nouns"] if key in counts else None


def consistency_percentage(record: Record, prefix: str = "") -> float | None:
    """Returns the share of repeated words that are translated alike; `other_`: across documents."""
    counts = record.get("lexical_consistency", {})
    pairs = counts.get(f"{prefix}pairs")
    return 100 * counts[f"{prefix}alike"] / pairs if pairs else None


def repeated_ngrams(record: Record) -> float | None:
    """Returns the share of repeated n-grams, unless over-translated words are known instead."""
    for counts in record.get("repetition", ()):
        if counts["order"] == REPEATED_ORDER and "adequacy" not in record:
            return 100 * counts["repeated"] / max(counts["ngrams"], 1)
    return None


def decoding_speed(record: Record) -> float | None:
    """Returns words/s of a search of the test set after training."""
    test = record.get("decoding", {}).get("test")
    return test["words"] / test["seconds"] if test else None


def corpus_variants(records: Sequence[Record]) -> list[str]:
    """Returns notes on the copies of the corpus that are not the published ones, by split."""
    variants = {item for record in records for item in record.get("variants", {}).items()}
    return [f"{split}: {note}" for split, note in sorted(variants)]


def stand_in(records: Iterable[Record]) -> str:
    """Returns a note if the training text or the whole corpus is a stand-in; '' if neither is."""
    variants = [note for record in records for note in record.get("variants", {}).values()]
    notes = [note for note in variants if "a stand-in" in note]
    if any("dev and test too" in note for note in notes):
        return "a stand-in for the paper's corpus"
    return "a stand-in for the paper's training text" if notes else ""


def significance_test(record: Record, baseline: str) -> Record:
    """Returns the recorded tests of a run against a baseline; empty if there are none."""
    tests = (test for test in record.get("significance", ()) if test["baseline"] == baseline)
    return next(tests, {})


def test_is_outdated(record: Record, baseline: Record) -> bool:
    """Returns whether recorded tests are of other translations than the recorded scores."""
    tested = significance_test(record, baseline["row"])["difference"]
    return abs(tested - (test_bleu(record) - test_bleu(baseline))) > _ROUNDING


def greatest_p(tests: Sequence[Record]) -> tuple[float, float]:
    """Returns the greatest p over the seeds, of the paired bootstrap and of the sign test."""
    bootstrap, sign = (max(test[key] for test in tests) for key in ("bootstrap_p", "sign_p"))
    return bootstrap, sign


# Measures of claims. All but parameters are in percent or BLEU.
MEASURES: Mapping[str, Callable[[Record], Any]] = {
    "test BLEU": test_bleu,
    "dev BLEU": dev_bleu,
    "BLEU of unseen pairs": unseen_bleu,
    "AER": lambda record: percentage(record, "alignment", "aer"),
    "under-translated words": lambda record: percentage(record, "adequacy", "under"),
    "over-translated words": lambda record: percentage(record, "adequacy", "over"),
    "BLEU lost to errors in the history": bleu_lost_to_errors,
    "repeated bigrams": repeated_ngrams,
    "repeated words translated alike": consistency_percentage,
    "sentences of the right tense": lambda record: tense_percentage(record, "right"),
    "nouns of the right sense": lambda record: sense_percentage(record, "right"),
    "million parameters": lambda record: record["parameters"] / 1e6,
}
COUNTED = frozenset({"million parameters"})  # the same for every seed and test
LENGTH_DEPENDENT = {"test BLEU": "test", "dev BLEU": "dev"}  # split with its brevity penalty
