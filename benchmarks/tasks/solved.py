"""How many seeds of a cell solve a learning task, and after how many updates."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchmarks.tasks.generate import TASKS
from benchmarks.tasks.plot import Record, variant

_COLUMNS = (
    "task", "model", "seeds", "updates", "solved", "first", "median", "last",
    "wrong bits at twice the trained size, median", "least", "most",
)  # fmt: skip


def table(records: Sequence[Record]) -> list[str]:
    """Returns the lines of a figure, and of a table with a row for each task and cell.

    A run has solved its task from the first update on after which validation has less than 0.1
    wrong bits. Runs that never solve it count as later than all others.

    Raises:
      ValueError: runs of a row had different numbers of updates, so a share would mean nothing.
    """
    rows: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        rows.setdefault((record["config"]["task"], variant(record)), []).append(record)
    order = list(TASKS)
    lines = ["![error against length](learning-tasks-seeds-length.png)", ""]
    lines += [f"| {' | '.join(_COLUMNS)} |", "|-" * len(_COLUMNS) + "|"]
    for task, cell in sorted(rows, key=lambda row: (order.index(row[0]), row[1])):
        lines.append(f"| {' | '.join([task, cell, *_cells(task, rows[task, cell])])} |")
    return [*lines, ""]


def _cells(task: str, runs: Sequence[Record]) -> list[str]:
    [updates] = {run["steps"] for run in runs}
    solved = sorted(run["converged_at"] or math.inf for run in runs)
    found = sum(math.isfinite(update) for update in solved)
    beyond = sorted(_beyond(task, run) for run in runs)
    return [
        str(len(runs)),
        f"{updates:,}",
        f"{found} of {len(runs)}",
        *map(_update, (solved[0], statistics.median_high(solved), solved[-1])),
        *(f"{bits:.2f}" for bits in (statistics.median(beyond), beyond[0], beyond[-1])),
    ]


def _update(update: float) -> str:
    return f"{update:,}" if math.isfinite(update) else "never"


def _beyond(task: str, run: Record) -> float:
    """Returns the wrong bits at twice the trained size of the task's first sweep."""
    sweep = TASKS[task].sweeps[0]
    tested = {tuple(test["size"]): test["wrong_bits"] for test in run["test"]}
    [size] = [size for size in sweep.sizes if size[sweep.number] == 2 * sweep.trained]
    return tested[size]
