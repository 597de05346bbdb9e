"""Statistics of attention, heads and caches in the records of runs, as evidence for a claim."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

from tfmann.evaluation import significance, verdicts
from tfmann.evaluation.inspection import DESCRIPTIONS
from tfmann.papers import agreements, metrics
from tfmann.papers.claim import MemoryClaim
from tfmann.papers.metrics import Record
from tfmann.utils.numbers import format_number

Entry = dict[str, Any]  # of a statistic, as `evaluation.inspection.record` has it

LATEST = "latest_slots"  # from the record's curve of matching by recency
_LATEST_SLOTS = 12  # about half of the paper's cache of 25

_ONE_TEST = "the test set"
_INTERVAL = 2 * NormalDist().inv_cdf(0.975)  # standard errors that a 95% interval is wide


class PassedNull(NamedTuple):
    """How much further a statistic goes in the direction of a claim than a null does.

    Attributes:
      differences: one for each seed that has the null; positive if the statistic goes further.
      errors: the standard error of each over other sentences, as if the two were independent.
      units: sentences or documents that were resampled.
    """

    differences: Sequence[float]
    errors: Sequence[float]
    units: int

    def p(self) -> float:
        """Returns the p value of "the statistic goes no further than the null"."""
        variance = statistics.fmean(self.errors) ** 2
        estimate = verdicts.estimate(self.differences, variance, max(2, self.units))
        return verdicts.p_above(estimate, 0.0)


@dataclass(frozen=True)
class MeasuredRuns:
    """The runs of a row that recorded a statistic, in the order of their seeds.

    Attributes:
      seeds: of the runs.
      runs: their records.
      entries: the statistic in each.
      nulls: what chance gives in each, by the statistics of the claim, and the same statistic of
        its control with that seed, by the control's row.
      rival_runs: the records of the runs that they are compared with, of the claim's base or of its
        control.
      base_entries: the statistic of two seeds of that base, where it was measured.
    """

    seeds: Sequence[int]
    runs: Sequence[Record]
    entries: Sequence[Entry]
    nulls: Mapping[str, Sequence[Entry | None]] = field(default_factory=dict)
    rival_runs: Sequence[Record] = ()
    base_entries: Sequence[Entry] = ()

    def values(self) -> list[float]:
        """Returns the mean over the sentences, for each seed."""
        return [entry["mean"] for entry in self.entries]

    def sentence_errors(self) -> list[float]:
        """Returns the standard error over other sentences, for each seed; 0 if unknown."""
        return [_error(entry) for entry in self.entries]

    def too_few(self) -> str:
        """Returns why the sentences cannot speak for others; '' if they can.

        The bootstrap over few units underestimates their spread, and what they have in common does
        not show in the spread over seeds.
        """
        has_intervals = all(entry["interval"] for entry in self.entries)
        if has_intervals and self._units >= significance.ENOUGH_DOCUMENTS:
            return ""
        unit = self.runs[0]["inspection"]["unit"]
        return f"of {self._units} {unit}s only, too few to speak for others"

    def uncontrolled(self, claim: MemoryClaim) -> str:
        """Returns which comparisons of a claim were not measured; '' if every seed has them all."""
        lacking = ["untrained weights"] if len(self.untrained) < len(self.entries) else []
        for name, entries in self.nulls.items():
            if None in entries:
                lacking.append(f"{name}, the control" if name == claim.control else name)
        return f"without {' and '.join(lacking)}" if lacking else ""

    def nulls_passed(self, low: float) -> list[PassedNull]:
        """Returns how far each null is passed in the direction of a claim that has a limit.

        Untrained weights are a null: a head that starts as the claim says has not learned it. So
        are the values by chance. A seed counts with its own, so that their chances are seen.

        Args:
          low: the lower limit of the claim; infinite if it has an upper one.
        """
        sign = -1.0 if math.isinf(low) else 1.0
        untrained = [entry.get("untrained") for entry in self.entries]
        passed = []
        for entries in (untrained, *self.nulls.values()):
            pairs = [(ours, null) for ours, null in zip(self.entries, entries) if null is not None]
            if pairs:
                passed.append(PassedNull(
                    [sign * (ours["mean"] - null["mean"]) for ours, null in pairs],
                    [math.hypot(_error(ours), _error(null)) for ours, null in pairs],
                    self._units,
                ))  # fmt: skip
        return passed

    @property
    def untrained(self) -> list[Entry]:
        """The statistic with the weights that training starts from, where it was measured."""
        return [entry["untrained"] for entry in self.entries if "untrained" in entry]

    @property
    def _units(self) -> int:
        """The sentences or documents that have the statistic, at least as many in every run.

        Older records do not have their number: it is at most that of these sentences.
        """
        return min(
            entry.get("units", min(run["inspection"]["units"], entry["sentences"]))
            for run, entry in zip(self.runs, self.entries)
        )

    def estimate(self) -> verdicts.Estimate:
        """Returns the mean over the seeds and its error.

        The part of the error that is due to the sentences is an upper bound, as if the values of
        all seeds rose and fell together.
        """
        variance = statistics.fmean(self.sentence_errors()) ** 2
        return verdicts.estimate(self.values(), variance, max(2, self._units))


def measured_runs(claim: MemoryClaim, records: Sequence[Record]) -> MeasuredRuns:
    """Returns the runs of the claim's row that recorded its statistic."""
    measured = agreements.with_base(records, claim.base) if claim.base else records
    by_seed, of_base = {}, []
    controls: dict[int, Entry] = {}
    for record in measured:
        entries = _entries(claim, record)
        if claim.statistic in entries and record["row"] == claim.row:
            by_seed[metrics.seed_of(record)] = record, entries
        elif claim.statistic in entries and record["row"] == claim.base:
            of_base.append(entries[claim.statistic])
        elif claim.statistic in entries and record["row"] == claim.control:
            controls[metrics.seed_of(record)] = entries[claim.statistic]
    seeds = sorted(by_seed)
    runs, found = ([by_seed[seed][part] for seed in seeds] for part in (0, 1))
    nulls = {name: [entries.get(name) for entries in found] for name in claim.nulls}
    if claim.control:
        nulls[claim.control] = [controls.get(seed) for seed in seeds]
    rival = claim.base or claim.control
    rivals = {metrics.seed_of(run): run for run in records if run["row"] == rival}
    return MeasuredRuns(
        seeds,
        runs,
        [entries[claim.statistic] for entries in found],
        nulls,
        [rivals[seed] for seed in seeds if seed in rivals],
        of_base,
    )


