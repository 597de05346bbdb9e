"""Differences of a table's rows from a baseline, with intervals, as coordinates of an SVG drawing.

Every row has two lines: its title, and its interval with a mark for the mean and one for each seed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tfmann.papers.differences import Comparison, Difference, comparisons, figure_name
from tfmann.papers.markdown_blocks import FIGURES
from tfmann.papers.metrics import Record
from tfmann.papers.records import read_results
from tfmann.papers.table import Table
from tfmann.papers.tables import TABLES
from tfmann.report.curves import ticks
from tfmann.report.html import render_template
from tfmann.utils.files import atomic_write

_WIDTH = 650
_LEFT, _RIGHT = 14, 420  # of the axis; numbers are to the right of it
_TOP = 26  # below the heading
_ROW = 34  # height
_AXIS = 34  # height of the axis with its labels


class Bar(NamedTuple):
    """One row: positions, and its numbers as text."""

    title: str
    y: float  # of the title
    middle: float  # of the interval
    mean: float
    low: float
    high: float
    seeds: list[float]  # none if there is one seed only, which is the mean
    paper: float | None
    is_evidence: bool
    text: str


class DifferenceChart(NamedTuple):
    """The rows that are compared with one."""

    rival: str
    bars: list[Bar]
    zero: float
    x_ticks: list[tuple[float, str]]
    bottom: float
    height: float
    top: float = _TOP
    left: float = _LEFT
    right: float = _RIGHT
    width: float = _WIDTH


def difference_charts(table: Table, records: Sequence[Record]) -> list[DifferenceChart]:
    """Returns a chart for each baseline of a table that a row is compared with."""
    return [_chart(comparison) for comparison in comparisons(table, records)]


def write_figures(readme: Path, results_dir: Path) -> None:
    """Writes the charts that a Markdown file shows, next to it.

    Args:
      readme: a file that `markdown_blocks.update_file` has filled from the same records.
      results_dir: folder of the records.
    """
    figures = render_figures(results_dir)
    folder = readme.parent / FIGURES
    shown = re.findall(rf"\({FIGURES}/([\w-]+)\.svg\)", readme.read_text("utf-8"))
    for name in filter(figures.__contains__, shown):
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(folder / f"{name}.svg") as file:
            file.write(figures[name].encode("utf-8"))


def render_figures(results_dir: Path) -> dict[str, str]:
    """Returns the charts of all tables as SVG, by `TABLE-SCALE-ROW` with the baseline's row."""
    figures = {}
    for (name, scale), records in read_results(results_dir).items():
        for comparison in comparisons(TABLES[name].at(scale), records):
            text = render_template("difference.svg", chart=_chart(comparison))
            figures[figure_name(name, scale, comparison)] = text
    return figures


def _chart(comparison: Comparison) -> DifferenceChart:
    differences = comparison.differences
    values = [0.0]
    for difference in differences:
        values += [difference.low, difference.high, *difference.by_seed]
        values += [] if difference.paper is None else [difference.paper]
    x_ticks = ticks(min(values), max(values))

    def place(value: float) -> float:
        share = (value - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        return round(_LEFT + (_RIGHT - _LEFT) * share, 1)

    bars = [
        Bar(
            difference.title,
            _TOP + _ROW * number + 13,
            _TOP + _ROW * number + 24,
            place(difference.mean),
            place(difference.low),
            place(difference.high),
            [place(value) for value in difference.by_seed] if len(difference.by_seed) > 1 else [],
            None if difference.paper is None else place(difference.paper),
            difference.is_evidence,
            _text(difference),
        )
        for number, difference in enumerate(differences)
    ]
    bottom = _TOP + _ROW * len(bars)
    labels = [(place(value), f"{value:+g}" if value else "0") for value in x_ticks]
    return DifferenceChart(comparison.rival.title, bars, place(0.0), labels, bottom, bottom + _AXIS)


def _text(difference: Difference) -> str:
    """Returns `+1.38 [-0.30, +3.05], 3 seeds`."""
    seeds = len(difference.by_seed)
    return f"{difference.mean:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}], " + (
        f"{seeds} seeds" if seeds > 1 else "one seed"
    )
