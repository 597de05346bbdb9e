"""Builds the page: results, which need the records alone, and sentences, which need the runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Callable, NamedTuple

from tfmann.report import claims, measures, tables
from tfmann.report.claimed import CLAIMS
from tfmann.report.page import curves, figures, sentences
from tfmann.report.page.figures import Drawing, Tracer
from tfmann.report.systems import TABLES, collier, meng, mino, synthetic, tu
from tfmann.report.table import Table

_PAPERS: Mapping[str, Mapping[str, Table]] = {
    "Collier & Beel 2019": collier.TABLES,
    "Meng et al. 2018": meng.TABLES,
    "Mino et al. 2017": mino.TABLES,
    "Tu et al. 2018": tu.TABLES,
    "All cells": synthetic.TABLES,
}
# A table's sentences, as templates/page.html writes them.
_PANEL = re.compile(
    r'(<details class="panel examples" id="sentences-([\w-]+)".*?</details>)', re.DOTALL
)


class Panel(NamedTuple):
    """A table with its curves."""

    anchor: str
    shown: tables.Shown
    charts: list[curves.Chart]
    systems: list[tuple[int, str]]  # number and title, for the legend
    measured: bool


class Example(NamedTuple):
    """A sentence with the figures of the systems that have some."""

    sentence: sentences.Sentence
    drawings: dict[str, list[Drawing]]  # by the system's title


class Examples(NamedTuple):
    """Sentences of a table's test."""

    anchor: str
    title: str
    baseline: str  # the first system
    gold: bool  # whether words left out are known
    examples: list[Example]
    recency: dict[str, list[Drawing]]


class Wanted(NamedTuple):
    """Which sentences a page is to show.

    Attributes:
      out_dir: where the runs are.
      number: sentences a table.
      drawn: how many of them with figures.
      synthetic_only: none of a real corpus.
    """

    out_dir: str
    number: int = 8
    drawn: int = 3
    synthetic_only: bool = False


def page(
    results_dir: Path,
    wanted: Wanted,
    tracer: Tracer | None,
    log: Callable[[str], None],
    before: str = "",
) -> str:
    """The whole page.

    Args:
      results_dir: where the records are.
      wanted: which sentences.
      tracer: runs models for the figures; None: no figures.
      log: is told what takes time.
      before: an earlier page, whose sentences stay where a table has no finished runs any more.
    """
    return environment().get_template("page.html").render(
        results=results_part(results_dir),
        all_examples=all_examples(
            wanted, tracer, log, before, measures.read_results(results_dir)
        ),
        synthetic_only=wanted.synthetic_only,
    )


def results_part(results_dir: Path) -> str:
    """What the page says of the records: claims and tables. The same for the same records."""
    from markupsafe import Markup

    results = measures.read_results(results_dir)
    judged = claims.judge(CLAIMS, results, results_dir)
    judged.sort(key=lambda row: claims.STATUSES.index(row[1].status))  # the worst news first
    counts = claims.count(verdict for _, verdict in judged)
    return Markup(
        environment()
        .get_template("results.html")
        .render(
            papers={paper: _panels(found, results) for paper, found in _PAPERS.items()},
            claims=judged,
            counts=counts,
            claiming=list(dict.fromkeys(one.paper for one in CLAIMS)),
            adequacy=_adequacy(results),
            frame=curves,
        )
    )


def _panels(
    found: Mapping[str, Table], results: Mapping[tuple[str, str], Sequence[measures.Record]]
) -> list[Panel]:
    """A panel for each table and scale that was measured, or one for a table that never was."""
    panels = []
    for name, table in found.items():
        scales = [scale for scale in table.scales if results.get((name, scale))]
        if not any(table.at(scale).rows == table.rows for scale in scales):
            scales = list(dict.fromkeys([table.scales[0], *scales]))  # the paper's own figures
        for scale in scales:
            records = results.get((name, scale), [])
            here = table.at(scale)
            ran = {one["row"] for one in records}
            shown = tables.show(here, scale, records, unmeasured=True)
            panels.append(
                Panel(
                    f"{name}-{scale}",
                    shown if records else shown._replace(title=_unmeasured(here)),
                    curves.charts(here, records),
                    [(i, row.title) for i, row in enumerate(here.rows) if row.name in ran],
                    bool(records),
                )
            )
    return panels


