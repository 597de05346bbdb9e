"""The copy task as both programs of `memories.py` learn it: sizes, batches, turns."""

from __future__ import annotations

from benchmarks.peers import meter  # isort: skip (its import starts the clock)

import argparse
from collections.abc import Generator, Iterator, Sequence
from typing import Callable, NamedTuple

import numpy as np

from benchmarks.tasks import generate


class Size(NamedTuple):
    """The sizes of a memory, its controller and a batch."""

    slots: int  # N
    width: int  # W
    heads: int  # R, for reading
    units: int  # of the LSTM controller, one layer
    rows: int  # B
    length: int  # vectors to copy; an update has twice as many steps, and one


SIZES = {
    "tasks": Size(32, 20, 1, 100, 32, 10),  # as in benchmarks.tasks
    "large": Size(128, 64, 4, 256, 32, 10),
}
LEARNING_RATE = 1e-3  # of Adam
GRADIENT_NORM = 50.0


def batches(size: Size) -> Iterator[generate.Batch]:
    """Returns the same batches to every program."""
    number = 0
    while True:
        yield generate.copy(np.random.default_rng(number), size.rows, size.length)
        number += 1


def measure(
    update: Callable[[generate.Batch], float], flags: argparse.Namespace
) -> Generator[dict, None, None]:
    """Makes updates in turns; each returns its loss, in nats a sequence."""
    stream, warmup = batches(SIZES[flags.size]), flags.warmup
    while True:
        clock = meter.UpdateMeter(warmup)
        for number in range(1, warmup + flags.steps + 1):
            loss = update(next(stream))
            clock.update_done(number * SIZES[flags.size].rows)
        result = clock.result()
        yield {"sequences": result.pop("words"), **result, "loss": loss}
        warmup = meter.WARMUP_OF_TURN


def parse(description: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line of a program."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--size", choices=SIZES, default="tasks")
    parser.add_argument("--warmup", type=int, default=5, help="updates before the clock starts")
    parser.add_argument("--steps", type=int, default=50, help="updates of a turn")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jit_compile", action="store_true", help="ours: compile the update")
    meter.add_resident(parser)
    return parser.parse_args(argv)
