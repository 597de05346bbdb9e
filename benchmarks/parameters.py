"""The parameters of systems at the papers' sizes, counted without training.

    python -m benchmarks.parameters --out=results/parameters.jsonl

Counts the rows of every claim about parameters whose settings fix the size of both vocabularies: a
vocabulary that is built on the training text is taken to be as large as its cap allows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import harness
from tfmann.papers import metrics, table_runs
from tfmann.papers.claim import Claim
from tfmann.papers.claims import CLAIMS
from tfmann.papers.tables import TABLES
from tfmann.utils.provenance import provenance

SCALE = "paper"


def rows() -> list[tuple[str, str]]:
    """Returns tables and rows that a claim about parameters names, each once."""
    named = [
        (table, row)
        for claim in CLAIMS
        if isinstance(claim, Claim) and claim.measure in metrics.COUNTED
        for table in claim.tables
        for row in (claim.rival, claim.row)
    ]
    return list(dict.fromkeys(named))


def count(settings: Any) -> int:
    """Returns the trainable numbers of a model whose vocabularies have the settings' size."""
    import tensorflow as tf

    from tfmann.models.seq2seq import Seq2Seq

    with tf.Graph().as_default():  # in which variables take no memory
        return Seq2Seq(settings, settings.vocab_size, settings.vocab_size).count_parameters()


def records() -> Iterator[dict[str, Any]]:
    """Yields a line for each row whose settings fix its vocabularies."""
    for name, row_name in rows():
        table = TABLES[name].at(SCALE)
        (row,) = [row for row in table.rows if row.name == row_name]
        settings = table_runs.settings_of(table, SCALE, row)
        if settings.vocab_size:
            yield {
                "benchmark": "parameters", "table": name, "scale": SCALE, "row": row_name,
                "vocabulary": settings.vocab_size, "parameters": count(settings), **provenance(),
            }  # fmt: skip


def main(argv: list[str] | None = None) -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parameters", description=__doc__)
    parser.add_argument("--out", type=Path, help="a file that the lines are appended to")
    harness.write(records(), parser.parse_args(argv).out)


if __name__ == "__main__":
    main()
