"""The runs of a table: trained, recorded and compared with one another, each once."""

from __future__ import annotations

import operator
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tfmann import config
from tfmann.data import fingerprints
from tfmann.errors import UserError
from tfmann.papers import agreements, claims, metrics, reused_weights, run_scores
from tfmann.papers.agreements import Run
from tfmann.papers.metrics import Record
from tfmann.papers.processes import run_module
from tfmann.papers.records import make_record, read_runs, results_of
from tfmann.papers.table import Row, Table
from tfmann.papers.table_corpus import Corpus
from tfmann.papers.tables import TABLES
from tfmann.utils import resources
from tfmann.utils.files import file_digest, read_json_object, write_json
from tfmann.utils.run_folder import BEST, RESULTS, has_weights

_CHOSEN_ON_DEV = ("length_penalty_weight",)
_OF_A_RUN = ("random_seed", "init_checkpoint", "lexicon_file")  # what `record` gives it
_LEXICON_TEXT = "text.json"  # of which text the lexicon beside it is


@dataclass(frozen=True)
class TableRuns:
    """The runs of a table at one scale.

    Attributes:
      name: of the table.
      scale: scale of the rebuild.
      corpus: that all rows are trained on.
      folder: the runs' folder, OUT_DIR/TABLE/SCALE.
      results: the file of the table's records.
    """

    name: str
    scale: str
    corpus: Corpus
    folder: str
    results: Path

    @property
    def table(self) -> Table:
        """The table at this scale."""
        return TABLES[self.name].at(self.scale)

    def out_dir(self, row: str, seed: int) -> str:
        """Returns the folder of a run; that of seed 1 has the row's name alone."""
        return os.path.join(self.folder, row if seed == 1 else f"{row}-seed{seed}")

    def record(self, row: Row, seed: int) -> Record:
        """Returns the record of a run, which is trained first if it has not ended.

        Raises:
          UserError: it has the weights of a row whose run has not ended.
        """
        out_dir = self.out_dir(row.name, seed)
        results = results_of(out_dir)
        if row.weights:
            self._record_search(row, seed, results)
        elif results is not None:
            self._note_changes(row, out_dir, results["hparams"])
            self._note_new_start(row, seed, results)
        else:
            settings = {**self.corpus.settings, "random_seed": str(seed), **self._lexicon(row)}
            if row.start:  # that row has ended by now
                start = os.path.join(self.out_dir(row.start, seed), BEST)
                settings["init_checkpoint"] = start
            train(self.table, self.scale, row, settings, out_dir)
        record = make_record(self.name, self.scale, row, seed, self.corpus, out_dir)
        agreement = agreements.measure(self.corpus, out_dir, self._attention_bases(row, seed))
        if agreement:
            record["agreement"] = agreement
        scores, resamples = run_scores.use_of_documents(self.corpus, out_dir, self.table.style)
        record.update(scores)
        record["resampled"].update(resamples)
        return record

    def require_weights(self, rows: Sequence[Row], seeds: Sequence[int]) -> None:
        """Checks that the weights of rows without training are there, or will be.

        Raises:
          UserError: a row has the weights of another that is not among the rows, and whose run has
            not ended.
        """
        names = {row.name for row in rows}
        for row in rows:
            if row.weights and row.weights not in names:
                for seed in seeds:
                    reused_weights.require_ended(row, self.out_dir(row.weights, seed))

    def require_same_text(self, seeds: Sequence[int]) -> None:
        """Checks that the runs that have begun read this corpus, of which their records will be.

        Runs of rows that are not asked for are checked too: others have their weights, or are
        compared with their translations.

        Raises:
          UserError: a run was trained or tested on another text.
        """
        names = ("src", "tgt", "train_prefix", "dev_prefix", "test_prefix")
        settings = config.make({name: self.corpus.settings[name] for name in names})
        folders = [self.out_dir(row.name, seed) for seed in seeds for row in self.table.rows]
        begun = [path for path in folders if has_weights(path) or results_of(path) is not None]
        digests = fingerprints.text_digests(settings) if begun else {}
        for out_dir in begun:
            other = fingerprints.other_text(settings, digests, out_dir)
            if other:
                raise UserError(
                    f"{other} is not the text of the run in {out_dir}: give the corpus of that "
                    "run, or another --out_dir, or remove the folder to train it on this text"
                )

    def rivals(self, row: str) -> list[str]:
        """Returns the rows that a row is tested against."""
        return self.table.compared_with(row, claims.rivals(self.name, row))

    def _attention_bases(self, row: Row, seed: int) -> list[Run]:
        """Returns the runs whose attention is compared with that of a run.

        It is the base with the same seed; of the base itself its first seed, which shows how far
        two runs agree that differ in nothing else. A row without training has another row's.
        """
        base = self.table.attention_base
        if not base or row.weights or (row.name, seed) == (base, 1):
            return []
        of_seed = 1 if row.name == base else seed
        return [Run(base, of_seed, self.out_dir(base, of_seed))]

    def significance(self, row: str, seed: int) -> dict[str, list[dict[str, Any]]]:
        """Tests a run against those of its rivals that have ended; returns the record's key.

        Tests that were recorded against runs that are gone are kept if the run is the same.
        """
        rivals = self.rivals(row)
        if not rivals:
            return {}
        baselines = {}
        for rival in rivals:
            results = results_of(self.out_dir(rival, seed))
            if results is not None:
                baselines[rival] = self.out_dir(rival, seed), results["hparams"]
        out_dir = self.out_dir(row, seed)
        results = results_of(out_dir)
        assert results is not None
        settings = results["hparams"]
        tests = run_scores.significance_tests(self.corpus, out_dir, baselines, settings)
        gone = {*rivals} - {*baselines}
        recorded = metrics.by_run(read_runs(self.results)).get((row, seed), {}) if gone else {}
        if recorded.get("date") == results.get("date"):
            tests += [test for test in recorded.get("significance", ()) if test["baseline"] in gone]
            tests.sort(key=lambda test: rivals.index(test["baseline"]))
        return {"significance": tests} if tests else {}

    def compare_again(self, new_records: Sequence[Record]) -> dict[tuple[str, int], Record]:
        """Tests other rows again if a baseline of theirs is among `new_records`, decoded again.

        Returns:
          by row and seed the keys of their records that have changed.
        """
        new_by_run = {(record["row"], record["seed"]): record for record in new_records}
        changed = {}
        for record in read_runs(self.results):
            row, seed = record["row"], metrics.seed_of(record)
            if (row, seed) in new_by_run or results_of(self.out_dir(row, seed)) is None:
                continue
            baselines = [
                new_by_run.get((test["baseline"], seed)) for test in record.get("significance", ())
            ]
            if any(rival and metrics.test_is_outdated(record, rival) for rival in baselines):
                changed[row, seed] = {**self.significance(row, seed), "seed": seed}
        return changed

    def remaining(self, rows: Sequence[Row], seeds: Sequence[int]) -> str:
        """Returns a line: how many runs are left to train, and about how long that takes."""
        trained = [row.name for row in rows if not row.weights]
        left = [
            row for seed in seeds for row in trained if results_of(self.out_dir(row, seed)) is None
        ]
        return estimate_time(left, len(trained) * len(seeds), self.results)

    def _record_search(self, row: Row, seed: int, results: Mapping[str, Any] | None) -> None:
        """Chooses the search of a row without training, unless that has been done."""
        out_dir, weights_dir = self.out_dir(row.name, seed), self.out_dir(row.weights, seed)
        if results is None:
            reused_weights.choose_search(row, weights_dir, out_dir, self.corpus)
        else:
            reused_weights.note_changes(row, results, weights_dir, out_dir)

    def _note_changes(self, row: Row, out_dir: str, trained: Mapping[str, Any]) -> None:
        """Says which of a row's settings have changed since its run was trained."""
        path = settings_path(self.table, self.scale, row)
        defaults = config.HParams().as_dict()
        given = {*self.corpus.settings, *_OF_A_RUN, *_CHOSEN_ON_DEV}
        changes = {
            key: (value, trained.get(key, defaults[key]))
            for key, value in settings_of(self.table, self.scale, row).as_dict().items()
            if key not in given and trained.get(key, defaults[key]) != value
        }
        if not changes:
            return
        named = ", ".join(f"{key}={new!r} was {old!r}" for key, (new, old) in changes.items())
        remedy = f"{out_dir} to train it again"
        if set(changes) == {"num_train_steps"} and operator.gt(*changes["num_train_steps"]):
            remedy = f"{os.path.join(out_dir, RESULTS)} to continue it, or {remedy}"
        print(f"{path} has changed since ({named}): the run is left as it is; remove {remedy}")

    def _note_new_start(self, row: Row, seed: int, results: Mapping[str, Any]) -> None:
        """Says if the run that a row starts from has ended again since the row was trained."""
        start_dir, out_dir = self.out_dir(row.start, seed), self.out_dir(row.name, seed)
        start = (results_of(start_dir) or {}) if row.start else {}
        if "" < results.get("date", "") < start.get("date", ""):
            print(
                f"since {row.name} was trained, {start_dir}, from which it starts, has ended again:"
                f" the run is left as it is; remove {out_dir} to train it again"
            )

    def _lexicon(self, row: Row) -> dict[str, str]:
        """Returns the lexicon of a row that replaces unknown words, learned once for all rows.

        One of another training text is learned again; older ones do not say of which they are.
        """
        if not settings_of(self.table, self.scale, row).replace_unk:
            return {}
        folder = os.path.join(self.folder, "lexicon")
        path, record = os.path.join(folder, "lexicon.txt"), os.path.join(folder, _LEXICON_TEXT)
        settings = {key: self.corpus.settings[key] for key in ("src", "tgt", "train_prefix")}
        sides = [f"{settings['train_prefix']}.{settings[key]}" for key in ("src", "tgt")]
        text = {"sha256": list(map(file_digest, sides))}
        if os.path.exists(path) and read_json_object(record) not in ({}, text):
            os.remove(path)
        if not os.path.exists(path):
            os.makedirs(folder, exist_ok=True)
            write_json(record, text)  # before the lexicon, which is there only when it is complete
            flags = {"mode": "lexicon", **settings, "lexicon_file": path}
            run_module("tfmann.nmt", flags, folder)
        return {"lexicon_file": path}


