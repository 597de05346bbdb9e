"""What a record of a run says, number by number; shares are in percent."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable

from tfmann.evaluation import bleu
from tfmann.report.systems import TABLES

Record = dict[str, Any]

REPEATED = 2  # the n of the n-grams whose repetition is shown; all are kept
BREVITY_APART = 0.02  # brevity penalties so far apart make a difference one of length too
_ROUNDING = 0.005  # BLEU
SURE = 0.01  # the level of the papers' significance tests


def read_results(results_dir: Path) -> dict[tuple[str, str], list[Record]]:
    """The records of a folder by table and scale, in the order of their files' names."""
    found = {}
    for path in sorted(results_dir.glob("*.jsonl")):
        name, _, scale = path.stem.rpartition("-")
        if name in TABLES:  # the others are of benchmarks
            found[name, scale] = read_lines(path)
    return found


def read_lines(path: Path) -> list[Record]:
    """The records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def dev_bleu(record: Record) -> float:
    """BLEU of the development set."""
    return record["best"]["dev"][0]["value"]


def test_bleu(record: Record) -> float:
    """BLEU, the mean over all tests."""
    return _over_tests(record, 0)


def chrf(record: Record) -> float:
    """The same of chrF."""
    return _over_tests(record, 1)


def _over_tests(record: Record, metric: int) -> float:
    tests = [record["best"]["test"], *record.get("more_tests", {}).values()]
    return statistics.fmean(test[metric]["value"] for test in tests)


def brevity_penalty(record: Record) -> float:
    """BLEU's, the mean over all tests: 1 where translations are at least as long as references."""
    return _mean_lengths(record)[0]


def lengths_apart(record: Record, other: Record) -> bool:
    """Whether a difference of two runs in BLEU is one of length too, by their brevity penalties."""
    apart = abs(brevity_penalty(record) - brevity_penalty(other))
    return round(apart, 3) > BREVITY_APART


def variants(records: Sequence[Record]) -> list[str]:
    """Which copy of a corpus records are of, split by split, if not the published one."""
    found = {one for record in records for one in record.get("variants", {}).items()}
    return [f"{split}: {variant}" for split, variant in sorted(found)]


def stands_in(record: Record) -> bool:
    """Whether a run's corpus is another one than its manifest names: the variant's note says so."""
    return any("a stand-in" in variant for variant in record.get("variants", {}).values())


def stand_in_of(records: Sequence[Record]) -> str:
    """Of records whose corpus stands in for that of their table: a warning, else empty."""
    if any(map(stands_in, records)):
        return "on a stand-in for its corpus, in train, dev and test"
    return ""


def length_ratio(record: Record) -> float:
    """Words of the translations by those of the references, the mean over all tests."""
    return _mean_lengths(record)[1]


def _mean_lengths(record: Record) -> tuple[float, float]:
    tests = [record["best"]["test"], *record.get("more_tests", {}).values()]
    found = [bleu.lengths(test[0]["details"]) for test in tests]
    penalty, ratio = map(statistics.fmean, zip(*found))
    return penalty, ratio


def length_penalty_weight(record: Record) -> float:
    """That of the search: chosen on dev, or as it was asked for."""
    chosen = record.get("length_penalty", {}).get("weight")
    return record["hparams"]["length_penalty_weight"] if chosen is None else chosen


def interval(record: Record) -> tuple[float, float] | None:
    """The 95% confidence interval of BLEU over a resampled test, low and high."""
    found = record.get("interval")
    return (found["mean"] - found["ci"], found["mean"] + found["ci"]) if found else None


def detokenised(record: Record, split: str) -> float | None:
    """BLEU of detokenised text."""
    return record["detokenised"][split]["value"] if "detokenised" in record else None


def share(record: Record, of: str, key: str) -> float | None:
    """Of `alignment` or `adequacy`."""
    found = record.get(of, {}).get(key)
    return None if found is None else 100 * found


def tense(record: Record, which: str) -> float | None:
    """Sentences of the reference's tense; `which` is right or shuffled_right."""
    found = record.get("tense")
    return 100 * found[which] / found["sentences"] if found else None


def repeated(record: Record) -> float | None:
    """Repeated n-grams where nothing is aligned: else, over-translation says it better."""
    for one in record.get("repetition", ()):
        if one["order"] == REPEATED and "adequacy" not in record:
            return 100 * one["repeated"] / max(one["ngrams"], 1)
    return None


def decoding_speed(record: Record) -> float | None:
    """Words/s of the test, searched once more when training has ended."""
    if "decoding" not in record or "test" not in record["decoding"]:
        return None
    test = record["decoding"]["test"]
    return test["words"] / test["seconds"]


def against(rival: str, record: Record) -> Record:
    """How a run compares with that of another row, if it has been compared; else empty."""
    compared = (one for one in record.get("significance", ()) if one["baseline"] == rival)
    return next(compared, {})


def outdated(record: Record, rival: Record) -> bool:
    """Whether the recorded test of two runs is of other translations than their scores are."""
    apart = against(rival["row"], record)["difference"] - (test_bleu(record) - test_bleu(rival))
    return abs(apart) > _ROUNDING


def worst_p(compared: Sequence[Record]) -> tuple[float, float]:
    """The greatest p over the seeds, of the paired bootstrap and of the sign test."""
    bootstrap, sign = (
        max(one[key] for one in compared) for key in ("bootstrap_p", "sign_p")
    )
    return bootstrap, sign


# What claims are about, by name; but for parameters all are in percent or BLEU.
MEASURES: Mapping[str, Callable[[Record], Any]] = {
    "test BLEU": test_bleu,
    "dev BLEU": dev_bleu,
    "AER": lambda record: share(record, "alignment", "aer"),
    "under-translated words": lambda record: share(record, "adequacy", "under"),
    "over-translated words": lambda record: share(record, "adequacy", "over"),
    "sentences of the right tense": lambda record: tense(record, "right"),
    "million parameters": lambda record: record["parameters"] / 1e6,
}
EXACT = frozenset({"million parameters"})  # no luck in them
OF_LENGTH = frozenset({"test BLEU"})  # those that a brevity penalty is known of
