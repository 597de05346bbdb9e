"""The papers' tables with our columns next to theirs: as cells, and in Markdown."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Callable, NamedTuple

from tfmann.papers import (
    agreement_table,
    cache_table,
    length_scores,
    markdown,
    memory_table,
    metrics,
    update_counts,
)
from tfmann.papers.footnotes import MEANING, Footnote, footnotes, includes_reworded
from tfmann.papers.metrics import Record
from tfmann.papers.records import read_results
from tfmann.papers.table import Row, Table
from tfmann.papers.tables import TABLES
from tfmann.utils.numbers import format_difference

NOT_MEASURED = "not yet measured"
NOT_TRAINED = "not trained here"
HISTORY_HEADINGS = {"reference": "reference history", "other": "other document"}
_LITERATURE = "literature: a system of other authors with the figure that the paper lists for it"


class RenderedTable(NamedTuple):
    """A table as text.

    Attributes:
      title: title with our scale.
      heading: of the columns.
      rows: their cells.
      names: of the rows, as in `Table.rows`; rows of the literature, which are last, have none.
      notes: on cells that are marked `*`, `**`, ...
      footnotes: the meaning of columns and marks, the corpus, signatures, the machine.
      lengths: BLEU by length, or None if no record has it.
      memory_tables: attention and heads, then its agreement, then caches, of which some record has
        statistics.
    """

    title: str
    heading: list[str]
    rows: list[list[str]]
    names: list[str]
    notes: list[str]
    footnotes: list[Footnote]
    lengths: length_scores.LengthTable | None
    memory_tables: list[memory_table.MemoryTable]


class _PaperColumn(NamedTuple):
    """A column of the paper's figures."""

    heading: str
    value: Callable[[Row], float | None]  # None if the paper has no figure
    unit: str = ""


class _MeasuredColumn(NamedTuple):
    """A column of our measurements."""

    heading: str
    value: Callable[[Record], float | None]  # None if the record has no such value
    decimals: int = 2
    optional: bool = True  # left out if no record has a value


_PAPER_COLUMNS = (
    _PaperColumn("paper AER", lambda row: row.paper_aer),
    _PaperColumn("paper under-translated", lambda row: _part(row.paper_adequacy, 0)),
    _PaperColumn("paper over-translated", lambda row: _part(row.paper_adequacy, 1)),
    _PaperColumn("paper parameters", lambda row: row.paper_parameters, "M"),
    _PaperColumn("paper words/s", lambda row: _part(row.paper_speed, 0)),
    _PaperColumn("paper decoding", lambda row: _part(row.paper_speed, 1)),
)


README_START = "# Results\n\nWritten by `tfmann reproduce`"


def render_all(results_dir: Path) -> str:
    """Renders all tables that have results, in Markdown: the text of results/README.md."""
    parts = [
        f"{README_START} from the JSON lines in this folder. Each line "
        "has settings, seed, revision, versions, hardware, time and signatures. Seconds and "
        "words/s include whatever else the machine was doing."
    ]
    for (name, scale), records in read_results(results_dir).items():
        parts.append(render(TABLES[name].at(scale), scale, records))
    return "\n\n".join(parts) + "\n"


def render(table: Table, scale: str, records: Sequence[Record]) -> str:
    """Renders the measured rows of a table, in Markdown."""
    rendered = render_cells(table, scale, records)
    lines = [rendered.title, "", *markdown.table(rendered.heading, rendered.rows), ""]
    lines += markdown.bullets(markdown.starred(rendered.notes))
    lines += markdown.bullets([note.text for note in rendered.footnotes])
    if rendered.lengths:
        lines += ["", f"{length_scores.HEADING}:", "", *markdown.table(*rendered.lengths)]
    for title, heading, rows in rendered.memory_tables:
        lines += ["", f"{title}:", "", *markdown.table(heading, rows)]
    return "\n".join(lines)


