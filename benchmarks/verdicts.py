"""The rates of false and of true verdicts on simulated tables.

    python -m benchmarks.verdicts --out=results/verdicts.jsonl

A simulated run translates N sentences. The number of each sentence's n-grams that match the
reference is drawn with a probability that depends on the system's quality, on the run's seed, on
the sentence, which is equally hard for all systems, and on chance for this run at this sentence.
BLEU is computed from the sums, as usual. The true difference of two systems is the mean over all
seeds and sentences, by integration; it is also the margin of a claim that should be just false.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import harness
from tfmann.evaluation import verdicts
from tfmann.utils.provenance import provenance

ORDERS = np.arange(4)  # a sentence has n - 1 fewer n-grams than words
BASE = np.array([0.5, -0.4, -1.1, -1.7])  # log odds that an n-gram matches: BLEU about 35
HARD, OWN = 0.6, 0.8  # standard deviations of a sentence's and of a run's luck at a sentence
LONGEST, SHORTEST = 30, 8
Z = 1.645  # one-sided 5%


class Sizes(NamedTuple):
    """The sizes of a simulated table.

    Attributes:
      seeds: of every system.
      sentences: of the test.
      resamples: of the bootstrap.
      luck: standard deviation over seeds, in log odds; 0.03 is about half a BLEU.
    """

    seeds: int = 3
    sentences: int = 200
    resamples: int = 200
    luck: float = 0.03


def scores(rng: np.random.Generator, gaps: np.ndarray, sizes: Sizes) -> np.ndarray:
    """Returns BLEU of all runs, measured and on shared resamples [systems, S, 1 + B].

    Args:
      rng: the random generator.
      gaps: advantage of each system over the base, in log odds [systems].
      sizes: of the table.
    """
    runs = (len(gaps), sizes.seeds)
    length = rng.integers(SHORTEST, LONGEST + 1, sizes.sentences)
    good = gaps[:, None, None] + rng.normal(0, sizes.luck, (*runs, 1))
    good = good + rng.normal(0, HARD, sizes.sentences) + rng.normal(0, OWN, (*runs, len(length)))
    positions = length[:, None] - ORDERS
    matches = rng.binomial(positions, _share(good[..., None] + BASE))
    resamples = rng.integers(0, len(length), (sizes.resamples, len(length)))
    times = [np.bincount(sentences, minlength=len(length)) for sentences in resamples]
    weights = np.vstack([np.ones(len(length)), *times])
    sums = np.einsum("bn,gsnk->gsbk", weights, matches, optimize=True)
    return 100 * np.exp(np.log(np.maximum(sums, 0.5) / (weights @ positions)).mean(axis=-1))


def true_difference(gap: float, luck: float) -> float:
    """Returns a system's advantage in BLEU over the base, over all seeds and sentences."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()

    def bleu(ability: np.ndarray) -> np.ndarray:
        sentence = ability[:, None, None] + np.hypot(HARD, OWN) * nodes[:, None] + BASE
        return 100 * np.exp(np.log(weights @ _share(sentence)).mean(axis=-1))

    return float(weights @ (bleu(gap + luck * nodes) - bleu(luck * nodes)))


def _share(odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-odds))


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
    results = []
    for difference, p_inside, p_outside in zip(differences, inside, outside):
        status = verdicts.verdict(p_inside, p_outside)
        errors = difference[:, 1:].std(axis=1, ddof=1)
        dissenters = verdicts.dissenting(difference[:, 0], errors, low, high, status)
        results.append(verdicts.INCONCLUSIVE if dissenters else status)
    return results


class Scenario(NamedTuple):
    """The truth, and a claim about it.

    Attributes:
      expect: as in a claim.
      gap: advantage of every system over the base, in log odds.
      margin: of the claim; None for the true difference, so that the claim is just false.
      sizes: of the tables.
      claims: number of claims of a paper.
    """

    expect: str
    gap: float
    margin: float | None
    sizes: Sizes
    claims: int = 1


def simulate(scenario: Scenario, tables: int, seed: int) -> dict[str, float]:
    """Returns the share of papers with at least one verdict of each status.

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
        counts.update(set(statuses(measured, scenario.expect, margin)))
        first = measured[1, 0] - measured[0, 0]
        counts["one_seed"] += int(first[0] > Z * first[1:].std(ddof=1))
    kinds = (verdicts.HOLDS, verdicts.FAILS, verdicts.INCONCLUSIVE, "one_seed")
    return {"true": true, "margin": margin, **{status: counts[status] / tables for status in kinds}}


# Neither a just-false claim nor its contrary may be proven in more than 5% of the papers.
FALSE = [
    Scenario(expect, gap, None, Sizes(seeds, luck=luck), claims)
    for expect, gap in (("higher", 0.0), ("alike", 0.06), ("no gain", 0.06))
    for luck in (0.0, 0.03, 0.2)
    for seeds, claims in ((2, 1), (3, 1), (5, 1), (3, 10))
]
TRUE = [
    Scenario(expect, gap, margin, Sizes(seeds, 1000), claims)
    for expect, gap, margin in (
        ("higher", 0.06, 0.0), ("higher", 0.15, 0.0), ("alike", 0.0, 0.7), ("alike", 0.0, 1.2),
    )
    for seeds, claims in ((3, 1), (5, 1), (10, 1), (3, 10))
]  # fmt: skip

SCENARIOS = {"false": FALSE, "true": TRUE}


def records(tables: int, kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
    for kind in kinds:
        for number, scenario in enumerate(SCENARIOS[kind]):
            shares = simulate(scenario, tables, seed=1000 * (kind == "true") + number)
            settings = {
                "expect": scenario.expect,
                "claims": scenario.claims,
                **scenario.sizes._asdict(),
            }
            yield {"claim_is": kind, "tables": tables, **settings, **shares, **provenance()}


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts", description=__doc__)
    parser.add_argument("--out", type=Path, help="a file that the lines are appended to")
    parser.add_argument("--tables", type=int, default=1000, help="simulated papers of a line")
    harness.add_choice(parser, "claims", SCENARIOS)
    flags = parser.parse_args(argv)
    harness.write(records(flags.tables, flags.claims), flags.out)


if __name__ == "__main__":
    main()
