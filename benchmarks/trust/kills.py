"""Kills of commands at random moments: run again, they must end as if undisturbed.

    python -m benchmarks.trust kills --count=200 --seed=1 --out=results/trust.jsonl
    python -m benchmarks.trust kills --commands=export,jobs --count=20

A point is a command that is killed once or twice, by `kill -9` or SIGTERM, and then run again until
it ends. `killable.py` describes the commands; a server and a cluster of workers are killed in
`server_kills.py` and `cluster_kills.py`. Half of the moments are spread over the CPU time of a
command; the others are at its calls to the file system or some milliseconds later, mostly while it
saves. The undisturbed command is the command line in a process of its own; the others are forks
(forks.py).

Points are made in blocks, one line each in `--out`. A recorded block is not repeated, so a count
can be reached in parts. A point depends only on the seed and its number.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.trust import cluster_kills, command_kills, server_kills
from benchmarks.trust.command_kills import Subject
from benchmarks.trust.killable import COMMANDS, PAIRS, SETTINGS

NAMES = (*COMMANDS, "serve", "cluster")


@contextlib.contextmanager
def opened(name: str) -> Iterator[Subject]:
    """Makes a corpus and what a command needs; yields the subject of its kills."""
    from tfmann.synthetic import write_corpus

    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    with tempfile.TemporaryDirectory(prefix="tfmann-trust-") as folder:
        write_corpus(folder, PAIRS, 6, 6, seed=3)
        special: Any = {"serve": server_kills.Server, "cluster": cluster_kills.Cluster}
        make = special.get(name, command_kills.Subject)
        with make(name, Path(folder)) as subject:
            yield subject


def block(subject: Subject, name: str, seed: int, numbers: range) -> dict[str, Any]:
    """Makes some points; returns a record."""
    from tfmann.utils.provenance import provenance

    begun = time.perf_counter()
    points = []
    for number in numbers:
        points.append(subject.point(random.Random(f"{seed} {number}")))
        story = ", ".join(json.dumps(kill) for kill in points[-1]["kills"])
        differs = points[-1]["differs"] or "identical"
        print(f"{name} {number}: {differs} after {story}", file=sys.stderr, flush=True)
    all_kills = [kill for record in points for kill in record["kills"]]
    return {
        "benchmark": "trust kills",
        "command": name,
        "seed": seed,
        "first": numbers[0],
        "points": len(points),
        "identical": sum(not record["differs"] for record in points),
        "differing": [record for record in points if record["differs"]],
        "killed": sum(kill["signal"] == signal.SIGKILL for kill in all_kills),
        "terminated": sum(kill["signal"] == signal.SIGTERM for kill in all_kills),
        "while_at_files": sum("call" in kill for kill in all_kills),
        "saved_and_exited_143": sum(kill["status"] == 143 for kill in all_kills),
        "missed": sum(record["missed"] for record in points),
        "cpu_seconds": round(sum(record["cpu"] for record in points), 1),
        "seconds": round(time.perf_counter() - begun, 1),
        "settings": {**SETTINGS, "pairs": PAIRS},
        **provenance(),
    }


def recorded_blocks(out: Path | None, name: str, seed: int) -> list[dict[str, Any]]:
    """Returns the records of a command and a seed in a file."""
    return [
        record for record in harness.read(out)
        if record.get("benchmark") == "trust kills" and record["seed"] == seed
        and record.get("command", "train") == name
        and record["settings"] == {**SETTINGS, "pairs": PAIRS}
    ]  # fmt: skip


def run(name: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Makes the points of a command that are not recorded; returns all records."""
    records = recorded_blocks(args.out, name, args.seed)
    recorded = {record["first"] + i for record in records for i in range(record["points"])}
    missing = [number for number in range(args.count) if number not in recorded]
    if not missing:
        return records
    with opened(name) as subject:
        while missing:
            numbers = _first_of(missing, args.block)
            missing = missing[len(numbers) :]
            records.append(block(subject, name, args.seed, numbers))
            harness.write(records[-1:], args.out)
    return records


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.trust kills", description=__doc__)
    harness.add_choice(parser, "commands", NAMES, "train")
    parser.add_argument("--count", type=int, default=200, help="points, including recorded ones")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--block", type=int, default=10, help="points per line")
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    args = parser.parse_args(argv)
    records = [record for name in args.commands for record in run(name, args)]
    points, identical = (sum(record[key] for record in records) for key in ("points", "identical"))
    print(f"{identical} of {points} endings identical", file=sys.stderr)
    for record in records:
        for differing in record["differing"]:
            print(json.dumps(differing), file=sys.stderr)
    return 0 if identical == points else 1


def _first_of(missing: list[int], block: int) -> range:
    """Returns the first consecutive numbers, at most `block`."""
    end = missing[0] + 1
    while end - missing[0] < block and end in missing:
        end += 1
    return range(missing[0], end)
