"""Draws error against length and learning curves of the learning tasks.

    python -m benchmarks.tasks.plot FILE.jsonl ... --out=DIR

Writes DIR/learning-tasks-length.png and DIR/learning-tasks-curves.png; --name=NAME begins these
names with another one. A line is the median of a cell's runs (seeds), and the band around it their
range. The dotted line is the error of guessing. The axis of wrong bits is linear up to 0.1 and
logarithmic above.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.tasks.generate import TASKS, Sweep, Task
from tfmann.errors import UserError
from tfmann.visualization.image_files import save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPREAD = "NTM, addresses begin spread"
_STYLES = {  # distinct in black and white too
    "NTM": {"color": "#2b5c9e", "marker": "o"},
    SPREAD: {"color": "#86a8d4", "marker": "v", "linestyle": "-."},
    "DNC": {"color": "#d1751f", "marker": "s"},
    "LSTM": {"color": "#6d6d6d", "marker": "^", "linestyle": "--"},
    "NTM, 2 hops": {"color": "#1a9850", "marker": "P", "linestyle": "--"},
    "DNC, 2 hops": {"color": "#8c510a", "marker": "X", "linestyle": "--"},
    "DNC-MSD": {"color": "#a6195d", "marker": "D", "linestyle": "-."},
    "DNC, contents only": {"color": "#5e3c99", "marker": "*", "linestyle": ":"},
}
_LABELS = {
    "ntm-hops-2": "NTM, 2 hops",
    "dnc-hops-2": "DNC, 2 hops",
    "dnc-msd": "DNC-MSD",
    "dnc-content-only": "DNC, contents only",
}
_PANEL = (4.0, 3.2)  # inches
_LINEAR_TO = 0.1  # wrong bits; fewer are as good as none
_POINTS = 9.0
_FAINT = "#909090"
_TRAINED = "#c44e52"

Record = dict[str, Any]


def read(paths: Sequence[str]) -> list[Record]:
    """Reads the runs in some files of JSON lines; skips other records.

    Raises:
      UserError: a file cannot be read, or no run is in any.
    """
    records = []
    for path in paths:
        try:
            lines = Path(path).read_text("utf-8").splitlines()
            records += [json.loads(line) for line in lines if line.strip()]
        except (OSError, ValueError) as error:
            raise UserError(f"cannot read {path}: {error}") from None
    records = [r for r in records if r.get("benchmark") == "learning-tasks"]
    if not records:
        raise UserError(f"no run of the learning tasks in {', '.join(paths)}")
    return records


def variant(record: Record) -> str:
    """Returns a run's cell or variant; for an NTM also whether its addresses begin spread."""
    config = record["config"]
    spread = config["cell"] == "ntm" and not config["settings"].get("address_start")
    return SPREAD if spread else _LABELS.get(config["cell"], config["cell"].upper())


def length_figure(records: Sequence[Record]) -> Figure:
    """Draws wrong bits per sequence against size: one panel for each sweep that has runs."""
    panels = [(task, sweep) for task in _tasks(records) for sweep in task.sweeps]
    figure, axes = _panels(len(panels))
    for number, (task, sweep) in enumerate(panels):
        _draw_sweep(axes[number], task, sweep, [r for r in records if _task(r) == task.name])
    _legend(axes[0])
    return figure


def curves_figure(records: Sequence[Record]) -> Figure:
    """Draws wrong bits per validation sequence against updates: one panel for each task."""
    tasks = _tasks(records)
    figure, axes = _panels(len(tasks))
    for number, task in enumerate(tasks):
        task_records = [r for r in records if _task(r) == task.name]
        _by_cell(
            axes[number], task_records, lambda r: [(p["step"], p["wrong_bits"]) for p in r["curve"]]
        )
        axes[number].set_title(task.name.replace("_", " "), loc="left", fontsize=_POINTS + 2)
        axes[number].set_xlabel("updates", fontsize=_POINTS)
        axes[number].set_xlim(left=0)
    _legend(axes[0])
    return figure


