"""Learning curves of a table's systems as coordinates of a drawing.

The drawing is made by a template, not by matplotlib: so its colours follow the page's, dark or
light, and the page that is committed is the same whatever version of matplotlib there is.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from tfmann.report.measures import Record
from tfmann.report.table import Table

WIDTH, HEIGHT = 460, 300  # units of the drawing, all of it
LEFT, RIGHT, TOP, BOTTOM = 52, 438, 12, 258  # where the axes are


class Point(NamedTuple):
    """A validation: where it is drawn, and its numbers as text."""

    x: float
    y: float
    text: str


class Line(NamedTuple):
    """The curve of a system, the mean over its seeds."""

    name: str
    number: int  # of the row, which decides on the colour
    points: list[Point]


class Chart(NamedTuple):
    """One measure over updates or minutes."""

    what: str
    over: str
    lines: list[Line]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]


def charts(table: Table, records: Sequence[Record]) -> list[Chart]:
    """Dev BLEU and perplexity over updates and over minutes; none where nothing was validated.

    A row that starts from another goes on where that one has ended. Minutes are those of updates at
    the run's mean speed, on the machine as it was.
    """
    curves = _curves(table, records)
    if not curves:
        return []
    return [
        _chart(what, over, curves, value, 1 if over == "updates" else 2)
        for over in ("updates", "minutes")
        for what, value in (("dev BLEU", 3), ("dev perplexity", 4))
    ]


_Validation = tuple[int, float, float, float, float]  # seed, updates, minutes, BLEU, perplexity


def _curves(table: Table, records: Sequence[Record]) -> list[tuple[str, int, list[_Validation]]]:
    """Of each row that has runs: its title, its number, its validations."""
    ends = {
        (one["row"], one.get("seed", 1)): (one["steps"], one["train_seconds"] / 60)
        for one in records
    }
    found = []
    for number, row in enumerate(table.rows):
        validations = []
        for one in records:
            if one["row"] == row.name:
                seed = one.get("seed", 1)
                updates, minutes = ends.get((one.get("start", ""), seed), (0, 0.0))
                rate = one["train_seconds"] / 60 / one["steps"]
                validations += [
                    (seed, updates + at["step"], minutes + at["step"] * rate, at["dev_bleu"],
                     at["dev_ppl"])
                    for at in one.get("history", ())
                ]  # fmt: skip
        if validations:
            found.append((row.title, number, validations))
    return found


def _chart(
    what: str,
    over: str,
    curves: Sequence[tuple[str, int, list[_Validation]]],
    value: int,
    along: int,
) -> Chart:
    means = [(title, number, _means(seen, along, value)) for title, number, seen in curves]
    every = [point for _, _, points in means for point in points]
    logarithmic = what == "dev perplexity"
    x_ticks = ticks(0.0, max(x for x, _ in every))
    low, high = min(y for _, y in every), max(y for _, y in every)
    y_ticks = log_ticks(low, high) if logarithmic else ticks(low, high)

    def place_x(x: float) -> float:
        return LEFT + (RIGHT - LEFT) * x / x_ticks[-1]

    def place_y(y: float) -> float:
        bottom, top, at = y_ticks[0], y_ticks[-1], y
        if logarithmic:
            bottom, top, at = math.log(bottom), math.log(top), math.log(y)
        return BOTTOM - (BOTTOM - TOP) * (at - bottom) / (top - bottom)

    lines = [
        Line(title, number, [
            Point(round(place_x(x), 1), round(place_y(y), 1), f"{y:.2f} at {x:.0f} {over}")
            for x, y in points
        ])
        for title, number, points in means
    ]  # fmt: skip
    return Chart(
        what,
        over,
        lines,
        [(round(place_x(x), 1), f"{x:g}") for x in x_ticks],
        [(round(place_y(y), 1), f"{y:g}") for y in y_ticks],
    )


def _means(seen: Sequence[_Validation], along: int, value: int) -> list[tuple[float, float]]:
    """Means over the seeds of the validations after the same updates."""
    grouped: dict[float, list[_Validation]] = {}
    for one in seen:
        grouped.setdefault(one[1], []).append(one)
    return [
        (statistics.fmean(one[along] for one in ones), statistics.fmean(one[value] for one in ones))
        for _, ones in sorted(grouped.items())
    ]


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from at most `low` to at least `high`, in equal steps of 1, 2 or 5 x 10^k."""
    rough = max(high - low, 1e-6) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * k, 10) for k in range(first, max(last, first + 1) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 x 10^k from at most `low` to at least `high`; finer where these are but two."""
    if high / low < 4:
        return [tick for tick in ticks(low, high) if tick > 0]
    marks = [
        factor * 10.0**k
        for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for factor in (1, 2, 5)
    ]
    first = max(i for i, mark in enumerate(marks) if mark <= low * 1.0001)
    last = min(i for i, mark in enumerate(marks) if mark >= high * 0.9999)
    return [float(f"{mark:g}") for mark in marks[first : last + 1]]
