"""Attention, heads and cache of all systems of a table, as text."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfmann.evaluation.inspection import PHASES
from tfmann.papers import memory_statistics, metrics
from tfmann.papers.metrics import Record
from tfmann.papers.table import Table

# Statistics with a column of their own; docs/inspect.md defines them all.
_COLUMNS: Mapping[str, str] = {
    "entropy": "entropy",
    "distinct_positions": "different positions",
    "forward": "moves forward",
    "successive": "moves to the next slot",
    "source_order": "moves in source order",
    "content_gate": "by content",
    "marking": "marking beyond chance",
    "recent_half": "on the recent half",
    "exact": "exact matches",
    "gate": "gate",
}

_MISSING = " [-]"  # in the place of an interval


class MemoryTable(NamedTuple):
    """Statistics of each head of each system, as text.

    Attributes:
      title: which sentences were measured, and what the cells contain.
      heading: the names of the columns.
      rows: the cells of each row.
    """

    title: str
    heading: list[str]
    rows: list[list[str]]


class _Head(NamedTuple):
    """A row of the table."""

    system: str
    head: str
    phase: str


def memory_table(table: Table, records: Sequence[Record]) -> MemoryTable | None:
    """Returns means over the seeds with their intervals; None if no record has such statistics.

    A column without any value is left out. If not all records are over the same number of
    sentences, a column has these numbers.
    """
    by_head: dict[_Head, dict[str, list[dict[str, Any]]]] = {}
    runs = metrics.by_row(filter(memory_statistics.statistics_of, records))
    measured = {row.title: runs[row.name] for row in table.rows if row.name in runs}
    for system, of_system in measured.items():
        for entry in itertools.chain(*map(memory_statistics.statistics_of, of_system)):
            values = by_head.setdefault(_Head(system, entry["head"], entry["phase"]), {})
            values.setdefault(entry["name"], []).append(entry)
    names = [name for name in _COLUMNS if any(name in values for values in by_head.values())]
    if not names:
        return None
    all_runs = list(itertools.chain(*measured.values()))
    mixed = len(set(map(memory_statistics.extent, all_runs))) > 1
    rows = [
        [
            head.system,
            head.head.replace("_", " "),
            PHASES[head.phase],
            *([_extent_cell(measured[head.system])] if mixed else []),
            *(mean_cell(values.get(name, ())) for name in names),
        ]
        for head, values in by_head.items()
    ]
    heading = ["system", "head", "phase", *(["sentences"] if mixed else [])]
    heading += [_COLUMNS[name] for name in names]
    return MemoryTable(title("Attention, heads and cache", all_runs, rows), heading, rows)


def title(subject: str, records: Sequence[Record], rows: Sequence[Sequence[str]]) -> str:
    """Returns the title of statistics: which sentences they are of, and what the cells contain.

    Args:
      subject: what the statistics are about.
      records: of the runs that were measured.
      rows: the cells.
    """
    where = " or ".join(sorted(set(map(memory_statistics.describe_tests, records))))
    extent, *others = set(map(memory_statistics.extent, records))
    if extent is not None and not others:
        where = f"{memory_statistics.describe_extent(*extent)} sentences of {where}"
    notes = [
        f"{subject} over {where}: means over the seeds that were measured",
        "[low, high]: 95% interval of the bootstrap over sentences or documents, left out where it "
        "rounds to the mean",
        "(...): with untrained weights",
    ]
    if any(_MISSING in cell for row in rows for cell in row):
        notes.insert(2, "[-]: no interval, of an earlier version's record or of a single unit")
    return "; ".join(notes)


def _extent_cell(records: Sequence[Record]) -> str:
    known = sorted(filter(None, set(map(memory_statistics.extent, records))))
    return "; ".join(memory_statistics.describe_extent(*extent) for extent in known) or "-"


def mean_cell(entries: Sequence[dict[str, Any]], decimals: int = 2) -> str:
    """Formats the mean over the seeds, and the one with untrained weights in brackets."""
    if not entries:
        return "-"
    untrained = [entry["untrained"] for entry in entries if "untrained" in entry]
    mean = memory_statistics.format_mean(entries, decimals, _MISSING)
    if not untrained:
        return mean
    return f"{mean} ({memory_statistics.format_mean(untrained, decimals, _MISSING)})"
