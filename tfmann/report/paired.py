"""Two rows of a table seed by seed: how they differ, and how far luck can make them differ."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfmann.evaluation import verdicts
from tfmann.report import measures
from tfmann.report.measures import Record

_SURELY_ANY = 0.4  # a p value above it says too little of the error that it comes from
_NORMAL = statistics.NormalDist()
HUNDREDTHS = 100  # resampled scores are kept as whole hundredths
_ALONE = "for these sentences alone"
_BOUND = "the part of the sentences in the error is an upper bound"
# Of which split a measure's resamples are.
_SPLITS = {"test BLEU": "test", "dev BLEU": "dev"}


class Pairs(NamedTuple):
    """Runs of two rows that have the same seeds.

    Attributes:
      measure: of `measures.MEASURES`.
      seeds: in ascending order.
      row: a run a seed.
      rival: the same of the other row.
    """

    measure: str
    seeds: list[int]
    row: list[Record]
    rival: list[Record]

    def values(self) -> tuple[list[float], list[float]]:
        """What was measured of both rows."""
        value = measures.MEASURES[self.measure]
        return [float(value(one)) for one in self.row], [float(value(one)) for one in self.rival]

    def differences(self) -> list[float]:
        """The row's less the rival's, seed by seed."""
        return [a - b for a, b in zip(*self.values())]

    def estimate(self) -> verdicts.Estimate:
        """The difference over the seeds, and how far luck can move it."""
        variance, _ = self.sentence_variance()
        return verdicts.estimate(self.differences(), variance)

    def sentence_variance(self) -> tuple[float, str]:
        """How far other sentences would move the mean difference, and how that is known."""
        resampled = self._resampled()
        if resampled is not None:
            return verdicts.sentence_variance(resampled), ""
        errors = self._recorded_errors()
        if errors is None:
            return 0.0, _ALONE
        # No more than if the seeds' differences rose and fell together.
        return statistics.fmean(errors) ** 2, _BOUND

    def sentence_errors(self) -> list[float]:
        """How far other sentences would move the difference of each seed; 0: it is not known."""
        resampled = self._resampled()
        if resampled is not None:
            return [float(one) for one in resampled.std(axis=1, ddof=1)]
        return self._recorded_errors() or [0.0] * len(self.seeds)

    def _resampled(self) -> np.ndarray | None:
        """Differences on the resamples that all runs share [S, B]."""
        split = _SPLITS.get(self.measure)
        if split is None:
            return None
        found = [_resampled(*pair, split) for pair in zip(self.row, self.rival)]
        known = [one for one in found if one is not None]
        return np.array(known) if len(known) == len(found) else None

    def _recorded_errors(self) -> list[float] | None:
        if self.measure != "test BLEU":
            return None
        found = [_error(*pair) for pair in zip(self.row, self.rival)]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) else None


def pair(measure: str, records: Sequence[Record], row: str, rival: str) -> Pairs:
    """The runs of two rows that can be set side by side."""
    runs, rivals = (
        {one.get("seed", 1): one for one in records if one["row"] == name} for name in (row, rival)
    )
    value = measures.MEASURES[measure]
    seeds = [
        seed
        for seed in sorted(set(runs) & set(rivals))
        if None not in (value(runs[seed]), value(rivals[seed]))
    ]
    return Pairs(measure, seeds, [runs[one] for one in seeds], [rivals[one] for one in seeds])


def outdated(row: Record, rival: Record) -> bool:
    """Whether the recorded tests of two runs are of other translations than their scores are."""
    if measures.against(rival["row"], row):
        return measures.outdated(row, rival)
    return bool(measures.against(row["row"], rival)) and measures.outdated(rival, row)


def compared(row: Record, rival: Record) -> Record:
    """The recorded tests of two runs, whichever of them was the baseline; empty without any."""
    return measures.against(rival["row"], row) or measures.against(row["row"], rival)


def _resampled(row: Record, rival: Record, split: str) -> np.ndarray | None:
    """Differences in BLEU on the resamples of the sentences that both runs were scored on."""
    ours, theirs = (one.get("resampled", {}).get(split) for one in (row, rival))
    if ours is None or theirs is None or ours["sentences"] != theirs["sentences"]:
        return None
    if len(ours["bleu"]) != len(theirs["bleu"]) or ours["seed"] != theirs["seed"]:
        return None
    return np.subtract(ours["bleu"], theirs["bleu"]) / HUNDREDTHS


def _error(row: Record, rival: Record) -> float | None:
    """Standard error over sentences of runs whose resamples were not kept.

    That which the recorded p of the paired bootstrap means for a normal distribution; where it says
    too little, that of the runs' own intervals, as if they were not paired.
    """
    tests = compared(row, rival)
    if tests and tests["wins"] == tests["losses"] == 0:
        return 0.0  # no sentence differs
    if tests and tests["bootstrap_p"] < _SURELY_ANY:
        return abs(tests["difference"]) / errors_apart(tests["bootstrap_p"])
    intervals = [one.get("interval") for one in (row, rival)]
    if None in intervals:
        return None
    first, second = (one["ci"] / _NORMAL.inv_cdf(0.975) for one in intervals if one)
    return float(np.hypot(first, second))


def errors_apart(p: float) -> float:
    """How many standard errors two scores are apart whose paired bootstrap by sacreBLEU has this p.

    Its p is the share of resamples whose absolute difference |d_b| is above its mean m by more than
    |d|. With d = r errors and normal d_b that is P(Z > m) + P(Z < -2r - m), with m the mean of
    |r + Z|: about one-sided for large r, and at most 0.42.
    """
    low, high = 0.0, 10.0
    for _ in range(60):
        r = (low + high) / 2
        mean = r * (1 - 2 * _NORMAL.cdf(-r)) + 2 * _NORMAL.pdf(r)
        share = _NORMAL.cdf(-mean) + _NORMAL.cdf(-2 * r - mean)
        low, high = (r, high) if share > p else (low, r)
    return (low + high) / 2
