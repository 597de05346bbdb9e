"""The page of all results: claims and tables from the records, sentences from the runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable, NamedTuple

from tfmann.papers import claim_counts, judgement, metrics, rendering
from tfmann.papers.claims import CLAIMS
from tfmann.papers.judgement import Results
from tfmann.papers.markdown_blocks import CLAIM_HEADING
from tfmann.papers.records import read_results
from tfmann.papers.table import Table
from tfmann.papers.tables import PAPERS, TABLES, synthetic
from tfmann.report import curves, figures
from tfmann.report.difference_chart import DifferenceChart, difference_charts, overview_chart
from tfmann.report.figures import Drawing, Tracer
from tfmann.report.html import render_template
from tfmann.report.length_chart import length_chart
from tfmann.report.runs import TranslatedTest, translated_test
from tfmann.report.sentences import Sentence, choose_sentences, compare_systems, separator

_PAPERS: Mapping[str, Mapping[str, Table]] = {
    **PAPERS,
    "All cells": synthetic.TABLES,
}
# A table's sentences, as templates/page.html writes them.
_SENTENCES = re.compile(
    r'(<details class="panel examples" id="sentences-([\w-]+)".*?</details>)', re.DOTALL
)


class TablePanel(NamedTuple):
    """A table with its differences and learning curves, and BLEU by length if it is recorded."""

    anchor: str
    table: rendering.RenderedTable
    charts: list[curves.Chart]
    measured: bool
    length_chart: curves.Chart | None
    difference_charts: list[DifferenceChart]


class Example(NamedTuple):
    """A sentence with the figures of those systems that have some."""

    sentence: Sentence
    drawings: dict[str, list[Drawing]]  # by the system's title


class Examples(NamedTuple):
    """Sentences of a table's test."""

    anchor: str
    title: str
    baseline: str  # title of the first system
    gold: bool  # whether under-translated words are known
    separator: str  # between the words, or characters, of a translation
    examples: list[Example]
    recency: dict[str, list[Drawing]]  # figures over all sentences, by the system's title


class ExampleOptions(NamedTuple):
    """The choice of sentences for a page.

    Attributes:
      out_dir: folder of the runs.
      number: sentences of each table.
      drawn: how many of them have figures.
      synthetic_only: leave out real corpora.
    """

    out_dir: str
    number: int = 8
    drawn: int = 3
    synthetic_only: bool = False


def render_page(
    results_dir: Path,
    options: ExampleOptions,
    tracer: Tracer | None,
    log: Callable[[str], None],
    earlier_page: str = "",
) -> str:
    """Returns the HTML of the page.

    Args:
      results_dir: folder of the records.
      options: the choice of sentences.
      tracer: runs models for the figures; None draws no figures.
      log: receives a line before slow work.
      earlier_page: its sentences are used for tables without finished runs.
    """
    results = read_results(results_dir)
    return render_template(
        "page.html",
        results=render_results(results_dir),
        all_examples=_all_examples(options, tracer, log, earlier_page, results),
        synthetic_only=options.synthetic_only,
    )


def render_results(results_dir: Path) -> str:
    """Returns the page's part about the records: verdicts on claims, tables, learning curves."""
    from markupsafe import Markup

    results = read_results(results_dir)
    judged = judgement.judge(CLAIMS, results, results_dir)
    judged.sort(key=lambda pair: judgement.STATUSES.index(pair[1].status))  # failures first
    return Markup(
        render_template(
            "results.html",
            papers={paper: _table_panels(tables, results) for paper, tables in _PAPERS.items()},
            claims=judged,
            claim_heading=CLAIM_HEADING,
            claims_by_paper=claim_counts.by_paper(judged),
            counts=judgement.count(verdict for _, verdict in judged),
            papers_with_claims=list(dict.fromkeys(claim.paper for claim in CLAIMS)),
            adequacy=_adequacy_tables(results),
            overview=overview_chart(results),
            frame=curves,
        )
    )


