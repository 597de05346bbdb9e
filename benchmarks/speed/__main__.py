"""Measures every cell at fixed sizes; benchmarks/README.md describes the records.

    python -m benchmarks.speed [--sizes=small,paper] [--cells=luong,ntm] [--pairs=5]
        [--what=train,beam,greedy,memory_train,memory_beam,start] [--precisions=float32]
        [--out=results/speed.jsonl]
    python -m benchmarks.speed scaling [...]     the cost of larger T, N or corpus

Prints a JSON line for each measurement, which has a process of its own, then a table. Measurements
of which the --out file has as many pairs for this revision are not repeated.
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

from benchmarks import harness
from benchmarks.speed import cells, scaling, start, table

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
_ROOT = Path(__file__).resolve().parents[2]
_BOTH = ("float32", "mixed_bfloat16")
# Kinds of measurement with their precisions; decoding is in float32.
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
    """Yields the requests of the command line, one for each process."""
    if "start" in args.what:
        yield dict(zip(_KEY, ("start", start.HELP, "-", "float32")), pairs=args.pairs)
    for size in args.sizes:
        for kind in args.what:
            for precision in WHAT[kind]:
                for row in args.cells if precision in args.precisions else ():
                    pairs = 1 if kind.startswith("memory") else args.pairs
                    yield dict(zip(_KEY, (kind, row, size, precision)), pairs=pairs)


def measure_missing(args: argparse.Namespace) -> int:
    """Makes the missing measurements; returns how many failed."""
    from tfmann.utils.provenance import provenance

    recorded, failed, records = harness.known(args.out, "speed", _KEY), 0, []
    for request in measurements(args):
        if recorded.get(tuple(request[key] for key in _KEY), 0) >= request["pairs"]:
            continue
        try:
            result = (
                start.starts(*_start(request))
                if request["what"] == "start"
                else _measure_apart(request)
            )
        except (subprocess.CalledProcessError, ValueError) as error:
            print(f"speed: {request} failed: {error}", file=sys.stderr, flush=True)
            failed += 1
            continue
        records.append({"benchmark": "speed", **request, **provenance(), **result})
        harness.write(records[-1:], args.out)
    speed_records = [r for r in harness.read(args.out) if r.get("benchmark") == "speed"] or records
    print("\n".join(table.speed(speed_records)))
    return failed


def _start(request: dict[str, Any]) -> tuple[str, str, int]:
    return request["cell"], request["size"], request["pairs"]


def _measure_apart(request: dict[str, Any]) -> dict[str, Any]:
    """Makes a measurement in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed", "one", json.dumps(request)]
    process = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(process.stdout.decode().splitlines()[-1])


def answer_request(args: argparse.Namespace) -> int:
    """Answers a request of `_apart`."""
    from benchmarks.speed import measure
    from tfmann.utils.provenance import provenance

    result = measure.measure(json.loads(args.request))
    print(json.dumps({**result, **provenance()}))  # recorded here: this process sees the GPUs
    return 0


def main(argv: list[str] | None = None) -> int:
    """Runs the measurements of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_choice(parser, "sizes", cells.SIZES, "small,paper")
    harness.add_choice(parser, "cells", cells.ROWS)
    harness.add_choice(parser, "what", WHAT)
    harness.add_choice(parser, "precisions", _BOTH)
    parser.add_argument("--pairs", type=int, default=5, help="turns of a measurement")
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    parser.set_defaults(run=measure_missing)
    kinds = parser.add_subparsers()
    scaling.add_to(kinds)
    request_parser = kinds.add_parser("one")
    request_parser.set_defaults(run=answer_request)
    request_parser.add_argument("request")
    args = parser.parse_args(argv)
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
