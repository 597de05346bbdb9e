"""Test statistics of verdicts, each from its definition, with a loop for every sum.

`errors` draws the sentences and the seeds one by one: the error of a mean over seeds is that of
other seeds on the same sentences together with that of other sentences for the same seeds. The
tail of Student's t is its density, integrated; limits of confidence are found by halving.
`equivalent` looks at the confidence interval (Schuirmann 1987), not at two p values.
`holm_rejected` walks the sorted p values as Holm 1979 does, and knows no adjusted p value.
"""

from __future__ import annotations

import math

import numpy as np


def errors(scores, resamples) -> tuple[float, float]:
    """Squared errors of a mean: of the seeds, of the sentences.

    Args:
        scores: a difference for every seed and sentence [S, N]; a run's score is its row's mean.
        drawn: sentences of every resample, with repetition [B, N].
    """
    seeds, sentences = np.shape(scores)
    runs = [sum(float(score) for score in row) / sentences for row in scores]
    mean = sum(runs) / seeds
    of_seeds = sum((run_mean - mean) ** 2 for run_mean in runs) / (seeds - 1) / seeds
    means = []
    for resample in resamples:
        total = 0.0
        for row in scores:
            for sentence in resample:
                total += float(row[sentence])
        means.append(total / (seeds * sentences))
    centre = sum(means) / len(means)
    return of_seeds, sum((resample_mean - centre) ** 2 for resample_mean in means) / (
        len(means) - 1
    )


def tail(t: float, degrees: float, steps: int = 20_000) -> float:
    """P(T > t) by Simpson's rule over x = tan(angle), which makes the range finite."""
    constant = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2))
    constant /= math.sqrt(degrees * math.pi)

    def density(angle: float) -> float:
        x = math.tan(angle)
        return constant * (1 + x * x / degrees) ** (-(degrees + 1) / 2) * (1 + x * x)

    low, high = math.atan(t), math.pi / 2 - 1e-9
    width = (high - low) / steps
    total = density(low) + density(high)
    for step in range(1, steps):
        total += density(low + step * width) * (4 if step % 2 else 2)
    return total * width / 3


def quantile(level: float, degrees: float) -> float:
    """The t above which a share `level` of the distribution lies."""
    low, high = -1e4, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle, degrees, 2000) > level else (low, middle)
    return (low + high) / 2


def equivalent(mean: float, error: float, degrees: float, low: float, high: float, level: float):
    """Returns whether the interval of confidence 1 - 2 level lies within the margins."""
    reach = quantile(level, degrees) * error
    return low < mean - reach and mean + reach < high


def holm_rejected(p, level: float) -> list[bool]:
    """Returns for each hypothesis whether Holm's procedure rejects it."""
    rejected = [False] * len(p)
    for step, number in enumerate(sorted(range(len(p)), key=lambda index: p[index])):
        if p[number] > level / (len(p) - step):
            break
        rejected[number] = True
    return rejected
