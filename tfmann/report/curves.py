"""Learning curves of a table's systems, or of runs, as coordinates of an SVG drawing.

A template draws them and not matplotlib, so that their colours follow the page's, dark or light.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfmann.papers.metrics import Record, seed_of
from tfmann.papers.table import Table

WIDTH, HEIGHT = 460, 300  # of the drawing
LEFT, RIGHT, TOP, BOTTOM = 52, 430, 12, 258  # of the axes, with room for the last label
DOT_DISTANCE = 8  # of the centres of dots, which are 6 wide


class Point(NamedTuple):
    """An evaluation during training: its position, and its numbers as text."""

    x: float
    y: float
    text: str


class Line(NamedTuple):
    """The curve of a system, the mean over its seeds."""

    name: str
    number: int  # of the row, which determines the colour
    points: list[Point]

    @property
    def dots(self) -> list[Point]:
        """The points that are drawn as dots: the last, and others that do not touch a dot."""
        dots = self.points[-1:]
        for point in reversed(self.points[:-1]):
            if math.dist((point.x, point.y), (dots[-1].x, dots[-1].y)) >= DOT_DISTANCE:
                dots.append(point)
        return dots[::-1]


class Chart(NamedTuple):
    """One measure over updates, minutes or lengths."""

    measure: str
    over: str
    lines: list[Line]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]

    @property
    def systems(self) -> list[tuple[int, str]]:
        """Number and title of each line, for the legend."""
        return [(line.number, line.name) for line in self.lines]


class Evaluation(NamedTuple):
    """An evaluation on dev; updates and minutes include those of the row that a run starts from."""

    updates: float
    minutes: float
    values: Mapping[str, float]  # by measure


Curve = tuple[str, int, list[Evaluation]]  # title and number of a system, its evaluations

BLEU, PERPLEXITY = "dev BLEU", "dev perplexity"


def charts(table: Table, records: Sequence[Record]) -> list[Chart]:
    """Returns dev BLEU and perplexity over updates and over minutes; nothing without evaluations.

    The curve of a row that starts from another begins where that one ended. Minutes are computed
    from updates and the run's mean speed.
    """
    return draw(_curves(table, records), (BLEU, PERPLEXITY))


def draw(curves: Sequence[Curve], measures: Sequence[str]) -> list[Chart]:
    """Returns measures over updates, then over minutes; nothing without curves."""
    if not curves:
        return []
    return [
        _chart(measure, over, curves) for over in ("updates", "minutes") for measure in measures
    ]


def _curves(table: Table, records: Sequence[Record]) -> list[Curve]:
    ends = {
        (record["row"], seed_of(record)): (record["steps"], record["train_seconds"] / 60)
        for record in records
        if not record.get("weights")  # of rows without training
    }
    curves = []
    for number, row in enumerate(table.rows):
        evaluations = []
        for record in records:
            if record["row"] == row.name and not row.weights:
                start = record.get("start", ""), seed_of(record)
                updates, minutes = ends.get(start, (0, 0.0))
                rate = record["train_seconds"] / 60 / record["steps"]
                evaluations += [
                    Evaluation(
                        updates + point["step"], minutes + point["step"] * rate,
                        {BLEU: point["dev_bleu"], PERPLEXITY: point["dev_ppl"]},
                    )
                    for point in record.get("history", ())
                ]  # fmt: skip
        if evaluations:
            curves.append((row.title, number, evaluations))
    return curves


def _chart(measure: str, over: str, curves: Sequence[Curve]) -> Chart:
    """Returns a measure over `updates` or `minutes`; every curve has evaluations of it."""
    logarithmic = measure == PERPLEXITY
    means = [(title, number, _means(points, over, measure)) for title, number, points in curves]
    points = [point for _, _, line in means for point in line]
    x_ticks = ticks(0.0, max(x for x, _ in points))
    low, high = extent([y for _, y in points])
    y_ticks = log_ticks(low, high) if logarithmic else ticks(low, high)

    def place_x(x: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * x / x_ticks[-1], 1)

    def place_y(y: float) -> float:
        bottom, top = y_ticks[0], y_ticks[-1]
        if logarithmic:
            bottom, top, y = math.log(bottom), math.log(top), math.log(y)
        return round(BOTTOM - (BOTTOM - TOP) * (y - bottom) / (top - bottom), 1)

    lines = [
        Line(
            title,
            number,
            [Point(place_x(x), place_y(y), f"{y:.2f} at {_label(x)} {over}") for x, y in line],
        )
        for title, number, line in means
    ]
    return Chart(
        measure,
        over,
        lines,
        [(place_x(x), f"{x:,.10g}") for x in x_ticks],
        [(place_y(y), f"{y:g}") for y in y_ticks],
    )


def _label(x: float) -> str:
    """Returns updates or minutes as text: of few minutes two digits."""
    return f"{x:.2g}" if x < 10 else f"{x:,.0f}"


def _means(evaluations: Sequence[Evaluation], over: str, measure: str) -> list[tuple[float, float]]:
    """Averages the evaluations after the same number of updates over the seeds."""
    by_updates: dict[float, list[Evaluation]] = {}
    for evaluation in evaluations:
        by_updates.setdefault(evaluation.updates, []).append(evaluation)
    return [
        (
            statistics.fmean(getattr(evaluation, over) for evaluation in group),
            statistics.fmean(evaluation.values[measure] for evaluation in group),
        )
        for _, group in sorted(by_updates.items())
    ]


def extent(values: Sequence[float]) -> tuple[float, float]:
    """Returns the least and the greatest; wider if they are close, so that labels are short."""
    low, high = min(values), max(values)
    if high - low <= 0.01 * abs(high):
        return 0.95 * low, 1.05 * high or 1.0
    return low, high


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Returns numbers from at most `low` to at least `high`, in steps of 1, 2 or 5 x 10^k."""
    rough = max(high - low, 1e-6) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * k, 10) for k in range(first, max(last, first + 1) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Returns 1, 2 and 5 x 10^k from at most `low` to at least `high`; finer if `high` is near.

    Over more than four powers of ten, as after a divergence, it returns at most 14 of them.
    """
    if high / low < 4:  # ten steps at most are small enough to begin above 0
        return next(marks for about in (5, 10) if (marks := ticks(low, high, about))[0] > 0)
    lowest, highest = math.floor(math.log10(low)), math.ceil(math.log10(high))
    if highest - lowest > 4:
        step = math.ceil((highest - lowest) / 12)
        return [float(f"1e{k}") for k in range(lowest, highest + step, step)]
    marks = [factor * 10.0**k for k in range(lowest, highest + 1) for factor in (1, 2, 5)]
    first = max(i for i, mark in enumerate(marks) if mark <= low * 1.0001)
    last = min(i for i, mark in enumerate(marks) if mark >= high * 0.9999)
    return [float(f"{mark:g}") for mark in marks[first : last + 1]]
