"""Statistics of a model's memory over a test set: means over traces.

A statistic is a number of a sentence (`head_statistics`, `cache_statistics`, `agreement`). Its mean
over a test set comes with a 95% interval of the bootstrap: 1,000 times, as many units are drawn
with replacement. Units are sentences, or whole documents where a model looks at earlier sentences.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from typing import Any, NamedTuple

import numpy as np

from tfmann.evaluation.agreement import agreement_statistics
from tfmann.evaluation.cache_statistics import cache_statistics, rank_sums
from tfmann.evaluation.head_statistics import Key, Statistics, head_statistics
from tfmann.evaluation.significance import RESAMPLES, RESAMPLES_SEED
from tfmann.evaluation.trace import Trace
from tfmann.utils.numbers import format_number

FEW_UNITS = 10  # fewer of them say little about others
_LEVELS = (2.5, 97.5)  # percent
_DRAWN_AT_ONCE = 1_000_000  # units; a bound on the memory

# In the order in which they are shown.
DESCRIPTIONS: Mapping[str, str] = {
    "entropy": "entropy of the weights (1: all positions alike)",
    "greatest_weight": "greatest weight",
    "distinct_positions": "different positions per step",
    "forward": "moves that go forward",
    "successive": "steps to the neighbouring slot, in one direction",
    "content_gate": "interpolation gate (1: by content, 0: from the last address)",
    "content_agrees": "steps at the slot that content alone would choose",
    "content_greatest_weight": "greatest weight by content alone",
    "shift_up": "shift kernel: to higher slots",
    "shift_down": "shift kernel: to lower slots",
    "allocation_gate": "allocation gate (1: a free slot, 0: by content)",
    "write_gate": "write gate (0: nothing is written)",
    "free_gate": "free gate (1: the slot read last is free)",
    "mode_content": "read mode: by content",
    "mode_forward": "read mode: the slot written next",
    "mode_backward": "read mode: the slot written before",
    "reads_source_slots": "reads of slots that source words were written to",
    "source_order": "moves between source words that go forward",
    "marked": "weight written to slots that were read before",
    "marked_by_chance": "the same with the writes in random order",
    "marking": "weight to slots read before, beyond random order",
    "overlap": "weight in common with the other system",
    "overlap_by_chance": "the same with the steps in random order",
    "overlap_even_pace": "the other's weight on an even pace through the source",
    "same_position": "steps at the other system's source word",
    "same_position_by_chance": "the same with the steps in random order",
    "same_position_even_pace": "the same at an even pace through the source",
    "recent_half": "matching of the more recent half of the slots",
    "exact": "matching of slots with the word of the step",
    "exact_by_chance": "the same if all slots matched alike",
    "exact_gain": "matching of slots with the word, beyond equal matching",
    "fuzzy": "matching of slots with other words",
    "word_in_cache": "steps whose word is in the cache",
    "exact_if_in_cache": "matching of slots with the word, at these steps",
    "top_exact_if_in_cache": "the slot that matches most has the word, at these steps",
    "phrase": "steps to the slot that was written next",
    "phrase_by_chance": "the same with the steps in random order",
    "phrase_gain": "steps to the slot written next, beyond random order",
    "word_gain": "log-probability that the history adds to a word",
    "word_gain_in_cache": "log-probability added to words that are in the cache",
    "word_gain_not_in_cache": "log-probability added to words that are not in the cache",
    "gate": "gate",
    "gate_in_cache": "gate at words that are in the cache",
    "gate_not_in_cache": "gate at words that are not",
    "gate_end": "gate at </s>",
    "gate_punctuation": "gate at punctuation",
    "gate_frequent": "gate at frequent words",
    "gate_other": "gate at other words",
}


class Mean(NamedTuple):
    """The mean of a statistic over a test set.

    Attributes:
      mean: over the sentences that have the statistic.
      interval: low and high of its 95% interval; None if there is only one unit.
      sentences: how many have the statistic.
      units: how many have such a sentence.
    """

    mean: float
    interval: tuple[float, float] | None
    sentences: int
    units: int


class Inspection:
    """The statistics of a model's traces, sentence by sentence."""

    def __init__(self, frequent: Set[str] = frozenset()):
        """Takes the words that `cache_statistics` counts as frequent."""
        self._frequent = frequent
        self._sentences: list[Statistics] = []
        self._units: list[Hashable] = []
        self._rank_sums: dict[Hashable, np.ndarray] = {}  # [2, I], by unit

    def add(
        self,
        trace: Trace,
        unit: Hashable,
        other: Trace | None = None,
        gains: np.ndarray | None = None,
    ) -> None:
        """Adds a sentence of a unit, its document or itself.

        Args:
          trace: of the sentence.
          unit: of the sentence.
          other: the trace of another system, whose attention is compared with this one's.
          gains: of a cell with a cache, as of `cache_statistics`.

        Raises:
          ValueError: the two systems see other tokens.
        """
        of_cache = cache_statistics(trace, self._frequent, gains)
        statistics = {**head_statistics(trace), **of_cache}
        if other is not None:
            statistics.update(agreement_statistics(trace, other))
        self._sentences.append(statistics)
        self._units.append(unit)
        if trace.slots is not None and "cache_match" in trace:
            self._rank_sums[unit] = self._rank_sums.get(unit, 0.0) + rank_sums(trace)

    def __len__(self) -> int:
        """Returns the number of sentences."""
        return len(self._sentences)

    @property
    def units(self) -> int:
        """The number of units."""
        return len(set(self._units))

    def means(self) -> dict[Key, Mean]:
        """Returns the means, heads in the order of the traces."""
        keys = list(dict.fromkeys(key for sentence in self._sentences for key in sentence))
        if not keys:
            return {}
        values = np.array(
            [[sentence.get(key, np.nan) for key in keys] for sentence in self._sentences]
        )
        numbers = {unit: number for number, unit in enumerate(dict.fromkeys(self._units))}
        units = np.array([numbers[unit] for unit in self._units])
        intervals = bootstrap_intervals(values, units)
        real = np.isfinite(values)
        with_value = [len(set(units[column])) for column in real.T]
        return {
            key: Mean(float(mean), interval, int(count), number)
            for key, mean, interval, count, number in zip(
                keys, np.nanmean(values, axis=0), intervals, real.sum(axis=0), with_value
            )
        }

    def recency(self) -> list[float | None]:
        """Returns the mean matching probability by recency, the latest slot first (Tu, Figure 3).

        None at ranks that no filled slot ever had; empty of a model without a cache.
        """
        if not self._rank_sums:
            return []
        sums, steps = np.sum(list(self._rank_sums.values()), axis=0)
        return [float(a / n) if n else None for a, n in zip(sums, steps)]

    def recency_intervals(self) -> list[tuple[float, float] | None]:
        """Returns the 95% interval of each of `recency` over other units."""
        if not self._rank_sums:
            return []
        sums, steps = np.stack(list(self._rank_sums.values()), axis=1)
        return _bootstrap(sums, steps)


