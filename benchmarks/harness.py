"""The parts that benchmarks share: command lines, JSON lines, peak memory."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path


def arguments(
    description: str, sizes: Iterable[str], argv: Sequence[str] | None
) -> argparse.Namespace:
    """Parses `sizes` and `precisions` (lists), `rounds` and `out`."""
    parser = argparse.ArgumentParser(description=description)
    add_choice(parser, "sizes", sizes, "small,paper")
    add_choice(parser, "precisions", ("float32", "mixed_bfloat16"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="file to append the lines to")
    return parser.parse_args(argv)


def add_choice(
    parser: argparse.ArgumentParser, flag: str, allowed: Iterable[str], default: str = ""
) -> None:
    """Adds a flag for a comma-separated list of known names; all of them by default."""
    names = list(allowed)

    def read(text: str) -> list[str]:
        for name in text.split(","):
            if name not in names:
                raise argparse.ArgumentTypeError(
                    f"expected some of {', '.join(names)}, not {name!r}"
                )
        return text.split(",")

    text = f"of {', '.join(names)} (default: {default or 'all'})"
    parser.add_argument(f"--{flag}", type=read, default=default or ",".join(names), help=text)


def peak_mib() -> float:
    """Returns the peak memory of this program; `ru_maxrss` would include its parent's."""
    status = Path("/proc/self/status").read_text("utf-8").splitlines()  # Linux
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def write(records: Iterable[dict], out: Path | None) -> None:
    """Prints each record when it is made, and appends it to a file if there is one."""
    for record in records:
        line = json.dumps(record)
        print(line, flush=True)
        if out:
            with out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def read(out: Path | None) -> list[dict]:
    """Returns the records of a file; none if there is no file."""
    if out is None or not out.exists():
        return []
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def known(out: Path | None, benchmark: str, key: Sequence[str]) -> dict[tuple, int]:
    """Returns the number of recorded pairs at this revision, by the values of `key`."""
    from tfmann.utils.provenance import provenance

    revision = provenance()["revision"]
    return {
        tuple(r[name] for name in key): r["pairs"]
        for r in read(out)
        if r.get("benchmark") == benchmark and r["revision"] == revision
    }
