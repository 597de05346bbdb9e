"""Statistics of the caches of a table, as text (Tu et al. 2018, Figure 3 and section 4.5)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tfmann.evaluation.cache_statistics import CACHE
from tfmann.evaluation.inspection import DESCRIPTIONS
from tfmann.papers import memory_statistics, metrics
from tfmann.papers.memory_statistics import Entry
from tfmann.papers.memory_table import MemoryTable, mean_cell, title
from tfmann.papers.metrics import Record
from tfmann.papers.table import Table

_NAMES = tuple(itertools.dropwhile(lambda name: name != "recent_half", DESCRIPTIONS))
# Slots by recency that have a line; the largest cache has 1,000.
_RANKS = (1, 2, 3, 4, 5, 10, 15, 20, 25, 50, 100, 200, 500, 1000)
_DECIMALS = 3  # of the matching of a single slot


def cache_table(table: Table, records: Sequence[Record]) -> MemoryTable | None:
    """Returns a line for each statistic, a column for each system with a cache; None without any.

    Values are as in `memory_table`. Matching by recency is a mean over the steps, and older
    records have it without an interval.
    """
    runs_by_row = metrics.by_row(filter(_of_cache, records))
    runs_by_title = {
        row.title: runs_by_row[row.name] for row in table.rows if row.name in runs_by_row
    }
    if not runs_by_title:
        return None
    by_name = {
        name: [[_of_cache(run).get(name) for run in runs] for runs in runs_by_title.values()]
        for name in _NAMES
    }
    lines = [_line(DESCRIPTIONS[name], entries) for name, entries in by_name.items()]
    for rank in _RANKS:
        entries = [[_by_recency(run, rank) for run in runs] for runs in runs_by_title.values()]
        slot = "the slot written last" if rank == 1 else f"slot {rank}, the latest first"
        lines.append(_line(f"matching of {slot}", entries, _DECIMALS))
    rows = [line for line in lines if set(line[1:]) != {"-"}]
    heading = title(
        "The cache (Tu et al. 2018, Figure 3 and section 4.5)",
        list(itertools.chain(*runs_by_title.values())),
        rows,
    )
    return MemoryTable(heading, ["statistic", *runs_by_title], rows)


def _line(name: str, entries: Sequence[Sequence[Entry | None]], decimals: int = 2) -> list[str]:
    """Returns a line of the table from the entries of each system's runs."""
    known = ([entry for entry in of_system if entry] for of_system in entries)
    return [name, *(mean_cell(of_system, decimals) for of_system in known)]


def _of_cache(record: Record) -> dict[str, Entry]:
    """Returns the statistics of a run's cache by their names; empty without a cache."""
    entries = memory_statistics.statistics_of(record)
    return {entry["name"]: entry for entry in entries if entry["head"] == CACHE}


def _by_recency(record: Record, rank: int) -> Entry | None:
    """Returns the matching of a slot with that of untrained weights; None if it has none."""
    inspected = record["inspection"]
    trained, untrained = (
        _mean(inspected, key, rank - 1) for key in ("recency", "recency_untrained")
    )
    if trained is None:
        return None
    return {**trained, **({"untrained": untrained} if untrained else {})}


def _mean(inspected: Record, key: str, index: int) -> Entry | None:
    means = inspected.get(key, ())
    if index >= len(means) or means[index] is None:
        return None
    intervals = inspected.get(f"{key}_intervals")
    return {"mean": means[index], "interval": intervals[index] if intervals else None}
