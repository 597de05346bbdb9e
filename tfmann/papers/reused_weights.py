"""Rows without training: another row's weights, with settings of the search chosen on dev."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tfmann.errors import UserError
from tfmann.papers.processes import run_module
from tfmann.papers.records import results_of
from tfmann.papers.table import Row, SearchGrid
from tfmann.papers.table_corpus import Corpus
from tfmann.utils.files import atomic_write
from tfmann.utils.run_folder import has_best

_MEMORY = "lexical_memory.npz"
_TRAINING = "weights_of.json"  # when the training of the weights ended


def rows_with_documents(rows: Sequence[Row], corpus: Corpus, required: bool) -> list[Row]:
    """Returns the rows, without those whose search reads documents that the corpus does not have.

    Args:
      rows: of a table.
      corpus: that they are tested on.
      required: whether such a row is an error, because it was asked for by its name.

    Raises:
      UserError: documents are required and missing.
    """
    missing = _missing_documents(corpus)
    readers = [row.name for row in rows if row.search and row.search.reads_documents]
    if not missing or not readers:
        return list(rows)
    reason = (
        f"{', '.join(readers)}: the search reads the previous sentences of a document, and there "
        f"is no {' nor '.join(missing)}"
    )
    if required:
        raise UserError(
            f"{reason}; expected a line for each sentence, with the number of its document"
        )
    print(f"left out: {reason}")
    return [row for row in rows if row.name not in readers]


def _missing_documents(corpus: Corpus) -> list[str]:
    """Returns the files of document ids that dev and the tests do not have."""
    sources = [f"{corpus.settings['dev_prefix']}.{corpus.settings['src']}"]
    sources += corpus.test_sources().values()
    paths = [str(Path(source).with_suffix(".docs")) for source in sources]
    return [path for path in paths if not os.path.exists(path)]


def require_ended(row: Row, weights_dir: str) -> None:
    """Raises UserError if the run that a row has its weights from has not ended, or has none."""
    if results_of(weights_dir) is None:
        raise UserError(
            f"the row {row.name} has the weights of {row.weights}, whose run has not ended in "
            f"{weights_dir}: train it first, with --rows={row.weights},{row.name}"
        )


def choose_search(row: Row, weights_dir: str, out_dir: str, corpus: Corpus) -> None:
    """Makes the run of a row without training: chooses its search on dev, and scores dev and test.

    Raises:
      UserError: the run that has its weights has not ended, or has no weights any more.
    """
    require_ended(row, weights_dir)
    if not has_best(weights_dir):
        raise UserError(
            f"the row {row.name} has the weights of {row.weights}, and its run in {weights_dir} "
            f"has none any more: remove it to train it again"
        )
    _begin(row, weights_dir, out_dir)
    grid = _grid(row)
    prefixes = {key: corpus.settings[key] for key in ("dev_prefix", "test_prefix")}
    fixed = {}
    if grid.memorize:
        memory = _learn_memory(grid, weights_dir, out_dir, corpus)
        fixed["lexical_memory"] = os.path.abspath(memory)  # the run is used from anywhere
    choices = [{**fixed, **choice} for choice in grid.choices()]
    flags = {"weights": weights_dir, "choices": json.dumps(choices), **prefixes}
    run_module("tfmann.papers.search_choice", flags, out_dir)


def _begin(row: Row, weights_dir: str, out_dir: str) -> None:
    """Notes which training a choice is of; one that was stopped before another begins again."""
    results = results_of(weights_dir)
    assert results is not None, weights_dir
    path, training = Path(out_dir, _TRAINING), json.dumps({"date": results.get("date")})
    if path.exists() and path.read_text("utf-8") != training:
        print(f"{weights_dir} has ended again: the search of {row.name} is chosen anew")
        shutil.rmtree(out_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(str(path)) as stream:
        stream.write(training.encode())


def note_changes(row: Row, results: Mapping[str, Any], weights_dir: str, out_dir: str) -> None:
    """Says what has changed since a row's search was chosen: its weights, or the grid."""
    changes = []
    search, base = results["search"], results_of(weights_dir)
    if base is not None and base.get("date") != search["weights_date"]:
        changes.append(f"{weights_dir} has ended again")
    if [point["settings"] for point in search["dev"]] != _grid(row).choices():
        changes.append("the settings to choose from are others")
    if changes:
        print(
            f"since the search of {row.name} was chosen, {' and '.join(changes)}: its run is left "
            f"as it is; remove {out_dir} to choose again"
        )


def _learn_memory(grid: SearchGrid, weights_dir: str, out_dir: str, corpus: Corpus) -> str:
    """Returns the lexical memory of a row, which is learned once."""
    path = os.path.join(out_dir, _MEMORY)
    if not os.path.exists(path):
        os.makedirs(out_dir, exist_ok=True)
        prefixes = {key: corpus.settings[key] for key in ("train_prefix", "dev_prefix")}
        flags = {name: str(value) for name, value in grid.memorize}
        flags = {"output": path, **prefixes, **flags}
        run_module("tfmann.cli.memorize", flags, weights_dir)
    return path


def _grid(row: Row) -> SearchGrid:
    assert row.search is not None, row.name
    return row.search
