"""Does what a paper says hold in our records? Claims as data, and the rules that judge them.

A difference counts where luck does not explain it. In test BLEU: where the paired bootstrap and the
sign test of every seed have p below the paper's level. Of rows that were not compared by them, and
of other measures: where a paired t-test over the seeds has p below 5%; of a single seed, where the
95% intervals of BLEU do not overlap. A single seed without an interval is not tested.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tfmann.report import measures
from tfmann.report.measures import SURE, Record
from tfmann.report.systems import TABLES

HOLDS = "holds"
FAILS = "does not hold"
UNSURE = "not significant"
UNTESTED = "not tested"
NOT_MEASURED = "not yet measured"
STATUSES = (FAILS, UNSURE, UNTESTED, HOLDS, NOT_MEASURED)

# |t| that a two-sided 5% asks for, by degrees of freedom (Student 1908); 2.0 beyond.
_T = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}


class Claim(NamedTuple):
    """A statement of a paper about two rows of a table.

    Attributes:
      paper: whose it is.
      where: in the paper.
      text: what it says, in our words.
      expect: `higher` or `lower`: the row's measure is so, beyond luck. `no gain`: it is not higher
        beyond luck. `alike`: the two differ by no more than `margin`.
      row: the system.
      rival: what it is compared with.
      tables: those of ours where it can be looked at, the paper's own first.
      measure: of `measures.MEASURES`.
      margin: of `alike`: the greatest difference of the rows that the paper calls alike.
      level: of the paper's own significance test.
    """

    paper: str
    where: str
    text: str
    expect: str
    row: str
    rival: str
    tables: tuple[str, ...]
    measure: str = "test BLEU"
    margin: float = 0.0
    level: float = SURE


class Speed(NamedTuple):
    """A statement of a paper about speed, judged by a benchmark that ran on a quiet machine.

    Attributes:
      paper: whose it is.
      where: in the paper.
      text: what it says, in our words.
      file: of results/.
      about: the record: these keys have these values.
      least: share of the other's speed that the paper's figures leave, and
      most: leave at most; a measured share up to _TIMING away from them still agrees.
    """

    paper: str
    where: str
    text: str
    file: str
    about: Mapping[str, str]
    least: float
    most: float


_TIMING = 0.02  # what a share of speed is off by when the same program is timed twice


class Verdict(NamedTuple):
    """What our records say to a claim.

    Attributes:
      status: one of `STATUSES`.
      measured: on what: a table and its scale; empty where it is not measured.
      own: whether that is the paper's own corpus, at whatever size.
      evidence: the numbers.
    """

    status: str
    measured: str
    own: bool
    evidence: str


def judge(
    claim: Claim | Speed,
    results: Mapping[tuple[str, str], Sequence[Record]],
    results_dir: Path,
) -> list[Verdict]:
    """One verdict for each table and scale at which a claim was measured, or one that it was not.

    Args:
      claim: which.
      results: as of `measures.read_results`.
      results_dir: where benchmarks are.
    """
    found = (
        _by_tables(claim, results)
        if isinstance(claim, Claim)
        else _by_benchmark(claim, results_dir / claim.file)
    )
    return list(found) or [Verdict(NOT_MEASURED, "", False, "")]


def _by_tables(
    claim: Claim, results: Mapping[tuple[str, str], Sequence[Record]]
) -> Iterable[Verdict]:
    for name in claim.tables:
        for scale in TABLES[name].scales:
            row, rival = (
                {one.get("seed", 1): one for one in results.get((name, scale), ())
                 if one["row"] == wanted}
                for wanted in (claim.row, claim.rival)
            )  # fmt: skip
            value = measures.MEASURES[claim.measure]
            seeds = [
                seed for seed in sorted(set(row) & set(rival))
                if None not in (value(row[seed]), value(rival[seed]))
            ]  # fmt: skip
            if seeds:
                status, evidence = _compare(
                    claim, [row[seed] for seed in seeds], [rival[seed] for seed in seeds]
                )
                own = name == claim.tables[0] and _is_own(name, scale)
                yield Verdict(status, f"{name}, scale {scale}", own, evidence)


def _is_own(name: str, scale: str) -> bool:
    """Whether a table is measured on the paper's corpus, not on one that stands in for it."""
    manifest = TABLES[name].at(scale).manifest
    return manifest is not None and manifest == TABLES[name].manifest


class _Test(NamedTuple):
    """Whether a difference is more than luck, and who says so; None: nobody does."""

    sure: bool | None
    by: str


