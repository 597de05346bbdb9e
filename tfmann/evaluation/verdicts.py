"""The statistics that judge a claim about two systems: arrays in, a verdict out.

A run's score has two kinds of luck in it: the seed that it was trained with, and the sentences that
happen to be the test. With D_s the difference of the scores of two systems with seed s, S seeds:

    mean     = sum_s D_s / S
    error^2  = V_seeds + V_sentences
    V_seeds  = sum_s (D_s - mean)^2 / (S - 1) / S
    V_sentences = variance over resamples b of sum_s D_sb / S

D_sb is the difference on the b-th resample of the sentences, the same for all seeds. The first part
is what a bootstrap over seeds gives (its expectation has a closed form, corrected by S / (S - 1)),
the second the bootstrap over sentences (Koehn 2004). Resampling both is Owen 2007, "The pigeonhole
bootstrap"; as there, the sum counts the luck of a seed at a sentence twice, so the error is rather
too great than too small.

(mean - bound) / error is compared with Student's t of S - 1 degrees of freedom, since three seeds
say little of their own spread. With V_seeds alone that is the t-test over the seeds, which is right
for normal differences; V_sentences only makes it more careful. (With the degrees of freedom of
Satterthwaite 1946, which are more, three seeds prove more; but in simulated tables up to 14% of the
papers then had a false proof, where seeds differ by more than the sentences explain.)

Every claim is that the true difference lies in an open interval (low, high). It is proven where the
hypotheses "at or below low" and "at or above high" are both rejected, each by a one-sided test: for
a finite interval these are the two one-sided tests of equivalence (TOST, Schuirmann 1987). The
opposite is proven where the difference is shown to lie outside. What is not proven either way is
inconclusive: that a test did not reject is no proof. Of several claims the p values are adjusted by
Holm 1979, so that the chance of any false proof among them is at most `LEVEL`.

For whole degrees of freedom the tail of Student's t is a finite sum (Abramowitz & Stegun 1964,
26.7.3 and 26.7.4), which is why this needs no SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

HOLDS = "holds"
FAILS = "does not hold"
INCONCLUSIVE = "inconclusive"

LEVEL = 0.05  # the greatest chance of a false proof among the claims of a paper


class Estimate(NamedTuple):
    """A difference and how far off it may be.

    Attributes:
      mean: over the seeds.
      error: standard error of the mean.
      freedom: degrees of freedom of the error; 0: it is not known.
    """

    mean: float
    error: float
    freedom: int


def estimate(
    differences: Sequence[float] | np.ndarray, sentence_variance: float = 0.0
) -> Estimate:
    """Estimates the true difference of two systems.

    Args:
      differences: one for each seed [S].
      sentence_variance: V_sentences, of `sentence_variance` or an upper bound; 0 leaves the luck of
        the sentences out: the estimate is then of this very test set.
    """
    values = np.asarray(differences, dtype=np.float64)
    seeds = len(values)
    if seeds < 2:
        return Estimate(float(values.mean()), math.inf, 0)
    # The shift by the first value leaves equal ones without a variance, to the last bit.
    of_seeds = float((values - values[0]).var(ddof=1)) / seeds
    return Estimate(float(values.mean()), math.sqrt(of_seeds + sentence_variance), seeds - 1)


def sentence_variance(resampled: np.ndarray) -> float:
    """V_sentences of differences on resamples that all seeds share [S, B]."""
    return float(np.asarray(resampled, dtype=np.float64).mean(axis=0).var(ddof=1))


def bounds(expect: str, margin: float = 0.0) -> tuple[float, float]:
    """The open interval in which a claim says that the true difference lies.

    Args:
      expect: `higher`, `lower`, `alike` (the two differ by less than the margin, either way) or
        `no gain` (the first is not better than the second by the margin or more).
      margin: a positive difference that was chosen before anything was measured.
    """
    return {
        "higher": (0.0, math.inf),
        "lower": (-math.inf, 0.0),
        "alike": (-margin, margin),
        "no gain": (-math.inf, margin),
    }[expect]


def p_above(found: Estimate, bound: float) -> float:
    """One-sided p value of the hypothesis that the true difference is at or below a bound."""
    if math.isinf(bound):
        return 0.0 if bound < 0 else 1.0
    if found.freedom == 0:
        return 1.0
    distance = found.mean - bound
    if found.error == 0:
        return 0.0 if distance > 0 else 1.0
    return student_tail(distance / found.error, found.freedom)


def p_below(found: Estimate, bound: float) -> float:
    """One-sided p value of the hypothesis that the true difference is at or above a bound."""
    return p_above(found._replace(mean=-found.mean), -bound)


def p_inside(found: Estimate, low: float, high: float) -> float:
    """P value against "the true difference is not within (low, high)": the greater of the two."""
    return max(p_above(found, low), p_below(found, high))


def p_outside(found: Estimate, low: float, high: float) -> float:
    """P value against "the true difference is within [low, high]": twice the smaller of the two.

    Of one finite bound there is one test, and nothing is doubled.
    """
    p = min(p_below(found, low), p_above(found, high))
    return min(1.0, p * (2 if math.isfinite(low) and math.isfinite(high) else 1))


def student_tail(t: float, freedom: int) -> float:
    """P(T > t) for a whole number of degrees of freedom."""
    angle = math.atan2(abs(t), math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    # within = P(|T| < t); its terms go on by cos^2 (k - 1) / k, from k = 3 or from k = 2.
    first = freedom % 2
    term = cosine if first else 1.0
    total = 0.0 if freedom == 1 else term
    for k in range(3 if first else 2, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    within = 2 / math.pi * (angle + sine * total) if first else sine * total
    tail = max(0.0, (1 - within) / 2)
    return tail if t >= 0 else 1 - tail


def holm(p: Sequence[float]) -> list[float]:
    """P values adjusted for their number: the k-th smallest of n by n - k + 1, never descending."""
    order = sorted(range(len(p)), key=lambda number: p[number])
    adjusted, greatest = [0.0] * len(p), 0.0
    for rank, number in enumerate(order):
        greatest = max(greatest, min(1.0, (len(p) - rank) * p[number]))
        adjusted[number] = greatest
    return adjusted


def verdict(inside: float, outside: float) -> str:
    """What two adjusted p values say, of `p_inside` and of `p_outside`."""
    if inside < LEVEL:
        return HOLDS
    return FAILS if outside < LEVEL else INCONCLUSIVE


def dissenting(
    differences: Sequence[float],
    errors: Sequence[float],
    low: float,
    high: float,
    status: str,
) -> list[int]:
    """Which seeds, by position, say by themselves the contrary of a verdict.

    A proof by seeds some of which say the contrary is not taken for one, whatever their mean. A
    seed says it where its difference is on the other side of a bound by more than the luck of the
    sentences explains at `LEVEL`, one-sided; if by any amount, seeds would disagree the more, the
    more of them there are.

    Args:
      differences: by seed.
      errors: of the sentences, of each of them; 0 where it is not known.
      low: of the interval of the claim, and
      high: too.
      status: the verdict.
    """
    found = np.asarray(differences, dtype=np.float64)
    reach = NormalDist().inv_cdf(1 - LEVEL) * np.asarray(errors, dtype=np.float64)
    if status == HOLDS:
        contrary = (found + reach < low) | (found - reach > high)
    elif status == FAILS:
        contrary = (low + reach < found) & (found < high - reach)
    else:
        return []
    return [int(number) for number in np.flatnonzero(contrary)]
