"""Simulated BLEU of systems whose true difference is known.

A simulated run translates N sentences. The number of each sentence's n-grams that match the
reference is drawn with a probability that depends on the system's quality, on the run's seed, on
the sentence, which is equally hard for all systems, and on chance for this run at this sentence.
BLEU is computed from the sums, as usual. The true difference of two systems is the mean over all
seeds and sentences, by integration.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tfmann.evaluation import significance

ORDERS = np.arange(4)  # a sentence has n - 1 fewer n-grams than words
BASE = np.array([0.5, -0.4, -1.1, -1.7])  # log odds that an n-gram matches: BLEU about 35
HARD, OWN = 0.6, 0.8  # standard deviations of a sentence's and of a run's luck at a sentence
# Of a document's, the same for all systems, and of a system's at a document, in all of its runs.
TOPIC, TASTE = 0.4, 0.15
LONGEST, SHORTEST = 30, 8
_NODES = 20  # of an integral over a normal distribution


class Sizes(NamedTuple):
    """The sizes of a simulated table.

    Attributes:
      seeds: of every system.
      sentences: of the test.
      resamples: of the bootstrap.
      luck: standard deviation over seeds, in log odds; 0.03 is about half a BLEU.
      documents: of equal length; 0 for none. If there are enough of them, they are resampled in
        place of sentences.
    """

    seeds: int = 3
    sentences: int = 200
    resamples: int = 200
    luck: float = 0.03
    documents: int = 0

    @property
    def few_documents(self) -> bool:
        """There are documents, but too few to resample: results are valid for these only."""
        return 0 < self.documents < significance.ENOUGH_DOCUMENTS


def document_effects(rng: np.random.Generator, systems: int, documents: int) -> np.ndarray:
    """Draws what documents add to the log odds of a system's runs [systems, documents]."""
    topics = rng.normal(0, TOPIC, documents)
    return topics + rng.normal(0, TASTE, (systems, documents))


def scores(
    rng: np.random.Generator, gaps: np.ndarray, sizes: Sizes, effects: np.ndarray | None = None
) -> np.ndarray:
    """Returns BLEU of all runs, measured and on shared resamples [systems, S, 1 + B].

    Args:
      rng: the random generator.
      gaps: advantage of each system over the base, in log odds [systems].
      sizes: of the table.
      effects: of the documents, from `document_effects`; drawn if not given.
    """
    runs = (len(gaps), sizes.seeds)
    length = rng.integers(SHORTEST, LONGEST + 1, sizes.sentences)
    good = gaps[:, None, None] + rng.normal(0, sizes.luck, (*runs, 1))
    good = good + rng.normal(0, HARD, sizes.sentences) + rng.normal(0, OWN, (*runs, len(length)))
    unit = np.arange(len(length))
    if sizes.documents:
        unit = unit * sizes.documents // len(length)
        if effects is None:
            effects = document_effects(rng, len(gaps), sizes.documents)
        good = good + effects[:, None, unit]
    if sizes.few_documents:
        unit = np.arange(len(length))
    positions = length[:, None] - ORDERS
    matches = rng.binomial(positions, share(good[..., None] + BASE))
    units = unit[-1] + 1
    resamples = rng.integers(0, units, (sizes.resamples, units))
    times = [np.bincount(drawn, minlength=units)[unit] for drawn in resamples]
    weights = np.vstack([np.ones(len(length)), *times])
    sums = np.einsum("bn,gsnk->gsbk", weights, matches, optimize=True)
    return 100 * np.exp(np.log(np.maximum(sums, 0.5) / (weights @ positions)).mean(axis=-1))


def true_difference(gap: float, luck: float, in_documents: bool = False) -> float:
    """Returns a system's advantage in BLEU over the base, over all seeds, sentences and documents.

    The effect of a document is one of a sentence, as far as means are concerned.
    """
    spread = math.hypot(HARD, OWN, *((TOPIC, TASTE) if in_documents else ()))
    ours, base = _expected_bleu(np.array([[gap], [0.0]]), luck, spread)
    return float(ours - base)


def balance(effects: np.ndarray, gap: float, luck: float, difference: float) -> np.ndarray:
    """Returns effects of documents in which every system has the same advantage over the first.

    Args:
      effects: from `document_effects` [systems, documents].
      gap: of every system but the first, in log odds.
      luck: standard deviation over seeds, in log odds.
      difference: the advantage in BLEU, over all seeds and all sentences of such documents.
    """

    def bleu(effects: np.ndarray) -> np.ndarray:
        return _expected_bleu(effects, luck, math.hypot(HARD, OWN))

    target = bleu(effects[:1]) + difference
    low, high = np.full((2, len(effects) - 1, 1), [[[-3.0]], [[3.0]]])
    for _ in range(30):
        middle = (low + high) / 2
        is_above = (bleu(effects[1:] + gap + middle) > target)[:, None]
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    return np.concatenate([effects[:1], effects[1:] + low])


def _expected_bleu(effects: np.ndarray, luck: float, spread: float) -> np.ndarray:
    """Returns each system's BLEU over all seeds and all sentences of its documents [systems].

    Args:
      effects: what a document adds to the log odds of a system [systems, documents].
      luck: standard deviation over seeds, in log odds.
      spread: standard deviation over the sentences of a document.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    weights = weights / weights.sum()
    ability = luck * nodes[:, None] + effects[:, None, :]  # [systems, S, documents]
    sentence = ability[..., None, None] + spread * nodes[:, None] + BASE
    matching = (weights @ share(sentence)).mean(axis=2)  # [systems, S, orders]
    return 100 * np.exp(np.log(matching).mean(axis=-1)) @ weights


def share(odds: np.ndarray) -> np.ndarray:
    """Returns the probability of log odds."""
    return 1 / (1 + np.exp(-odds))
