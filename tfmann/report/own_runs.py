"""Runs of any kind below a folder: their settings, scores, evaluations and translations."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple

from tfmann import config
from tfmann.data.text_files import iter_lines
from tfmann.errors import UserError
from tfmann.papers import records
from tfmann.report.runs import SystemRun, TranslatedTest, read_test
from tfmann.training import checkpoint, checkpoint_series
from tfmann.utils.run_folder import CHECKPOINTS, HPARAMS, last_step

_SETS = ("test", "dev")


class OwnRun(NamedTuple):
    """A run, finished or not.

    Attributes:
      title: its path below the folder of all runs, or that folder's name; no other has it.
      folder: its path.
      settings: all of them.
      results: of a finished run; else what its last checkpoint says, without scores.
      finished: whether it has ended.
    """

    title: str
    folder: str
    settings: Mapping[str, Any]
    results: Mapping[str, Any]
    finished: bool

    @property
    def history(self) -> Sequence[Mapping[str, Any]]:
        """The evaluations, in order."""
        return self.results.get("history", ())

    def best_evaluation(self) -> Mapping[str, Any] | None:
        """Returns that of the best weights, where recorded; BLEU may be measured anew later on."""
        best = [point for point in self.history if point["step"] == self.results.get("best_step")]
        return max(best or self.history, key=lambda point: point["dev_bleu"], default=None)

    def scores(self, name: str) -> dict[str, float]:
        """Returns the scores of a set by their names; none if there are none."""
        scores = self.results.get("best", {}).get(name, ())
        return {score["name"]: score["value"] for score in scores}


def find_runs(out_dir: str, log: Callable[[str], None]) -> list[OwnRun]:
    """Finds the runs in a folder and in those below it, sorted by their paths.

    Args:
      out_dir: the folder; it may be a run itself.
      log: receives the reason where one is left out.

    Raises:
      UserError: there is none.
    """
    runs = []
    for path in sorted(_settings_files(out_dir)):
        try:
            run = _read_run(out_dir, path)
        except UserError as error:
            log(f"{path.parent} is left out: {error}")
            continue
        if run is None:
            log(f"{path.parent} is left out: it has no evaluation yet")
        else:
            runs.append(run)
    if not runs:
        raise UserError(
            f"{out_dir} has no run with an evaluation, in itself or below: expected a folder that "
            "`tfmann train --out_dir` has written"
        )
    return runs


def _settings_files(out_dir: str) -> Iterator[Path]:
    """Yields those of all runs in a folder; then of runs that only links in it lead to."""
    found: set[str] = set()
    for follow in (False, True):
        walked: set[str] = set()
        for folder, names, files in os.walk(out_dir, followlinks=follow):
            real = os.path.realpath(folder)
            if real in walked:  # in a circle
                names.clear()
            elif HPARAMS in files and real not in found:
                found.add(real)
                yield Path(folder, HPARAMS)
            walked.add(real)
            names.sort()


def _read_run(out_dir: str, path: Path) -> OwnRun | None:
    """Reads a run by its settings file; None if it has no evaluation."""
    folder = str(path.parent)
    title, name = os.path.relpath(folder, out_dir), os.path.basename(os.path.abspath(folder))
    if title == "." and not Path(folder, name, HPARAMS).exists():  # or it would be that one's title
        title = name
    settings = config.make({}, str(path)).as_dict()
    results = records.results_of(folder)
    if results is not None:
        return OwnRun(title, folder, settings, results, finished=True)
    last = last_step(folder)
    if last is None:
        return None
    checkpoints = os.path.join(folder, CHECKPOINTS)
    state = checkpoint.read_state(checkpoint_series.step_folder(checkpoints, last))
    if not state.get("history"):
        return None
    return OwnRun(title, folder, settings, {**state, "steps": state["step"]}, finished=False)


def differing_settings(runs: Sequence[OwnRun]) -> dict[str, str]:
    """Returns by title the settings in which the runs differ, as `cell=ntm num_units=64`.

    Paths are left out. Of a single run these are the settings that differ from their defaults.
    """
    fields = config.FIELDS
    names = [key for key in fields if not records.is_path(key)]
    if len(runs) > 1:
        values = {key: {json.dumps(run.settings[key]) for run in runs} for key in names}
        names = [key for key in names if len(values[key]) > 1]
    else:
        names = [key for key in names if runs[0].settings[key] != fields[key].default]
    return {run.title: " ".join(f"{key}={run.settings[key]}" for key in names) for run in runs}


def translated_sets(
    runs: Sequence[OwnRun], log: Callable[[str], None]
) -> list[tuple[str, TranslatedTest]]:
    """Returns the sets that runs have translated, each with the runs that have.

    A run is in one of them: with its test, or with dev if it has no test or has not ended. Runs
    are together if source and references are the same, whatever the files' names.

    Args:
      runs: the runs.
      log: receives the reason where a run has no sentences.

    Returns:
      a title, such as `The test set`, and the set; of several the title has the prefix too.
    """
    sets: dict[tuple, tuple[str, str, TranslatedTest]] = {}
    for run in runs:
        names = [
            name
            for name in (_SETS if run.finished else _SETS[1:])
            if run.settings[f"{name}_prefix"] and os.path.exists(f"{run.folder}/output_{name}")
        ]
        if not names:
            log(f"{run.folder} has no translations: its sentences are left out")
            continue
        prefix = run.settings[f"{names[0]}_prefix"]
        try:
            test = read_test(run.settings, prefix)
            translations = list(iter_lines(f"{run.folder}/output_{names[0]}"))
            _require_lines(test, len(translations), prefix)
        except UserError as error:
            log(f"the sentences of {run.folder} are left out: {error}")
            continue
        test = _first(test, len(translations))
        key = names[0], *map(tuple, (test.sources, *test.references))
        *_, test = sets.setdefault(key, (names[0], prefix, test))
        # Of a run that has not ended, the last evaluation has made them.
        by_best = run.finished or run.results["best_step"] == run.history[-1]["step"]
        if not by_best:
            log(f"{run.folder} has no figures: its translations are not of its best weights")
        identity = run.title, run.title, run.settings["cell"], run.folder
        reads_documents = config.reads_documents(run.settings)
        test.runs.append(SystemRun(*identity, translations, by_best, reads_documents))
    counts = Counter(name for name, *_ in sets.values())
    titled = []
    for name, prefix, test in sets.values():
        which = f": {prefix}, {len(test.sources)} sentences" if counts[name] > 1 else ""
        titled.append((f"The {name} set{which}", test))
    return titled


def _require_lines(test: TranslatedTest, count: int, prefix: str) -> None:
    """Raises UserError where a set has fewer lines than a run has translated: it has changed."""
    least = min(map(len, (test.sources, *test.references, test.documents or test.sources)))
    if least < count:
        raise UserError(f"its output translates {count} sentences, and {prefix} has {least} now")


def _first(test: TranslatedTest, count: int) -> TranslatedTest:
    """Returns the first sentences of a set, which an evaluation with `dev_sentences` translates."""
    return test._replace(
        sources=test.sources[:count],
        references=[lines[:count] for lines in test.references],
        documents=test.documents and test.documents[:count],
        gold=test.gold and test.gold[:count],
    )
