"""Tests of the robustness of the command line, which count failures.

    python -m benchmarks.trust kills --count=200 --seed=1 --out=results/trust.jsonl

Each kind is a module with a `main(arguments)`; `--help` after the kind lists its arguments.
"""

from __future__ import annotations

import importlib
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
KINDS = ("kills", "inputs", "settings", "decode", "lines", "soak")


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in KINDS:
        print(f"{__doc__}\nkinds: {', '.join(KINDS)}", file=sys.stderr)
        return 2
    return importlib.import_module(f"benchmarks.trust.{argv[0]}").main(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