def _table_panels(tables: Mapping[str, Table], results: Results) -> list[TablePanel]:
    """Returns a panel for each table and scale that was measured, or one without measurements."""
    panels = []
    for name, table in tables.items():
        scales = [scale for scale in table.scales if results.get((name, scale))]
        if not any(table.at(scale).rows == table.rows for scale in scales):
            scales = list(dict.fromkeys([table.scales[0], *scales]))  # for the paper's figures
        for scale in scales:
            records = results.get((name, scale), [])
            at_scale = table.at(scale)
            rendered = rendering.render_cells(at_scale, scale, records, unmeasured=True)
            if not records:
                rendered = rendered._replace(title=_unmeasured_title(at_scale))
            charts = curves.charts(at_scale, records)
            panels.append(
                TablePanel(
                    f"{name}-{scale}", rendered, charts, bool(records),
                    length_chart(at_scale, records), difference_charts(at_scale, records),
                )
            )  # fmt: skip
    return panels


def _unmeasured_title(table: Table) -> str:
    return f"{table.title}: {rendering.NOT_MEASURED}"


def _adequacy_tables(results: Results) -> list[tuple[str, list[str], list[list[str]]]]:
    """Returns title, heading and rows of each table with under- and over-translated words."""
    headings = (
        "system",
        "paper under-translated",
        "under-translated",
        "reworded",
        "paper over-translated",
        "over-translated",
        f"repeated {metrics.REPEATED_ORDER}-grams",
    )
    tables = []
    for name, table in TABLES.items():
        for scale in table.scales:
            records = results.get((name, scale), [])
            at_scale = table.at(scale)
            in_paper = any(row.paper_adequacy for row in at_scale.rows)
            if not records and not in_paper:
                continue
            rendered = rendering.render_cells(at_scale, scale, records, unmeasured=in_paper)
            columns = [
                rendered.heading.index(heading)
                for heading in headings
                if heading in rendered.heading
            ]
            rows = [[row[k] for k in columns] for row in rendered.rows]
            rows = [row for row in rows if set(row[1:]) - {"-"}]
            if rows and len(columns) > 1:
                title = rendered.title if records else _unmeasured_title(at_scale)
                tables.append((title, [rendered.heading[k] for k in columns], rows))
    return tables


def _all_examples(
    options: ExampleOptions,
    tracer: Tracer | None,
    log: Callable[[str], None],
    earlier_page: str,
    results: Results,
) -> list[Any]:
    """Returns the sentences of every table with finished runs, or else the earlier page's HTML."""
    from markupsafe import Markup

    earlier = {anchor: Markup(html) for html, anchor in _SENTENCES.findall(earlier_page)}
    examples: list[Any] = []
    for name, table in TABLES.items():
        for scale in table.scales:
            at_scale, anchor = table.at(scale), f"{name}-{scale}"
            if options.synthetic_only and at_scale.manifest is not None:
                continue
            test = translated_test(at_scale, os.path.join(options.out_dir, name, scale))
            if test is not None:
                note = metrics.stand_in(results.get((name, scale), ()))
                title = f"{at_scale.title} (scale {scale}{f'; {note}' if note else ''})"
                examples.append(make_examples(anchor, title, test, options, tracer, log))
            elif anchor in earlier:
                examples.append(earlier[anchor])
    return examples


def make_examples(
    anchor: str,
    title: str,
    test: TranslatedTest,
    options: ExampleOptions,
    tracer: Tracer | None,
    log: Callable[[str], None],
) -> Examples:
    """Chooses sentences of a set that systems have translated, with figures if there is a tracer.

    Args:
      anchor: of the panel in the page.
      title: of the panel.
      test: the set, with its systems.
      options: the choice of sentences.
      tracer: runs models for the figures; None draws no figures.
      log: receives a line before slow work.
    """
    numbers = choose_sentences(test, options.number)
    drawings = {}
    if tracer and options.drawn:
        for run in test.runs:
            if run.by_best and figures.has_checkpoint(run.folder):
                numbers_drawn = numbers[: options.drawn]
                drawings[run.title] = figures.draw_run(test, run, numbers_drawn, tracer, log)
    examples = [
        Example(
            sentence,
            {
                system: by_sentence[sentence.number]
                for system, by_sentence in drawings.items()
                if sentence.number in by_sentence
            },
        )
        for sentence in compare_systems(test, numbers)
    ]
    recency = {
        system: by_sentence[figures.ALL_SENTENCES]
        for system, by_sentence in drawings.items()
        if figures.ALL_SENTENCES in by_sentence
    }
    gold, space = test.gold is not None, separator(test.by_character)
    return Examples(anchor, title, test.runs[0].title, gold, space, examples, recency)
