"""The papers' tables with ours beside them: as cells, and in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Callable, NamedTuple

from tfmann.report import measures
from tfmann.report.facts import is_bound, what_to_know
from tfmann.report.measures import SURE, Record
from tfmann.report.systems import TABLES
from tfmann.report.table import Row, Table

__all__ = ["TABLES", "Row", "Shown", "Table", "render", "render_all", "show"]

NOT_MEASURED = "not yet measured"


class Shown(NamedTuple):
    """A table as text.

    Attributes:
      title: with the scale of ours.
      heading: of the columns.
      rows: their cells.
      names: of the rows, as in `Table.rows`.
      notes: on cells that are marked `*`, `**`, ...
      facts: what to know of the numbers: what they are of, signatures, the machine.
    """

    title: str
    heading: list[str]
    rows: list[list[str]]
    names: list[str]
    notes: list[str]
    facts: list[str]


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
    _Printed("paper under-translated", lambda row: _part(row.paper_adequacy, 0)),
    _Printed("paper over-translated", lambda row: _part(row.paper_adequacy, 1)),
    _Printed("paper parameters", lambda row: _cell(row.paper_parameters, "M")),
    _Printed("paper words/s", lambda row: _part(row.paper_speed, 0)),
    _Printed("paper decoding", lambda row: _part(row.paper_speed, 1)),
)


def render_all(results_dir: Path) -> str:
    """All tables that have results, in Markdown: the whole of results/README.md."""
    parts = [
        "# Results\n\nWritten by `python -m tfmann.reproduce` from the JSON lines beside it; every "
        "line there holds settings, seed, revision, versions, hardware, time and signatures. "
        "Seconds and words/s are of the machine as it was, other work included."
    ]
    for (name, scale), records in measures.read_results(results_dir).items():
        parts.append(render(TABLES[name].at(scale), scale, records))
    return "\n\n".join(parts) + "\n"


def render(table: Table, scale: str, records: Sequence[Record]) -> str:
    """What was measured of a table, in Markdown."""
    shown = show(table, scale, records)
    lines = [shown.title, "", *markdown(shown.heading, shown.rows), ""]
    lines += [f"{'*' * (i + 1)} {note}" for i, note in enumerate(shown.notes)]
    return "\n".join([*lines, *shown.facts])


def markdown(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table's lines."""
    return [_line(heading), "|-" * len(heading) + "|", *map(_line, rows)]


def show(
    table: Table, scale: str, records: Sequence[Record], unmeasured: bool = False
) -> Shown:
    """The table as text: the paper's columns, ours, and what ours need beside them.

    A row's runs with several seeds are one line: the mean, ± the sample standard deviation.

    Args:
      table: which.
      scale: of ours.
      records: of the runs.
      unmeasured: show the rows that no run has too.
    """
    grouped = {row: [one for one in records if one["row"] == row.name] for row in table.rows}
    grouped = {row: runs for row, runs in grouped.items() if runs or unmeasured}
    columns = _columns(table, records)
    heading = columns.heading(table)
    notes = list(dict.fromkeys(row.note for row in grouped if row.note))
    rows = []
    for row, runs in grouped.items():
        mark = "*" * (notes.index(row.note) + 1) if row.note else ""
        cells = [row.title, _cell(row.paper_dev), f"{_cell(row.paper_test)}{mark}"]
        cells += [one.of(row) for one in columns.printed]
        cells += columns.cells(runs) if runs else ["-", NOT_MEASURED]  # dev, test
        rows.append(cells + ["-"] * (len(heading) - len(cells)))
    names = [row.name for row in grouped]
    facts = what_to_know(records, columns.several) if records else []
    other = measures.stand_in_of(records)
    title = f"{table.title} (ours: scale {scale}{f'; {other}' if other else ''})"
    return Shown(title, heading, rows, names, notes, facts)


