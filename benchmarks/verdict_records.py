"""Simulated records of runs, of which the claims are just false.

`tfmann.papers.judgement` judges them as it judges the records of a table. The truth is known by
construction: two systems are equally good, or differ by exactly the margin; a statistic of
addresses has exactly the mean that the claim puts below its own, or that of untrained weights.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from benchmarks.verdict_scores import (
    Sizes,
    balance,
    document_effects,
    scores,
    share,
    true_difference,
)
from tfmann.evaluation import inspection
from tfmann.papers import metrics
from tfmann.papers.claim import AnyClaim, Claim, MemoryClaim

ADDRESSES = "addresses, a share"  # of the steps of a sentence: the claim says more than one half
SKEWED = "addresses, skewed"  # mostly about nothing, at times much: the claim says more than zero
UNTRAINED = "addresses, untrained weights alike"  # a share that training has not changed
IN_FEW = "addresses, in few documents"  # a share that means something in few documents only
DOCUMENTS = "BLEU, documents resampled"
FEW_DOCUMENTS = "BLEU, few documents"  # whose sentences are resampled; the claims are about these
NO_RESAMPLES = "BLEU, no resamples"  # the error is an upper bound from p values and intervals

TABLE = ("vi-en", "cpu")  # any table
BASE = "base"
SENTENCE_OWN, SENTENCE, DOCUMENT = 0.8, 0.6, 0.4  # standard deviations of a statistic, log odds
UNCHANGED = 0.6  # log odds: above the limit of the claim, with untrained weights too
LEARNED = 3.0  # log odds: far above those of untrained weights, so that only the limit is in doubt
WITHOUT_VALUE = 0.2  # share of the sentences that a statistic does not apply to
IN_DOCUMENTS = 0.25  # share of the documents that one `IN_FEW` applies to
SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.4.3"
CONVERGED = [{"step": 100 * number, "dev_bleu": 10.0} for number in range(1, 6)]

Record = dict[str, Any]


class Case(NamedTuple):
    """A paper whose claims are all just false, and the records by which they are judged.

    Attributes:
      evidence: what the records have.
      expect: as in a claim; of addresses always `higher`.
      gap: advantage of every system over the base, in log odds.
      sizes: of the tables.
      claims: number of claims of the paper.
    """

    evidence: str
    expect: str
    gap: float
    sizes: Sizes
    claims: int = 1

    @property
    def margin(self) -> float:
        """The true difference in BLEU, of which the claim says that it is greater or smaller."""
        return true_difference(self.gap, self.sizes.luck, self.sizes.documents > 0)


def paper(
    rng: np.random.Generator, case: Case, margin: float
) -> tuple[list[AnyClaim], list[Record]]:
    """Returns the claims of a paper, and the simulated records of its runs.

    Args:
      rng: the random generator.
      case: the kind of records.
      margin: `case.margin`, which takes a while to compute.
    """
    if case.evidence in (ADDRESSES, SKEWED, IN_FEW, UNTRAINED):
        return _about_addresses(rng, case)
    gaps = np.array([0.0] + [case.gap] * case.claims)
    effects = None
    if case.evidence == FEW_DOCUMENTS:
        effects = document_effects(rng, len(gaps), case.sizes.documents)
        effects = balance(effects, case.gap, case.sizes.luck, margin)
    measured = scores(rng, gaps, case.sizes, effects)
    rows = [BASE, *(f"system {number}" for number in range(case.claims))]
    claims: list[AnyClaim] = [
        Claim("simulated", "", "", case.expect, row, BASE, TABLE[:1], margin=margin)
        for row in rows[1:]
    ]
    with_resamples = case.evidence in (DOCUMENTS, FEW_DOCUMENTS)
    return claims, [
        _run(row, seed, measured[number, seed], measured[0, seed], case.sizes, with_resamples)
        for number, row in enumerate(rows)
        for seed in range(case.sizes.seeds)
    ]


def _run(
    row: str, seed: int, bleu: np.ndarray, base: np.ndarray, sizes: Sizes, with_resamples: bool
) -> Record:
    """Returns the record of a run.

    Args:
      row: its row.
      seed: its seed.
      bleu: its BLEU, then that of the resamples [1 + B].
      base: those of the base with the same seed.
      sizes: of the table.
      with_resamples: record the resamples; else the tests and intervals of older records.
    """
    details = "0/0/0/0 (BP = 1.000 ratio = 1.000 hyp_len = 1 ref_len = 1)"
    test = [{"value": float(bleu[0]), "details": details, "signature": SIGNATURE}]
    run = {"row": row, "seed": seed, "best": {"test": test}, "history": CONVERGED}
    if with_resamples:
        resampled = {
            "sentences": sizes.sentences, "seed": 1,
            "few_documents" if sizes.few_documents else "documents": sizes.documents,
            "bleu": np.rint(metrics.RESAMPLED_UNITS * bleu[1:]).astype(int).tolist(),
        }  # fmt: skip
        return {**run, "resampled": {"test": resampled}}
    low, high = np.percentile(bleu[1:], (2.5, 97.5))
    run["interval"] = {"mean": float(bleu[1:].mean()), "ci": float(high - low) / 2}
    if row != BASE:
        run["significance"] = [_test(bleu, base)]
    return run


def _test(bleu: np.ndarray, base: np.ndarray) -> Record:
    """Returns the paired bootstrap test as sacreBLEU makes it."""
    differences = np.abs(bleu - base)
    beyond = differences[1:] - differences[1:].mean() > differences[0]
    return {
        "baseline": BASE, "difference": float(bleu[0] - base[0]),
        "bootstrap_p": float(beyond.sum() + 1) / len(bleu), "sign_p": 1.0,
        "wins": 1, "losses": 1,
    }  # fmt: skip


def _about_addresses(rng: np.random.Generator, case: Case) -> tuple[list[AnyClaim], list[Record]]:
    """Returns claims about statistics whose true mean is the limit itself, or the untrained one."""
    names = list(itertools.islice(inspection.DESCRIPTIONS, case.claims))
    limit = 0.0 if case.evidence == SKEWED else 0.5
    claims: list[AnyClaim] = [
        MemoryClaim("simulated", "", "", "row", TABLE[:1], "h", "target", name, above=limit)
        for name in names
    ]
    sizes = case.sizes
    units = np.arange(sizes.sentences)
    if sizes.documents:
        units = units * sizes.documents // sizes.sentences
    # What sentences and documents have in common for all seeds [N, claims].
    common = rng.normal(0, SENTENCE, (sizes.sentences, case.claims))
    if sizes.documents:
        common += rng.normal(0, DOCUMENT, (sizes.documents, case.claims))[units]
    few = units < IN_DOCUMENTS * sizes.documents if case.evidence == IN_FEW else units >= 0

    def measure(shift: float) -> list[Record]:
        """Measures all statistics with one more run's weights, shifted by so much in log odds."""
        odds = common + rng.normal(0, SENTENCE_OWN, common.shape) + shift
        odds += rng.normal(0, sizes.luck, case.claims)
        values = _skewed(odds, sizes) if case.evidence == SKEWED else share(odds)
        values[(rng.random(common.shape) < WITHOUT_VALUE) | ~few[:, None]] = np.nan
        intervals = inspection.bootstrap_intervals(values, units)
        return [
            {"head": "h", "phase": "target", "name": name, "mean": float(mean),
             "interval": interval, "sentences": int(real.sum()), "units": len(set(units[real]))}
            for name, mean, interval, real in zip(
                names, np.nanmean(values, axis=0), intervals, np.isfinite(values).T
            )
        ]  # fmt: skip

    trained, untrained = (UNCHANGED, UNCHANGED) if case.evidence == UNTRAINED else (0.0, -LEARNED)
    records = []
    for seed in range(sizes.seeds):
        statistics = zip(measure(trained), measure(untrained))
        measured = {
            "statistics": [{**entry, "untrained": null} for entry, null in statistics],
            "units": int(units[-1]) + 1,
            "unit": "document" if sizes.documents else "sentence",
        }  # fmt: skip
        records.append({"row": "row", "seed": seed, "history": CONVERGED, "inspection": measured})
    return claims, records


def _skewed(odds: np.ndarray, sizes: Sizes) -> np.ndarray:
    """Returns log-normal numbers less their expectation."""
    parts = (SENTENCE, SENTENCE_OWN, sizes.luck, DOCUMENT if sizes.documents else 0.0)
    return np.exp(odds) - np.exp(sum(part**2 for part in parts) / 2)
