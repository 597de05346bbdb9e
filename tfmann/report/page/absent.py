"""What a page does not show of a folder of runs, and why."""

from __future__ import annotations

from pathlib import Path

from tfmann import hparams
from tfmann.errors import UserError
from tfmann.folder import HPARAMS, RESULTS, last_step
from tfmann.report.records import finished
from tfmann.report.systems import TABLES


def absent(out_dir: str) -> list[str]:
    """A line for each table's run that has begun and not ended; or one where there is no table's.

    Args:
      out_dir: where runs are, OUT_DIR/TABLE/SCALE/ROW.
    """
    runs = {
        path.parent: (name, scale)
        for name, table in TABLES.items()
        for scale in table.scales
        for path in sorted(Path(out_dir, name, scale).glob("*/*.json"))
        if path.name in (HPARAMS, RESULTS)
    }
    if not runs:
        return [
            f"{out_dir} has no run of a table (OUT_DIR/TABLE/SCALE/ROW, as the tables' commands "
            "make them): the page has no sentences of yours"
        ]
    return [
        f"{run} has not ended{_reached(run)}, and is not on the page: "
        f"`python -m tfmann.reproduce {name} --scale={scale}{_seed(run)}` goes on with it"
        for run, (name, scale) in runs.items()
        if finished(str(run)) is None
    ]


def _seed(run: Path) -> str:
    """The flag that asks for its seed, which ROW-seedN tells."""
    _, marked, seed = run.name.rpartition("-seed")
    return f" --seeds={seed}" if marked else ""


def _reached(run: Path) -> str:
    """How far it is, where that can be told."""
    step = last_step(str(run))
    try:
        steps = hparams.read_json(str(run / HPARAMS))["num_train_steps"]
    except (UserError, KeyError):
        return ""
    return f", being at update {step or 0} of {steps}"
