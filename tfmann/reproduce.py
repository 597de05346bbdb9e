"""Rebuilds a paper's table: `tfmann reproduce vi-en`.

Trains what is missing, goes on with what was interrupted, leaves alone what is done; then prints
the paper's column beside ours and keeps our rows in results/.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfmann import hparams as hparams_module
from tfmann import resources
from tfmann.corpus import datasets
from tfmann.corpus.prepare import prepare
from tfmann.corpus.synthetic import published as synthetic
from tfmann.errors import UsageError, UserError, status_of
from tfmann.evaluation import gold
from tfmann.report import budget, claimed, measures, records, tables
from tfmann.report.against import significance
from tfmann.report.records import Corpus
from tfmann.report.tables import TABLES, Row, Table
from tfmann.report.tense import tense

_SYNTHETIC = {"train": 10000, "dev": 500, "test": 500}  # sentence pairs
# More of test, since only the sentences after a document's first count.
_SYNTHETIC_TENSE = {"train": 10000, "dev": 500, "test": 1000}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="tfmann reproduce", description=str(__doc__))
    parser.add_argument("table", choices=sorted(TABLES))
    parser.add_argument("--scale", help="paper or cpu; paper with a GPU if not given")
    parser.add_argument("--corpus_dir", help="folder with the plain files; nothing is downloaded")
    parser.add_argument(
        "--out_dir", default="runs", help="runs go to OUT_DIR/TABLE/SCALE/ROW or ROW-seedN"
    )
    parser.add_argument("--rows", help="comma-separated: only these")
    parser.add_argument("--seeds", help="comma-separated, such as 1,2,3; the table's if not given")
    parser.add_argument("--results_dir", default=resources.results_dir())
    args = parser.parse_args(argv)
    goes_on = "interrupted: the same command goes on from here"
    return status_of(lambda: _reproduce(args), goes_on)


def _reproduce(args: argparse.Namespace) -> int:
    scale = _scale(TABLES[args.table], args.scale)
    table = TABLES[args.table].at(scale)
    chosen, seeds = _chosen(table, args.rows), _seeds(table, args.seeds)
    rows = table.with_starts(chosen)
    place = os.path.join(args.out_dir, args.table, scale)
    corpus = _corpus(table, scale, args.corpus_dir, place)
    _require_documents(table, scale, rows, corpus)
    each = "" if seeds == [1] else f", each with seed {', '.join(map(str, seeds))}"
    results = Path(args.results_dir, f"{args.table}-{scale}.jsonl")
    print(f"{table.title}\nscale {scale}: {len(rows)} rows{each}")
    for row in rows:
        if row not in chosen:
            print(f"{row.name} is among them because others start from it")
    print(_left(rows, seeds, place, results))
    made = []
    for seed in seeds:
        for number, row in enumerate(rows, start=1):
            out_dir = _place_of(place, row.name, seed)
            first = f", which starts from {row.start}" if row.start else ""
            which = f"row {number} of {len(rows)}" + (f", seed {seed}" if each else "")
            print(f"\n{which}: {row.title}{first}, in {out_dir}", flush=True)
            one = _made(args.table, scale, row, seed, corpus, place)
            one.update(_tests(args.table, scale, row.name, seed, corpus, place))
            records.keep([one], results)
            made.append(one)
        for number, one in enumerate(made[-len(rows) :], start=1):
            others = _others(args.table, scale, one["row"])
            if any(row.name in others for row in rows[number:]):  # which have ended since
                one.update(_tests(args.table, scale, one["row"], seed, corpus, place))
    records.keep(made, results)
    records.keep(_compared_again(args.table, scale, made, corpus, place, results), results)
    print(f"\nkept in {results}")
    readme = tables.render_all(results.parent)
    (results.parent / "README.md").write_text(readme, encoding="utf-8")
    print("\n" + tables.render(table, scale, made))
    return 0


def _left(rows: Sequence[Row], seeds: Sequence[int], place: str, results: Path) -> str:
    """What is left to train, and how long that takes."""
    runs = [(row.name, _place_of(place, row.name, seed)) for seed in seeds for row in rows]
    left = [name for name, out_dir in runs if records.finished(out_dir) is None]
    return budget.estimate(left, len(runs), results)


def _made(
    name: str, scale: str, row: Row, seed: int, corpus: Corpus, place: str
) -> dict[str, Any]:
    """A row's record; it is trained unless that has been done."""
    table, out_dir = TABLES[name].at(scale), _place_of(place, row.name, seed)
    if records.finished(out_dir) is None:
        settings = {**corpus.settings, **_start(row, place, seed), "random_seed": str(seed)}
        settings.update(_lexicon(table, scale, row, corpus, place))
        _train(table, scale, row, settings, out_dir)
    one = records.record(name, scale, row, seed, corpus, out_dir)
    if table.document_tense:
        one["tense"] = tense(corpus, out_dir, one["hparams"]["cell"])
    return one


