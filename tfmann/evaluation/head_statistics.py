"""Statistics of the addresses in a trace: where heads move, and what moves them.

Collier & Beel 2019, section 5.1, describe in words what the heads of an NTM do at one sentence, and
call it typical. Here each of their sentences is a number, computed for one sentence;
`evaluation.inspection` has the mean over a test set. Attention, and memories that an encoder's
output is put into, have those of the numbers that apply to them.

A head is where its greatest weight is. Letters: t steps of a phase, N locations, J shift taps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tfmann.evaluation.trace import Trace

SOURCE, TARGET = "source", "target"  # phases
ATTENTION = "attention"
_TINY = 1e-6  # total weight below which there is no address: the DNC can withhold a write
# Diagnostics whose mean over the steps of a phase is a statistic, one for each head or for the cell
_HEAD_GATES = {
    "interpolation_gate": "content_gate",
    "allocation_gate": "allocation_gate",
    "write_gate": "write_gate",
    "free_gate": "free_gate",
}


class Key(NamedTuple):
    """The name of a statistic: of which head, while which words pass, and of what."""

    head: str  # `attention`, `read_head_0`, ..., `write_head_0`, ..., `cache`, `summary`
    phase: str
    name: str


Statistics = dict[Key, float]


def head_statistics(trace: Trace) -> Statistics:
    """Measures the attention and all heads of a trace.

    Returns:
      the statistics that `evaluation.inspection.DESCRIPTIONS` describes; those that do not apply,
      such as moves in a sentence of one word, are left out.
    """
    addresses = {name: quantities["weights"] for name, quantities in trace.heads.items()}
    statistics: Statistics = {}
    for phase, steps in phases(trace).items():
        for name, weights in _attentions(trace).items():
            _put(statistics, name, phase, _spread(weights[steps]))
            _put(statistics, name, phase, {"forward": forward(_tops(weights[steps]))})
        for name, quantities in trace.heads.items():
            weights = addresses[name][steps]
            _put(statistics, name, phase, _spread(weights))
            if trace.addresses_source:
                _put(statistics, name, phase, {"forward": forward(_tops(weights))})
            else:
                _put(statistics, name, phase, {"successive": successive(weights)})
            _put(statistics, name, phase, _movers(quantities, steps))
        if "summary_gate" in trace:
            mean = float(trace["summary_gate"][steps].mean())
            _put(statistics, "summary", phase, {"gate": mean})
    target = phases(trace)[TARGET]
    reads = [addresses[name][target] for name in addresses if name.startswith("read")]
    for name, weights in addresses.items():
        if name.startswith("write"):
            _put(statistics, name, TARGET, marking(weights[target], reads))
    statistics.update(_of_source_order(trace, addresses))
    return {key: value for key, value in statistics.items() if np.isfinite(value)}


def phases(trace: Trace) -> dict[str, slice]:
    """Returns the steps of each phase; the source phase only of a cell that reads the source."""
    target = {TARGET: slice(trace.boundary, None)}
    return {SOURCE: slice(0, trace.boundary), **target} if trace.boundary else target


def successive(weights: np.ndarray) -> float:
    """Returns the share of steps `[t, N]` that move to the neighbouring location.

    In the direction, up or down, that the sentence has more often; the first location follows the
    last. NaN if there is no move to count.
    """
    moves = np.diff(_tops(weights)) % weights.shape[1]
    if not len(moves) or weights.shape[1] < 2:
        return np.nan
    return float(max(np.mean(moves == 1), np.mean(moves == weights.shape[1] - 1)))


def marking(writes: np.ndarray, reads: list[np.ndarray]) -> dict[str, float]:
    """Measures how much is written to locations that were read at earlier steps.

    Args:
      writes: addresses of a write head, `[t, N]`.
      reads: addresses of each read head, `[t, N]`.

    Returns:
      `marked`, the mean weight on locations that were some read head's greatest at an earlier step;
      `marked_by_chance`, its expectation if the writes of the sentence came in random order; and
      `marking`, the difference.
    """
    if len(writes) < 2 or not reads:
        return {}
    read_before = np.zeros(writes.shape, bool)
    for weights in reads:
        for step in range(len(writes) - 1):
            if weights[step].sum() > _TINY:
                read_before[step + 1 :, weights[step].argmax()] = True
    marked = float((writes * read_before)[1:].sum(axis=1).mean())
    by_chance = float((read_before[1:] @ writes.mean(axis=0)).mean())
    return {"marked": marked, "marked_by_chance": by_chance, "marking": marked - by_chance}


def written_positions(trace: Trace) -> np.ndarray:
    """Returns the source word that was last written to each slot `[N]`; -1 where none was.

    The trace is of a cell that reads the source itself. A head writes to its greatest weight.
    """
    writers = np.asarray(trace["write_weights"])[: trace.boundary]  # [S, H, N]
    positions = np.full(writers.shape[2], -1)
    for step, heads in enumerate(writers):
        for weights in heads:
            if weights.sum() > _TINY:
                positions[weights.argmax()] = step
    return positions


def forward(positions: np.ndarray) -> float:
    """Returns the share of moves to a greater position, of all moves; NaN without a move."""
    moves = np.diff(positions)
    moves = moves[moves != 0]
    return float(np.mean(moves > 0)) if len(moves) else np.nan


def entropy_share(weights: np.ndarray) -> np.ndarray:
    """Returns the entropy of each row `[t, N]`, as a share of the uniform distribution's: `[t]`."""
    shares = weights / weights.sum(axis=1, keepdims=True)
    logarithms = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return -(shares * logarithms).sum(axis=1) / np.log(weights.shape[1])


