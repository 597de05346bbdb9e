"""The runs of tables in a folder: finished ones with their translations, and unfinished ones."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tfmann import config
from tfmann.data.corpus_paths import reference_paths
from tfmann.data.text_files import iter_documents, iter_lines
from tfmann.errors import UserError
from tfmann.evaluation import gold_alignments
from tfmann.evaluation.alignment import GoldAlignment
from tfmann.evaluation.bleu import BY_CHARACTER
from tfmann.papers.records import results_of
from tfmann.papers.table import Table
from tfmann.papers.tables import TABLES
from tfmann.utils.run_folder import HPARAMS, RESULTS, RUNS, last_step


class SystemRun(NamedTuple):
    """A run of a system: its folder and its translations of the test."""

    name: str
    title: str
    cell: str
    folder: str
    translations: list[str]
    by_best: bool = True  # whether the best weights by dev BLEU have made the translations
    reads_documents: bool = False  # whether a translation depends on the sentences before it


class TranslatedTest(NamedTuple):
    """A test set and its translations by the systems of a table."""

    sources: list[str]
    references: list[list[str]]  # one list per reference set
    documents: list[int] | None
    gold: list[GoldAlignment] | None
    lowercase: bool  # the table ignores case
    runs: list[SystemRun]
    by_character: bool = False  # BLEU is of characters: there are no spaces between words


def translated_test(table: Table, folder: str) -> TranslatedTest | None:
    """Returns the test of a table with the finished runs of a folder; None if there are none.

    Of a system with several seeds the first is included, and its title names a seed other than 1.
    Runs of another test, or of text that is gone, are left out.

    Args:
      table: the table at its scale.
      folder: OUT_DIR/TABLE/SCALE.
    """
    test: TranslatedTest | None = None
    for row in table.rows:
        first = _first_seed(folder, row.name)
        if first is None:
            continue
        seed, run_folder, results = first
        output = Path(run_folder, "output_test")
        try:
            settings = results["hparams"]
            test = test or read_test(settings, settings["test_prefix"] or "")
            translations = list(iter_lines(output))
        except UserError:
            continue
        if len(translations) == len(test.sources):
            run = SystemRun(
                row.name,
                row.title if seed == 1 else f"{row.title} (seed {seed})",
                settings["cell"],
                run_folder,
                translations,
                reads_documents=config.reads_documents(settings),
            )
            test.runs.append(run)
    return test if test and test.runs else None


def _first_seed(folder: str, row: str) -> tuple[int, str, dict[str, Any]] | None:
    """Returns the first run of a row that has translated the test: seed, folder and results."""
    runs = {1: os.path.join(folder, row)}
    for path in Path(folder).glob(f"{row}-seed*"):
        number = path.name.removeprefix(f"{row}-seed")
        if number.isdecimal():
            runs[int(number)] = str(path)
    for seed, run in sorted(runs.items()):
        results = results_of(run)
        if results is not None and os.path.exists(os.path.join(run, "output_test")):
            return seed, run, results
    return None


def read_test(settings: Mapping[str, Any], prefix: str) -> TranslatedTest:
    """Reads the text at a prefix, of a run with these settings; no run has translated it yet.

    Raises:
      UserError: it cannot be read, or its gold alignments are of other sentences.
    """
    documents, gold = f"{prefix}.docs", f"{prefix}.align"
    source = f"{prefix}.{settings['src']}"
    references = reference_paths(f"{prefix}.{settings['tgt']}")
    return TranslatedTest(
        list(iter_lines(source)),
        [list(iter_lines(path)) for path in references],
        list(iter_documents(documents)) if os.path.exists(documents) else None,
        gold_alignments.read(gold, source, references[0]).links if os.path.exists(gold) else None,
        settings["bleu_lowercase"],
        [],
        settings["bleu_tokenize"] in BY_CHARACTER,
    )


def unfinished_runs(out_dir: str) -> list[str]:
    """Returns a message for each unfinished run of a table.

    If the folder has no run of a table at all, the only message says so.

    Args:
      out_dir: folder of runs, OUT_DIR/TABLE/SCALE/ROW.
    """
    runs = {
        path.parent: (name, scale)
        for name, table in TABLES.items()
        for scale in table.scales
        for path in sorted(Path(out_dir, name, scale).glob("*/*.json"))
        if path.name in (HPARAMS, RESULTS)
    }
    if not runs:
        return [
            f"{out_dir} has no run of a table (OUT_DIR/TABLE/SCALE/ROW, as `tfmann reproduce` "
            "writes them): the page has no sentences of yours. `tfmann report runs "
            f"--out_dir={out_dir}` shows other runs, `tfmann compare` compares any translations"
        ]
    return [
        f"{run} has not ended{_progress(run)}, and is not on the page: "
        f"`tfmann reproduce {name} --scale={scale}{_flags(run, out_dir)}` resumes it"
        for run, (name, scale) in runs.items()
        if results_of(str(run)) is None
    ]


def _flags(run: Path, out_dir: str) -> str:
    """Returns the flags that select a run by its folder ROW or ROW-seedN, and OUT_DIR."""
    row, marker, seed = run.name.rpartition("-seed")
    selected = f" --rows={row} --seeds={seed}" if marker else f" --rows={run.name} --seeds=1"
    return selected + ("" if out_dir == RUNS else f" --out_dir={shlex.quote(out_dir)}")


def _progress(run: Path) -> str:
    try:
        steps = config.read_json(str(run / HPARAMS))["num_train_steps"]
    except (UserError, KeyError):
        return ""
    return f" (update {last_step(str(run)) or 0} of {steps})"
