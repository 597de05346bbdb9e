"""Does what a paper says hold in our records?

The statistics are those of `tfmann.evaluation.verdicts`: a claim says in which interval the true
difference of two rows lies; it holds where that is proven, and does not hold where the contrary is,
with at most 5% of false proofs among all claims of a paper. A margin is written in the claim, from
the paper's own figures. One seed proves nothing, since another one may do otherwise; nor do seeds
some of which say the contrary; nor do runs that have not converged (`basis.rise`), either way. What
is counted, parameters, needs no proof.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tfmann.evaluation import verdicts
from tfmann.evaluation.verdicts import FAILS, HOLDS, INCONCLUSIVE
from tfmann.report import basis, measures, paired
from tfmann.report.basis import Basis
from tfmann.report.claim import AnyClaim, Claim, Speed, Unjudged
from tfmann.report.measures import Record
from tfmann.report.paired import Pairs
from tfmann.report.systems import TABLES

NOT_MEASURED = "not yet measured"
STATUSES = (FAILS, INCONCLUSIVE, HOLDS, NOT_MEASURED)

Results = Mapping[tuple[str, str], Sequence[Record]]

_ONE_SEED = "one seed, which another may contradict"
_TIMING = 0.02  # what a share of speed is off by when the same program is timed twice


class Verdict(NamedTuple):
    """What our records say to a claim.

    Attributes:
      status: one of `STATUSES`.
      measured: on what: a table and its scale; empty where it is not measured.
      evidence: the numbers; of `inconclusive` first why.
      corpus: which it is, beside the paper's; empty of a benchmark.
      facts: what else it stands on: size, seeds, convergence, lengths.
    """

    status: str
    measured: str
    evidence: str
    corpus: str = ""
    facts: str = ""


class _Case(NamedTuple):
    """A claim where it was measured, before the p values of its paper are adjusted.

    Attributes:
      claim: which.
      measured: as in `Verdict`, and
      evidence: too.
      basis: what it stands on; None of a benchmark.
      inside: p value against the contrary of the claim, and
      outside: against the claim.
      differences: of the seeds, with the error of the sentences of each; empty without any.
      settled: the verdict where no test decides.
    """

    claim: AnyClaim
    measured: str = ""
    evidence: str = ""
    basis: Basis | None = None
    inside: float = 1.0
    outside: float = 1.0
    differences: Mapping[int, tuple[float, float]] = {}
    settled: Verdict | None = None


def judge(
    claims: Sequence[AnyClaim], results: Results, results_dir: Path
) -> list[tuple[AnyClaim, Verdict]]:
    """A verdict for each table and scale at which a claim was measured, or one that it was not.

    Args:
      claims: all of them, since the p values of a paper's are adjusted for their number.
      results: as of `measures.read_results`.
      results_dir: where benchmarks are.
    """
    judged: list[tuple[AnyClaim, Verdict]] = []
    for paper in dict.fromkeys(claim.paper for claim in claims):
        cases = [
            case for claim in claims if claim.paper == paper
            for case in _cases(claim, results, results_dir)
        ]  # fmt: skip
        judged += _decided(cases)
    return judged


def _cases(claim: AnyClaim, results: Results, results_dir: Path) -> list[_Case]:
    """The claim wherever it was measured; once, without anything, where it never was."""
    if isinstance(claim, Unjudged):
        return [_Case(claim, settled=Verdict(NOT_MEASURED, "", f"lacking: {claim.lacking}"))]
    found = (
        _by_benchmark(claim, results_dir / claim.file)
        if isinstance(claim, Speed)
        else _by_tables(claim, results)
    )
    return list(found) or [_Case(claim, settled=Verdict(NOT_MEASURED, "", ""))]


def _by_tables(claim: Claim, results: Results) -> Iterator[_Case]:
    for name in claim.tables:
        for scale in TABLES[name].scales:
            records = results.get((name, scale), ())
            pairs = paired.pair(claim.measure, records, claim.row, claim.rival)
            if pairs.seeds:
                stands_on = basis.basis(pairs, claim.tables, name, scale)
                yield _by_seeds(claim, pairs, f"{name}, scale {scale}", stands_on)


def _decided(cases: Sequence[_Case]) -> Iterator[tuple[AnyClaim, Verdict]]:
    """The verdicts of a paper's cases; what numbers cannot prove is no part of the adjustment."""
    tested = [one for one in cases if one.settled is None]
    inside = iter(verdicts.holm([one.inside for one in tested]))
    outside = iter(verdicts.holm([one.outside for one in tested]))
    for case in cases:
        yield case.claim, case.settled or _verdict(case, next(inside), next(outside), len(tested))