def _compare(
    claim: Claim, row: Sequence[Record], rival: Sequence[Record]
) -> tuple[str, str]:
    """Status and evidence of runs with the same seeds, seed by seed."""
    value = measures.MEASURES[claim.measure]
    ours, theirs = ([float(value(one)) for one in runs] for runs in (row, rival))
    differences = [a - b for a, b in zip(ours, theirs)]
    mean = statistics.fmean(differences)
    test = _test(claim, row, rival, differences)
    seeds = "" if len(row) == 1 else f", mean of {len(row)} seeds"
    evidence = (
        f"{claim.measure} {statistics.fmean(ours):.2f} against {statistics.fmean(theirs):.2f} "
        f"({mean:+.2f}{seeds}); "
    )
    if claim.expect == "alike":
        evidence += f"up to {claim.margin} is alike in the paper; "
    evidence += test.by
    return _status(claim, mean, test.sure), evidence


def _status(claim: Claim, mean: float, sure: bool | None) -> str:
    if claim.expect == "alike":
        if abs(mean) <= claim.margin:
            return HOLDS
        return {True: FAILS, False: UNSURE, None: UNTESTED}[sure]
    if claim.expect == "no gain":
        return HOLDS if mean <= 0 else {True: FAILS, False: HOLDS, None: UNTESTED}[sure]
    as_said = mean > 0 if claim.expect == "higher" else mean < 0
    return {True: HOLDS if as_said else FAILS, False: UNSURE, None: UNTESTED}[sure]


def _test(
    claim: Claim, row: Sequence[Record], rival: Sequence[Record], differences: Sequence[float]
) -> _Test:
    if claim.measure in measures.EXACT:
        return _Test(differences[0] != 0, "counted")
    compared = [_compared(a, b) for a, b in zip(row, rival)]
    if claim.measure == "test BLEU" and all(compared):
        bootstrap, sign = measures.worst_p(compared)
        one_sided = len({difference > 0 for difference in differences}) == 1
        greatest = "greatest " if len(row) > 1 else ""
        return _Test(
            one_sided and max(bootstrap, sign) < claim.level,
            f"{greatest}p {bootstrap:.3f} (bootstrap), {sign:.3f} (sign test)",
        )
    if len(differences) > 1:
        error = statistics.stdev(differences) / math.sqrt(len(differences))
        t = abs(statistics.fmean(differences)) / error if error else math.inf
        needed = _T.get(len(differences) - 1, 2.0)
        return _Test(t > needed, f"t = {t:.1f} over the seeds, {needed:.2f} needed")
    intervals = [measures.interval(one) for one in (*row, *rival)]
    if claim.measure != "test BLEU" or None in intervals:
        return _Test(None, "one seed, and no test of it")
    (low, high), (low_rival, high_rival) = (one for one in intervals if one)
    apart = low > high_rival or low_rival > high
    return _Test(apart, f"95% intervals that {'do not overlap' if apart else 'overlap'}")


def _compared(row: Record, rival: Record) -> Record:
    """How the two were compared, whichever of them was the baseline."""
    return measures.against(rival["row"], row) or measures.against(row["row"], rival)


def _by_benchmark(claim: Speed, path: Path) -> Iterable[Verdict]:
    low, high = claim.least - _TIMING, claim.most + _TIMING
    for one in measures.read_lines(path) if path.exists() else ():
        if any(one.get(key) != wanted for key, wanted in claim.about.items()):
            continue
        slowest, fastest = min(one["runs"]), max(one["runs"])
        if low <= one["ratio"] <= high:
            status = HOLDS
        else:
            status = FAILS if fastest < low or slowest > high else UNSURE
        where = "GPU" if one["hardware"]["gpus"] else "CPU"
        evidence = (
            f"{one['ratio']:.0%} of the other's words/s on a {where}, median of "
            f"{len(one['runs'])} pairs of runs from {slowest:.0%} to {fastest:.0%}; in the paper "
            f"{_percent(claim.least, claim.most)}"
        )
        measured = ", ".join([f"benchmark {path.stem}", *claim.about.values()])
        yield Verdict(status, measured, False, evidence)


def _percent(least: float, most: float) -> str:
    low, high = f"{least:.0%}", f"{most:.0%}"
    return low if low == high else f"{low} to {high}"


def count(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many verdicts have each status."""
    counts = dict.fromkeys(STATUSES, 0)
    for one in verdicts:
        counts[one.status] += 1
    return counts