def _error(entry: Entry) -> float:
    """Returns the standard error over other sentences; 0 if it is unknown."""
    low, high = entry["interval"] or (0.0, 0.0)
    return (high - low) / _INTERVAL


def evidence(claim: MemoryClaim, measured: MeasuredRuns) -> str:
    """Describes the numbers: of each seed, of the sentences, and of untrained weights.

    In brackets are 95% intervals over other sentences or documents.

    Args:
      claim: the claim.
      measured: the runs that it is about.
    """
    values = measured.values()
    by_seed = f" (seeds {', '.join(map(format_number, values))})" * (len(values) > 1)
    parts = [
        f"{describe(claim.statistic)}: {format_mean(measured.entries)}{by_seed}",
        "the claim: "
        + (f"above {claim.above:g}" if math.isfinite(claim.above) else f"below {claim.below:g}"),
    ]
    if measured.untrained:
        start = statistics.fmean(entry["mean"] for entry in measured.untrained)
        mean = statistics.fmean(values)
        is_beyond = start < mean if math.isfinite(claim.above) else mean < start
        is_inside = claim.above < start < claim.below
        more = ", which agree with the claim more" if is_inside and not is_beyond else ""
        parts.append(f"with untrained weights {format_mean(measured.untrained)}{more}")
    for name, entries in measured.nulls.items():
        if found := [entry for entry in entries if entry is not None]:
            of = f"of {name}" if name == claim.control else describe(name)
            parts.append(f"{of} {format_mean(found)}")
    if measured.base_entries:
        parts.append(f"two seeds of {claim.base} {format_mean(measured.base_entries)}")
    inspected = measured.runs[0]["inspection"]
    units = f" in {inspected['units']} documents" * (inspected["unit"] == "document")
    of_first = {part for part in map(_first_part, measured.runs) if part}
    parts.append(
        f"{measured.entries[0]['sentences']:,} sentences{units}"
        + f", of {' or '.join(sorted(of_first))}" * bool(of_first)
        + "".join(f", of {tests}" for tests in sorted(set(map(describe_tests, measured.runs)))
                  if tests != _ONE_TEST)
    )  # fmt: skip
    note = metrics.few_documents(measured.runs[0].get("resampled", {}).get("test", {}))
    if note and inspected["unit"] == "sentence":  # what they have in common is in no interval
        parts.append(note)
    return "; ".join(parts)


