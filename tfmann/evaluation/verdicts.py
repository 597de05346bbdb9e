"""The statistics behind a verdict on a claim about two systems.

A run's score depends on chance in two ways: by the seed of its training, and by the sentences of
the test. Let D_s be the difference between the scores of two systems with seed s of S seeds:

    mean     = sum_s D_s / S
    error^2  = V_seeds + V_sentences
    V_seeds  = sum_s (D_s - mean)^2 / (S - 1) / S
    V_sentences = variance over resamples b of sum_s D_sb / S

D_sb is the difference on the b-th resample of the sentences, which is the same for all seeds.
V_seeds is the result of a bootstrap over seeds (its expectation has a closed form, corrected by
S / (S - 1)), V_sentences that of the bootstrap over sentences (Koehn 2004). Owen 2007, "The
pigeonhole bootstrap", resamples both; as there, the sum counts the interaction of seed and sentence
twice, so the error is too large rather than too small.

(mean - bound) / error is compared with Student's t of S - 1 degrees of freedom, because three seeds
say little about their own spread. With V_seeds alone this is the t-test over the seeds, which is
exact for normal differences; V_sentences makes it more conservative. (Satterthwaite 1946 has more
degrees of freedom, so that three seeds prove more, but then up to 14% of simulated papers had a
false proof where seeds differed by more than the sentences explain.) Where D documents are
resampled, V_sentences is multiplied by D / (D - 1), as much as the variance of resamples is too
small, and the degrees of freedom are at most D - 1.

Every claim says that the true difference lies in an open interval (low, high). It is proven if the
hypotheses "at or below low" and "at or above high" are both rejected by one-sided tests; for a
finite interval these are the two one-sided tests of equivalence (TOST, Schuirmann 1987). The
contrary is proven if the difference is shown to lie outside. Otherwise the verdict is inconclusive:
a test that does not reject proves nothing. The p values of several claims are adjusted by Holm
1979, separately for the claims and for their contraries, so that the probability of any false proof
is at most `LEVEL` among either.

A share of speed is judged likewise: a turn of its measurement counts as a seed, the logarithm of a
turn's share as D_s, and there are no sentences (`tfmann.papers.speeds`).

For whole degrees of freedom the tail of Student's t is a finite sum (Abramowitz & Stegun 1964,
26.7.3 and 26.7.4), so SciPy is not needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

HOLDS = "holds"
FAILS = "does not hold"
INCONCLUSIVE = "inconclusive"

LEVEL = 0.05  # the greatest probability of a false proof among the claims of a paper


class Estimate(NamedTuple):
    """A difference and its error.

    Attributes:
      mean: over the seeds.
      error: standard error of the mean.
      freedom: degrees of freedom of the error; 0 if it is unknown.
      seeds_differ: whether not all seeds have the same difference.
    """

    mean: float
    error: float
    freedom: int
    seeds_differ: bool

    @property
    def is_testable(self) -> bool:
        """True if seeds differ; one seed, or equal ones, do not show how far another may be."""
        return self.freedom > 0 and self.seeds_differ


def estimate(
    differences: Sequence[float] | np.ndarray,
    sentence_variance: float = 0.0,
    units: int | None = None,
) -> Estimate:
    """Estimates the true difference of two systems.

    Args:
      differences: one for each seed [S].
      sentence_variance: V_sentences or an upper bound; with 0 the estimate is valid for these test
        sentences only.
      units: how many sentences or documents were resampled, two or more; None if that is unknown
        or many. Few documents say as little about their spread as few seeds.
    """
    values = np.asarray(differences, dtype=np.float64)
    seeds = len(values)
    if seeds < 2:
        return Estimate(float(values.mean()), math.inf, 0, False)
    # Shifted by the first value, so that equal values have a variance of exactly 0.
    seed_variance = float((values - values[0]).var(ddof=1)) / seeds
    freedom = seeds - 1
    if units is not None:
        sentence_variance *= units / (units - 1)  # that of resamples is smaller by this
        freedom = min(freedom, units - 1)
    error = math.sqrt(seed_variance + sentence_variance)
    return Estimate(float(values.mean()), error, freedom, seed_variance > 0)


def sentence_variance(resampled: np.ndarray) -> float:
    """Returns V_sentences of differences `[S, B]` on B resamples that all seeds share."""
    return float(np.asarray(resampled, dtype=np.float64).mean(axis=0).var(ddof=1))


def bounds(expect: str, margin: float = 0.0) -> tuple[float, float]:
    """Returns the open interval in which, by a claim, the true difference lies.

    Args:
      expect: `higher`, `lower`, `alike` (the two differ by less than the margin, either way) or
        `no gain` (the first is not better than the second by the margin or more).
      margin: a positive difference that was chosen before any measurement.
    """
    return {
        "higher": (0.0, math.inf),
        "lower": (-math.inf, 0.0),
        "alike": (-margin, margin),
        "no gain": (-math.inf, margin),
    }[expect]


def p_above(estimated: Estimate, bound: float) -> float:
    """Returns the one-sided p value of "the true difference is at or below this bound"."""
    if math.isinf(bound):
        return 0.0 if bound < 0 else 1.0
    if not estimated.is_testable:
        return 1.0
    return student_tail((estimated.mean - bound) / estimated.error, estimated.freedom)


def p_below(estimated: Estimate, bound: float) -> float:
    """Returns the one-sided p value of "the true difference is at or above this bound"."""
    return p_above(estimated._replace(mean=-estimated.mean), -bound)


def p_inside(estimated: Estimate, low: float, high: float) -> float:
    """Returns p against "the true difference is not within (low, high)": the greater of two."""
    return max(p_above(estimated, low), p_below(estimated, high))


def p_outside(estimated: Estimate, low: float, high: float) -> float:
    """Returns p against "the true difference is within [low, high]": twice the smaller of two.

    With only one finite bound there is one test, and nothing is doubled.
    """
    p = min(p_below(estimated, low), p_above(estimated, high))
    return min(1.0, p * (2 if math.isfinite(low) and math.isfinite(high) else 1))


def interval(estimated: Estimate) -> tuple[float, float]:
    """Returns the limits of the two-sided interval of confidence 1 - `LEVEL`.

    They are infinite if the error is unknown. Several intervals are not adjusted for their number.
    """
    if estimated.freedom == 0:
        return -math.inf, math.inf
    low, high = 0.0, 1000.0  # errors; one degree of freedom needs 12.7
    for _ in range(60):
        middle = (low + high) / 2
        too_near = student_tail(middle, estimated.freedom) > LEVEL / 2
        low, high = (middle, high) if too_near else (low, middle)
    return estimated.mean - high * estimated.error, estimated.mean + high * estimated.error


def student_tail(t: float, freedom: int) -> float:
    """Returns P(T > t) for a whole number of degrees of freedom.

    A finite sum (Abramowitz & Stegun 1964, 26.7.3 and 26.7.4). SciPy would be a dependency of
    35 MB for this function alone; the tests integrate the density numerically.
    """
    angle = math.atan2(abs(t), math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    # central = P(|T| < t); each term is cos^2 (k - 1) / k times the last, from k = 3 or k = 2.
    first = freedom % 2
    term = cosine if first else 1.0
    total = 0.0 if freedom == 1 else term
    for k in range(3 if first else 2, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    central = 2 / math.pi * (angle + sine * total) if first else sine * total
    tail = max(0.0, (1 - central) / 2)
    return tail if t >= 0 else 1 - tail


def holm(p: Sequence[float]) -> list[float]:
    """Adjusts p values for their number: the k-th smallest of n by n - k + 1, never descending."""
    order = sorted(range(len(p)), key=lambda number: p[number])
    adjusted, greatest = [0.0] * len(p), 0.0
    for rank, number in enumerate(order):
        greatest = max(greatest, min(1.0, (len(p) - rank) * p[number]))
        adjusted[number] = greatest
    return adjusted


def verdict(inside: float, outside: float) -> str:
    """Returns the verdict of two adjusted p values, of `p_inside` and of `p_outside`."""
    if inside < LEVEL:
        return HOLDS
    return FAILS if outside < LEVEL else INCONCLUSIVE
