"""Agreement of a row's attention with that of another row, in the record of a run.

Both runs are forced through the same references, so that their steps correspond.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfmann.evaluation.agreement import AGREEMENT
from tfmann.papers import inspections
from tfmann.papers.metrics import Record
from tfmann.papers.records import results_of
from tfmann.papers.table_corpus import Corpus
from tfmann.utils.run_folder import RESULTS, has_best, is_of_last_training

_KEPT = (
    "forced", "sentences", "sentences_of_file", "unit", "units", "untrained_seed", "revision",
)  # fmt: skip


class Run(NamedTuple):
    """A run that others are compared with.

    Attributes:
      row: its row.
      seed: its random seed.
      folder: its folder.
    """

    row: str
    seed: int
    folder: str


def measure(corpus: Corpus, out_dir: str, bases: Iterable[Run]) -> list[dict[str, Any]]:
    """Compares the attention of a run with that of others over the references of all tests.

    The numbers are those of `tfmann inspect --attention_of`, which stay in the run's folder. The
    sentences of several tests are pooled.

    Args:
      corpus: that all of them were trained on.
      out_dir: folder of the run.
      bases: the others; those that have not ended, or have no weights, are left out.

    Returns:
      for each of the others `base`, its `row` and `seed`, and what `evaluation.inspection.record`
      returns of the agreement.

    Raises:
      UserError: a model could not be used, or the two see other tokens.
    """
    measured = []
    for base in bases:
        path = Path(out_dir, f"agreement-{base.row}-seed{base.seed}.json")
        has_ended = results_of(base.folder) is not None and has_best(base.folder)
        if _is_outdated(path, out_dir, base) and has_ended and has_best(out_dir):
            with tempfile.TemporaryDirectory() as folder:
                references = [paths[0] for paths in corpus.test_references().values()]
                files = {"input": list(corpus.test_sources().values()), "reference": references}
                flags = inspections.join_files(files, Path(folder))
                inspections.inspect_run({**flags, "attention_of": base.folder}, out_dir, path)
        if not _is_outdated(path, out_dir, base):
            measured.append(_entry(path, base, len(corpus.test_sources())))
    return measured


def _is_outdated(path: Path, out_dir: str, base: Run) -> bool:
    """Returns whether a file is missing, or older than the training of one of both runs."""
    results = Path(base.folder, RESULTS)
    return not is_of_last_training(path, out_dir) or (
        results.exists() and path.stat().st_mtime < results.stat().st_mtime
    )


def _entry(path: Path, base: Run, tests: int) -> dict[str, Any]:
    recorded = json.loads(path.read_text(encoding="utf-8"))
    return {
        "base": {"row": base.row, "seed": base.seed},
        "tests": tests,
        **{key: recorded[key] for key in _KEPT if key in recorded},
        "statistics": [
            entry for entry in recorded["statistics"] if entry["head"] == AGREEMENT
        ],
    }  # fmt: skip


def with_base(records: Sequence[Record], base: str) -> list[Record]:
    """Returns records whose `inspection` is their agreement with a row; others are left out."""
    return [
        {**record, "inspection": entry}
        for record in records
        for entry in record.get("agreement", ())
        if entry["base"]["row"] == base
    ]