def render_cells(
    table: Table, scale: str, records: Sequence[Record], unmeasured: bool = False
) -> RenderedTable:
    """Renders a table as cells: the paper's columns, then ours; its rows, then the literature's.

    The runs of a row with several seeds are one line: the mean ± the sample standard deviation.

    Args:
      table: the table at this scale.
      scale: of our runs.
      records: of our runs.
      unmeasured: include rows without runs.
    """
    measured = metrics.by_row(records)
    runs_by_row = {row: measured.get(row.name, []) for row in table.rows}
    runs_by_row = {row: runs for row, runs in runs_by_row.items() if runs or unmeasured}
    columns = _columns(table, records)
    heading = columns.heading()
    notes = list(dict.fromkeys(row.note for row in runs_by_row if row.note))
    printed = _printed_figures(table, columns.paper)
    rows = []
    for row, runs in runs_by_row.items():
        mark = "*" * (notes.index(row.note) + 1) if row.note else ""
        dev, test, *others = printed[row.name]
        cells = [row.title, dev, f"{test}{mark}", *others]
        cells += columns.cells(runs) if runs else ["-", NOT_MEASURED]  # dev, test
        rows.append(cells + ["-"] * (len(heading) - len(cells)))
    for system in table.literature:
        cells = [f"{system.title}, literature", *printed[system.title]]
        cells += ["-", NOT_TRAINED]  # dev, test
        rows.append(cells + ["-"] * (len(heading) - len(cells)))
    names = [row.name for row in runs_by_row]
    note = metrics.stand_in(records)
    title = f"{table.title} (ours: scale {scale}{f'; {note}' if note else ''})"
    below = [Footnote(MEANING, _LITERATURE)] if table.literature else []
    below += footnotes(records, columns.several_seeds) if records else []
    lengths = length_scores.length_table(table, records)
    memory_tables = [
        memory_table.memory_table(table, records),
        agreement_table.agreement_table(table, records),
        cache_table.cache_table(table, records),
    ]
    return RenderedTable(
        title, heading, rows, names, notes, below, lengths, list(filter(None, memory_tables))
    )


class _Columns(NamedTuple):
    """The columns of a table that have a value in some row."""

    table: Table
    paper: list[_PaperColumn]
    measured: list[_MeasuredColumn]
    rivals: list[Row]
    several_seeds: bool
    decoding_speed: bool
    runs: Mapping[tuple[str, int], Record]  # by row and seed

    def heading(self) -> list[str]:
        return [
            "system", f"paper {self.table.dev}", f"paper {self.table.test}",
            *(column.heading for column in self.paper),
            *(column.heading for column in self.measured),
            *(f"vs. {row.title}" for row in self.rivals),
            "parameters", "updates", *(["seeds"] if self.several_seeds else []),
            "words/s", "minutes", *(["decoding words/s"] if self.decoding_speed else []),
        ]  # fmt: skip

    def cells(self, runs: Sequence[Record]) -> list[str]:
        """Returns our cells of a row."""
        return [
            *(_measured_cell(column, runs) for column in self.measured),
            *(self._rival_cell(row, runs) for row in self.rivals),
            *_cost_cells(runs, self.several_seeds),
            *([_decoding_speed(runs)] if self.decoding_speed else []),
        ]

    def _rival_cell(self, rival: Row, runs: Sequence[Record]) -> str:
        """Compares a row with a rival; marks different lengths and p values that are left out.

        A rival that is there for its equal number of updates is compared with no other number, and
        a baseline only with those before it.
        """
        if rival.name not in self.table.shown_rivals(runs[0]["row"]):
            return "-"
        pairs = [
            (run, self.runs[rival.name, metrics.seed_of(run)])
            for run in runs
            if (rival.name, metrics.seed_of(run)) in self.runs
        ]
        is_fair = not rival.equal_updates or all(itertools.starmap(update_counts.are_equal, pairs))
        if not pairs or not is_fair:
            return "-"
        tested = [pair for pair in pairs if metrics.significance_test(pair[0], rival.name)]
        if any(metrics.test_is_outdated(*pair) for pair in tested):
            tested = []
        cell = _difference(pairs, tested)
        if any(metrics.lengths_differ(*pair) for pair in pairs):
            cell += " ‡"
        return cell if tested else f"{cell} §"


