"""Attention, heads and cache of all systems of a table, as text."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfmann.evaluation.inspection import PHASES
from tfmann.papers.addresses import SENTENCES
from tfmann.papers.metrics import Record
from tfmann.papers.table import Table

HEADING = (
    f"Attention, heads and cache on the test set (its first {SENTENCES} sentences, if it has more; "
    "means over the seeds that were measured); in brackets: with untrained weights"
)
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


class AddressTable(NamedTuple):
    """Statistics of each head of each system, as text."""

    heading: list[str]
    rows: list[list[str]]


def address_table(table: Table, records: Sequence[Record]) -> AddressTable | None:
    """Returns means over the seeds; None if no record has such statistics.

    A column without any value is left out.
    """
    by_head: dict[tuple[str, str, str], dict[str, list[dict[str, Any]]]] = {}
    for row in table.rows:
        for record in records:
            if record["row"] == row.name:
                for entry in (record.get("inspection") or {}).get("statistics", ()):
                    values = by_head.setdefault((row.title, entry["head"], entry["phase"]), {})
                    values.setdefault(entry["name"], []).append(entry)
    names = [name for name in _COLUMNS if any(name in values for values in by_head.values())]
    if not names:
        return None
    rows = [
        [title, head.replace("_", " "), PHASES[phase], *(_cell(values.get(n, ())) for n in names)]
        for (title, head, phase), values in by_head.items()
    ]
    return AddressTable(["system", "head", "phase", *(_COLUMNS[name] for name in names)], rows)


def _cell(entries: Sequence[dict[str, Any]]) -> str:
    if not entries:
        return "-"
    cell = f"{statistics.fmean(entry['mean'] for entry in entries):.2f}"
    untrained = [entry["untrained"]["mean"] for entry in entries if "untrained" in entry]
    return f"{cell} ({statistics.fmean(untrained):.2f})" if untrained else cell
