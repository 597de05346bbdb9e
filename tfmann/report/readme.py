"""Tables and claims in a Markdown file, between comments; the rest of it is left alone.

A region is `<!-- results: NAME -->`, what is written by us, `<!-- end -->`. NAME is a table and its
scale, such as `vi-en-cpu`, or `claims`.
"""

from __future__ import annotations

import re
from pathlib import Path

from tfmann.corpus.files import replacing
from tfmann.errors import UserError
from tfmann.report import claims, measures, tables
from tfmann.report.claimed import CLAIMS
from tfmann.report.systems import TABLES

_REGION = re.compile(r"(<!-- results: (.*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
# Beside BLEU and its tests.
_SHORT = ("brevity penalty", "AER", "under-translated", "over-translated", "tense")
_CLAIMS = ("our records say", "claim", "paper", "measured on", "stands on", "evidence")
_SHORT_FACTS = (
    "mean ±", "seeds far apart:", "against:", "§", "[low, high]", "train:", "dev:", "test:",
)  # fmt: skip


def write(path: Path, results_dir: Path) -> bool:
    """Writes the regions of a file anew; returns whether anything changed.

    Raises:
      UserError: it cannot be read or written, has no region, or one of an unknown name.
    """
    try:
        before = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"cannot read {path}: {error}") from None
    after = filled(before, results_dir, str(path))
    if after != before:
        with replacing(path) as file:
            file.write(after.encode("utf-8"))
    return after != before


def filled(text: str, results_dir: Path, name: str = "the text") -> str:
    """A text with its regions as the results have them.

    Raises:
      UserError: there is no region, one is not ended, or one has an unknown name.
    """
    regions = len(_REGION.findall(text))
    if not regions or regions != text.count("<!-- results: "):
        raise UserError(
            f"{name}: expected '<!-- results: NAME -->', each followed by '<!-- end -->' on a line "
            "of its own"
        )
    results = measures.read_results(results_dir)
    known = {f"{table}-{scale}": (table, scale) for table, one in TABLES.items()
             for scale in one.scales}  # fmt: skip

    def region(found: re.Match[str]) -> str:
        begin, wanted, _, end = found.groups()
        if wanted == "claims":
            lines = _claims(results, results_dir)
        elif wanted in known:
            lines = _table(*known[wanted], results.get(known[wanted], []))
        else:
            raise UserError(
                f"{name}: there are no results called {wanted!r}; there are claims, "
                f"{', '.join(sorted(known))}"
            )
        return begin + "\n".join([*lines, ""]) + end

    return _REGION.sub(region, text)


def _table(name: str, scale: str, records: list[measures.Record]) -> list[str]:
    """A short table: systems, the paper's test, ours, and how sure the differences are."""
    table = TABLES[name].at(scale)
    shown = tables.show(table, scale, records, unmeasured=True)
    wanted = {"system", f"paper {table.test}", f"ours {table.test}", *_SHORT}
    if not records:
        return [shown.title, "", "Not yet measured."]
    columns = [
        number for number, heading in enumerate(shown.heading)
        if (heading in wanted or heading.startswith("against "))
        and any(row[number] != "-" for row in shown.rows)
    ]  # fmt: skip
    rows = [[row[number] for number in columns] for row in shown.rows]
    notes = [f"\\{'*' * number} {note}" for number, note in enumerate(shown.notes, start=1)]
    notes += [fact for fact in shown.facts if fact.startswith(_SHORT_FACTS)]
    return [
        shown.title,
        "",
        *tables.markdown([shown.heading[number] for number in columns], rows),
        *(["", "; ".join(notes) + "."] if notes else []),
    ]


def _claims(
    results: dict[tuple[str, str], list[measures.Record]], results_dir: Path
) -> list[str]:
    """How many claims hold, and each that was measured, the worst news first."""
    judged = claims.judge(CLAIMS, results, results_dir)
    counts = claims.count(verdict for _, verdict in judged)
    judged.sort(key=lambda pair: claims.STATUSES.index(pair[1].status))
    rows = [
        [one.status, claim.text, f"{claim.paper}, {claim.where}",
         f"{one.measured}: {one.corpus}" if one.corpus else one.measured, one.facts or "-",
         one.evidence]
        for claim, one in judged
        if one.status != claims.NOT_MEASURED
    ]  # fmt: skip
    return [
        "; ".join(f"{status}: {number}" for status, number in counts.items()) + ".",
        "",
        *tables.markdown(_CLAIMS, rows),
    ]
