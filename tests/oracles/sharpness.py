"""Sharpness of a model's addresses, pair by pair and step by step."""

import math

import numpy as np


def head_measures(pairs, locations, last=None):
    """Means over the steps (the positions: over the pairs) of one head.

    Args:
      pairs: for every pair the weights of its real steps, `[steps, at least n]` with n its number
        of locations.
      locations: n for every pair.
      last: for every pair the position of the source's last symbol, of an attention; the last step
        is the one that emits `</s>`.
    """
    entropies, greatest, shares, ends = [], [], [], []
    for index, (steps, n) in enumerate(zip(pairs, locations, strict=True)):
        counted = [w[:n] / w[:n].sum() for w in steps if n > 1 and w[:n].sum() > 1e-6]
        for weights in counted:
            entropies.append(-sum(p * math.log(p) for p in weights if p > 0) / math.log(n))
            greatest.append(max(weights))
        if counted:
            shares.append(len({int(np.argmax(w)) for w in counted}) / len(counted))
        if last is not None and n > 1:
            ends += [weights[last[index]] for weights in counted[:-1]]
    measures = {
        "entropy": _mean(entropies),
        "greatest_weight": _mean(greatest),
        "distinct_positions": _mean(shares),
    }
    if last is not None:
        measures["end_weight"] = _mean(ends)
    return measures


def _mean(values):
    return sum(values) / len(values) if values else 0.0