def _verdict(case: _Case, inside: float, outside: float, number: int) -> Verdict:
    status = verdicts.verdict(inside, outside)
    why = "neither it nor the contrary is proven; " if status == INCONCLUSIVE else ""
    disagreement = _disagreement(case.differences, _bounds(case.claim), status)
    if disagreement:
        why, status = f"{disagreement}; ", INCONCLUSIVE
    evidence = (
        f"{why}{case.evidence}; {_p(case.inside, case.outside)}; adjusted for {number} "
        f"test{'s' if number > 1 else ''} {_p(inside, outside)}"
    )
    return _stated(status, case.measured, evidence, case.basis)


def _disagreement(
    by_seed: Mapping[int, tuple[float, float]], bounds: tuple[float, float], status: str
) -> str:
    """How seeds contradict each other, or the verdict on their mean; empty if they do not."""
    seeds, values = list(by_seed), list(by_seed.values())
    differences, errors = ([one[part] for one in values] for part in (0, 1))
    said = {  # what contradicts the one says the other
        mine: verdicts.dissenting(differences, errors, *bounds, other)
        for mine, other in ((HOLDS, FAILS), (FAILS, HOLDS))
    }
    if not all(said.values()):
        said = {mine: found for mine, found in said.items() if status not in (mine, INCONCLUSIVE)}
    shown = [
        f"it {mine} by {', '.join(f'seed {seeds[one]} ({differences[one]:+.2f})' for one in found)}"
        for mine, found in said.items() if found
    ]  # fmt: skip
    mean = f"it {status} by their mean, " if len(shown) == 1 else ""
    return f"the seeds disagree: {mean}{', '.join(shown)}" if shown else ""


def _stated(status: str, measured: str, evidence: str, stands_on: Basis | None) -> Verdict:
    corpus, facts = (stands_on.corpus, stands_on.facts) if stands_on else ("", "")
    return Verdict(status, measured, evidence, corpus, facts)


def _bounds(claim: AnyClaim) -> tuple[float, float]:
    """The interval in which the claim says that the difference, or the share of speed, lies."""
    if isinstance(claim, Speed):
        return claim.least - _TIMING, claim.most + _TIMING
    assert isinstance(claim, Claim)
    return claim.between or verdicts.bounds(claim.expect, claim.margin)


