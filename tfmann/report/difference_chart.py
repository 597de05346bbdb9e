"""Differences of a table's rows from a baseline, with intervals, as coordinates of an SVG drawing.

Every row has a title, an interval, a mark for the mean and one for each seed. In the chart of one
baseline the title is above the interval; in the overview of all tables it is to the left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Callable, NamedTuple

from tfmann.papers import metrics
from tfmann.papers.differences import Comparison, Difference, comparisons, figure_name, overview
from tfmann.papers.markdown_blocks import FIGURES, OVERVIEW
from tfmann.papers.metrics import Record
from tfmann.papers.records import read_results
from tfmann.papers.table import Table
from tfmann.papers.tables import TABLES
from tfmann.report.curves import ticks
from tfmann.report.html import render_template
from tfmann.utils.files import atomic_write
from tfmann.utils.numbers import format_difference

_LINE = 18  # height of a heading
_GAP = 12  # above a heading that is not the first
_AXIS = 34  # height of the axis with its labels


class Layout(NamedTuple):
    """Where the columns of a chart are, and how high a row is.

    Attributes:
      left: of the axis; titles begin at `_MARGIN`.
      right: of the axis; numbers are to the right of it.
      width: of the whole.
      row: height.
      title: from the top of a row to the base line of its title.
      middle: from the top of a row to its interval.
      ticks: about how many the axis has.
      gap: between headings and the first row.
    """

    left: int
    right: int
    width: int
    row: int
    title: int
    middle: int
    ticks: int
    gap: int


_MARGIN = 14
_TITLES_ABOVE = Layout(
    left=_MARGIN, right=420, width=650, row=34, title=13, middle=24, ticks=5, gap=8
)
_TITLES_BESIDE = Layout(left=430, right=750, width=975, row=20, title=14, middle=10, ticks=8, gap=0)


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


class Line(NamedTuple):
    """A line of text above the rows."""

    kind: str  # its style: heading or subheading
    text: str
    y: float


class Part(NamedTuple):
    """The rows that are compared with one."""

    lines: list[Line]
    bars: list[Bar]


class DifferenceChart(NamedTuple):
    """Parts, one below the other, over one axis."""

    parts: list[Part]
    zero: float
    x_ticks: list[tuple[float, str]]
    bottom: float
    height: float
    numbers: float  # left end of the text to the right of the axis
    width: float
    top: float = 26  # of the grid
    left: float = _MARGIN


def difference_charts(table: Table, records: Sequence[Record]) -> list[DifferenceChart]:
    """Returns a chart for each baseline of a table that a row is compared with."""
    return [_comparison_chart(comparison) for comparison in comparisons(table, records)]


def write_figures(pages: Sequence[Path], results_dir: Path) -> None:
    """Writes the charts that Markdown files show, next to them.

    Args:
      pages: files that `markdown_blocks.update_files` has filled from the same records.
      results_dir: folder of the records.
    """
    figures = render_figures(results_dir)
    for page in pages:
        shown = re.findall(rf"\({FIGURES}/([\w-]+)\.svg\)", page.read_text("utf-8"))
        for name in filter(figures.__contains__, shown):
            (page.parent / FIGURES).mkdir(parents=True, exist_ok=True)
            with atomic_write(page.parent / FIGURES / f"{name}.svg") as file:
                file.write(figures[name].encode("utf-8"))


def render_figures(results_dir: Path) -> dict[str, str]:
    """Returns the charts as SVG: by `TABLE-SCALE-ROW` with the baseline's row, and OVERVIEW."""
    figures = {}
    results = read_results(results_dir)
    for (name, scale), records in results.items():
        for comparison in comparisons(TABLES[name].at(scale), records):
            text = render_template("difference.svg", chart=_comparison_chart(comparison))
            figures[figure_name(name, scale, comparison)] = text
    if (chart := overview_chart(results)) is not None:
        figures[OVERVIEW] = render_template("difference.svg", chart=chart)
    return figures


def overview_chart(results: Mapping[tuple[str, str], Sequence[Record]]) -> DifferenceChart | None:
    """Returns the chart of what several seeds have shown, in all tables; None if nothing.

    Args:
      results: records by table and scale.
    """
    parts = []
    headings = [("subheading", "Difference in test BLEU, with intervals of 95% confidence")]
    for name, scale in sorted(results, key=lambda key: list(TABLES).index(key[0])):
        table = TABLES[name].at(scale)
        compared = overview(table, results[name, scale])
        if compared:
            subject, *_ = table.title.split(", BLEU")
            scales = f"scale {scale}" if len(TABLES[name].scales) > 1 else ""
            notes = filter(None, (subject, scales, metrics.stand_in(results[name, scale])))
            headings.append(("heading", ", ".join(notes)))
        for comparison in compared:
            headings.append(("subheading", f"against {comparison.rival.title.removeprefix('+ ')}"))
            parts.append((headings, comparison))
            headings = []
    return _chart(parts, _TITLES_BESIDE) if parts else None


def _comparison_chart(comparison: Comparison) -> DifferenceChart:
    headings = [("heading", f"Difference in test BLEU from {comparison.rival.title}")]
    return _chart([(headings, comparison)], _TITLES_ABOVE)


def _chart(
    compared: Sequence[tuple[Sequence[tuple[str, str]], Comparison]], layout: Layout
) -> DifferenceChart:
    """Lays out comparisons, each below its headings, which are given as kind and text."""
    values = [0.0]
    for difference in (d for _, comparison in compared for d in comparison.differences):
        values += [difference.low, difference.high, *difference.by_seed]
        values += [] if difference.paper is None else [difference.paper]
    x_ticks = ticks(min(values), max(values), layout.ticks)

    def place(value: float) -> float:
        share = (value - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        return round(layout.left + (layout.right - layout.left) * share, 1)

    parts, y = [], 0
    for headings, comparison in compared:
        lines, bars = [], []
        for kind, text in headings:
            y += _GAP if kind == "heading" and y else 0
            y += _LINE
            lines.append(Line(kind, text, y - 4))
        y += layout.gap
        for difference in comparison.differences:
            bars.append(_bar(difference, y, layout, place))
            y += layout.row
        parts.append(Part(lines, bars))
    labels = [(place(value), f"{value:+g}" if value else "0") for value in x_ticks]
    return DifferenceChart(parts, place(0.0), labels, y, y + _AXIS, layout.right + 12, layout.width)


def _bar(difference: Difference, top: int, layout: Layout, place: Callable[[float], float]) -> Bar:
    """Lays out a row whose upper end is at `top`."""
    return Bar(
        difference.title,
        top + layout.title,
        top + layout.middle,
        place(difference.mean),
        place(difference.low),
        place(difference.high),
        [place(value) for value in difference.by_seed] if len(difference.by_seed) > 1 else [],
        None if difference.paper is None else place(difference.paper),
        difference.is_evidence,
        _text(difference),
    )


def _text(difference: Difference) -> str:
    """Returns `+1.38 [-0.30, +3.05], 3 seeds`."""
    seeds = len(difference.by_seed)
    mean, low, high = map(format_difference, (difference.mean, difference.low, difference.high))
    return f"{mean} [{low}, {high}], " + (f"{seeds} seeds" if seeds > 1 else "one seed")
