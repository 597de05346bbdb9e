"""The records of runs: a JSON line for each row and seed of a table, in results/."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfmann import config
from tfmann.data.text_files import iter_lines, write_lines
from tfmann.datasets import catalog
from tfmann.errors import UserError
from tfmann.papers import inspections, metrics, run_scores
from tfmann.papers.metrics import Record
from tfmann.papers.table import Row
from tfmann.papers.table_corpus import Corpus
from tfmann.papers.tables import TABLES
from tfmann.utils.run_folder import RESULTS, last_step

# What the record of every run has; others are of some tables or systems.
_KEYS = ("row", "steps", "best", "parameters", "hparams", "hardware")
_KEYS_OF_TRAINING = ("train_seconds", "words_per_second")  # but of rows without training
_COUNTS = "parameters.jsonl"  # written by benchmarks.parameters


def read_results(results_dir: Path) -> dict[tuple[str, str], list[Record]]:
    """Returns the records of results/ by table and scale, in the order of the files' names.

    Raises:
      UserError: a line is not a record, lacks a key that every run's record has, or is of the row
        and seed of another line; names it.
    """
    results = {}
    for path in sorted(results_dir.glob("*.jsonl")):
        name, _, scale = path.stem.rpartition("-")
        if name in TABLES:  # other files are of benchmarks
            results[name, scale] = read_runs(path)
    return results


def read_runs(path: Path) -> list[Record]:
    """Returns the records of a table's runs; none if there is no such file.

    Raises:
      UserError: as `read_results`.
    """
    records = read_records(path) if path.exists() else []
    lines: dict[tuple[str, int], int] = {}
    for number, record in enumerate(records, start=1):
        where = f"{path}, record {number} (row {record.get('row')}, seed {record.get('seed')})"
        trained = () if record.get("weights") else _KEYS_OF_TRAINING
        missing = [key for key in (*_KEYS, *trained) if key not in record]
        if missing:
            keys = ", ".join(missing)
            raise UserError(f"{where}: no {keys}. Take the record from a copy, or remove its line.")
        first = lines.setdefault((record["row"], metrics.seed_of(record)), number)
        if first != number:
            raise UserError(
                f"{where}: record {first} is of the same row and seed: remove one of the two lines"
            )
    return records


def read_records(path: Path) -> list[Record]:
    """Returns the records of a file.

    Raises:
      UserError: a line is not a JSON object; names it.
    """
    records = []
    for number, line in enumerate(iter_lines(str(path)), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise UserError(f"{path}, line {number}: expected a JSON object, the record of a run")
        records.append(record)
    return records


def counted_records(results_dir: Path, name: str, scale: str) -> list[Record]:
    """Returns the rows of a table whose parameters were counted from their settings."""
    path = results_dir / _COUNTS
    records = read_records(path) if path.exists() else []
    return [record for record in records if (record["table"], record["scale"]) == (name, scale)]


def save_records(records: Sequence[Record], path: Path) -> None:
    """Writes records to a file; they replace earlier ones of the same row and seed."""
    with _locked_records(path) as by_run:
        by_run.update({(record["row"], record["seed"]): record for record in records})


def update_records(changes: Mapping[tuple[str, int], Record], path: Path) -> None:
    """Changes keys of records that are in a file, by row and seed."""
    with _locked_records(path) as by_run:
        for run in changes.keys() & by_run.keys():
            by_run[run] = {**by_run[run], **changes[run]}


@contextlib.contextmanager
def _locked_records(path: Path) -> Iterator[dict[tuple[str, int], Record]]:
    """Yields the records of a file and writes them; other processes wait in the meantime."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        by_run = metrics.by_run(read_runs(path))
        yield by_run
        write_lines(path, (json.dumps(record, ensure_ascii=False) for record in by_run.values()))
    finally:
        os.close(handle)


def results_of(out_dir: str) -> dict[str, Any] | None:
    """Returns the results of a run that has ended; None for any other.

    A run that was continued keeps its earlier results until it ends again.
    """
    try:
        results = json.loads(Path(out_dir, RESULTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(results, dict) or "steps" not in results:
        return None
    return results if (last_step(out_dir) or 0) <= results["steps"] else None


def make_record(
    name: str, scale: str, row: Row, seed: int, corpus: Corpus, out_dir: str
) -> dict[str, Any]:
    """Makes the record of a run that has ended.

    Scores that the run did not compute itself are computed now, or read from its folder: further
    tests, detokenised text, repetition, the interval of BLEU, BLEU of resampled sentences and, if
    there are gold links, alignment error and adequacy; and the statistics of `inspections`, if the
    run was trained and still has its weights.

    Args:
      name: of the table.
      scale: at which the table is rebuilt.
      row: the row of the run.
      seed: of the run.
      corpus: that it was trained on.
      out_dir: folder of the run.

    Raises:
      UserError: the run has not ended, or its model could not be used.
    """
    results = results_of(out_dir)
    if results is None:
        raise UserError(f"the run in {out_dir} has ended without results")
    record = _results_and_settings(name, scale, row, seed, corpus.report, results)
    record.update(run_scores.all_scores(corpus, out_dir, results["hparams"]))
    if not row.weights:  # the attention and heads of those weights are measured once
        measured = inspections.measure(corpus, out_dir, results["hparams"]["cell"])
        if measured is not None:
            record["inspection"] = measured
    return record


def is_path(setting: str) -> bool:
    """Tells whether the value of a setting is a file or folder of a machine."""
    return setting in config.FIELDS and config.FIELDS[setting].is_path


def _results_and_settings(
    name: str, scale: str, row: Row, seed: int, report: catalog.Report, results: dict[str, Any]
) -> dict[str, Any]:
    """Returns results and settings without the paths of this machine."""
    settings = {key: value for key, value in results["hparams"].items() if not is_path(key)}
    splits = report.splits.items()
    return {
        "table": name,
        "scale": scale,
        "row": row.name,
        "seed": seed,
        "pairs": {name: split.pairs for name, split in splits},
        "variants": {name: split.variant for name, split in splits if split.variant},
        **({"start": row.start} if row.start else {}),
        **({"weights": row.weights} if row.weights else {}),
        **{key: value for key, value in results.items() if key != "hparams"},
        "hparams": settings,
    }
