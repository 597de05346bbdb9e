"""Verdicts on the papers' claims, from our records.

A claim says in which interval the true difference of two rows lies. It holds if that is proven, and
does not hold if the contrary is. At most 5% of papers get a false "holds", and at most 5% a false
"does not hold" (`tfmann.evaluation.verdicts` has the statistics). A margin is part of the claim and
comes from the paper's own figures, or is our choice where it prints none. One seed proves nothing,
since another could contradict it; neither do runs that have not converged
(`conditions.rise_at_end`). Parameters are counted, which needs no proof.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tfmann.evaluation import verdicts
from tfmann.evaluation.verdicts import FAILS, HOLDS, INCONCLUSIVE
from tfmann.papers import conditions, history_scores, memory_statistics, metrics, seed_pairs, speeds
from tfmann.papers.claim import AnyClaim, Claim, MemoryClaim, SpeedClaim, UntestedClaim
from tfmann.papers.conditions import Conditions
from tfmann.papers.metrics import Record
from tfmann.papers.records import counted_records, read_records
from tfmann.papers.seed_pairs import SeedPairs
from tfmann.papers.tables import TABLES
from tfmann.utils.numbers import format_difference, format_number

NOT_MEASURED = "not yet measured"
STATUSES = (FAILS, INCONCLUSIVE, HOLDS, NOT_MEASURED)

# What keeps a claim inconclusive; the first counts if there are several.
ONE_SEED, RISING, OTHER, UNPROVEN = OBSTACLES = (
    "one seed", conditions.RISING, "other conditions", "not proven",
)  # fmt: skip

Results = Mapping[tuple[str, str], Sequence[Record]]

_ONE_SEED = "one seed only, which another could contradict"
_EQUAL_SEEDS = "all seeds differ by the same amount, so how far another may differ is unknown"
_COUNTED = "counted; training does not change it"


class Verdict(NamedTuple):
    """The verdict on a claim.

    Attributes:
      status: one of `STATUSES`.
      measured: the table and scale, or the benchmark; empty if it was not measured.
      evidence: the numbers; for `inconclusive`, the reason first.
      corpus: the paper's corpus or another one; empty for a benchmark.
      conditions: size, seeds, convergence and lengths.
      obstacle: one of `OBSTACLES` if it is inconclusive, else empty.
    """

    status: str
    measured: str
    evidence: str
    corpus: str = ""
    conditions: str = ""
    obstacle: str = ""


class _Case(NamedTuple):
    """A claim in one place where it was measured, for a test to decide.

    Attributes:
      measured: as in `Verdict`.
      evidence: as in `Verdict`.
      conditions: of the measurement.
      p_inside: p value against the contrary of the claim, before it is adjusted.
      p_outside: p value against the claim, before it is adjusted.
    """

    measured: str
    evidence: str
    conditions: Conditions
    p_inside: float
    p_outside: float


def judge(
    claims: Sequence[AnyClaim], results: Results, results_dir: Path
) -> list[tuple[AnyClaim, Verdict]]:
    """Judges each claim at every table and scale where it was measured, or as not measured.

    Args:
      claims: all claims, since the p values of a paper are adjusted for their number.
      results: from `records.read_results`.
      results_dir: the folder of the benchmarks' records.
    """
    judged: list[tuple[AnyClaim, Verdict]] = []
    for paper in dict.fromkeys(claim.paper for claim in claims):
        cases = [
            (claim, case)
            for claim in claims
            if claim.paper == paper
            for case in _cases(claim, results, results_dir)
        ]
        judged += _decide(cases)
    return judged


def count(judged: Iterable[Verdict]) -> dict[str, int]:
    """Returns the number of verdicts by status."""
    counts = dict.fromkeys(STATUSES, 0)
    for verdict in judged:
        counts[verdict.status] += 1
    return counts


def _cases(claim: AnyClaim, results: Results, results_dir: Path) -> list[_Case | Verdict]:
    """Returns a claim wherever it was measured: a case, or the verdict if no test is to decide."""
    if isinstance(claim, UntestedClaim):
        return [Verdict(NOT_MEASURED, "", f"missing: {claim.missing}")]
    cases: Iterator[_Case | Verdict]
    if isinstance(claim, SpeedClaim):
        cases = _benchmark_cases(claim, results_dir / claim.file)
    elif isinstance(claim, MemoryClaim):
        cases = _memory_cases(claim, results)
    else:
        cases = _table_cases(claim, results, results_dir)
    return list(cases) or [Verdict(NOT_MEASURED, "", "")]


def _table_cases(claim: Claim, results: Results, results_dir: Path) -> Iterator[_Case | Verdict]:
    for name in claim.tables:
        for scale in TABLES[name].scales:
            measured = f"{name}, scale {scale}"
            records = history_scores.with_histories(results.get((name, scale), ()))
            pairs = seed_pairs.pair_seeds(claim.measure, records, claim.row, claim.rival)
            if pairs.seeds and claim.measure in metrics.COUNTED:
                where = conditions.conditions(pairs, claim, name, scale, records)
                yield _count(claim, pairs, measured, where._replace(summary=_COUNTED))
            elif pairs.seeds:
                where = conditions.conditions(pairs, claim, name, scale, records)
                yield _compare(claim, pairs, measured, where)
            elif claim.measure in metrics.COUNTED:
                counts = counted_records(results_dir, name, scale)
                pairs = seed_pairs.pair_seeds(claim.measure, counts, claim.row, claim.rival)
                if pairs.seeds:
                    yield _count(claim, pairs, measured, conditions.of_settings(pairs.runs[0]))


def _benchmark_cases(claim: SpeedClaim, path: Path) -> Iterator[_Case]:
    records = read_records(path) if path.exists() else []
    for record, runs in speeds.shares(claim, records):
        measured = ", ".join([f"benchmark {path.stem}", *claim.record.values()])
        yield _Case(
            measured, speeds.evidence(claim, record, runs),
            conditions.of_benchmark(record, claim), *speeds.p_values(claim, runs),
        )  # fmt: skip


def _memory_cases(claim: MemoryClaim, results: Results) -> Iterator[_Case | Verdict]:
    low, high = _bounds(claim)
    for name in claim.tables:
        for scale in TABLES[name].scales:
            records = results.get((name, scale), ())
            measured = memory_statistics.measured_runs(claim, records)
            if not measured.seeds:
                continue
            pairs = SeedPairs(claim.statistic, measured.seeds, measured.runs, measured.rival_runs)
            where = conditions.conditions(pairs, claim, name, scale, records)
            estimate, nulls = measured.estimate(), measured.nulls_passed(low)
            case = _Case(
                f"{name}, scale {scale}", memory_statistics.evidence(claim, measured), where,
                max([verdicts.p_inside(estimate, low, high), *(null.p() for null in nulls)]),
                verdicts.p_outside(estimate, low, high),
            )  # fmt: skip
            yield _settle(case, estimate, (measured.too_few(), measured.uncontrolled(claim)))


def _settle(case: _Case, estimate: verdicts.Estimate, gaps: Iterable[str] = ()) -> _Case | Verdict:
    """Returns a case, or its verdict if one seed, equal, rising or mixed runs, or gaps decide it.

    Args:
      case: the case.
      estimate: of its mean.
      gaps: what its statistics lack to prove anything; '' for nothing.
    """
    reasons = []
    if not estimate.is_testable:
        reasons = [_EQUAL_SEEDS if estimate.freedom else _ONE_SEED]
    reasons += [*filter(None, gaps), *case.conditions.reservations]
    if not reasons:
        return case
    parts = [*reasons, case.evidence]
    obstacle = {_ONE_SEED: ONE_SEED, RISING: RISING}.get(reasons[0], OTHER)
    if estimate.freedom:
        parts.append(f"not adjusted: {_p_values(case.p_inside, case.p_outside)}")
    return _verdict(INCONCLUSIVE, case.measured, "; ".join(parts), case.conditions, obstacle)


def _compare(claim: Claim, pairs: SeedPairs, measured: str, where: Conditions) -> _Case | Verdict:
    """Compares runs with the same seeds."""
    low, high = _bounds(claim)
    ours, theirs = map(statistics.fmean, pairs.values())
    evidence = f"{claim.measure} {format_number(ours)} against {format_number(theirs)}"
    estimate = pairs.estimate()
    _, note = pairs.sentence_variance()
    evidence += f" ({_difference(pairs, estimate)}{_margin(claim)}){_recorded_tests(claim, pairs)}"
    evidence += f"; {note}" if note and estimate.freedom else ""
    p_inside = verdicts.p_inside(estimate, low, high)
    p_outside = verdicts.p_outside(estimate, low, high)
    case = _Case(measured, evidence, where, p_inside, p_outside)
    if unused := pairs.unused_history():  # it counts in the adjustment, and proves nothing
        case = _Case(measured, f"{unused}; {evidence}", where, 1.0, 1.0)
    return _settle(case, estimate)


def _count(claim: Claim, pairs: SeedPairs, measured: str, where: Conditions) -> Verdict:
    """Compares numbers that need no proof."""
    low, high = _bounds(claim)
    ours, theirs = map(statistics.fmean, pairs.values())
    percent = 100 * (ours / theirs - 1)
    status = HOLDS if low < percent < high else FAILS
    evidence = f"{claim.measure} {ours:.2f} against {theirs:.2f}"
    evidence += f" ({format_difference(percent)}%), counted"
    return _verdict(status, measured, evidence, where)


def _decide(
    cases: Sequence[tuple[AnyClaim, _Case | Verdict]],
) -> Iterator[tuple[AnyClaim, Verdict]]:
    """Yields the verdicts of a paper; only those that a test decides count in the adjustment."""
    tested = [case for _, case in cases if isinstance(case, _Case)]
    p_inside = iter(verdicts.holm([case.p_inside for case in tested]))
    p_outside = iter(verdicts.holm([case.p_outside for case in tested]))
    for claim, case in cases:
        if isinstance(case, _Case):
            case = _decide_case(case, next(p_inside), next(p_outside), len(tested))
        yield claim, case


def _decide_case(case: _Case, p_inside: float, p_outside: float, tests: int) -> Verdict:
    status = verdicts.verdict(p_inside, p_outside)
    reason = "neither the claim nor its contrary is proven; " if status == INCONCLUSIVE else ""
    obstacle = UNPROVEN if status == INCONCLUSIVE else ""
    evidence = (
        f"{reason}{case.evidence}; {_p_values(case.p_inside, case.p_outside)}; adjusted for {tests}"
        f" test{'s' if tests > 1 else ''}: {_p_values(p_inside, p_outside)}"
    )
    return _verdict(status, case.measured, evidence, case.conditions, obstacle)


def _verdict(
    status: str, measured: str, evidence: str, where: Conditions, obstacle: str = ""
) -> Verdict:
    return Verdict(status, measured, evidence, where.corpus, where.summary, obstacle)


def _bounds(claim: AnyClaim) -> tuple[float, float]:
    """Returns the interval that the claim gives for the difference, or for the share of speed."""
    if isinstance(claim, SpeedClaim):
        return claim.least, claim.most
    if isinstance(claim, MemoryClaim):
        return claim.above, claim.below
    assert isinstance(claim, Claim)
    return claim.between or verdicts.bounds(claim.expect, claim.margin)


def _p_values(p_inside: float, p_outside: float) -> str:
    """Formats both p values; a value below a thousandth is not shown as 0."""
    p, contrary = (f"p {p:.3f}" if p >= 0.001 else "p < 0.001" for p in (p_inside, p_outside))
    return f"{p} (contrary {contrary})"


def _difference(pairs: SeedPairs, estimate: verdicts.Estimate) -> str:
    if estimate.freedom == 0:
        return format_difference(estimate.mean)
    by_seed = ", ".join(map(format_difference, pairs.differences()))
    mean = format_difference(estimate.mean)
    return f"{mean}, standard error {estimate.error:.2f}, seeds {by_seed}"


def _margin(claim: Claim) -> str:
    if claim.between:
        return "; in the paper: from {:+.2f} to {:+.2f}, rounding included".format(*claim.between)
    if claim.expect == "alike":
        return f"; alike in the paper: within {claim.margin}"
    return f"; no gain in the paper: below {claim.margin}" if claim.expect == "no gain" else ""


def _recorded_tests(claim: Claim, pairs: SeedPairs) -> str:
    """Returns the recorded p values over the sentences of each seed."""
    tests = [seed_pairs.valid_test(*records) for records in pairs.records]
    if claim.measure != "test BLEU" or not all(tests):
        return ""
    text = f"; paired bootstrap of each seed: p {_join(tests, 'bootstrap_p')}"
    return text + (f", sign test: p {_join(tests, 'sign_p')}" if claim.sign_test else "")


def _join(tests: Sequence[Record], key: str) -> str:
    return " / ".join(f"{test[key]:.3f}" for test in tests)
