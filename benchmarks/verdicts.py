"""The rates of false and of true verdicts on simulated tables.

    python -m benchmarks.verdicts --out=results/verdicts.jsonl

`verdict_scores` simulates the scores of systems whose true difference is known. It is also the
margin of a claim that should be just false.

The claims `false`, `extended` and `true` are judged from these scores by the statistics alone;
`extended` are papers that are judged, get more seeds, and are judged again. Those of `records` are
judged from whole records (`verdict_records`), with everything that the judgement of a table does:
statistics of addresses, tests of whole documents, and records without resamples. `speeds` are
claims about speed, judged from the records of a benchmark (`verdict_speeds`).
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import harness, verdict_records, verdict_speeds
from benchmarks.verdict_records import Case
from benchmarks.verdict_scores import Sizes, scores, true_difference
from benchmarks.verdict_speeds import FALSE_BY_MORE, JUST_FALSE, TRUE_CLAIM, SpeedCase
from tfmann.evaluation import verdicts
from tfmann.papers import judgement
from tfmann.papers.judgement import Verdict
from tfmann.utils.provenance import provenance

Z = 1.645  # one-sided 5%


def statuses(measured: np.ndarray, expect: str, margin: float) -> list[str]:
    """Returns the verdicts on a paper whose claims compare every other system with the first."""
    low, high = verdicts.bounds(expect, margin)
    differences = measured[1:] - measured[0]
    estimates = [
        verdicts.estimate(difference[:, 0], verdicts.sentence_variance(difference[:, 1:]))
        for difference in differences
    ]
    inside = verdicts.holm([verdicts.p_inside(estimate, low, high) for estimate in estimates])
    outside = verdicts.holm([verdicts.p_outside(estimate, low, high) for estimate in estimates])
    return [verdicts.verdict(*p_values) for p_values in zip(inside, outside)]


class Scenario(NamedTuple):
    """The truth, and a claim about it.

    Attributes:
      expect: as in a claim.
      gap: advantage of every system over the base, in log odds.
      margin: of the claim; None for the true difference, so that the claim is just false.
      sizes: of the tables.
      claims: number of claims of a paper.
      first: seeds with which the paper was judged before it got all; 0 if it was judged once.
    """

    expect: str
    gap: float
    margin: float | None
    sizes: Sizes
    claims: int = 1
    first: int = 0


def simulate(scenario: Scenario, tables: int, seed: int) -> dict[str, float]:
    """Returns the share of papers with at least one verdict of each status, at any judgement.

    `one_seed` is the share in which the sentences alone make the first seed of the first system
    better than the base, one-sided at 5%, as if no other seed could differ.
    """
    rng = np.random.default_rng(seed)
    true = true_difference(scenario.gap, scenario.sizes.luck)
    margin = true if scenario.margin is None else scenario.margin
    gaps = np.array([0.0] + [scenario.gap] * scenario.claims)
    counts: Counter[str] = Counter()
    for _ in range(tables):
        measured = scores(rng, gaps, scenario.sizes)
        judged = {scenario.first, scenario.sizes.seeds} - {0}
        parts = [measured[:, :seeds] for seeds in judged]
        counts.update({s for part in parts for s in statuses(part, scenario.expect, margin)})
        first = measured[1, 0] - measured[0, 0]
        counts["one_seed"] += int(first[0] > Z * first[1:].std(ddof=1))
    kinds = (verdicts.HOLDS, verdicts.FAILS, verdicts.INCONCLUSIVE, "one_seed")
    return {"true": true, "margin": margin, **{status: counts[status] / tables for status in kinds}}


def simulate_records(case: Case, tables: int, seed: int) -> dict[str, float]:
    """Returns the share of papers with at least one verdict of each status, from whole records."""
    rng = np.random.default_rng(seed)
    margin = case.margin

    def judged_paper() -> list[Verdict]:
        claims, runs = verdict_records.paper(rng, case, margin)
        judged = judgement.judge(claims, {verdict_records.TABLE: runs}, Path())
        return [verdict for _, verdict in judged]

    return {"margin": margin, **_shares(judged_paper() for _ in range(tables))}


def simulate_speeds(case: SpeedCase, tables: int, seed: int) -> dict[str, float]:
    """Returns the share of papers with at least one verdict of each status, from timings."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def judged_paper() -> list[Verdict]:
            claims = verdict_speeds.paper(rng, case, folder)
            return [verdict for _, verdict in judgement.judge(claims, {}, folder)]

        return _shares(judged_paper() for _ in range(tables))


def _shares(papers: Iterable[Sequence[Verdict]]) -> dict[str, float]:
    statuses = [{verdict.status for verdict in paper} for paper in papers]
    counts = Counter(status for of_paper in statuses for status in of_paper)
    kinds = (verdicts.HOLDS, verdicts.FAILS, verdicts.INCONCLUSIVE)
    return {status: counts[status] / len(statuses) for status in kinds}


# Neither a just-false claim nor its contrary may be proven in more than 5% of the papers.
FALSE = [
    Scenario(expect, gap, None, Sizes(seeds, luck=luck), claims)
    for expect, gap in (("higher", 0.0), ("alike", 0.06), ("no gain", 0.06))
    for luck in (0.0, 0.03, 0.2)
    for seeds, claims in ((2, 1), (3, 1), (5, 1), (3, 10))
]
# Nor if a paper with three seeds gets five more, and a proof counts whenever it is found.
EXTENDED = [
    Scenario(expect, gap, None, Sizes(8, luck=luck), claims, first=3)
    for expect, gap in (("higher", 0.0), ("alike", 0.06), ("no gain", 0.06))
    for luck in (0.0, 0.03, 0.2)
    for claims in (1, 10)
]
TRUE = [
    Scenario(expect, gap, margin, Sizes(seeds, 1000), claims)
    for expect, gap, margin in (
        ("higher", 0.06, 0.0), ("higher", 0.15, 0.0), ("alike", 0.0, 0.7), ("alike", 0.0, 1.2),
    )
    for seeds, claims in ((3, 1), (5, 1), (10, 1), (3, 10))
]  # fmt: skip