class _Columns(NamedTuple):
    """Which columns a table has: those in which something stands."""

    printed: list[_Printed]
    measured: list[_Measure]
    rivals: list[Row]
    several: bool  # seeds
    decoded: bool
    runs: Mapping[tuple[str, int], Record]  # by row and seed

    def heading(self, table: Table) -> list[str]:
        return [
            "system", f"paper {table.dev}", f"paper {table.test}",
            *(one.heading for one in self.printed), *(one.heading for one in self.measured),
            *(f"against {row.title}" for row in self.rivals),
            "parameters", "updates", *(["seeds"] if self.several else []), "words/s", "minutes",
            *(["decoding words/s"] if self.decoded else []),
        ]  # fmt: skip

    def cells(self, runs: Sequence[Record]) -> list[str]:
        """What was measured of a row."""
        return [
            *(_measured(one, runs) for one in self.measured),
            *(self._against(row.name, runs) for row in self.rivals),
            *_cost(runs, self.several),
            *([_decoding_speed(runs)] if self.decoded else []),
        ]


    def _against(self, rival: str, runs: Sequence[Record]) -> str:
        """A comparison, marked where lengths differ too, or the p values are of other decodings."""
        pairs = [
            (one, self.runs[rival, one.get("seed", 1)])
            for one in runs
            if measures.against(rival, one) and (rival, one.get("seed", 1)) in self.runs
        ]
        if not pairs:
            return "-"
        shown = _compared(pairs)
        if any(measures.lengths_apart(*pair) for pair in pairs):
            shown += " ‡"
        return f"{shown} §" if any(measures.outdated(*pair) for pair in pairs) else shown


def _columns(table: Table, records: Sequence[Record]) -> _Columns:
    rows = [record["row"] for record in records]
    return _Columns(
        [one for one in _PRINTED if any(one.of(row) != "-" for row in table.rows)],
        [
            one for one in _measures(table)
            if not one.optional or any(one.of(record) is not None for record in records)
        ],
        [
            row for row in table.rows
            if row.name in table.baselines
            and any(measures.against(row.name, one) for one in records)
        ],
        len(rows) > len(set(rows)),
        any(measures.decoding_speed(one) is not None for one in records),
        {(one["row"], one.get("seed", 1)): one for one in records},
    )  # fmt: skip


def _measures(table: Table) -> Iterator[_Measure]:
    """The columns of scores, in percent."""
    yield _Measure(f"ours {table.dev}", measures.dev_bleu, optional=False)
    yield _Measure(f"ours {table.test}", measures.test_bleu, optional=False)
    yield _Measure(f"13a {table.dev}", lambda one: measures.detokenised(one, "dev"))
    yield _Measure(f"13a {table.test}", lambda one: measures.detokenised(one, "test"))
    yield _Measure("brevity penalty", measures.brevity_penalty, 3, optional=False)
    yield _Measure("length ratio", measures.length_ratio, 3, optional=False)
    yield _Measure("length penalty", measures.length_penalty_weight, 1, optional=False)
    yield _Measure("chrF", measures.chrf, 1, optional=False)
    yield _Measure("AER", lambda one: measures.share(one, "alignment", "aer"))
    yield _Measure("soft AER", lambda one: measures.share(one, "alignment", "soft_aer"))
    yield _Measure("under-translated", lambda one: measures.share(one, "adequacy", "under"))
    yield _Measure("reworded", lambda one: measures.share(one, "adequacy", "reworded"))
    yield _Measure("over-translated", lambda one: measures.share(one, "adequacy", "over"))
    yield _Measure(f"repeated {measures.REPEATED}-grams", measures.repeated)
    yield _Measure("tense", lambda one: measures.tense(one, "right"))
    yield _Measure("tense, shuffled", lambda one: measures.tense(one, "shuffled_right"))


def _measured(measure: _Measure, runs: Sequence[Record]) -> str:
    values = [value for value in map(measure.of, runs) if value is not None]
    if not values:
        return "-"
    shown = f"{statistics.fmean(values):.{measure.decimals}f}"
    if len(values) > 1:
        shown += f" ± {statistics.stdev(values):.{measure.decimals}f}"
    elif measure.of is measures.test_bleu:
        shown += _interval(runs[0])
    if measure.heading == "under-translated" and any(map(is_bound, runs)):
        return f"≤ {shown}"
    return shown


def _interval(record: Record) -> str:
    found = measures.interval(record)
    return f" [{found[0]:.2f}, {found[1]:.2f}]" if found else ""


def _compared(pairs: Sequence[tuple[Record, Record]]) -> str:
    """The difference of the means over the seeds, and the worst p of each test."""
    ours, theirs = (
        statistics.fmean(measures.test_bleu(pair[which]) for pair in pairs) for which in (0, 1)
    )
    shown = f"{ours - theirs:+.2f}"
    if theirs:
        shown += f" ({100 * (ours / theirs - 1):+.1f}%)"
    worst = measures.worst_p([measures.against(rival["row"], one) for one, rival in pairs])
    mark = "†" if max(worst) < SURE else ""
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
    found = [value for value in map(measures.decoding_speed, runs) if value is not None]
    return f"{statistics.fmean(found):.0f}" if found else "-"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value}{unit}"


def _part(pair: tuple[float, float] | None, which: int) -> str:
    return _cell(None if pair is None else pair[which])
