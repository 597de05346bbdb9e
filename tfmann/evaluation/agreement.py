"""Agreement of two systems' attention to the same source words, at the steps of the same target.

Collier & Beel 2019 say that a pure MANN learns an algorithm "almost identical" to that of the
attentional encoder-decoder (abstract; sections 5.1 and 6 call it "very similar"). Here this is a
number, computed for one pair of sentences that both systems were run over; `evaluation.inspection`
has the mean over a test set. Letters: T steps of the target, S source tokens, N slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfmann.data.vocab import UNK
from tfmann.evaluation.head_statistics import TARGET, Key, Statistics, written_positions
from tfmann.evaluation.trace import Trace

AGREEMENT = "agreement"  # in the place of a head's name
NOWHERE = -1  # the position of a step that is at no source word


class SourceAttention(NamedTuple):
    """A system's attention to the source words, step by step.

    Attributes:
      weights: `[T, S]`; a row adds up to less than 1 if the system also reads elsewhere.
      positions: `[T]`, of the greatest weight; `NOWHERE` if that is not on a source word.
    """

    weights: np.ndarray
    positions: np.ndarray


def source_attention(trace: Trace) -> SourceAttention | None:
    """Returns the attention of a trace to source words; None for a system without any.

    A cell that has read the source into slots (a pure MANN) reads slots instead. A slot stands for
    the source word that was last written to it. Several read heads are averaged.
    """
    if "alignments" in trace:
        weights = np.asarray(trace["alignments"], np.float64)
        return SourceAttention(weights, weights.argmax(axis=1))
    if not trace.boundary or not {"read_weights", "write_weights"} <= set(trace):
        return None
    slots = np.asarray(trace["read_weights"], np.float64)[trace.boundary :].mean(axis=1)  # [T, N]
    words = written_positions(trace)  # [N]
    weights = np.zeros([len(slots), len(trace.source_tokens)])
    for slot in np.flatnonzero(words >= 0):
        weights[:, words[slot]] += slots[:, slot]
    return SourceAttention(weights, words[slots.argmax(axis=1)])


def agreement(attention: SourceAttention, other: SourceAttention) -> dict[str, float]:
    """Measures how far a system's attention agrees with another's.

    Args:
      attention: of the system.
      other: of the one that it is compared with, over the same pair.

    Returns:
      `overlap`, the sum over the source of the smaller of both weights, averaged over the steps;
      `same_position`, the share of steps at which both are at the same source word; of each also
      the expectation if the steps of the system came in random order (`_by_chance`), and the value
      if it went through the source at an even pace (`_even_pace`), at position floor(t S / T) of
      step t, with a weight of 1.
    """
    steps, length = other.weights.shape
    pace = np.arange(steps) * length // steps
    by_chance = np.mean(
        [
            [_overlap(attention.weights, row).mean(), _same(attention.positions, position).mean()]
            for row, position in zip(other.weights, other.positions)
        ],
        axis=0,
    )
    return {
        "overlap": float(_overlap(attention.weights, other.weights).mean()),
        "overlap_by_chance": float(by_chance[0]),
        "overlap_even_pace": float(other.weights[np.arange(steps), pace].mean()),
        "same_position": float(_same(attention.positions, other.positions).mean()),
        "same_position_by_chance": float(by_chance[1]),
        "same_position_even_pace": float(_same(pace, other.positions).mean()),
    }


def agreement_statistics(trace: Trace, other: Trace) -> Statistics:
    """Returns `agreement` of two traces of a pair.

    Raises:
      ValueError: the two are not of the same tokens, so that steps and positions differ; or one has
        no attention to the source.
    """
    for ours, theirs in ((trace.source_tokens, other.source_tokens), (trace.tokens, other.tokens)):
        if not _same_tokens(ours, theirs):
            raise ValueError(
                f"expected models of the same tokens; one sees {' '.join(ours)!r}, the other "
                f"{' '.join(theirs)!r}"
            )
    attention, of_other = source_attention(trace), source_attention(other)
    if attention is None or of_other is None:
        which = "the other model" if attention else "this model"
        raise ValueError(f"{which} has no attention to source words")
    values = agreement(attention, of_other)
    return {Key(AGREEMENT, TARGET, name): value for name, value in values.items()}


def _overlap(weights: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Returns what two weights `[T, S]`, or `[S]` of a single step, have in common: `[T]`."""
    return np.minimum(weights, other).sum(axis=1)


def _same(positions: np.ndarray, other: np.ndarray) -> np.ndarray:
    return (positions == other) & (positions != NOWHERE)


def _same_tokens(ours: list[str], theirs: list[str]) -> bool:
    """Returns whether two systems see the same tokens; either may not know some of them."""
    return len(ours) == len(theirs) and all(a == b or UNK in (a, b) for a, b in zip(ours, theirs))
