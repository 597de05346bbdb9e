"""Rebuilds a paper's table: `tfmann reproduce vi-en`.

Trains the runs that are missing, resumes those that were interrupted and leaves finished ones
alone. Then prints the paper's columns next to ours and saves our rows in results/.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tfmann import config
from tfmann.data.input_checks import refuse_empty
from tfmann.errors import UsageError, UserError, run_command
from tfmann.papers import rendering, reused_weights, table_runs
from tfmann.papers.metrics import Record
from tfmann.papers.records import save_records, update_records
from tfmann.papers.table import Row, Table
from tfmann.papers.table_corpus import Corpus, find_corpus
from tfmann.papers.table_runs import TableRuns
from tfmann.papers.tables import TABLES
from tfmann.utils import resources
from tfmann.utils.arguments import ArgumentParser
from tfmann.utils.files import atomic_write
from tfmann.utils.run_folder import RUNS
from tfmann.utils.tensorflow_import import import_tensorflow

_README = "README.md"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = ArgumentParser(prog="tfmann reproduce", description=str(__doc__))
    parser.add_argument("table", choices=sorted(TABLES))
    parser.add_argument(
        "--scale", help="paper, gpu, cpu or, of synthetic tables, tiny (default: by the devices)"
    )
    parser.add_argument("--corpus_dir", help="folder with the plain files; nothing is downloaded")
    parser.add_argument(
        "--out_dir", default=RUNS, help="runs go to OUT_DIR/TABLE/SCALE/ROW or ROW-seedN"
    )
    parser.add_argument("--rows", help="only these rows, comma-separated")
    parser.add_argument("--seeds", help="comma-separated, such as 1,2,3 (default: the table's)")
    parser.add_argument(
        "--results_dir",
        default=resources.results_dir(),
        help="folder of the records, TABLE-SCALE.jsonl (default: %(default)s)",
    )
    args = parser.parse_args(argv)
    return run_command(lambda: _reproduce(args), "interrupted: the same command resumes from here")


def _reproduce(args: argparse.Namespace) -> int:
    for name in ("corpus_dir", "out_dir", "results_dir"):
        refuse_empty(getattr(args, name), name)
    scale = _scale(TABLES[args.table], args.scale)
    table = TABLES[args.table].at(scale)
    chosen, seeds = _rows(table, args.rows), _seeds(table, args.seeds)
    rows = table.with_starts(chosen)
    folder = os.path.join(args.out_dir, args.table, scale)
    corpus = find_corpus(table, scale, args.corpus_dir, folder)
    rows = reused_weights.rows_with_documents(rows, corpus, required=bool(args.rows))
    _require_documents(table, scale, rows, corpus)
    results = Path(args.results_dir, f"{args.table}-{scale}.jsonl")
    _require_results_dir(results.parent)
    runs = TableRuns(args.table, scale, corpus, folder, results)
    runs.require_weights(rows, seeds)
    runs.require_same_text(seeds)
    each_seed = "" if seeds == [1] else f", each with seed {', '.join(map(str, seeds))}"
    print(f"{table.title}\nscale {scale}: {len(rows)} rows{each_seed}")
    for row in rows:
        if row not in chosen:
            print(f"{row.name} is included because other rows start from it")
    print(runs.remaining(rows, seeds))
    records = [record for seed in seeds for record in _run_seed(runs, rows, seed, bool(each_seed))]
    save_records(records, results)
    update_records(runs.compare_again(records), results)
    print(f"\nsaved in {results}")
    readme = rendering.render_all(results.parent)
    with atomic_write(results.parent / _README) as stream:
        stream.write(readme.encode())
    print("\n" + rendering.render(table, scale, records))
    return 0


def _require_results_dir(folder: Path) -> None:
    """Raises an error if records cannot be written there, or would replace somebody's README.md."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--results_dir={folder} cannot be used: {error.strerror}") from None
    if not os.access(folder, os.W_OK):
        raise UserError(f"--results_dir={folder}: no permission to write in the folder")
    readme = folder / _README
    start = rendering.README_START.encode()
    if readme.exists() and not readme.read_bytes().startswith(start):
        raise UsageError(
            f"--results_dir={folder}: {readme} is not from tfmann, and would be replaced: give "
            "another folder"
        )


def _run_seed(runs: TableRuns, rows: Sequence[Row], seed: int, name_seed: bool) -> list[Record]:
    """Trains and compares all rows with a seed; each record is saved as soon as it is there."""
    records = []
    for number, row in enumerate(rows, start=1):
        out_dir = runs.out_dir(row.name, seed)
        start = f", which starts from {row.start}" if row.start else ""
        start = f", on the weights of {row.weights}" if row.weights else start
        position = f"row {number} of {len(rows)}" + (f", seed {seed}" if name_seed else "")
        print(f"\n{position}: {row.title}{start}, in {out_dir}", flush=True)
        record = runs.record(row, seed)
        record.update(runs.significance(row.name, seed))
        save_records([record], runs.results)
        records.append(record)
    for number, record in enumerate(records, start=1):
        rivals = runs.rivals(record["row"])
        if any(row.name in rivals for row in rows[number:]):  # these have ended since
            record.update(runs.significance(record["row"], seed))
    return records


def _scale(table: Table, scale: str | None) -> str:
    if scale and scale not in table.scales:
        raise UsageError(f"--scale: expected {' or '.join(table.scales)}, not {scale!r}")
    if scale or len(table.scales) == 1:
        return scale or table.scales[0]
    import_tensorflow()
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        if "gpu" in table.scales:
            print("a GPU is visible: the paper's sizes, our recipe (--scale=paper: the paper's)")
            return "gpu"
        print("a GPU is visible: the paper's sizes (--scale=cpu selects small ones)")
        return "paper"
    print("no GPU is visible: sizes for a CPU (--scale=paper selects the paper's, which take days)")
    return "cpu"


def _rows(table: Table, names: str | None) -> list[Row]:
    if not names:
        return list(table.rows)
    rows = {row.name: row for row in table.rows}
    known = ", ".join(rows)
    for name in names.split(","):
        if name not in rows:
            raise UsageError(f"--rows: there is no row {name!r}; expected some of {known}")
    return [rows[name] for name in names.split(",")]


def _seeds(table: Table, text: str | None) -> list[int]:
    if not text:
        return list(table.seeds)
    field, seeds = config.FIELDS["random_seed"], []
    for number in re.split(r"[\s,]+", text.strip()):
        if not re.fullmatch(r"[0-9]{1,10}", number):
            raise UsageError(f"--seeds: expected whole numbers such as 1,2,3, not {text!r}")
        seeds.append(field.check("--seeds", int(number)))
    return list(dict.fromkeys(seeds))


def _require_documents(table: Table, scale: str, rows: Sequence[Row], corpus: Corpus) -> None:
    """Raises UserError before training if a row reads documents and a split has none."""
    splits = corpus.report.splits.values()
    missing = [f"{split.prefix}.docs" for split in splits if split.documents is None]
    readers = [
        row.name
        for row in rows
        if config.cell_spec(table_runs.settings_of(table, scale, row).cell).reads_documents
    ]
    if missing and readers:
        plain_rows = ",".join(row.name for row in rows if row.name not in readers)
        raise UserError(
            f"the rows {', '.join(readers)} read the previous sentences of a document, but there "
            f"is no {' nor '.join(missing)}: expected a line for each sentence, with the number of "
            f"its document{f'. Without documents: --rows={plain_rows}' if plain_rows else ''}"
        )


if __name__ == "__main__":
    sys.exit(main())
