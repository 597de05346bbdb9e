"""Which cells read a setting, and the refusal of one that a run would ignore."""

from __future__ import annotations

from collections.abc import Iterable

from tfmann.config.cells import CELLS
from tfmann.config.fields import fields_of
from tfmann.errors import UsageError


def cells_by_setting() -> dict[str, list[str]]:
    """Returns the cells that read a setting, for each setting that not all models read."""
    cells: dict[str, list[str]] = {}
    for cell, spec in CELLS.items():
        for name in fields_of(spec.options):
            cells.setdefault(name, []).append(cell)
    return cells


def refuse_unread(names: Iterable[str], cell: str) -> None:
    """Raises UsageError for the first of the settings `names` that only other cells read."""
    readers = cells_by_setting()
    for name in names:
        if cell not in readers.get(name, [cell]):
            raise UsageError(
                f"--{name} is of no use: the cell {cell!r} does not read it, only "
                f"{', '.join(readers[name])}"
            )