def settings_path(table: Table, scale: str, row: Row) -> str:
    """Returns the shipped file of a row's settings."""
    return str(resources.shipped("hparams", table.settings_file(row, scale)))


def settings_of(table: Table, scale: str, row: Row) -> config.HParams:
    """Returns a row's settings."""
    return config.make({}, settings_path(table, scale, row))


def estimate_time(rows: Sequence[str], total: int, results: Path) -> str:
    """Returns a line: how many runs are left, and how long they take according to the records.

    Args:
      rows: the row of each run that has not ended.
      total: the number of runs of the table, ended ones included.
      results: the table's records; a row without any is assumed to take the mean of the others.
    """
    if not rows:
        return f"all {total} runs have ended: nothing is left to train"
    left = f"{len(rows)} of {total} runs are left to train"
    records = read_runs(results)
    # A row without training has no such time.
    trained = metrics.by_row(record for record in records if "train_seconds" in record)
    if not trained:
        return f"{left}; how long that takes has not been measured"
    means = {
        row: statistics.fmean(run["train_seconds"] for run in runs) for row, runs in trained.items()
    }
    guessed = sum(row not in means for row in rows)
    total_seconds = sum(means.get(row, statistics.fmean(means.values())) for row in rows)
    source = f"as {results.name} records it on {metrics.devices(records[0])[0]}"
    note = f", {guessed} of them guessed from other rows" if guessed else ""
    return (
        f"{left}: about {format_duration(total_seconds)} plus the time to translate, {source}{note}"
    )


def format_duration(seconds: float) -> str:
    """Returns hours and minutes, or at least one minute."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min"


def train(table: Table, scale: str, row: Row, settings: Mapping[str, str], out_dir: str) -> None:
    """Trains a row in a process of its own, which frees its memory at the end."""
    flags = {"hparams_path": settings_path(table, scale, row), **settings}
    run_module("tfmann.nmt", flags, out_dir)
