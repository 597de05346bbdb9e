"""Statistics of attention, heads and caches for the record of a run.

They are recorded when a row's run ends, because a checkpoint may not be kept as long as its record.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tfmann import config
from tfmann.data.text_files import iter_documents, iter_lines, write_lines
from tfmann.errors import UserError
from tfmann.papers.processes import run_to_end
from tfmann.papers.table_corpus import Corpus
from tfmann.utils.run_folder import has_best, is_of_last_training

_FILE = "inspection.json"
_FILE_OF_TESTS = "inspection-all-tests.json"  # once, only the first of several was measured
_PROVENANCE = ("date", "revision", "versions", "hardware")


def measure(corpus: Corpus, out_dir: str, cell: str) -> dict[str, Any] | None:
    """Measures a run over its own translations of all tests, in a process of its own.

    The numbers are those of `tfmann inspect`, which stay in the run's folder. The sentences of
    several tests are pooled.

    Args:
      corpus: that the run was trained on.
      out_dir: folder of the run, with its translations.
      cell: of its model.

    Returns:
      what `evaluation.inspection.record` returns, with the number of `tests` and the revision that
      it was measured with; None if the run has no weights any more.

    Raises:
      UserError: the model could not be used.
    """
    sources = corpus.test_sources()
    path = Path(out_dir, _FILE if len(sources) == 1 else _FILE_OF_TESTS)
    if not is_of_last_training(path, out_dir):
        if not has_best(out_dir):
            print(f"{out_dir} has no weights any more: its attention and heads are not measured")
            return None
        with tempfile.TemporaryDirectory() as folder:
            inspect_run(_input_files(sources, out_dir, cell, Path(folder)), out_dir, path)
    recorded = json.loads(path.read_text(encoding="utf-8"))
    measures = {key: value for key, value in recorded.items() if key not in _PROVENANCE}
    return {**measures, "tests": len(sources), "revision": recorded["revision"]}


def inspect_run(flags: Mapping[str, str], out_dir: str, path: Path) -> None:
    """Writes what `tfmann inspect` says of a run, in a process of its own.

    Raises:
      UserError: the model could not be used.
    """
    command = [sys.executable, "-m", "tfmann.cli.inspection", f"--model={out_dir}"]
    command += [f"--output={path}", *(f"--{name}={value}" for name, value in flags.items())]
    if run_to_end(command):
        raise UserError(f"the attention and heads of the model in {out_dir} could not be measured")


def _input_files(
    sources: Mapping[str, str], out_dir: str, cell: str, folder: Path
) -> dict[str, str]:
    """Returns the files of all tests by their flags.

    Args:
      sources: source files of the tests, by the names of a run's translations.
      out_dir: folder of the run.
      cell: of its model.
      folder: as of `join_files`.
    """
    files = {
        "input": list(sources.values()),
        "translations": [str(Path(out_dir, name)) for name in sources],
    }
    if config.cell_spec(cell).reads_documents:
        files["documents"] = [str(Path(path).with_suffix(".docs")) for path in sources.values()]
    return join_files(files, folder)


def join_files(files: Mapping[str, Sequence[str]], folder: Path) -> dict[str, str]:
    """Returns one file for each flag: its only one, or its files joined in a folder."""
    if all(len(paths) == 1 for paths in files.values()):
        return {flag: path for flag, (path,) in files.items()}
    for flag, paths in files.items():
        lines = _join_documents(paths) if flag == "documents" else map(iter_lines, paths)
        write_lines(folder / flag, itertools.chain.from_iterable(lines))
    return {flag: str(folder / flag) for flag in files}


def _join_documents(paths: Sequence[str]) -> Iterator[list[str]]:
    """Yields the numbers of the documents in each file, so that no two files share one."""
    first = 0
    for path in paths:
        numbers = [first + number for number in iter_documents(path)]
        yield list(map(str, numbers))
        first = max(numbers, default=first) + 1
