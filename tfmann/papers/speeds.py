"""Speeds that benchmarks recorded, as evidence for a claim."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from tfmann.papers.claim import SpeedClaim
from tfmann.papers.metrics import Record

_TIMING_ERROR = 0.02  # by how much two timings of the same program differ
_SAME = ("revision", "hardware")  # of records that may be compared


def bounds(claim: SpeedClaim) -> tuple[float, float]:
    """Returns the interval that the claim gives for the share of speed."""
    return claim.least - _TIMING_ERROR, claim.most + _TIMING_ERROR


def shares(claim: SpeedClaim, records: Sequence[Record]) -> Iterator[tuple[Record, list[float]]]:
    """Yields each record that can test a claim, with the share of speed in each of its runs.

    A rival is timed in a program of its own, at the same revision and on the same machine. Both
    have the same baseline, so its runs are paired with the record's in their order.
    """
    for record in _matching(records, claim.record):
        runs = _of_baseline(record)
        if not claim.rival:
            yield record, runs
            continue
        for rival in _matching(records, {**claim.record, **claim.rival}):
            if all(rival[key] == record[key] for key in (*_SAME, "reference")):
                yield record, [ours / theirs for ours, theirs in zip(runs, _of_baseline(rival))]


def evidence(claim: SpeedClaim, record: Record, runs: Sequence[float]) -> str:
    """Describes the shares of speed."""
    device = "GPU" if record["hardware"]["gpus"] else "CPU"
    of = " and ".join(claim.rival.values()) or "the baseline"
    source = "the claim" if claim.rival else "paper"
    return (
        f"{statistics.fmean(runs):.0%} of {of}'s words/s on a {device} (mean of {len(runs)} pairs "
        f"of runs, {min(runs):.0%} to {max(runs):.0%}; {source}: {_range(claim.least, claim.most)})"
    )


def _matching(records: Sequence[Record], wanted: Mapping[str, str]) -> list[Record]:
    return [record for record in records if all(record.get(k) == v for k, v in wanted.items())]


def _of_baseline(record: Record) -> list[float]:
    """Returns the share of the baseline's speed in each pair of runs."""
    if "runs" in record:
        return record["runs"]
    times = [turn["reference"] / turn["seconds"] for turn in record["turns"]]
    of_words = record["ratio"] / statistics.median(times)  # a run of the baseline may have others
    return [of_words * ratio for ratio in times]


def _range(least: float, most: float) -> str:
    if math.isinf(most):
        return "faster"
    low, high = f"{least:.0%}", f"{most:.0%}"
    return low if low == high else f"{low} to {high}"