# Also false, but judged from whole records.
BOUNDS = (("higher", 0.0), ("alike", 0.06), ("no gain", 0.06))
MANY, SEVERAL, THIRTY, OTHERS = (3, 0.2, 10), (5, 0.2, 1), (30, 0.0, 1), (3, 0.03, 1)
OF_ADDRESSES = {
    0: (OTHERS, SEVERAL, MANY),
    2: (SEVERAL,),
    20: (OTHERS, SEVERAL, THIRTY, MANY),
    80: (SEVERAL,),
}  # by documents: seeds, luck, claims
OF_DOCUMENTS = {20: ((5, 0.0, 1), SEVERAL, THIRTY, MANY), 80: (SEVERAL,)}
RECORDS = [
    *(
        Case(evidence, "higher", 0.0, Sizes(seeds, luck=luck, documents=documents), claims)
        for evidence in (verdict_records.ADDRESSES, verdict_records.SKEWED)
        for documents, kinds in OF_ADDRESSES.items()
        for seeds, luck, claims in kinds
    ),
    *(
        Case(verdict_records.DOCUMENTS, *bound, Sizes(seeds, luck=luck, documents=documents),
             claims)
        for bound in BOUNDS
        for documents, kinds in OF_DOCUMENTS.items()
        for seeds, luck, claims in kinds
    ),
    *(
        Case(verdict_records.NO_RESAMPLES, *bound, Sizes(seeds, resamples=500, luck=luck), claims)
        for bound in BOUNDS
        for seeds, luck, claims in ((10, 0.0, 1), SEVERAL, MANY)
    ),
    *(
        Case(verdict_records.IN_FEW, "higher", 0.0, Sizes(seeds, 400, 0, luck, documents))
        for seeds, luck, documents in ((5, 0.2, 40), (3, 0.03, 100), (5, 0.2, 100), (30, 0.0, 100))
    ),
    *(
        Case(verdict_records.FEW_DOCUMENTS, *bound, Sizes(seeds, luck=luck, documents=2), claims)
        for bound in BOUNDS
        for seeds, luck, claims in ((5, 0.0, 1), SEVERAL, MANY)
    ),
    *(
        Case(verdict_records.UNTRAINED, "higher", 0.0, Sizes(seeds, luck=luck), claims)
        for seeds, luck, claims in (
            (2, 0.5, 1), (3, 0.2, 1), (3, 0.5, 1), (10, 0.5, 1), (5, 0.5, 5),
        )
    ),
]  # fmt: skip

SPEEDS = [
    SpeedCase(truth, claim, turns, noise, claims)
    for claim in verdict_speeds.CLAIMS
    for truth in (JUST_FALSE, FALSE_BY_MORE, TRUE_CLAIM)
    for turns, noise, claims in (
        (5, 0.06, 1), (11, 0.02, 1), (11, 0.2, 1), (31, 0.3, 1), (5, 0.2, 10),
    )
    if truth != TRUE_CLAIM or claim != verdict_speeds.FASTER  # equal is as much as is false
]  # fmt: skip

SCENARIOS = {"false": FALSE, "true": TRUE, "extended": EXTENDED}
SEEDS = {"false": 0, "true": 1000, "extended": 4000}  # of the first line of a kind
CLAIMS = (*SCENARIOS, "records", "speeds")


def records(tables: int, kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yields a line for each scenario and for each kind of records."""
    for kind in kinds:
        if kind == "records":
            yield from _of_records(tables)
            continue
        if kind == "speeds":
            yield from _of_speeds(tables)
            continue
        for number, scenario in enumerate(SCENARIOS[kind]):
            shares = simulate(scenario, tables, seed=SEEDS[kind] + number)
            settings = {
                "expect": scenario.expect,
                "claims": scenario.claims,
                **({"first": scenario.first} if scenario.first else {}),
                **scenario.sizes._asdict(),
            }
            yield {"claim_is": kind, "tables": tables, **settings, **shares, **provenance()}


def _of_records(tables: int) -> Iterator[dict[str, Any]]:
    for number, case in enumerate(RECORDS):
        settings = {"evidence": case.evidence, "expect": case.expect, "claims": case.claims}
        shares = simulate_records(case, tables, seed=2000 + number)
        yield {
            "claim_is": "records", "tables": tables, **settings, **case.sizes._asdict(), **shares,
            **provenance(),
        }  # fmt: skip


def _of_speeds(tables: int) -> Iterator[dict[str, Any]]:
    for number, case in enumerate(SPEEDS):
        shares = simulate_speeds(case, tables, seed=3000 + number)
        yield {"claim_is": "speeds", "tables": tables, **case.settings(), **shares, **provenance()}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts", description=__doc__)
    parser.add_argument("--out", type=Path, help="a file that the lines are appended to")
    parser.add_argument("--tables", type=int, default=1000, help="simulated papers of a line")
    harness.add_choice(parser, "claims", CLAIMS)
    flags = parser.parse_args(argv)
    harness.write(records(flags.tables, flags.claims), flags.out)


if __name__ == "__main__":
    main()