def _columns(table: Table, records: Sequence[Record]) -> _Columns:
    rows = [record["row"] for record in records]
    return _Columns(
        table,
        [
            column for column in _PAPER_COLUMNS
            if any(column.value(row) is not None for row in table.rows)
        ],
        [
            column for column in _measured_columns(table)
            if not column.optional or any(column.value(record) is not None for record in records)
        ],
        [
            row for row in table.rows
            if row.name in table.shown_baselines
            and any(metrics.significance_test(record, row.name) for record in records)
        ],
        len(rows) > len(set(rows)),
        any(metrics.decoding_speed(record) is not None for record in records),
        metrics.by_run(records),
    )  # fmt: skip


def _measured_columns(table: Table) -> Iterator[_MeasuredColumn]:
    """Yields the columns of scores; all but the lengths are in percent."""
    yield _MeasuredColumn(f"ours {table.dev}", metrics.dev_bleu, optional=False)
    yield _MeasuredColumn(f"ours {table.test}", metrics.test_bleu, optional=False)
    unseen = f"ours {table.test}, unseen pairs"
    yield _MeasuredColumn(unseen, metrics.unseen_bleu)
    for history, heading in HISTORY_HEADINGS.items():
        bleu = partial(metrics.history_bleu, history=history)
        yield _MeasuredColumn(f"ours {table.test}, {heading}", bleu)
        bleu = partial(metrics.unseen_bleu, history=history)
        yield _MeasuredColumn(f"{unseen}, {heading}", bleu)
    yield _MeasuredColumn(f"13a {table.dev}", lambda run: metrics.detokenised_bleu(run, "dev"))
    yield _MeasuredColumn(f"13a {table.test}", lambda run: metrics.detokenised_bleu(run, "test"))
    yield _MeasuredColumn("brevity penalty", metrics.brevity_penalty, 3, optional=False)
    yield _MeasuredColumn("length ratio", metrics.length_ratio, 3, optional=False)
    yield _MeasuredColumn("length penalty", metrics.length_penalty_weight, 1, optional=False)
    yield _MeasuredColumn("chrF", metrics.chrf, 1, optional=False)
    for heading, group, key in (
        ("AER", "alignment", "aer"),
        ("soft AER", "alignment", "soft_aer"),
        ("under-translated", "adequacy", "under"),
        ("reworded", "adequacy", "reworded"),
        ("over-translated", "adequacy", "over"),
    ):
        yield _MeasuredColumn(heading, partial(metrics.percentage, group=group, key=key))
    yield _MeasuredColumn(f"repeated {metrics.REPEATED_ORDER}-grams", metrics.repeated_ngrams)
    yield _MeasuredColumn("consistent", metrics.consistency_percentage)
    yield _MeasuredColumn(
        "consistent, two documents", partial(metrics.consistency_percentage, prefix="other_")
    )
    yield _MeasuredColumn("tense", lambda run: metrics.tense_percentage(run, "right"))
    yield _MeasuredColumn(
        "tense, other document", lambda run: metrics.tense_percentage(run, "other_right")
    )
    yield _MeasuredColumn("senses", lambda run: metrics.sense_percentage(run, "right"))
    yield _MeasuredColumn(
        "senses, other document", lambda run: metrics.sense_percentage(run, "other_right")
    )


def _measured_cell(column: _MeasuredColumn, runs: Sequence[Record]) -> str:
    values = [value for value in map(column.value, runs) if value is not None]
    cell = markdown.mean_cell(values, column.decimals)
    if len(values) == 1 and column.value is metrics.test_bleu:
        interval = metrics.confidence_interval(runs[0])
        cell += f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
    if 0 < len(values) < len(runs):
        cell += f" ({_count_seeds(len(values))})"
    if column.heading == "under-translated" and any(map(includes_reworded, runs)):
        return f"≤ {cell}"
    return cell


