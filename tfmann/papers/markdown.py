"""Lines of Markdown: tables, lists of notes, and parts that are folded away."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table."""
    lines = [f"| {' | '.join(cells)} |" for cells in (heading, *rows)]
    lines.insert(1, "|-" * len(heading) + "|")
    return lines


def mean_cell(values: Sequence[float], decimals: int = 2) -> str:
    """Returns a cell: the mean ± the sample standard deviation of several values, - of none."""
    if not values:
        return "-"
    cell = f"{statistics.fmean(values):.{decimals}f}"
    if len(values) > 1:
        cell += f" ± {statistics.stdev(values):.{decimals}f}"
    return cell


def bullets(notes: Sequence[str]) -> list[str]:
    """Returns the lines of a list."""
    return [f"- {note}" for note in notes]


def starred(notes: Sequence[str]) -> list[str]:
    """Returns the notes on cells that are marked `*`, `**`, ..., each after its mark."""
    star = r"\*"
    return [f"{star * number} {note}" for number, note in enumerate(notes, start=1)]


def folded(title: str, lines: Sequence[str]) -> list[str]:
    """Returns lines that are folded away under a title; the site's Markdown needs the attribute."""
    summary = f'<details markdown="1"><summary>{title}</summary>'
    return ["", summary, "", *lines, "", "</details>"]
