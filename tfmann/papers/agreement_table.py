"""The agreement of the attention of a table's systems with that of one of them, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tfmann.papers.agreements import with_base
from tfmann.papers.memory_table import MemoryTable, mean_cell, title
from tfmann.papers.metrics import Record
from tfmann.papers.table import Table

_COLUMNS: Mapping[str, str] = {  # docs/inspect.md defines them
    "same_position": "at the same source word",
    "same_position_by_chance": "same word, in random order",
    "same_position_even_pace": "same word, at an even pace",
    "overlap": "weight in common",
    "overlap_by_chance": "weight, in random order",
    "overlap_even_pace": "weight, at an even pace",
}


def agreement_table(table: Table, records: Sequence[Record]) -> MemoryTable | None:
    """Returns a line for each system, means over the seeds; None if no record has agreement.

    The line of the base itself compares its further seeds with its first one.
    """
    measured = with_base(records, table.attention_base)
    if not measured:
        return None
    titles = {row.name: row.title for row in table.rows}
    base = titles[table.attention_base]
    rows = []
    for row in table.rows:
        parts = [run["inspection"] for run in measured if run["row"] == row.name]
        if parts:
            by_name: dict[str, list] = {name: [] for name in _COLUMNS}
            for part in parts:
                for entry in part["statistics"]:
                    by_name[entry["name"]].append(entry)
            name = f"{base}, two seeds" if row.name == table.attention_base else row.title
            rows.append([name, *map(mean_cell, by_name.values())])
    heading = title(
        f"Agreement of attention with that of the {base}, over the references",
        measured,
        rows,
    )
    return MemoryTable(heading, ["system", *_COLUMNS.values()], rows)
