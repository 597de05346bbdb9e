"""Rebuilds a paper's table: `python -m tfmann.reproduce vi-en`.

Trains what is missing, goes on with what was interrupted, leaves alone what is done; then prints
the paper's column beside ours and keeps our rows in results/.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfmann import hparams as hparams_module
from tfmann.corpus import datasets, tokenise
from tfmann.corpus.files import iter_lines, write_lines
from tfmann.corpus.prepare import prepare
from tfmann.corpus.synthetic import published as synthetic
from tfmann.errors import UsageError, UserError
from tfmann.evaluation import bleu
from tfmann.report import tables
from tfmann.report.tables import TABLES, Row, Table

_ROOT = Path(__file__).parent.parent
_SYNTHETIC = {"train": 10000, "dev": 500, "test": 500}  # sentence pairs


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=sorted(TABLES))
    parser.add_argument("--scale", help="paper or cpu; paper with a GPU if not given")
    parser.add_argument("--corpus_dir", help="folder with the plain files; nothing is downloaded")
    parser.add_argument("--out_dir", default="runs", help="runs go to OUT_DIR/TABLE/SCALE/ROW")
    parser.add_argument("--rows", help="comma-separated: only these")
    parser.add_argument("--results_dir", default=str(_ROOT / "results"))
    args = parser.parse_args(argv)
    try:
        return _reproduce(args)
    except UserError as error:
        print(f"tfmann: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from here", file=sys.stderr)
        return 130


def _reproduce(args: argparse.Namespace) -> int:
    table = TABLES[args.table]
    scale = _scale(table, args.scale)
    chosen = _chosen(table, args.rows)
    rows = table.with_starts(chosen)
    place = os.path.join(args.out_dir, args.table, scale)
    report = _corpus(table, args.corpus_dir, place)
    settings, preparation = report.hparams(), None
    if table.bpe_merges:
        corpus = os.path.join(place, "corpus")
        settings, preparation = prepare(report, corpus, table.bpe_merges[scale])
    print(f"{table.title}\nscale {scale}: {len(rows)} rows; each run estimates its time as it goes")
    for row in rows:
        if row not in chosen:
            print(f"{row.name} is among them because others start from it")
    records = []
    for number, row in enumerate(rows, start=1):
        out_dir = os.path.join(place, row.name)
        first = f", which starts from {row.start}" if row.start else ""
        print(f"\nrow {number} of {len(rows)}: {row.title}{first}, in {out_dir}", flush=True)
        results = _finished(out_dir)
        if results is None:
            _train(table, scale, row, {**settings, **_start(row, place)}, out_dir)
            results = _finished(out_dir)
            if results is None:
                raise UserError(f"the run in {out_dir} has ended without results")
        record = _record(args.table, scale, row, report, results)
        if report.manifest.more_tests:
            record["more_tests"] = _more_tests(report, out_dir)
        if preparation is not None:
            record["preparation"] = preparation
            record["detokenised"] = _detokenised_scores(report, out_dir)
        records.append(record)
    results_dir = Path(args.results_dir)
    _keep(records, results_dir / f"{args.table}-{scale}.jsonl")
    (results_dir / "README.md").write_text(tables.render_all(results_dir), encoding="utf-8")
    print("\n" + tables.render(table, scale, records))
    return 0


def _scale(table: Table, asked: str | None) -> str:
    if asked and asked not in table.scales:
        raise UsageError(f"--scale: expected {' or '.join(table.scales)}, not {asked!r}")
    if asked or len(table.scales) == 1:
        return asked or table.scales[0]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        print("a GPU is visible: the paper's own sizes (SCALE=cpu for the small ones)")
        return "paper"
    print("no GPU is visible: sizes for a CPU (SCALE=paper for the paper's own, which take days)")
    return "cpu"


def _corpus(table: Table, corpus_dir: str | None, place: str) -> datasets.Report:
    if table.manifest is None:
        report = synthetic.as_report(corpus_dir or os.path.join(place, "corpus"), **_SYNTHETIC)
    else:
        manifest = datasets.load_manifest(_ROOT / "data" / table.manifest)
        if table.reverse:
            manifest = dataclasses.replace(
                manifest, source=manifest.target, target=manifest.source
            )
        if corpus_dir:
            report = datasets.use_local(manifest, corpus_dir)
        else:
            report = datasets.fetch(manifest, os.path.join("corpora", manifest.name))
    for name, split in report.splits.items():
        variant = f"; {split.variant}" if split.variant else ""
        print(f"{name}: {split.pairs} pairs, {split.empty_sided} with an empty side{variant}")
    return report


def _chosen(table: Table, names: str | None) -> list[Row]:
    if not names:
        return list(table.rows)
    known = {row.name: row for row in table.rows}
    wanted = names.split(",")
    for name in wanted:
        if name not in known:
            raise UserError(f"--rows: there is no row {name!r}; there are {', '.join(known)}")
    return [known[name] for name in wanted]


def _finished(out_dir: str) -> dict[str, Any] | None:
    try:
        return json.loads(Path(out_dir, "results.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _train(table: Table, scale: str, row: Row, settings: dict[str, str], out_dir: str) -> None:
    """Trains in a process of its own, which gives its memory back at the end."""
    command = [
        sys.executable,
        "-m",
        "tfmann.nmt",
        f"--hparams_path={_ROOT / 'hparams' / table.settings_file(row, scale)}",
        f"--out_dir={out_dir}",
        *(f"--{key}={value}" for key, value in settings.items()),
    ]
    status = subprocess.run(command, check=False).returncode
    if status:
        raise UserError(f"the run in {out_dir} stopped with status {status}")


def _start(row: Row, place: str) -> dict[str, str]:
    """Where a row starts that goes on from another, which has ended by then."""
    return {"init_checkpoint": os.path.join(place, row.start, "best_bleu")} if row.start else {}


def _more_tests(report: datasets.Report, out_dir: str) -> dict[str, Any]:
    """Scores of the best checkpoint on the manifest's further tests, in processes of their own."""
    scores = {}
    for name in report.manifest.more_tests:
        kept = Path(out_dir, f"scores_{name}.json")
        if not kept.exists():
            command = [
                sys.executable, "-m", "tfmann.nmt", "--mode=eval", f"--out_dir={out_dir}",
                "--dev_prefix=", f"--test_prefix={os.path.join(report.directory, name)}",
                f"--inference_output_file={kept}",
            ]  # fmt: skip
            if subprocess.run(command, check=False).returncode:
                raise UserError(f"{name} could not be scored with the model in {out_dir}")
        scores[name] = json.loads(kept.read_text(encoding="utf-8"))["scores"]["test"]
    return scores


