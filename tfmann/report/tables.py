"""The papers' tables with ours beside them, in Markdown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tfmann.report.systems import TABLES, Row, Table


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
    dev = record["best"]["dev"]
    tests = [record["best"]["test"], *record.get("more_tests", {}).values()]
    bleu, chrf = (sum(test[i]["value"] for test in tests) / len(tests) for i in range(2))
    detokenised = record.get("detokenised", {})
    return [
        row.title,
        _cell(row.paper_dev),
        f"{_cell(row.paper_test)}{mark}",
        f"{dev[0]['value']:.2f}",
        f"{bleu:.2f}",
        *(f"{detokenised[split]['value']:.2f}" for split in ("dev", "test") if detokenised),
        f"{chrf:.1f}",
        f"{record['parameters'] / 1e6:.2f}M",
        f"{'+' if record.get('start') else ''}{record['steps']}",
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
    started = sorted({record["start"] for record in records if record.get("start")})
    return [
        *(f"+ updates: on top of those of {name}" for name in started),
        *(f"{split}: {variant}" for split, variant in sorted(variants)),
        *(f"BLEU signature: {signature}" for signature in sorted(signatures)),
        f"hardware: {', '.join(sorted(machines))}",
    ]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: float | None) -> str:
    return "-" if value is None else str(value)