def _put(statistics: Statistics, head: str, phase: str, values: Mapping[str, float]) -> None:
    statistics.update({Key(head, phase, name): value for name, value in values.items()})


def _attentions(trace: Trace) -> dict[str, np.ndarray]:
    """Returns attention over source words: on this sentence, and on the one before."""
    names = {"alignments": ATTENTION, "previous_alignments": "attention_to_previous"}
    return {head: np.asarray(trace[name]) for name, head in names.items() if name in trace}


def _addressed(weights: np.ndarray) -> np.ndarray:
    """Returns the rows `[t', N]` that are addresses, in float64."""
    weights = np.asarray(weights, np.float64)
    return weights[weights.sum(axis=1) > _TINY]


def _tops(weights: np.ndarray) -> np.ndarray:
    return _addressed(weights).argmax(axis=1)


def _spread(weights: np.ndarray) -> dict[str, float]:
    weights = _addressed(weights)
    if not len(weights) or weights.shape[1] < 2:
        return {}
    return {
        "entropy": float(entropy_share(weights).mean()),
        "greatest_weight": float(weights.max(axis=1).mean()),
        "distinct_positions": len(set(weights.argmax(axis=1))) / len(weights),
    }


def _movers(quantities: Mapping[str, np.ndarray], steps: slice) -> dict[str, float]:
    """Measures what moves a head: gates, shift kernel, content, and of the DNC its modes."""
    values = {
        name: float(quantities[diagnostic][steps].mean())
        for diagnostic, name in _HEAD_GATES.items()
        if diagnostic in quantities
    }
    if "shift_kernel" in quantities:
        kernel = np.asarray(quantities["shift_kernel"])[steps].mean(axis=0)  # [J]
        middle = len(kernel) // 2
        values["shift_down"] = float(kernel[:middle].sum())
        values["shift_up"] = float(kernel[middle + 1 :].sum())
    if "read_modes" in quantities:
        modes = np.asarray(quantities["read_modes"])[steps].mean(axis=0)  # [1+2H]
        writers = len(modes) // 2
        values["mode_backward"] = float(modes[:writers].sum())
        values["mode_content"] = float(modes[writers])
        values["mode_forward"] = float(modes[writers + 1 :].sum())
    if "content_weights" in quantities:
        content, weights = (
            np.asarray(quantities[n])[steps] for n in ("content_weights", "weights")
        )
        real = weights.sum(axis=1) > _TINY
        if real.any():
            agrees = content[real].argmax(axis=1) == weights[real].argmax(axis=1)
            values["content_agrees"] = float(agrees.mean())
        values["content_greatest_weight"] = float(content.max(axis=1).mean())
    return values


def _of_source_order(trace: Trace, addresses: Mapping[str, np.ndarray]) -> Statistics:
    """Measures reads of the target phase by the source words that the slots were written at."""
    if not trace.boundary or not any(name.startswith("write") for name in addresses):
        return {}
    position = written_positions(trace)
    statistics: Statistics = {}
    for name, weights in addresses.items():
        if name.startswith("read"):
            words = position[_tops(weights[trace.boundary :])]
            values = {
                "reads_source_slots": float(np.mean(words >= 0)) if len(words) else np.nan,
                "source_order": forward(words[words >= 0]),
            }
            _put(statistics, name, TARGET, values)
    return statistics
