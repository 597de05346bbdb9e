"""Measures every cell at fixed sizes; README.md beside this folder says how to read the lines.

    python -m benchmarks.speed [--sizes=small,paper] [--cells=luong,ntm] [--pairs=5]
        [--what=train,beam,greedy,memory_train,memory_beam,start] [--precisions=float32]
        [--out=results/speed.jsonl]
    python -m benchmarks.speed scaling [...]     what it costs when T, N or the corpus grows

Prints a JSON line for each measurement, made in a process of its own, then a table. Lines that the
--out file has for this revision, with as many pairs, are not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import lines
from benchmarks.speed import cells, scaling, start, table

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
_ROOT = Path(__file__).resolve().parents[2]
_BOTH = ("float32", "mixed_bfloat16")
# What is measured, and in which types of products: those of decoding are float32.
WHAT: dict[str, tuple[str, ...]] = {
    "train": _BOTH,
    "beam": ("float32",),
    "greedy": ("float32",),
    "memory_train": _BOTH,
    "memory_beam": ("float32",),
    "start": ("float32",),
}
_KEY = ("what", "cell", "size", "precision")


def measurements(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Everything that the command line asks for, as a process is asked for it."""
    if "start" in args.what:
        yield dict(zip(_KEY, ("start", start.HELP, "-", "float32")), pairs=args.pairs)
    for size in args.sizes:
        for what in args.what:
            for precision in WHAT[what]:
                for row in args.cells if precision in args.precisions else ():
                    pairs = 1 if what.startswith("memory") else args.pairs
                    yield dict(zip(_KEY, (what, row, size, precision)), pairs=pairs)


def every(args: argparse.Namespace) -> int:
    """Makes what is missing; returns how many measurements failed."""
    from tfmann.provenance import provenance

    done, failed, records = lines.known(args.out, "speed", _KEY), 0, []
    for asked in measurements(args):
        if done.get(tuple(asked[key] for key in _KEY), 0) >= asked["pairs"]:
            continue
        try:
            found = start.starts(*_start(asked)) if asked["what"] == "start" else _apart(asked)
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"speed: {asked} failed: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        records.append({"benchmark": "speed", **asked, **provenance(), **found})
        lines.write(records[-1:], args.out)
    shown = [r for r in lines.read(args.out) if r.get("benchmark") == "speed"] or records
    print("\n".join(table.speed(shown)))
    return failed


def _start(asked: dict[str, Any]) -> tuple[str, str, int]:
    return asked["cell"], asked["size"], asked["pairs"]


def _apart(asked: dict[str, Any]) -> dict[str, Any]:
    """A measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed", "one", json.dumps(asked)]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.decode().splitlines()[-1])


def one(args: argparse.Namespace) -> int:
    """What `_apart` asks for."""
    from benchmarks.speed import measure
    from tfmann.provenance import provenance

    found = measure.measure(json.loads(args.asked))
    print(json.dumps({**found, **provenance()}))  # from here: this process knows the GPUs
    return 0


def main(argv: list[str] | None = None) -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    lines.add_choice(parser, "sizes", cells.SIZES, "small,paper")
    lines.add_choice(parser, "cells", cells.ROWS)
    lines.add_choice(parser, "what", WHAT)
    lines.add_choice(parser, "precisions", _BOTH)
    parser.add_argument("--pairs", type=int, default=5, help="turns of a measurement")
    parser.add_argument("--out", type=Path, help="a file that the lines are appended to")
    parser.set_defaults(run=every)
    kinds = parser.add_subparsers()
    scaling.add_to(kinds)
    alone = kinds.add_parser("one")
    alone.set_defaults(run=one)
    alone.add_argument("asked")
    args = parser.parse_args(argv)
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
