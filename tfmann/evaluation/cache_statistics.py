"""Statistics of a cache in a trace: which slots match, and when the gate lets them in.

They put numbers to section 4.5 and Figure 3 of Tu et al. 2018. Letters: T words, I slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING

import numpy as np

from tfmann.data.vocab import EOS
from tfmann.evaluation.head_statistics import TARGET, Key, Statistics, entropy_share

if TYPE_CHECKING:
    from tfmann.decoding.translation import Slots
    from tfmann.evaluation.trace import Trace

CACHE = "cache"
_TINY = 1e-6  # total probability below which nothing is matched, as by `cache_matching=nothing`


def by_recency(slots: Slots) -> np.ndarray:
    """Returns the indices of the filled slots, the most recently written first: at most `[I]`."""
    order = np.argsort(slots.ages, kind="stable")
    return order[slots.ages[order] >= 0]


def rank_sums(trace: Trace) -> np.ndarray:
    """Sums the matching probabilities of a sentence by recency: `[2, I]`, the latest slot first.

    Returns:
      the sum over the steps, and the number of steps; both 0 at ranks that no filled slot has.

    Raises:
      ValueError: the model has no cache.
    """
    if trace.slots is None:
        raise ValueError("this model has no cache")
    match = np.asarray(trace["cache_match"], np.float64)  # [T, I]
    steps, count = match.shape
    order = by_recency(trace.slots)
    sums = np.zeros([2, count])
    sums[:, : len(order)] = match[:, order].sum(axis=0), np.full(len(order), steps)
    return sums


def cache_statistics(
    trace: Trace, frequent: Set[str] = frozenset(), gains: np.ndarray | None = None
) -> Statistics:
    """Measures the cache of a trace.

    Args:
      trace: of a sentence.
      frequent: words whose gate is averaged apart from that of rarer words.
      gains: log-probability of each word minus that with an empty cache, `[T]`; None leaves out
        the statistics that average it.

    Returns:
      the statistics of `cache` that `evaluation.inspection.DESCRIPTIONS` describes; empty for a
      model without a cache, and for a sentence that began with an empty one.
    """
    if trace.slots is None or "cache_match" not in trace:
        return {}
    order = by_recency(trace.slots)
    match = np.asarray(trace["cache_match"], np.float64)[:, order]  # [T, filled], the latest first
    if not len(order):
        return {}
    words = np.array([trace.slots.words[i] for i in order], dtype=object)
    same = np.array(trace.tokens, dtype=object)[:, None] == words  # [T, filled]
    in_cache = same.any(axis=1)
    values = _gates(np.asarray(trace["cache_gate"])[:, 0], trace.tokens, in_cache, frequent)
    values["word_in_cache"] = float(in_cache.mean())
    if gains is not None:
        groups = {"": np.ones_like(in_cache), "_in_cache": in_cache, "_not_in_cache": ~in_cache}
        values.update(_averages("word_gain", np.asarray(gains, np.float64), groups))
    if match.sum(axis=1).min() > _TINY:
        match /= match.sum(axis=1, keepdims=True)
        values.update(_matches(match, same))
        if len(order) > 1:
            values.update(phrases(trace.slots.ages[order][match.argmax(axis=1)]))
    return {Key(CACHE, TARGET, name): x for name, x in values.items() if np.isfinite(x)}


def recent_half(match: np.ndarray) -> float:
    """Returns the mean probability of the more recent half of the slots `[T, filled]`.

    The middle one of an odd number counts half, so that matching all slots equally gives 0.5.
    """
    half, odd = divmod(match.shape[1], 2)
    recent = match[:, :half].sum(axis=1)
    return float((recent + match[:, half] / 2 if odd else recent).mean())


def phrases(ages: np.ndarray) -> dict[str, float]:
    """Measures how often two steps in a row match slots that were written in a row.

    Args:
      ages: of the slot that matches most, for each step: `[T]`; the slot that was written next is
        younger by one.

    Returns:
      `phrase`, the share of such steps; `phrase_by_chance`, its expectation if the steps of the
      sentence came in random order; and `phrase_gain`, the difference. Nothing of a single step.
    """
    steps = len(ages)
    if steps < 2:
        return {}
    share = float(np.mean(np.diff(ages) == -1))
    chance = float((ages[None] - ages[:, None] == -1).sum()) / (steps * (steps - 1))
    return {"phrase": share, "phrase_by_chance": chance, "phrase_gain": share - chance}


def frequent_words(sentences: Iterable[Iterable[str]], number: int) -> frozenset[str]:
    """Returns the most frequent words of the sentences that have a letter or a digit."""
    counts = Counter(word for sentence in sentences for word in sentence)
    words = [word for word in counts if word_kind(word) == "other"]
    return frozenset(sorted(words, key=lambda word: (-counts[word], word))[:number])


def word_kind(word: str, frequent: Set[str] = frozenset()) -> str:
    """Returns `end`, `punctuation`, `frequent` or `other`."""
    if word == EOS:
        return "end"
    if not any(map(str.isalnum, word)):
        return "punctuation"
    return "frequent" if word in frequent else "other"


def _matches(match: np.ndarray, same: np.ndarray) -> dict[str, float]:
    """Measures matching probabilities `[T, filled]`; `same`: the slot has the word of the step."""
    values = {
        "recent_half": recent_half(match),
        "greatest_weight": float(match.max(axis=1).mean()),
        "exact": float((match * same).sum(axis=1).mean()),
        "exact_by_chance": float(same.mean()),
        "exact_gain": float(((match * same).sum(axis=1) - same.mean(axis=1)).mean()),
        "fuzzy": float((match * ~same).sum(axis=1).mean()),
    }
    if match.shape[1] > 1:
        values["entropy"] = float(entropy_share(match).mean())
    possible = same.any(axis=1)
    if possible.any():
        top = same[np.arange(len(same)), match.argmax(axis=1)]
        values["exact_if_in_cache"] = float((match * same).sum(axis=1)[possible].mean())
        values["top_exact_if_in_cache"] = float(top[possible].mean())
    return values


def _gates(
    gates: np.ndarray, tokens: Iterable[str], in_cache: np.ndarray, frequent: Set[str]
) -> dict[str, float]:
    """Averages gates `[T]` over all words, by their kind, and by whether the cache has them."""
    kinds = np.array([word_kind(token, frequent) for token in tokens])
    groups = {f"_{kind}": kinds == kind for kind in ("end", "punctuation", "frequent", "other")}
    groups.update({"": np.ones_like(in_cache), "_in_cache": in_cache, "_not_in_cache": ~in_cache})
    return _averages("gate", gates, groups)


def _averages(name: str, values: np.ndarray, groups: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Averages values `[T]` over each group of steps that has any."""
    return {
        f"{name}{suffix}": float(values[chosen].mean())
        for suffix, chosen in groups.items()
        if chosen.any()
    }
