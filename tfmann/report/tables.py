"""The papers' tables: what each reports, which settings rebuild it, and ours beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One system of a table."""

    name: str  # hparams/[cpu/]FOLDER/PREFIX_NAME.json
    title: str
    paper_dev: float | None
    paper_test: float | None
    note: str = ""


class Table(NamedTuple):
    """A table and the corpus it is measured on."""

    title: str
    manifest: str  # below data/
    folder: str  # below hparams/ and hparams/cpu/
    prefix: str
    dev: str  # names of the sets, for the heading
    test: str
    rows: tuple[Row, ...]


TABLES = {
    "vi-en": Table(
        title="Collier & Beel 2019, Table 1: Vietnamese to English, BLEU",
        manifest="iwslt15_vi_en.json",
        folder="collier2019",
        prefix="vi_en",
        dev="tst2012",
        test="tst2013",
        rows=(
            Row(
                "luong",
                "attentional encoder-decoder",
                None,
                23.3,
                "the paper's figure is one that tensorflow/nmt reports for the other direction",
            ),
            Row("ntm_attention", "NTM-style attention", 21.5, 23.6),
        ),
    ),
    "multi30k": Table(
        title="Multi30k, German to English, BLEU (no paper's table: small and quick)",
        manifest="multi30k_de_en.json",
        folder="multi30k",
        prefix="de_en",
        dev="val",
        test="test_2016_flickr",
        rows=(
            Row("luong", "GRU, Luong attention, input feeding", None, None),
            Row("rnnsearch", "RNNSearch (Bahdanau et al. 2015, two GRUs)", None, None),
        ),
    ),
}


def render_all(results_dir: Path) -> str:
    """All tables that have results, in Markdown: the whole of results/README.md."""
    parts = [
        "# Results\n\nWritten by `python -m tfmann.reproduce` from the JSON lines beside it; every "
        "line there holds settings, seed, revision, versions, hardware, time and signatures. "
        "Seconds and words/s are of the machine as it was, other work included."
    ]
    for path in sorted(results_dir.glob("*.jsonl")):
        name, _, scale = path.stem.rpartition("-")
        if name in TABLES:
            lines = path.read_text(encoding="utf-8").splitlines()
            parts.append(render(TABLES[name], scale, [json.loads(line) for line in lines]))
    return "\n\n".join(parts) + "\n"


def render(table: Table, scale: str, records: Sequence[dict[str, Any]]) -> str:
    """The table in Markdown: the paper's columns, ours, and what ours need beside them."""
    titles = {row.name: row for row in table.rows}
    lines = [
        f"{table.title} (ours: scale {scale})",
        "",
        f"| system | paper {table.dev} | paper {table.test} | ours {table.dev} | "
        f"ours {table.test} | chrF | parameters | updates | words/s | minutes |",
        "|-|-|-|-|-|-|-|-|-|-|",
    ]
    notes, signatures = [], set()
    for record in records:
        row = titles[record["row"]]
        dev, test = record["best"]["dev"], record["best"]["test"]
        signatures.update(score["signature"] for score in (dev[0], test[0]))
        mark = ""
        if row.note:
            notes.append(row.note)
            mark = "*" * len(notes)
        lines.append(
            f"| {row.title} | {_cell(row.paper_dev)} | {_cell(row.paper_test)}{mark} | "
            f"{dev[0]['value']:.2f} | {test[0]['value']:.2f} | {test[1]['value']:.1f} | "
            f"{record['parameters'] / 1e6:.2f}M | {record['steps']} | "
            f"{record['words_per_second']:.0f} | {record['train_seconds'] / 60:.0f} |"
        )
    lines += [""] + [f"{'*' * (i + 1)} {note}" for i, note in enumerate(notes)]
    lines += [f"BLEU signature: {signature}" for signature in sorted(signatures)]
    machines = {record["hardware"]["cpu"] for record in records}
    lines.append(f"hardware: {', '.join(sorted(machines))}")
    return "\n".join(lines)


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