def bootstrap_intervals(values: np.ndarray, units: np.ndarray) -> list[tuple[float, float] | None]:
    """Returns the 95% interval of the mean of each column.

    Args:
      values: `[sentences, columns]`; NaN where a sentence has no value.
      units: `[sentences]`, the number of each sentence's unit, from 0.

    Returns:
      low and high of each column; None where fewer than two units have a value.
    """
    real = np.isfinite(values)
    number = int(units.max()) + 1
    sums, counts = np.zeros([number, values.shape[1]]), np.zeros([number, values.shape[1]])
    np.add.at(sums, units, np.where(real, values, 0.0))
    np.add.at(counts, units, real)
    return _bootstrap(sums, counts)


def _bootstrap(sums: np.ndarray, counts: np.ndarray) -> list[tuple[float, float] | None]:
    """Returns the 95% interval of each column's mean, from sums and counts `[units, columns]`."""
    number, columns = sums.shape
    rng = np.random.default_rng(RESAMPLES_SEED)
    means = np.full([RESAMPLES, columns], np.nan)
    for part in np.array_split(means, -(-RESAMPLES * number // _DRAWN_AT_ONCE)):
        drawn = rng.integers(0, number, (len(part), number))
        times = np.array([np.bincount(row, minlength=number) for row in drawn], np.float64)
        of_resamples = times @ counts
        np.divide(times @ sums, of_resamples, out=part, where=of_resamples > 0)
    enough = (counts > 0).sum(axis=0) > 1
    intervals: list[tuple[float, float] | None] = []
    for column, is_enough in zip(means.T, enough):
        low, high = np.nanpercentile(column, _LEVELS) if is_enough else (np.nan, np.nan)
        intervals.append((float(low), float(high)) if is_enough else None)
    return intervals


def record(trained: Inspection, untrained: Inspection | None) -> dict[str, Any]:
    """Returns both as JSON: `statistics`, `units`, `recency` and how they were resampled.

    Each of the `statistics` has `head`, `phase`, `name`, and those of a `Mean`; `untrained` has
    the latter again, or is missing where untrained weights were not measured. `recency` comes with
    `recency_intervals`, and both again as `recency_untrained`.
    """
    of_untrained = untrained.means() if untrained else {}
    statistics = []
    for key, mean in _in_order(trained.means()).items():
        entry = {**key._asdict(), **_rounded(mean)}
        if key in of_untrained:
            entry["untrained"] = _rounded(of_untrained[key])
        statistics.append(entry)
    recency = _recency("recency", trained)
    if untrained:
        recency.update(_recency("recency_untrained", untrained))
    return {
        "sentences": len(trained),
        "units": trained.units,
        "resamples": RESAMPLES,
        "seed": RESAMPLES_SEED,
        "statistics": statistics,
        **(recency if trained.recency() else {}),
    }


def _recency(key: str, inspected: Inspection) -> dict[str, list]:
    intervals = inspected.recency_intervals()
    return {
        key: _round(inspected.recency()),
        f"{key}_intervals": [interval and _round(interval) for interval in intervals],
    }


def table(recorded: Mapping[str, Any]) -> str:
    """Formats a `record` as text, a line for each statistic."""
    lines, group = [], None
    width = max(map(len, DESCRIPTIONS.values()))
    for entry in recorded["statistics"]:
        if group != (entry["head"], entry["phase"]):
            group = entry["head"], entry["phase"]
            lines += ["", f"{group[0]}, {PHASES[group[1]]}"]
        line = f"  {DESCRIPTIONS[entry['name']]:<{width}}  {_show(entry):<20}"
        if "untrained" in entry:
            line += f"  untrained {_show(entry['untrained'])}"
        lines.append(line.rstrip())
    return "\n".join(lines[1:])


PHASES = {"source": "while the source is read", "target": "while the target is written"}


def _in_order(means: Mapping[Key, Mean]) -> dict[Key, Mean]:
    """Sorts by head and phase as they come, then by `DESCRIPTIONS`."""
    heads = {key.head: number for number, key in reversed(list(enumerate(means)))}
    names = list(DESCRIPTIONS)
    phases = list(PHASES)
    return dict(
        sorted(
            means.items(),
            key=lambda item: (
                heads[item[0].head], phases.index(item[0].phase), names.index(item[0].name)
            ),
        )
    )  # fmt: skip


def _rounded(mean: Mean) -> dict[str, Any]:
    interval = None if mean.interval is None else _round(mean.interval)
    return {**mean._asdict(), "mean": round(mean.mean, 4), "interval": interval}


def _round(values: Any) -> list[float | None]:
    return [None if value is None else round(value, 4) for value in values]


def _show(entry: Mapping[str, Any]) -> str:
    values = (entry["mean"], *(entry["interval"] or ()))
    mean, *interval = map(format_number, values)
    return f"{mean} [{', '.join(interval)}]" if interval else mean