def _record(
    name: str, scale: str, row: Row, report: datasets.Report, results: dict[str, Any]
) -> dict[str, Any]:
    """A row as it is kept: settings without this machine's paths."""
    kinds = {key: field.kind for key, field in hparams_module.FIELDS.items()}
    settings = {
        key: value
        for key, value in results["hparams"].items()
        if not (kinds.get(key) == "data" and key.endswith(("_prefix", "_model")))
        and key != "init_checkpoint"
    }
    pairs = {split: one.pairs for split, one in report.splits.items()}
    variants = {split: one.variant for split, one in report.splits.items() if one.variant}
    kept = {key: value for key, value in results.items() if key != "hparams"}
    return {
        "table": name, "scale": scale, "row": row.name, "pairs": pairs, "variants": variants,
        **({"start": row.start} if row.start else {}), **kept, "hparams": settings,
    }  # fmt: skip


def _detokenised_scores(report: datasets.Report, out_dir: str) -> dict[str, Any]:
    """BLEU by mteval-v13a's rules of the best translations as text, against the raw references.

    The text is left beside the tokens, in `output_dev.detok` and `output_test.detok`.
    """
    scores = {}
    for name in ("dev", "test"):
        tokens = os.path.join(out_dir, f"output_{name}")
        translations = f"{tokens}.detok"
        write_lines(translations, map(tokenise.detokenise, iter_lines(tokens)))
        references = f"{report.splits[name].prefix}.{report.manifest.target}"
        (score,) = bleu.evaluate_files(translations, [references], tokenize="13a")
        scores[name] = dataclasses.asdict(score)
    return scores


def _keep(records: list[dict[str, Any]], path: Path) -> None:
    """Puts rows into a JSON-lines file, in the place of earlier ones of the same name."""
    rows = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            rows[record["row"]] = record
    rows.update({record["row"]: record for record in records})
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in rows.values())
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)
    print(f"\nkept in {path}")


if __name__ == "__main__":
    sys.exit(main())
