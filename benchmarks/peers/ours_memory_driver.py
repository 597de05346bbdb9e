"""Trains our DNC, as `benchmarks.tasks` does, on the copy task; memories.py calls it."""

from __future__ import annotations

from benchmarks.peers import copy_task, meter  # isort: skip (starts the clock)

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from benchmarks import harness
from benchmarks.tasks import generate
from benchmarks.tasks.model import TrainStep
from benchmarks.tasks.train import configuration
from tfmann.config import HParams


def main(argv: list[str] | None = None) -> None:
    """Runs the command line."""
    flags = copy_task.parse(__doc__.splitlines()[0], argv)
    size, task = copy_task.SIZES[flags.size], generate.TASKS["copy"]
    settings = configuration(
        "copy",
        "dnc",
        seed=1,
        num_units=size.units,
        num_memory_locations=size.slots,
        memory_unit_size=size.width,
        read_heads=size.heads,
        batch_size=size.rows,
        learning_rate=copy_task.LEARNING_RATE,
        max_gradient_norm=copy_task.GRADIENT_NORM,
    )["settings"]
    learner = TrainStep(HParams(**settings), "dnc", task, flags.jit_compile)
    parameters = sum(int(tf.size(variable)) for variable in learner.variables)

    def update(batch: generate.Batch) -> float:
        return float(learner.update(*map(tf.convert_to_tensor, batch)))

    def report(record: dict) -> None:
        peak = round(harness.peak_mib())
        print(json.dumps({**record, "parameters": parameters, "peak_mib": peak}), flush=True)

    meter.take_turns(copy_task.measure(update, flags), report, flags.resident)


if __name__ == "__main__":
    main()
