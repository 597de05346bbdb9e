"""What measuring shares: command line, JSON lines and which are there already, peak memory."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path


def arguments(
    description: str, sizes: Iterable[str], argv: Sequence[str] | None
) -> argparse.Namespace:
    """`sizes`, `precisions` (lists), `rounds` and `out` from the command line."""
    parser = argparse.ArgumentParser(description=description)
    add_choice(parser, "sizes", sizes, "small,paper")
    add_choice(parser, "precisions", ("float32", "mixed_bfloat16"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="a file that the lines are appended to")
    return parser.parse_args(argv)


def add_choice(
    parser: argparse.ArgumentParser, flag: str, known: Iterable[str], default: str = ""
) -> None:
    """A flag that lists some of the names that are known, by commas; all if nothing is said."""
    names = list(known)

    def read(text: str) -> list[str]:
        for name in text.split(","):
            if name not in names:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
        return text.split(",")

    shown = f"of {', '.join(names)}; {default or 'all'} if not given"
    parser.add_argument(f"--{flag}", type=read, default=default or ",".join(names), help=shown)


def peak_mib() -> float:
    """Of this program alone: `ru_maxrss` begins with what the process had that started it."""
    status = Path("/proc/self/status").read_text("utf-8").splitlines()  # of Linux
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def write(records: Iterable[dict], out: Path | None) -> None:
    """Prints records as they come, and appends them to a file if there is one."""
    for record in records:
        line = json.dumps(record)
        print(line, flush=True)
        if out:
            with out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def read(out: Path | None) -> list[dict]:
    """The records of a file; of none where there is no file."""
    if out is None or not out.exists():
        return []
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def known(out: Path | None, benchmark: str, key: Sequence[str]) -> dict[tuple, int]:
    """What a file has of a benchmark at this revision: by the values of `key`, how many pairs."""
    from tfmann.provenance import provenance

    revision = provenance()["revision"]
    return {
        tuple(r[name] for name in key): r["pairs"]
        for r in read(out)
        if r.get("benchmark") == benchmark and r["revision"] == revision
    }
