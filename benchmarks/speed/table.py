"""The records of `benchmarks.speed` as Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

Records = dict[tuple[str, str, str], dict[str, Any]]  # by what, cell, precision
Column = tuple[str, Callable[[Records, str], str]]
_TYPES = {"float32": "float32", "mixed_bfloat16": "bfloat16"}


def speed(records: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the tables of every size; the last record of a measurement counts."""
    out: list[str] = []
    for size in dict.fromkeys(r["size"] for r in records if r["size"] != "-"):
        of_size = {(r["what"], r["cell"], r["precision"]): r for r in records if r["size"] == size}
        for title, columns in (("training", _TRAIN), ("decoding", _DECODE), ("memory", _MEMORY)):
            out += _table(f"### {size}: {title}", of_size, columns)
        out += [*_rates(of_size), *_revisions(of_size)]
    helps = [r for r in records if r["size"] == "-"]
    return out + [f"`--help`: {helps[-1]['seconds']:.2f} s", ""] if helps else out


def scaling(records: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the ratios of seconds per update."""
    if not records:
        return []
    out = ["| size | cell | what | ratio |", "|-|-|-|-|"]
    last = {(r["size"], r["cell"], r["what"]): r for r in records}
    return [*out, *(f"| {' | '.join(key)} | {r['ratio']:.2f} |" for key, r in last.items()), ""]


def _table(title: str, records: Records, columns: Sequence[Column]) -> list[str]:
    rows = []
    for cell in dict.fromkeys(cell for _, cell, _ in records):
        values = [value(records, cell) for _, value in columns]
        if any(value != "-" for value in values):
            rows.append(f"| {cell} | {' | '.join(values)} |")
    if not rows:
        return []
    head = " | ".join(name for name, _ in columns)
    return [title, "", f"| cell | {head} |", "|-" * (len(columns) + 1) + "|", *rows, ""]


def _column(name: str, kind: str, key: str, form: str, precision: str = "float32") -> Column:
    def value(records: Records, cell: str) -> str:
        record = records.get((kind, cell, precision))
        return form.format(record[key], **record) if record else "-"

    return name, value


def _training(precision: str) -> list[Column]:
    kind = _TYPES[precision]
    return [
        _column(f"words/s, {kind}", "train", "words_per_second", "{:.0f}", precision),
        _column("ratio", "train", "ratio", "{:.2f} of {reference}", precision),
        _column("operations allow", "train", "allow", "{:.2f}", precision),
        _column("share of product rate", "train", "share", "{:.2f}", precision),
    ]


_TRAIN = [column for precision in _TYPES for column in _training(precision)]
_DECODE = [
    _column("beam 10, sentences/s", "beam", "sentences_per_second", "{:.1f}"),
    _column("words/s", "beam", "words_per_second", "{:.0f}"),
    _column("ratio", "beam", "ratio", "{:.2f} of {reference}"),
    _column("greedy, sentences/s", "greedy", "sentences_per_second", "{:.1f}"),
    _column("ratio", "greedy", "ratio", "{:.2f} of {reference}"),
]
_PEAK = "{} ({more_mib} above start)"
_MEMORY = [
    _column("parameters", "memory_train", "parameters", "{:,}"),
    _column("training, MiB", "memory_train", "peak_mib", _PEAK),
    _column("bfloat16", "memory_train", "peak_mib", _PEAK, "mixed_bfloat16"),
    _column("beam 10, MiB", "memory_beam", "peak_mib", _PEAK),
    _column("seconds to the first update", "start", "seconds", "{:.1f}"),
]


def _revisions(records: Records) -> list[str]:
    """Returns a line with the revision of most records, and the others with what is of them."""
    by_revision: dict[str, list[str]] = {}
    for (what, cell, precision), record in sorted(records.items()):
        name = f"{cell} ({what}, {_TYPES.get(precision, precision)})"
        by_revision.setdefault(record["revision"], []).append(name)
    if not by_revision:
        return []
    first, *others = sorted(by_revision, key=lambda revision: -len(by_revision[revision]))
    parts = [f"Revision {first}", *(f"{one}: {', '.join(by_revision[one])}" for one in others)]
    return [f"{'; '.join(parts)}.", ""]


def _rates(records: Records) -> list[str]:
    """Returns the machine's rates of matrix products, the best of all turns."""
    out = []
    for precision, kind in _TYPES.items():
        rates = [
            (r["rate"], r["rate_shape"])
            for (task, _, record_precision), r in records.items()
            if task == "train" and record_precision == precision
        ]
        if rates:
            rate, shape = max(rates)
            by = "x".join(map(str, shape))
            out.append(
                f"The machine's matrix products, {kind}: up to {rate / 1e9:.0f} GFLOP/s ({by})."
            )
    return [*out, ""] if out else []