def _scale(table: Table, asked: str | None) -> str:
    if asked and asked not in table.scales:
        raise UsageError(f"--scale: expected {' or '.join(table.scales)}, not {asked!r}")
    if asked or len(table.scales) == 1:
        return asked or table.scales[0]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        print("a GPU is visible: the paper's own sizes (--scale=cpu for the small ones)")
        return "paper"
    print("no GPU is visible: sizes for a CPU (--scale=paper for the paper's own, which take days)")
    return "cpu"


def _corpus(table: Table, scale: str, corpus_dir: str | None, place: str) -> Corpus:
    """Finds the corpus, or makes it, and says what is there."""
    report = _report(table, corpus_dir, place)
    for name, split in report.splits.items():
        print(f"{name}: {split.pairs} pairs, {split.empty_sided} with an empty side{split.more}")
    if report.manifest.alignments:  # looked at now, not after days of training
        links = gold.read(*records.gold_files(report).values())
        sure, possible = (sum(map(len, part)) for part in (links.sure, links.possible))
        print(f"gold links of test: {sure} sure, {possible - sure} only possible")
    if not table.bpe_merges:
        return Corpus(report, report.hparams(), None)
    merges = table.bpe_merges[scale]
    return Corpus(report, *prepare(report, os.path.join(place, "corpus"), merges))


def _report(table: Table, corpus_dir: str | None, place: str) -> datasets.Report:
    if table.manifest is None:
        sizes = _SYNTHETIC_TENSE if table.document_tense else _SYNTHETIC
        directory = corpus_dir or os.path.join(place, "corpus")
        return synthetic.as_report(directory, **sizes, document_tense=table.document_tense)
    manifest = datasets.load_manifest(resources.shipped("data", table.manifest))
    if table.reverse:  # links would have to be turned round too
        manifest = dataclasses.replace(
            manifest, source=manifest.target, target=manifest.source, alignments=None
        )
    if corpus_dir:
        return datasets.use_local(manifest, corpus_dir)
    return datasets.fetch(manifest, os.path.join("corpora", manifest.name))


def _seeds(table: Table, text: str | None) -> list[int]:
    if not text:
        return list(table.seeds)
    field, found = hparams_module.FIELDS["random_seed"], []
    for one in re.split(r"[\s,]+", text.strip()):
        if not re.fullmatch(r"[0-9]{1,10}", one):
            raise UsageError(f"--seeds: expected whole numbers such as 1,2,3, not {text!r}")
        found.append(field.check("--seeds", int(one)))
    return list(dict.fromkeys(found))


def _chosen(table: Table, names: str | None) -> list[Row]:
    if not names:
        return list(table.rows)
    known = {row.name: row for row in table.rows}
    wanted = names.split(",")
    for name in wanted:
        if name not in known:
            raise UserError(f"--rows: there is no row {name!r}; there are {', '.join(known)}")
    return [known[name] for name in wanted]


def _settings_path(table: Table, scale: str, row: Row) -> str:
    return str(resources.shipped("hparams", table.settings_file(row, scale)))


def _settings(table: Table, scale: str, row: Row) -> hparams_module.HParams:
    return hparams_module.make({}, _settings_path(table, scale, row))


def _require_documents(table: Table, scale: str, rows: Sequence[Row], corpus: Corpus) -> None:
    """Raises UserError where a row looks at documents and a split has none: before training."""
    report = corpus.report
    lacking = [f"{one.prefix}.docs" for one in report.splits.values() if one.documents is None]
    looking = [
        row.name
        for row in rows
        if hparams_module.document_memory(_settings(table, scale, row).cell)
    ]
    if lacking and looking:
        others = ",".join(row.name for row in rows if row.name not in looking)
        raise UserError(
            f"the rows {', '.join(looking)} look at the sentences before in the same document, and "
            f"there is no {' nor '.join(lacking)}: one line for each sentence, with a number for "
            f"its document{f'. Without documents: --rows={others}' if others else ''}"
        )