def _by_seeds(claim: Claim, pairs: Pairs, measured: str, stands_on: Basis) -> _Case:
    """Runs with the same seeds, seed by seed."""
    differences = pairs.differences()
    low, high = _bounds(claim)
    ours, theirs = map(statistics.fmean, pairs.values())
    evidence = f"{claim.measure} {ours:.2f} against {theirs:.2f}"
    if claim.measure in measures.EXACT:
        percent = 100 * (ours / theirs - 1)
        status = HOLDS if low < percent < high else FAILS
        evidence = f"{evidence} ({percent:+.2f}%), counted"
        stands_on = stands_on._replace(facts="")  # training changes nothing of it
        return _Case(claim, settled=_stated(status, measured, evidence, stands_on))
    found = pairs.estimate()
    evidence += f" ({_difference(pairs, found)}{_margin(claim)}){_recorded(claim, pairs)}"
    _, how = pairs.sentence_variance()
    evidence += f"; {how}" if how and found.freedom else ""
    inside, outside = verdicts.p_inside(found, low, high), verdicts.p_outside(found, low, high)
    by_seed = dict(zip(pairs.seeds, zip(differences, pairs.sentence_errors())))
    why = [_ONE_SEED] * (found.freedom == 0) + ["not converged"] * bool(stands_on.unconverged)
    if why:
        why.append(_disagreement(by_seed, (low, high), INCONCLUSIVE))
        if found.freedom:
            evidence += f"; {_p(inside, outside)}, not adjusted"
        evidence = "; ".join([*filter(None, why), evidence])
        return _Case(claim, settled=_stated(INCONCLUSIVE, measured, evidence, stands_on))
    return _Case(claim, measured, evidence, stands_on, inside, outside, by_seed)


def _p(inside: float, outside: float) -> str:
    """Both p values; what is below a thousandth is not shown as 0."""
    shown = [f"p {one:.3f}" if one >= 0.001 else "p < 0.001" for one in (inside, outside)]
    return f"{shown[0]}, of the contrary {shown[1]}"


def _difference(pairs: Pairs, found: verdicts.Estimate) -> str:
    if found.freedom == 0:
        return f"{found.mean:+.2f}"
    each = ", ".join(f"{one:+.2f}" for one in pairs.differences())
    return f"{found.mean:+.2f}, standard error {found.error:.2f}, seeds {each}"


def _margin(claim: Claim) -> str:
    if claim.expect == "alike":
        return f"; alike in the paper: within {claim.margin}"
    return f"; no gain in the paper: less than {claim.margin}" if claim.expect == "no gain" else ""


def _recorded(claim: Claim, pairs: Pairs) -> str:
    """P values over the sentences of each seed, as they were recorded."""
    tests = [paired.compared(*one) for one in zip(pairs.row, pairs.rival)]
    if claim.measure != "test BLEU" or not all(tests):
        return ""
    shown = f"; paired bootstrap of each seed p {_each(tests, 'bootstrap_p')}"
    shown += f", sign test p {_each(tests, 'sign_p')}" if claim.sign_test else ""
    earlier = any(paired.outdated(*one) for one in zip(pairs.row, pairs.rival))
    return f"{shown} (of an earlier decoding of one of the two)" if earlier else shown


def _each(tests: Sequence[Record], key: str) -> str:
    return " / ".join(f"{one[key]:.3f}" for one in tests)


def _by_benchmark(claim: Speed, path: Path) -> Iterator[_Case]:
    low, high = _bounds(claim)
    for one in measures.read_lines(path) if path.exists() else ():
        if any(one.get(key) != wanted for key, wanted in claim.about.items()):
            continue
        runs = one["runs"]
        found = verdicts.estimate(runs)
        where = "GPU" if one["hardware"]["gpus"] else "CPU"
        evidence = (
            f"{found.mean:.0%} of the other's words/s on a {where}, mean of {len(runs)} pairs of "
            f"runs from {min(runs):.0%} to {max(runs):.0%}; in the paper "
            f"{_percent(claim.least, claim.most)}"
        )
        measured = ", ".join([f"benchmark {path.stem}", *claim.about.values()])
        yield _Case(
            claim, measured, evidence, None,
            verdicts.p_inside(found, low, high), verdicts.p_outside(found, low, high),
        )  # fmt: skip


def _percent(least: float, most: float) -> str:
    low, high = f"{least:.0%}", f"{most:.0%}"
    return low if low == high else f"{low} to {high}"


def count(found: Iterable[Verdict]) -> dict[str, int]:
    """How many verdicts have each status."""
    counts = dict.fromkeys(STATUSES, 0)
    for one in found:
        counts[one.status] += 1
    return counts
