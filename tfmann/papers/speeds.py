"""Speeds that benchmarks recorded, as evidence for a claim.

A program is timed in turns with another, and each turn is a repetition, as a seed is one of
training. The mean of the ratios would favour whatever is in the numerator: two equal programs, each
twice as slow in some turns as in others, would both be faster than the other. So ratios are
averaged as logarithms.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from tfmann.evaluation import verdicts
from tfmann.papers.claim import SpeedClaim
from tfmann.papers.metrics import Record

TIMING_ERROR = 0.02  # by how much two timings of the same program differ
_SAME = ("revision", "hardware")  # of records that may be compared


def p_values(claim: SpeedClaim, runs: Sequence[float]) -> tuple[float, float]:
    """Returns the p values against the contrary of a claim and against the claim.

    Args:
      claim: the claim.
      runs: the share of speed in each turn.
    """
    estimate = verdicts.estimate([math.log(share) for share in runs])
    inside, outside = (map(math.log, limits(claim, proof)) for proof in (True, False))
    return verdicts.p_inside(estimate, *inside), verdicts.p_outside(estimate, *outside)


def limits(claim: SpeedClaim, proof: bool) -> tuple[float, float]:
    """Returns the shares of speed that agree with a claim, given that timings have an error.

    The turns of a process do not show what they have in common, so the interval of the claim is
    widened by `TIMING_ERROR`. To prove that one is faster, it is not widened: the difference must
    be greater than this error.

    Args:
      claim: the claim.
      proof: for the proof of the claim, or else for that of its contrary.
    """
    widened = claim.least - TIMING_ERROR, claim.most + TIMING_ERROR
    return (claim.least + TIMING_ERROR, claim.most) if proof and is_faster(claim) else widened


def is_faster(claim: SpeedClaim) -> bool:
    """Returns whether a claim says no more than that one is faster."""
    return math.isinf(claim.most) and not claim.not_slower


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
    turns = "runs of each, in their order" if claim.rival else "pairs of runs"
    source = "the claim" if claim.rival else "paper"
    return (
        f"{statistics.geometric_mean(runs):.0%} of {of}'s words/s on a {device} (mean of "
        f"{len(runs)} {turns}, {min(runs):.0%} to {max(runs):.0%}; {source}: {_range(claim)})"
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


def _range(claim: SpeedClaim) -> str:
    error = f"{100 * TIMING_ERROR:.0f} points"
    if is_faster(claim):
        return f"faster, by more than {error}"
    if claim.not_slower:
        return f"at least {claim.least:.0%}, ± {error}"
    low, high = f"{claim.least:.0%}", f"{claim.most:.0%}"
    return (low if low == high else f"{low} to {high}") + f", ± {error}"