def _count_seeds(number: int) -> str:
    return f"{number} seed{'s' if number > 1 else ''}"


def _difference(
    pairs: Sequence[tuple[Record, Record]], tested: Sequence[tuple[Record, Record]]
) -> str:
    """Formats the difference of the means over the seeds, and the greatest p of each test.

    A p value does not say which system is better, so seeds that contradict each other, each beyond
    chance, are no significant difference.

    Args:
      pairs: the runs of a row and of its rival, by seed.
      tested: those of them whose recorded tests are of the scores that are shown.
    """
    scores = [[metrics.test_bleu(pair[side]) for pair in pairs] for side in (0, 1)]
    ours, theirs = map(statistics.fmean, scores)
    cell = format_difference(ours - theirs)
    if theirs:
        cell += f" ({format_difference(100 * (ours / theirs - 1), 1)}%)"
    if not tested:
        return cell
    tests = [metrics.significance_test(run, rival["row"]) for run, rival in tested]
    bootstrap_p, sign_p = metrics.greatest_p(tests)
    complete = len(tested) == len(pairs)
    agree = len({a > b for a, b in zip(*scores)}) == 1
    significant = complete and agree and max(bootstrap_p, sign_p) < metrics.SIGNIFICANCE_LEVEL
    p_values = f"{'†' if significant else ''}, p {bootstrap_p:.3f} / {sign_p:.3f}"
    return cell + p_values + ("" if complete else f" ({_count_seeds(len(tested))})")


def _cost_cells(runs: Sequence[Record], several_seeds: bool) -> list[str]:
    first = runs[0]
    steps = " or ".join(map(str, sorted({run["steps"] for run in runs})))
    updates = f"{'+' if first.get('start') else ''}{steps}"
    speed = ["-", "-"]  # of a row without training
    if not first.get("weights"):
        speed = [
            f"{statistics.fmean(run['words_per_second'] for run in runs):.0f}",
            f"{statistics.fmean(run['train_seconds'] for run in runs) / 60:.0f}",
        ]
    return [
        f"{first['parameters'] / 1e6:.2f}M",
        "+0" if first.get("weights") else updates,
        *([str(len(runs))] if several_seeds else []),
        *speed,
    ]


def _decoding_speed(runs: Sequence[Record]) -> str:
    speeds = [speed for speed in map(metrics.decoding_speed, runs) if speed is not None]
    return f"{statistics.fmean(speeds):.0f}" if speeds else "-"


def _printed_figures(table: Table, columns: Sequence[_PaperColumn]) -> dict[str, tuple[str, ...]]:
    """Formats the paper's figures as it prints them: dev, test, then the columns.

    Returns:
      the cells of each row, by its name, and of each system of the literature, by its title.
    """
    systems = table.literature
    nothing = [None] * len(systems)
    values: list[list[float | None]] = [
        [*(row.paper_dev for row in table.rows), *nothing],
        [*(row.paper_test for row in table.rows), *(system.paper_test for system in systems)],
        *([*map(column.value, table.rows), *nothing] for column in columns),
    ]
    units = ["", "", *(column.unit for column in columns)]
    names = [*(row.name for row in table.rows), *(system.title for system in systems)]
    return dict(zip(names, zip(*map(_column_cells, values, units))))


def _column_cells(values: Sequence[float | None], unit: str) -> list[str]:
    """Formats figures with the decimals of the one that has most: a float lacks final zeros."""
    lengths = [len(str(value).partition(".")[2]) for value in values if value is not None]
    decimals = max(lengths, default=0)
    return ["-" if value is None else f"{value:.{decimals}f}{unit}" for value in values]


def _part(pair: tuple[float, float] | None, index: int) -> float | None:
    return None if pair is None else pair[index]
