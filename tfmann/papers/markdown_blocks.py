"""Tables and claims in Markdown files, between comments; the rest of a file stays as it is.

A block is `<!-- results: NAME -->`, generated text, `<!-- end -->`. NAME is a table with its scale,
such as `vi-en-cpu`, or `claims`, or `overview`. A table shows figures of its differences, and the
overview those of all tables that are evidence; `tfmann.report.difference_chart` writes the figures
into `FIGURES` next to the file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tfmann.errors import UserError
from tfmann.evaluation.verdicts import FAILS, HOLDS, INCONCLUSIVE
from tfmann.papers import claim_counts, judgement, length_scores, markdown, rendering
from tfmann.papers.claim import AnyClaim, UntestedClaim
from tfmann.papers.claims import CLAIMS
from tfmann.papers.differences import comparisons, figure_name
from tfmann.papers.footnotes import MEANING, WARNING
from tfmann.papers.metrics import Record
from tfmann.papers.records import read_results
from tfmann.papers.table import Table
from tfmann.papers.tables import TABLES
from tfmann.utils.files import atomic_write

FIGURES = "figures"  # from the folder of the file
OVERVIEW = "overview"  # the block, and its figure
_BEGIN = "<!-- results: "
_BLOCK = re.compile(rf"({_BEGIN}(.*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
_COLUMNS = (
    "brevity penalty",
    "AER",
    "under-translated",
    "over-translated",
    "consistent",
    "consistent, two documents",
    "tense",
    "tense, other document",
    "senses",
    "senses, other document",
)
_COLUMNS_AND_MARKS = "What the columns and marks mean"
_INCONCLUSIVE = "Inconclusive claims, with what each lacks"
_UNTESTED = "Statements of the papers that no record can test"
CLAIM_HEADING = ("verdict", "claim", "paper", "measured on", "conditions", "evidence")


def pages(path: Path) -> list[Path]:
    """Returns a file, or the Markdown files with blocks of a folder.

    Raises:
      UserError: no file of the folder has a block, or one cannot be read.
    """
    if not path.is_dir():
        return [path]
    found = [file for file in sorted(path.glob("*.md")) if _BEGIN in _read(file)]
    if not found:
        raise UserError(f"{path} has no Markdown file with '{_BEGIN}NAME -->'")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from None


def update_files(paths: Sequence[Path], results_dir: Path) -> list[bool]:
    """Updates the blocks of files; returns whether each has changed.

    Raises:
      UserError: a file cannot be read or written, has no block, or one with an unknown name.
    """
    results, changed = read_results(results_dir), []
    for path in paths:
        before = _read(path)
        after = _fill(before, results, results_dir, str(path))
        changed.append(after != before)
        if after != before:
            with atomic_write(path) as file:
                file.write(after.encode("utf-8"))
    return changed


def fill(text: str, results_dir: Path, name: str = "the text") -> str:
    """Returns a text with its blocks filled from the results.

    Raises:
      UserError: there is no block, one is not ended, or one has an unknown name.
    """
    return _fill(text, read_results(results_dir), results_dir, name)


def _fill(text: str, results: judgement.Results, results_dir: Path, name: str) -> str:
    blocks = len(_BLOCK.findall(text))
    if not blocks or blocks != text.count(_BEGIN):
        raise UserError(
            f"{name}: expected '<!-- results: NAME -->', each followed by '<!-- end -->' on a line "
            "of its own"
        )
    names = {
        f"{table}-{scale}": (table, scale)
        for table, description in TABLES.items()
        for scale in description.scales
    }

    def fill_block(match: re.Match[str]) -> str:
        begin, block, _, end = match.groups()
        if block == "claims":
            lines = _claims(results, results_dir)
        elif block == OVERVIEW:
            alternative = "Differences in test BLEU that several converged seeds have shown"
            lines = [f"![{alternative}]({FIGURES}/{OVERVIEW}.svg)"]
        elif block in names:
            lines = _table(*names[block], results.get(names[block], []))
        else:
            raise UserError(
                f"{name}: there are no results called {block!r}; expected claims, {OVERVIEW}, "
                f"{', '.join(sorted(names))}"
            )
        return begin + "\n".join([*lines, ""]) + end

    return _BLOCK.sub(fill_block, text)


def _table(name: str, scale: str, records: Sequence[Record]) -> list[str]:
    """Renders a short table: systems, BLEU on the test in the paper and ours, comparisons."""
    table = TABLES[name].at(scale)
    rendered = rendering.render_cells(table, scale, records, unmeasured=True)
    if not records and not table.literature:
        return [rendered.title, "", "Not yet measured."]
    headings = {"system", f"paper {table.test}", *_COLUMNS}
    begin = (f"ours {table.test}", "vs. ")  # ours also of unseen pairs and with other histories
    columns = [
        number
        for number, heading in enumerate(rendered.heading)
        if (heading in headings or heading.startswith(begin))
        and any(row[number] != "-" for row in rendered.rows)
    ]
    rows = [[row[number] for number in columns] for row in rendered.rows]
    warnings, meanings = (
        [note.text for note in rendered.footnotes if note.kind == kind]
        for kind in (WARNING, MEANING)
    )
    notes = [*markdown.starred(rendered.notes), *warnings]
    return [
        rendered.title,
        "",
        *markdown.table([rendered.heading[number] for number in columns], rows),
        *([""] if notes else []),
        *markdown.bullets(notes),
        *(markdown.folded(_COLUMNS_AND_MARKS, markdown.bullets(meanings)) if meanings else []),
        *_figures(name, scale, table, records),
        *(_folded_table(length_scores.HEADING, *rendered.lengths) if rendered.lengths else []),
        *(line for statistics in rendered.memory_tables for line in _folded_table(*statistics)),
    ]


def _figures(name: str, scale: str, table: Table, records: Sequence[Record]) -> list[str]:
    lines = []
    for comparison in comparisons(table, records):
        file = f"{FIGURES}/{figure_name(name, scale, comparison)}.svg"
        lines += ["", f"![Differences in test BLEU from {comparison.rival.title}]({file})"]
    return lines


def _folded_table(title: str, heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return markdown.folded(title, markdown.table(heading, rows))


def _claims(results: judgement.Results, results_dir: Path) -> list[str]:
    """Renders the number of verdicts, each claim that was measured, and those without a test.

    Failures are first, and inconclusive claims are folded away. Of the statements that no record
    can test, the last column says why.
    """
    judged = judgement.judge(CLAIMS, results, results_dir)
    counts = judgement.count(verdict for _, verdict in judged)
    judged.sort(key=lambda pair: judgement.STATUSES.index(pair[1].status))
    settled = [_claim_cells(*pair) for pair in judged if pair[1].status in (FAILS, HOLDS)]
    inconclusive = [_claim_cells(*pair) for pair in judged if pair[1].status == INCONCLUSIVE]
    untested = [
        [claim.text, f"{claim.paper}, {claim.section}", claim.missing]
        for claim in CLAIMS
        if isinstance(claim, UntestedClaim)
    ]
    return [
        "; ".join(f"{status}: {number}" for status, number in counts.items())
        + f", of which no record can test {len(untested)}.",
        "",
        *markdown.table(*claim_counts.by_paper(judged)),
        "",
        *markdown.table(CLAIM_HEADING, settled),
        *_folded_table(_INCONCLUSIVE, CLAIM_HEADING, inconclusive),
        *_folded_table(_UNTESTED, ("statement", "paper", "what is missing"), untested),
    ]


def _claim_cells(claim: AnyClaim, verdict: judgement.Verdict) -> list[str]:
    measured = f"{verdict.measured}: {verdict.corpus}" if verdict.corpus else verdict.measured
    source = f"{claim.paper}, {claim.section}"
    cells = [verdict.status, claim.text, source, measured, verdict.conditions or "-"]
    return [*cells, verdict.evidence]
