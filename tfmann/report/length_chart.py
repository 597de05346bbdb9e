"""BLEU by the length of the source sentence, as coordinates of an SVG drawing."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tfmann.papers.length_scores import FEWEST, ClassScore, class_scores, row_scores
from tfmann.papers.metrics import Record
from tfmann.papers.table import Table
from tfmann.report.curves import BOTTOM, LEFT, RIGHT, TOP, Chart, Line, Point, extent, ticks


def length_chart(table: Table, records: Sequence[Record]) -> Chart | None:
    """Returns the mean BLEU over the seeds in each class of lengths that has enough sentences.

    None if none is recorded.
    """
    rows = {row.name for row in table.rows}
    classes = {
        scores.shortest: scores
        for record in records
        for scores in class_scores(record)
        if record["row"] in rows and scores.sentences >= FEWEST
    }
    if not classes:
        return None
    width = (RIGHT - LEFT) / len(classes)
    x_of = {
        shortest: round(LEFT + width * (number + 0.5), 1)
        for number, shortest in enumerate(sorted(classes))
    }
    means = [
        (row.title, number, {
            shortest: statistics.fmean(values)
            for shortest, values in sorted(row_scores(row.name, records).items())
            if shortest in classes
        })
        for number, row in enumerate(table.rows)
    ]  # fmt: skip
    values = [value for _, _, scores in means for value in scores.values()]
    y_ticks = ticks(*extent(values))

    def y_of(value: float) -> float:
        share = (value - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
        return round(BOTTOM - (BOTTOM - TOP) * share, 1)

    lines = [
        Line(title, number, [
            Point(x_of[shortest], y_of(value), f"{value:.2f} at {classes[shortest].words} words")
            for shortest, value in scores.items()
        ])
        for title, number, scores in means
        if scores
    ]  # fmt: skip
    return Chart(
        "BLEU",
        "words of the source sentence",
        lines,
        [(x, _label(classes[shortest])) for shortest, x in x_of.items()],
        [(y_of(value), f"{value:g}") for value in y_ticks],
    )


def _label(scores: ClassScore) -> str:
    """Returns `11–20` or, without a longest, `51+`: labels must not touch."""
    return f"{scores.shortest}" + ("+" if scores.longest is None else f"–{scores.longest}")
