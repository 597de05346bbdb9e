"""Our DNC compared with the PyTorch package `dnc`: updates/s on the copy task.

    python -m benchmarks.peers.memories [--size=tasks|large] [--pairs=5] [--threads=1] [--out=F]

Both have the same numbers of slots, read heads and LSTM units, the same batches, Adam, clipping and
loss; ours runs twice a turn, as TensorFlow executes it and compiled by XLA. Every program stays in
one process; they take turns. The ratios are of updates/s by the clock, and by processor seconds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.peers import copy_task, systems, turns

PEER = "dnc"
OURS = {"ours": [], "ours_xla": ["--jit_compile"]}
SYSTEMS = (PEER, *OURS)


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--size", choices=copy_task.SIZES, default="tasks")
    add("--systems", default=",".join(SYSTEMS), help="in the order of running")
    add("--pairs", type=int, default=5, help="how often all systems are measured")
    add("--warmup", type=int, default=5, help="updates before the clock starts")
    add("--steps", type=int, default=50, help="updates of a turn")
    add("--threads", type=int, default=1)
    add("--out", type=Path, help="file that keeps the lines; what it has is not run again")
    add("--work_dir", type=Path, default=systems.PEERS / ".work", help="logs")
    flags = parser.parse_args(argv)
    flags.systems = flags.systems.split(",")
    if not set(flags.systems) <= set(SYSTEMS):
        parser.error(f"--systems: there are {', '.join(SYSTEMS)}")
    return flags


def command(flags: argparse.Namespace, system: str) -> list[str]:
    """Returns the command of a resident process."""
    if system in OURS:
        program = [sys.executable, "-m", "benchmarks.peers.ours_memory_driver", *OURS[system]]
    else:
        python = systems.environments() / PEER / "bin/python"
        program = [str(python), "-m", "benchmarks.peers.dnc_driver"]
    names = ("size", "warmup", "steps", "threads")
    return [*program, *(f"--{name}={getattr(flags, name)}" for name in names), "--resident"]


def main(argv: list[str] | None = None) -> None:
    """Runs everything in turn and prints as it goes."""
    flags = parse(argv)
    systems.keep_processors(flags.threads)
    what = f"copy-{flags.size}"
    processes: dict[str, systems.Process] = {}

    def measure(system: str, turn: int) -> dict:
        del turn
        if system in processes:
            record = processes[system].next_turn()
        else:
            log = flags.work_dir / "logs" / f"{what}-{system}.log"
            processes[system] = systems.Process(command(flags, system), flags.threads, log)
            record = processes[system].record()
        size = copy_task.SIZES[flags.size]._asdict()
        value = record["updates"] / record["seconds"]
        head = {"system": system, "what": what, "value": value, "unit": "updates/s"}
        return {**head, **record, "size": size}

    try:
        turns.take(flags, what, measure, OURS)
    finally:
        for process in processes.values():
            process.end()


if __name__ == "__main__":
    main()
