"""How long a table will take, by what the results have of its rows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from tfmann.report import measures


def estimate(rows: Sequence[str], total: int, path: Path) -> str:
    """What is left to train and about how long that takes, as a line.

    Args:
      rows: the row of each run that has not ended.
      total: how many runs the table has, those that have ended among them.
      path: the table's records; a row without any is taken to need the others' mean.
    """
    if not rows:
        return f"all {total} runs have ended: nothing is left to train"
    left = f"{len(rows)} of {total} runs are left to train"
    known = measures.read_lines(path) if path.exists() else []
    seconds: dict[str, list[float]] = {}
    for record in known:
        seconds.setdefault(record["row"], []).append(record["train_seconds"])
    if not seconds:
        return f"{left}; how long that takes has not been measured"
    means = {row: statistics.fmean(values) for row, values in seconds.items()}
    guessed = sum(row not in means for row in rows)
    whole = sum(means.get(row, statistics.fmean(means.values())) for row in rows)
    by = f"as {path.name} has it of {known[0]['hardware']['cpu']}"
    more = f", {guessed} of them guessed from other rows" if guessed else ""
    return f"{left}: about {duration(whole)} and the time to translate, {by}{more}"


def duration(seconds: float) -> str:
    """Hours and minutes, or minutes; never 0."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"