def _unmeasured(table: Table) -> str:
    return f"{table.title}: {tables.NOT_MEASURED}"


def _adequacy(
    results: Mapping[tuple[str, str], Sequence[measures.Record]],
) -> list[tuple[str, list[str], list[list[str]]]]:
    """What is left out and said too often: of each table its title, heading and rows."""
    wanted = ("system", "paper under-translated", "under-translated", "reworded",
              "paper over-translated", "over-translated", f"repeated {measures.REPEATED}-grams")
    found = []
    for name, table in TABLES.items():
        for scale in table.scales:
            records = results.get((name, scale), [])
            here = table.at(scale)
            printed = any(row.paper_adequacy for row in here.rows)
            if not records and not printed:
                continue
            shown = tables.show(here, scale, records, unmeasured=printed)
            columns = [shown.heading.index(one) for one in wanted if one in shown.heading]
            rows = [[row[k] for k in columns] for row in shown.rows]
            rows = [row for row in rows if set(row[1:]) - {"-"}]
            if rows and len(columns) > 1:
                title = shown.title if records else _unmeasured(here)
                found.append((title, [shown.heading[k] for k in columns], rows))
    return found


def all_examples(
    wanted: Wanted,
    tracer: Tracer | None,
    log: Callable[[str], None],
    before: str,
    results: Mapping[tuple[str, str], Sequence[measures.Record]],
) -> list[Any]:
    """Sentences of every table that has finished runs; of the others the earlier page's HTML."""
    from markupsafe import Markup

    kept = {anchor: Markup(panel) for panel, anchor in _PANEL.findall(before)}
    found: list[Any] = []
    for name, table in TABLES.items():
        for scale in table.scales:
            here, anchor = table.at(scale), f"{name}-{scale}"
            if wanted.synthetic_only and here.manifest is not None:
                continue
            test = sentences.find(here, os.path.join(wanted.out_dir, name, scale))
            if test is not None:
                other = measures.stand_in_of(results.get((name, scale), ()))
                title = f"{here.title} (scale {scale}{f'; {other}' if other else ''})"
                found.append(_examples(anchor, title, test, wanted, tracer, log))
            elif anchor in kept:
                found.append(kept[anchor])
    return found


def _examples(
    anchor: str,
    title: str,
    test: sentences.Test,
    wanted: Wanted,
    tracer: Tracer | None,
    log: Callable[[str], None],
) -> Examples:
    numbers = sentences.choose(test, wanted.number)
    drawings = {}
    for run in test.runs:
        if tracer and wanted.drawn and figures.has_figures(run.folder):
            drawn = figures.draw(test, run, numbers[: wanted.drawn], tracer, log)
            drawings[run.row.title] = figures.by_sentence(drawn)
    examples = [
        Example(one, {system: by[one.number] for system, by in drawings.items()
                      if one.number in by})
        for one in sentences.sentences(test, numbers)
    ]  # fmt: skip
    recency = {
        system: by[figures.RECENCY] for system, by in drawings.items() if figures.RECENCY in by
    }
    return Examples(
        anchor, title, test.runs[0].row.title, test.gold is not None, examples, recency
    )


def environment() -> Any:
    """jinja2's environment of the templates: what they are given is shown, never obeyed.

    `css` and `script` are no templates, and stand in a page as they are.
    """
    import jinja2
    from markupsafe import Markup

    loader = jinja2.PackageLoader("tfmann.report.page")
    made = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name, file in (("css", "page.css"), ("script", "page.js")):
        made.globals[name] = Markup(loader.get_source(made, file)[0])
    return made