def _lexicon(
    table: Table, scale: str, row: Row, corpus: Corpus, place: str
) -> dict[str, str]:
    """The lexicon of a row that replaces unknown words, learned once for all rows."""
    if not _settings(table, scale, row).replace_unk:
        return {}
    folder = os.path.join(place, "lexicon")
    path = os.path.join(folder, "lexicon.txt")
    if not os.path.exists(path):
        settings = {key: corpus.settings[key] for key in ("src", "tgt", "train_prefix")}
        _run({"mode": "lexicon", **settings, "lexicon_file": path}, folder)
    return {"lexicon_file": path}


def _train(table: Table, scale: str, row: Row, settings: dict[str, str], out_dir: str) -> None:
    """Trains in a process of its own, which gives its memory back at the end."""
    _run({"hparams_path": _settings_path(table, scale, row), **settings}, out_dir)


def _run(flags: dict[str, str], out_dir: str) -> None:
    command = [sys.executable, "-m", "tfmann.nmt", f"--out_dir={out_dir}"]
    command += [f"--{key}={value}" for key, value in flags.items()]
    status, told = _wait_for(command)
    if told == signal.SIGINT:
        raise KeyboardInterrupt
    if told:
        sys.exit(128 + told)
    if status:
        raise UserError(f"the run in {out_dir} stopped with status {status}")


def _wait_for(command: Sequence[str]) -> tuple[int, int]:
    """Runs a command to its end, even when told to stop: it is told so too, and may save first.

    Returns:
      its exit status; the first signal that came, or 0.
    """
    told: list[int] = []
    child: subprocess.Popen | None = None

    def pass_on(number: int, frame: Any) -> None:
        del frame
        told.append(number)
        if child:
            child.send_signal(signal.SIGTERM)  # a terminal has told it already, `kill` has not

    kept = {one: signal.signal(one, pass_on) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        child = subprocess.Popen(command)
        if told:
            child.terminate()
        status = child.wait()
    finally:
        for one, handler in kept.items():
            signal.signal(one, handler)
    return status, told[0] if told else 0


def _others(name: str, scale: str, row: str) -> list[str]:
    """The rows that a row is tested against."""
    return TABLES[name].at(scale).beside(row, claimed.rivals(name, row))


def _tests(
    name: str, scale: str, row: str, seed: int, corpus: Corpus, place: str
) -> dict[str, list[dict[str, Any]]]:
    """A row's run beside those of other rows, where these have ended."""
    folders = {one: _place_of(place, one, seed) for one in _others(name, scale, row)}
    found = significance(corpus, _place_of(place, row, seed), folders) if folders else []
    return {"significance": found} if found else {}


def _compared_again(
    name: str, scale: str, made: Sequence[dict[str, Any]], corpus: Corpus, place: str, results: Path
) -> list[dict[str, Any]]:
    """Records of other rows, with new tests where one of those that were made now was the baseline.

    A run that is decoded anew has other translations than those that others were tested against.
    """
    now = {(one["row"], one["seed"]): one for one in made}
    renewed = []
    for one in measures.read_lines(results):
        row, seed = one["row"], one.get("seed", 1)
        baselines = [now.get((test["baseline"], seed)) for test in one.get("significance", ())]
        old = any(rival and measures.outdated(one, rival) for rival in baselines)
        if old and (row, seed) not in now and records.finished(_place_of(place, row, seed)):
            one.update(_tests(name, scale, row, seed, corpus, place))
            renewed.append({**one, "seed": seed})
    return renewed


def _place_of(place: str, row: str, seed: int) -> str:
    """The folder of a run; what was trained before there were several seeds has the first."""
    return os.path.join(place, row if seed == 1 else f"{row}-seed{seed}")


def _start(row: Row, place: str, seed: int) -> dict[str, str]:
    """Where a row starts that goes on from another of its seed, which has ended by then."""
    if not row.start:
        return {}
    return {"init_checkpoint": os.path.join(_place_of(place, row.start, seed), "best_bleu")}


if __name__ == "__main__":
    sys.exit(main())
