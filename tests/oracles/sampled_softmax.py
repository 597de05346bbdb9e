"""Sampled softmax: the words that a loss looks at, and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Drawn(NamedTuple):
    """Words, and the probability of each of being among them."""

    words: list[int]
    inclusion: dict[int, float]


def log_uniform(vocab_size: int) -> np.ndarray:
    """P(v) = log((v + 2) / (v + 1)) / log(V + 1), Zipf's law of words sorted by frequency, [V]."""
    ranks = np.arange(vocab_size, dtype=np.float64)
    return np.log((ranks + 2) / (ranks + 1)) / np.log(vocab_size + 1)


def draw(labels: Sequence[int], uniform, size: int) -> Drawn:
    """Draws `size` words besides all labels, one after another without replacement.

    The word v arrives at the time -log(1 - uniform_v) / P(v): the order of arrivals is that of a
    drawing without replacement (Efraimidis & Spirakis 2006). Given when the first word that is not
    taken arrives, a word is taken with the probability 1 - exp(-P(v) * that time)
    (Cohen & Kaplan 2007); a label always is.
    """
    rates = log_uniform(len(uniform))
    arrivals = sorted(
        (-np.log(1.0 - float(uniform[word])) / rates[word], word)
        for word in range(len(uniform))
        if word not in set(labels)
    )
    chosen = [word for _, word in arrivals[:size]]
    end = arrivals[size][0] if size < len(arrivals) else np.inf
    inclusion = {int(label): 1.0 for label in labels}
    for word in chosen:
        inclusion[word] = float(1.0 - np.exp(-rates[word] * end))
    return Drawn(sorted(inclusion), inclusion)


def normaliser(logits, sample: Drawn) -> float:
    """sum_v exp(logits_v) / inclusion_v over the drawn words, of logits [V]; unbiased."""
    return float(sum(np.exp(logits[word]) / sample.inclusion[word] for word in sample.words))


def cross_entropy(logits, labels: Sequence[int], sample: Drawn) -> float:
    """The sum over rows of log(normaliser) - logits_label, of logits [M, V]."""
    return sum(
        np.log(normaliser(row, sample)) - row[label]
        for row, label in zip(np.asarray(logits, np.float64), labels)
    )
