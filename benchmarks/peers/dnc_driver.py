"""Trains an unchanged PyTorch DNC (PyPI `dnc` 1.1.0) on the copy task; prints JSON lines.

Runs in the environment that setup.sh makes for it; memories.py calls it.
"""

from __future__ import annotations

from benchmarks.peers import copy_task, meter  # isort: skip (starts the clock)

import json
from importlib.metadata import version

import torch
from dnc import DNC

from benchmarks import harness
from benchmarks.tasks import generate


def main() -> None:
    """Runs the command line."""
    flags = copy_task.parse(__doc__.splitlines()[0])
    torch.set_num_threads(flags.threads)
    torch.manual_seed(1)
    size, task = copy_task.SIZES[flags.size], generate.TASKS["copy"]
    model = DNC(
        input_size=task.input_width,  # of the output too
        hidden_size=size.units,
        rnn_type="lstm",
        num_hidden_layers=1,
        nr_cells=size.slots,
        cell_size=size.width,
        read_heads=size.heads,
        batch_first=False,
    )
    optimizer = torch.optim.Adam(model.parameters(), copy_task.LEARNING_RATE)

    def update(batch: generate.Batch) -> float:
        inputs, targets, mask = map(torch.from_numpy, batch)
        logits, _ = model(inputs, reset_experience=True)
        bits = torch.nn.functional.binary_cross_entropy_with_logits(
            logits[..., : task.output_width], targets, reduction="none"
        )
        loss = (bits * mask[..., None]).sum() / size.rows
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), copy_task.GRADIENT_NORM)
        optimizer.step()
        return loss.item()

    parameters = sum(p.numel() for p in model.parameters())
    versions = {name: version(name) for name in ("dnc", "torch")}

    def report(record: dict) -> None:
        peak = round(harness.peak_mib())
        line = {**record, "parameters": parameters, "peak_mib": peak, "versions": versions}
        print(json.dumps(line), flush=True)

    meter.take_turns(copy_task.measure(update, flags), report, flags.resident)


if __name__ == "__main__":
    main()