def format_mean(entries: Sequence[Entry], decimals: int = 2, missing: str = "") -> str:
    """Formats a mean over the seeds, and the means of the limits of their 95% intervals.

    These are the limits of the mean if all seeds rise and fall together, else they are wider. An
    interval that rounds to the mean is left out; `missing` stands for one that is not known.
    """
    mean = format_number(statistics.fmean(entry["mean"] for entry in entries), decimals)
    intervals = [entry["interval"] for entry in entries]
    if not all(intervals):
        return f"{mean}{missing}"
    low, high = (format_number(statistics.fmean(limits), decimals) for limits in zip(*intervals))
    return mean if low == high == mean else f"{mean} [{low}, {high}]"


def describe_tests(record: Record) -> str:
    """Returns which tests were measured: the only one, all of several, or the first of them."""
    tests = record["inspection"].get("tests", 1)
    if tests > 1:
        return f"{tests} test sets"
    return "the first test set" if record.get("more_tests") else _ONE_TEST


def statistics_of(record: Record) -> Sequence[Entry]:
    """Returns all statistics of a run; empty if none were measured."""
    return (record.get("inspection") or {}).get("statistics", ())


def extent(record: Record) -> tuple[int, int] | None:
    """Returns how many test sentences were measured, and of how many; None if that is unknown."""
    inspected = record.get("inspection") or {}
    if "sentences_of_file" not in inspected:
        return None
    return inspected["sentences"], inspected["sentences_of_file"]


def describe_extent(measured: int, total: int) -> str:
    """Returns `all 1,000` or, of older records, `the first 500 of 1,000`."""
    return f"all {total:,}" if measured == total else f"the first {measured:,} of {total:,}"


def describe(statistic: str) -> str:
    """Returns what a statistic is, in words."""
    latest = f"matching of the {_LATEST_SLOTS} latest slots"
    return latest if statistic == LATEST else DESCRIPTIONS[statistic]


def _first_part(record: Record) -> str:
    """Returns which part of the test set was measured; '' if all of it, or if that is unknown."""
    measured = extent(record)
    return "" if measured is None or len(set(measured)) == 1 else describe_extent(*measured)


def _entries(claim: MemoryClaim, record: Record) -> dict[str, Entry]:
    """Returns the statistics of the claim's head and phase by their names."""
    entries = {
        entry["name"]: entry
        for entry in statistics_of(record)
        if (entry["head"], entry["phase"]) == (claim.head, claim.phase)
    }
    if claim.statistic == LATEST and "recent_half" in entries:
        entries[LATEST] = _latest_slots(record["inspection"], entries["recent_half"])
    return entries


def _latest_slots(inspected: Record, recent_half: Entry) -> Entry:
    """Returns the matching probability of the latest slots, which a larger cache has too.

    The more recent half of a larger cache has more slots, and so more of the probability even if
    all slots match equally. The interval is an upper bound, as if all slots rose and fell together.

    Args:
      inspected: what was measured, with the mean matching probability by recency.
      recent_half: the entry whose sentences are those of the curve.
    """

    def total(key: str) -> Entry:
        means, intervals = (
            inspected.get(name, ())[:_LATEST_SLOTS] for name in (key, f"{key}_intervals")
        )
        limits = zip(*intervals) if all(intervals) else ()  # older records have none
        return {"mean": sum(filter(None, means)), "interval": [*map(sum, limits)] or None}

    nulls = {"untrained": total("recency_untrained")} if "recency_untrained" in inspected else {}
    return {**recent_half, "name": LATEST, **total("recency"), **nulls}
