"""The papers' tables: what each reports, which settings rebuild it, and ours beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One system of a table."""

    name: str  # of its settings too: `Table.settings_file`
    title: str
    paper_dev: float | None
    paper_test: float | None
    note: str = ""


class Table(NamedTuple):
    """A table and the corpus it is measured on.

    A table with `bpe_merges`, by scale, is of raw text: tokenised first, then cut by a BPE of so
    many merges that is learned on it; its translations are scored detokenised too. One without a
    manifest is of the synthetic corpus, at the one scale "tiny".
    """

    title: str
    manifest: str | None  # below data/
    folder: str  # below hparams/ and hparams/cpu/
    prefix: str
    dev: str  # names of the sets, for the heading
    test: str
    rows: tuple[Row, ...]
    bpe_merges: Mapping[str, int] = {}

    @property
    def scales(self) -> tuple[str, ...]:
        """At which sizes it can be rebuilt."""
        return ("paper", "cpu") if self.manifest else ("tiny",)

    def settings_file(self, row: Row, scale: str) -> Path:
        """A row's JSON, below hparams/."""
        folder = Path("cpu", self.folder) if scale == "cpu" else Path(self.folder)
        return folder / f"{self.prefix}{row.name}.json"


TABLES = {
    "vi-en": Table(
        title="Collier & Beel 2019, Table 1: Vietnamese to English, BLEU",
        manifest="iwslt15_vi_en.json",
        folder="collier2019",
        prefix="vi_en_",
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
            Row("mad_1", "M.A.D., 1 R/W head", 21.1, 23.1),
            Row("mad_2", "M.A.D., 2 R/W heads", 21.2, 23.8),
            Row("ntm_1", "pure MANN, NTM, 1 R/W head", 20.9, 23.5),
            Row("ntm_2", "pure MANN, NTM, 2 R/W heads", 21.3, 23.5),
            Row("dnc_1", "pure MANN, DNC, 1 R/W head", 20.6, 23.6),
        ),
    ),
    "ro-en": Table(
        title="Collier & Beel 2019, Table 2: Romanian to English, BLEU",
        manifest="wmt16_ro_en.json",
        folder="collier2019",
        prefix="ro_en_",
        dev="newsdev2016",
        test="newstest2016",
        # the paper's number; a vocabulary of 50,000 would be most of a small model's work
        bpe_merges={"paper": 89_500, "cpu": 8_000},
        rows=(
            Row(
                "luong",
                "attentional encoder-decoder",
                30.0,
                29.2,
                "the paper's figures are those of Sennrich et al. 2016 (Nematus, mteval-v13a)",
            ),
            Row("ntm_attention", "NTM-style attention", 30.0, 28.7),
            Row("mad_1", "M.A.D., 1 R/W head", 29.8, 28.9),
            Row("mad_2", "M.A.D., 2 R/W heads", 29.7, 28.3),
            Row("ntm_1", "pure MANN, NTM, 1 R/W head", 28.9, 27.7),
            Row("ntm_2", "pure MANN, NTM, 2 R/W heads", 28.0, 27.3),
            Row("dnc_1", "pure MANN, DNC, 1 R/W head", 27.8, 27.5),
        ),
    ),
    "multi30k": Table(
        title="Multi30k, German to English, BLEU (no paper's table: small and quick)",
        manifest="multi30k_de_en.json",
        folder="multi30k",
        prefix="de_en_",
        dev="val",
        test="test_2016_flickr",
        rows=(
            Row("luong", "GRU, Luong attention, input feeding", None, None),
            Row("rnnsearch", "RNNSearch (Bahdanau et al. 2015, two GRUs)", None, None),
        ),
    ),
    "synthetic": Table(
        title="Synthetic corpus, an invented language: what each cell can learn, BLEU",
        manifest=None,
        folder="tiny",
        prefix="",
        dev="dev",
        test="test",
        rows=(
            Row("luong", "attentional encoder-decoder", None, None),
            Row("ntm_attention", "NTM-style attention", None, None),
            Row("rnnsearch", "RNNSearch", None, None),
            Row("mad", "M.A.D., 1 R/W head", None, None),
            Row("ntm", "pure MANN, NTM, 1 R/W head", None, None),
            Row("dnc", "pure MANN, DNC, 1 R/W head", None, None),
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
    heading = ["system", f"paper {table.dev}", f"paper {table.test}", f"ours {table.dev}",
               f"ours {table.test}"]  # fmt: skip
    if table.bpe_merges:
        heading += [f"13a {table.dev}", f"13a {table.test}"]
    heading += ["chrF", "parameters", "updates", "words/s", "minutes"]
    lines = [
        f"{table.title} (ours: scale {scale})",
        "",
        _line(heading),
        "|-" * len(heading) + "|",
    ]
    notes = []
    for record in records:
        row = titles[record["row"]]
        mark = ""
        if row.note:
            notes.append(row.note)
            mark = "*" * len(notes)
        lines.append(_line(_row(row, mark, record)))
    lines += [""] + [f"{'*' * (i + 1)} {note}" for i, note in enumerate(notes)]
    return "\n".join(lines + _what_to_know(records))


def _row(row: Row, mark: str, record: dict[str, Any]) -> list[str]:
    dev, test = record["best"]["dev"], record["best"]["test"]
    detokenised = record.get("detokenised", {})
    return [
        row.title,
        _cell(row.paper_dev),
        f"{_cell(row.paper_test)}{mark}",
        f"{dev[0]['value']:.2f}",
        f"{test[0]['value']:.2f}",
        *(f"{detokenised[split]['value']:.2f}" for split in ("dev", "test") if detokenised),
        f"{test[1]['value']:.1f}",
        f"{record['parameters'] / 1e6:.2f}M",
        str(record["steps"]),
        f"{record['words_per_second']:.0f}",
        f"{record['train_seconds'] / 60:.0f}",
    ]


def _what_to_know(records: Sequence[dict[str, Any]]) -> list[str]:
    """Which text the numbers are of, the signatures of the scores, the machine."""
    variants, signatures, machines = set(), set(), set()
    for record in records:
        scores = [record["best"][split][0] for split in ("dev", "test")]
        scores += record.get("detokenised", {}).values()
        signatures.update(score["signature"] for score in scores)
        variants.update(record.get("variants", {}).items())
        machines.add(record["hardware"]["cpu"])
    return [
        *(f"{split}: {variant}" for split, variant in sorted(variants)),
        *(f"BLEU signature: {signature}" for signature in sorted(signatures)),
        f"hardware: {', '.join(sorted(machines))}",
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
