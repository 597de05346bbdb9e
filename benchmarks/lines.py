"""What measuring in one process shares: its command line, and where its JSON lines go."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path


def asked(description: str, sizes: Iterable[str]) -> argparse.Namespace:
    """`sizes`, `precisions` (lists), `rounds` and `out` from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--sizes", default=",".join(sizes))
    parser.add_argument("--precisions", default="float32,mixed_bfloat16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="a file that the lines are appended to")
    args = parser.parse_args()
    args.sizes, args.precisions = args.sizes.split(","), args.precisions.split(",")
    return args


def write(records: Iterable[dict], out: Path | None) -> None:
    """Prints records as they come, and appends them to a file if there is one."""
    for record in records:
        line = json.dumps(record)
        print(line, flush=True)
        if out:
            with out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