def _draw_sweep(axes: Axes, task: Task, sweep: Sweep, records: Sequence[Record]) -> None:
    bits = {}

    def points(record: Record) -> list[tuple[float, float]]:
        tested = {tuple(t["size"]): t for t in record["test"]}
        sizes = [size for size in sweep.sizes if size in tested]
        bits.update({size[sweep.number]: tested[size]["bits"] for size in sizes})
        return [(size[sweep.number], tested[size]["wrong_bits"]) for size in sizes]

    _by_cell(axes, records, points, markers=True)
    sizes = sorted(bits)
    guessed = [bits[size] / 2 for size in sizes]
    axes.plot(sizes, guessed, ":", color=_FAINT, linewidth=1.2, zorder=1, label="guessing")
    axes.axvline(sweep.trained, color=_TRAINED, linewidth=1.2, zorder=1, label="trained to here")
    axes.set_title(task.name.replace("_", " "), loc="left", fontsize=_POINTS + 2)
    axes.set_xlabel(sweep.label, fontsize=_POINTS)
    axes.set_xlim(left=0)
    axes.locator_params(axis="x", integer=True)


def _by_cell(
    axes: Axes,
    records: Sequence[Record],
    points: Callable[[Record], list[tuple[float, float]]],
    markers: bool = False,
) -> None:
    """Draws a line for each cell: the median of its runs at their common x, and the range."""
    for cell, style in _STYLES.items():
        runs = [dict(points(r)) for r in records if variant(r) == cell]
        if not runs:
            continue
        shared = sorted(set.intersection(*(set(run) for run in runs)))
        values = np.array([[run[x] for x in shared] for run in runs])  # [runs, points]
        line_style: dict[str, Any] = {"linewidth": 1.6, "markersize": 4, **style, "zorder": 3}
        if not markers:
            line_style["marker"] = ""
        label = cell + (f", {len(runs)} runs" if len(runs) > 1 else "")
        axes.plot(shared, np.median(values, axis=0), label=label, **line_style)
        if len(runs) > 1:
            low, high = values.min(axis=0), values.max(axis=0)
            axes.fill_between(shared, low, high, color=style["color"], alpha=0.15, linewidth=0)


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    """Makes panels side by side, in two rows if there are more than three."""
    from matplotlib.figure import Figure

    rows = 2 if count > 3 else 1
    columns = -(-count // rows)
    figure = Figure(figsize=(columns * _PANEL[0], rows * _PANEL[1]), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in axes[count:]:
        unused.remove()
    for panel in axes[:count]:
        panel.set_yscale("symlog", linthresh=_LINEAR_TO)
        ticks = [0, 0.1, 1, 10, 100, 1000]
        panel.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        panel.set_axisbelow(True)
        panel.minorticks_off()
        panel.set_ylim(bottom=0)
        panel.grid(axis="y", color="#e4e4e4", linewidth=0.6)
        panel.tick_params(labelsize=_POINTS - 1, color=_FAINT)
        panel.set_ylabel("wrong bits a sequence", fontsize=_POINTS)
        panel.spines[["top", "right"]].set_visible(False)
        panel.spines[["left", "bottom"]].set_color(_FAINT)
    return figure, axes[:count]


def _legend(axes: Axes) -> None:
    """Adds a legend below all panels, where it hides no line."""
    handles_and_labels = axes.get_legend_handles_labels()
    style: dict[str, Any] = {"fontsize": _POINTS - 1, "frameon": False, "ncols": 3}
    axes.figure.legend(*handles_and_labels, loc="outside lower left", **style)


def _task(record: Record) -> str:
    return record["config"]["task"]


def _tasks(records: Sequence[Record]) -> list[Task]:
    return [task for name, task in TASKS.items() if any(_task(r) == name for r in records)]


def main(argv: list[str] | None = None) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tasks.plot")
    parser.add_argument("files", nargs="+", metavar="FILE.jsonl")
    parser.add_argument("--out", required=True, help="folder of the pictures")
    parser.add_argument("--name", default="learning-tasks", help="beginning of their names")
    args = parser.parse_args(argv)
    try:
        records = read(args.files)
        os.makedirs(args.out, exist_ok=True)
        for name, draw in (("length", length_figure), ("curves", curves_figure)):
            path = os.path.join(args.out, f"{args.name}-{name}.png")
            save_figure(draw(records), path)
            print(path)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())
