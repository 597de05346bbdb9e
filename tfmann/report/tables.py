"""The papers' tables with ours beside them, in Markdown."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple

from tfmann.report.systems import TABLES
from tfmann.report.table import Row, Table

__all__ = ["TABLES", "Row", "Table", "render", "render_all"]

Record = dict[str, Any]

_REPEATED = 2  # the n of the n-grams whose repetition is shown; all are kept
_SURE = 0.01  # the level of the papers' significance tests


class _Measure(NamedTuple):
    """A column of what was measured."""

    heading: str
    of: Callable[[Record], float | None]  # None: this record has it not
    decimals: int = 2
    optional: bool = True  # left out where no record has it


class _Printed(NamedTuple):
    """A column of what the paper prints beside its scores."""

    heading: str
    of: Callable[[Row], str]  # "-": this row has it not


_PRINTED = (
    _Printed("paper AER", lambda row: _cell(row.paper_aer)),
    _Printed("paper parameters", lambda row: _cell(row.paper_parameters, "M")),
    _Printed("paper words/s", lambda row: _cell(row.paper_speed and row.paper_speed[0])),
    _Printed("paper decoding", lambda row: _cell(row.paper_speed and row.paper_speed[1])),
)


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
            table = TABLES[name].at(scale)
            parts.append(render(table, scale, [json.loads(line) for line in lines]))
    return "\n\n".join(parts) + "\n"


def render(table: Table, scale: str, records: Sequence[Record]) -> str:
    """The table in Markdown: the paper's columns, ours, and what ours need beside them.

    A row's runs with several seeds are one line: the mean, ± the sample standard deviation.
    """
    grouped = {row: [one for one in records if one["row"] == row.name] for row in table.rows}
    grouped = {row: runs for row, runs in grouped.items() if runs}
    measures = [
        one for one in _measures(table)
        if not one.optional or any(one.of(record) is not None for record in records)
    ]  # fmt: skip
    printed = [one for one in _PRINTED if any(one.of(row) != "-" for row in table.rows)]
    rivals = [row for row in table.rows if any(_against(row.name, one) for one in records)]
    several = any(len(runs) > 1 for runs in grouped.values())
    decoded = any(_decoding(one) is not None for one in records)
    heading = ["system", f"paper {table.dev}", f"paper {table.test}",
               *(one.heading for one in printed), *(one.heading for one in measures),
               *(f"against {row.title}" for row in rivals),
               "parameters", "updates", *(["seeds"] if several else []), "words/s", "minutes",
               *(["decoding words/s"] if decoded else [])]  # fmt: skip
    lines = [
        f"{table.title} (ours: scale {scale})",
        "",
        _line(heading),
        "|-" * len(heading) + "|",
    ]
    notes = []
    for row, runs in grouped.items():
        mark = ""
        if row.note:
            notes.append(row.note)
            mark = "*" * len(notes)
        cells = [row.title, _cell(row.paper_dev), f"{_cell(row.paper_test)}{mark}"]
        cells += [one.of(row) for one in printed]
        cells += [_measured(one, runs) for one in measures]
        cells += [_compared([_against(rival.name, one) for one in runs]) for rival in rivals]
        cells += _cost(runs, several)
        cells += [_decoding_speed(runs)] if decoded else []
        lines.append(_line(cells))
    lines += [""] + [f"{'*' * (i + 1)} {note}" for i, note in enumerate(notes)]
    return "\n".join([*lines, *_what_to_know(records, several)])


def _measures(table: Table) -> Iterator[_Measure]:
    """The columns of scores, in percent."""
    yield _Measure(f"ours {table.dev}", lambda one: one["best"]["dev"][0]["value"], optional=False)
    yield _Measure(f"ours {table.test}", lambda one: _test(one, 0), optional=False)
    yield _Measure(f"13a {table.dev}", lambda one: _detokenised(one, "dev"))
    yield _Measure(f"13a {table.test}", lambda one: _detokenised(one, "test"))
    yield _Measure("chrF", lambda one: _test(one, 1), 1, optional=False)
    yield _Measure("AER", lambda one: _share(one, "alignment", "aer"))
    yield _Measure("soft AER", lambda one: _share(one, "alignment", "soft_aer"))
    yield _Measure("under-translated", lambda one: _share(one, "adequacy", "under"))
    yield _Measure("reworded", lambda one: _share(one, "adequacy", "reworded"))
    yield _Measure("over-translated", lambda one: _share(one, "adequacy", "over"))
    yield _Measure(f"repeated {_REPEATED}-grams", _repeated)
    yield _Measure("tense", lambda one: _tense(one, "right"))
    yield _Measure("tense, shuffled", lambda one: _tense(one, "shuffled_right"))


def _test(record: Record, metric: int) -> float:
    """BLEU (0) or chrF (1), over all tests."""
    tests = [record["best"]["test"], *record.get("more_tests", {}).values()]
    return statistics.fmean(test[metric]["value"] for test in tests)


def _detokenised(record: Record, split: str) -> float | None:
    return record["detokenised"][split]["value"] if "detokenised" in record else None


def _share(record: Record, of: str, key: str) -> float | None:
    share = record.get(of, {}).get(key)
    return None if share is None else 100 * share


def _tense(record: Record, which: str) -> float | None:
    found = record.get("tense")
    return 100 * found[which] / found["sentences"] if found else None


def _decoding(record: Record) -> float | None:
    """Of the test, searched once more when training has ended."""
    if "decoding" not in record or "test" not in record["decoding"]:
        return None
    test = record["decoding"]["test"]
    return test["words"] / test["seconds"]


def _repeated(record: Record) -> float | None:
    """Where nothing is aligned: with gold links, over-translation says it better."""
    for one in record.get("repetition", ()):
        if one["order"] == _REPEATED and "adequacy" not in record:
            return 100 * one["repeated"] / max(one["ngrams"], 1)
    return None


def _measured(measure: _Measure, runs: Sequence[Record]) -> str:
    values = [value for value in map(measure.of, runs) if value is not None]
    if not values:
        return "-"
    shown = f"{statistics.fmean(values):.{measure.decimals}f}"
    if len(values) > 1:
        shown += f" ± {statistics.stdev(values):.{measure.decimals}f}"
    if measure.heading == "under-translated" and any(map(_is_bound, runs)):
        return f"≤ {shown}"
    return shown


def _is_bound(record: Record) -> bool:
    """Whether what is under-translated holds what is reworded too: nothing tells them apart."""
    return "adequacy" in record and record["adequacy"]["reworded"] is None


def _against(rival: str, record: Record) -> Record:
    """How a run compares with that of another row, if it has been compared."""
    compared = (one for one in record.get("significance", ()) if one["baseline"] == rival)
    return next(compared, {})


def _compared(found: Sequence[Record]) -> str:
    """The mean difference over the seeds, and the worst p of each test."""
    found = [one for one in found if one]
    if not found:
        return "-"
    shown = f"{statistics.fmean(one['difference'] for one in found):+.2f}"
    percents = [one["percent"] for one in found]
    if None not in percents:
        shown += f" ({statistics.fmean(percents):+.1f}%)"
    worst = [max(one[key] for one in found) for key in ("bootstrap_p", "sign_p")]
    mark = "†" if max(worst) < _SURE else ""
    return f"{shown}{mark}, p {worst[0]:.3f} / {worst[1]:.3f}"


def _cost(runs: Sequence[Record], several: bool) -> list[str]:
    first = runs[0]
    return [
        f"{first['parameters'] / 1e6:.2f}M",
        f"{'+' if first.get('start') else ''}{first['steps']}",
        *([str(len(runs))] if several else []),
        f"{statistics.fmean(one['words_per_second'] for one in runs):.0f}",
        f"{statistics.fmean(one['train_seconds'] for one in runs) / 60:.0f}",
    ]


def _decoding_speed(runs: Sequence[Record]) -> str:
    found = [value for value in map(_decoding, runs) if value is not None]
    return f"{statistics.fmean(found):.0f}" if found else "-"


def _what_to_know(records: Sequence[Record], several: bool) -> list[str]:
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
        *(["mean ± sample standard deviation over the seeds"] if several else []),
        *_about_gold_links(records),
        *_about_documents(records),
        *_about_tests(records),
        *(f"+ updates: on top of those of {name}" for name in started),
        *(f"{split}: {variant}" for split, variant in sorted(variants)),
        *(f"BLEU signature: {signature}" for signature in sorted(signatures)),
        f"hardware: {', '.join(sorted(machines))}",
    ]


def _about_gold_links(records: Sequence[Record]) -> Iterator[str]:
    sets = {(one["alignment"]["sentences"], one["alignment"]["sure"], one["alignment"]["possible"])
            for one in records if "alignment" in one}  # fmt: skip
    for sentences, sure, possible in sorted(sets):
        yield (
            f"AER, soft AER: % by the attention of forced decoding of {sentences} references, "
            f"{sure} sure and {possible - sure} only possible links"
        )
    for judged in sorted({one["adequacy"]["judged"] for one in records if "adequacy" in one}):
        yield (
            f"under-translated, reworded, over-translated: % of {judged} source words that have a "
            "sure link, in the translations of the best checkpoint"
        )
    if any(map(_is_bound, records)):
        yield "≤: with what is reworded, since the cell has no alignments"


def _about_documents(records: Sequence[Record]) -> Iterator[str]:
    for sentences in sorted({one["tense"]["sentences"] for one in records if "tense" in one}):
        yield (
            f"tense: % of {sentences} sentences, the first of each document left out, that have "
            "the reference's; shuffled: the same sentences translated in the documents of others"
        )


def _about_tests(records: Sequence[Record]) -> Iterator[str]:
    found = [one for record in records for one in record.get("significance", ())]
    if found:
        seeds = {one.get("seed", 1) for one in records}
        several = " (the greatest of the seeds)" if len(seeds) > 1 else ""
        yield (
            "against: difference in test BLEU, p of the paired bootstrap / of the sign test"
            f"{several}; †: both below {_SURE}"
        )
    for signature in sorted({one["signature"] for one in found}):
        yield f"bootstrap signature: {signature}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value}{unit}"
