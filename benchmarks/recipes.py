"""Finished runs as lines of results/recipes.jsonl: settings, cost, scores.

    python -m benchmarks.recipes --corpus=multi30k --out=results/recipes.jsonl RUN [RUN ...]

A run that is recorded already is skipped.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tfmann.config import FIELDS
from tfmann.data.text_files import write_lines
from tfmann.errors import UserError

# The places of files belong to a machine, not to a recipe.
PATHS = {key for key, field in FIELDS.items() if field.is_path}
COPIED = ("cell", "steps", "best_step", "parameters", "words", "history", "best", "average",
         "date", "revision", "versions", "hardware")  # fmt: skip


def record(run: Path, corpus: str) -> dict[str, Any]:
    """Returns a record: settings other than the defaults, dev curve, scores, training minutes."""
    path = run / "results.json"
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: expected the results of a finished run: {error}") from None
    settings = {
        key: value
        for key, value in results["hparams"].items()
        if key in FIELDS and key not in PATHS and value != FIELDS[key].default
    }
    return {
        "corpus": corpus,
        "seed": results["hparams"]["random_seed"],
        "minutes": results["train_seconds"] / 60,
        **{key: results[key] for key in COPIED if key in results},
        "settings": settings,
    }


def main(argv: list[str] | None = None) -> int:
    """Adds the runs to the file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes", description=__doc__)
    parser.add_argument("--corpus", required=True, help="name of the corpus")
    parser.add_argument("--out", required=True, type=Path, help="file of JSON lines to add to")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="out_dir of a run")
    flags = parser.parse_args(argv)
    lines = flags.out.read_text(encoding="utf-8").splitlines() if flags.out.exists() else []
    try:
        for run in flags.runs:
            line = json.dumps(record(run, flags.corpus))
            if line not in lines:
                lines.append(line)
    except UserError as error:
        print(f"recipes: {error}", file=sys.stderr)
        return 1
    write_lines(flags.out, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
