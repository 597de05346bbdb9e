"""Writes the tables of docs/settings.md from the declarations of the settings."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tfmann.config import architecture, cells, data, fields, search, training  # noqa: E402

PAGE = ROOT / "docs" / "settings.md"
BEGIN, END = "<!-- settings -->\n", "<!-- end -->"
PARTS = {
    "Model": architecture.Architecture,
    "Text and vocabularies": data.DataSettings,
    "Initial weights": training.InitializationSettings,
    "Optimizer": training.OptimizerSettings,
    "Updates": training.UpdateSettings,
    "Run": training.RunSettings,
    "Search": search.SearchSettings,
    "Translation": search.TranslationSettings,
}
COLUMNS = ["setting", "default", "allowed", "meaning"]


def tables():
    """Returns all settings as Markdown: those of every model, then those of some cells only."""
    lines, listed = [], set()
    for title, part in PARTS.items():
        new = {key: rule for key, rule in fields.fields_of(part).items() if key not in listed}
        listed |= set(new)
        lines += [f"## {title}", "", *_table(COLUMNS, [_row(*item) for item in new.items()]), ""]
    return "\n".join([*lines, *_tables_of_cells()])


def _tables_of_cells():
    settings = {name: fields.fields_of(spec.options) for name, spec in cells.CELLS.items()}
    rules = {key: rule for own in settings.values() for key, rule in own.items()}
    readers = {
        key: ", ".join(f"`{name}`" for name, own in settings.items() if key in own) for key in rules
    }
    yield from ("## Settings of some cells", "")
    rows = [[*_row(key, rules[key]), readers[key]] for key in sorted(rules)]
    yield from (*_table([*COLUMNS, "cells"], rows), "")
    rows = [
        [f"`{name}`", ", ".join(f"`{key}`" for key in own) or "none"]
        for name, own in settings.items()
    ]
    yield from (*_table(["cell", "its settings"], rows), "")


def _table(columns, rows):
    for row in (columns, ["---"] * len(columns), *rows):
        yield "| " + " | ".join(column.replace("|", "\\|") for column in row) + " |"


def _row(key, rule):
    default = "" if rule.default is None else f"`{_text(rule.default)}`"
    return [f"`{key}`", default, _allowed(rule), rule.help.replace("<", "&lt;")]


def _text(value):
    return '""' if value == "" else str(value).lower() if isinstance(value, bool) else value


def _allowed(rule):
    if rule.choices is not None:
        return ", ".join(f"`{_text(choice)}`" for choice in rule.choices)
    if rule.type is bool:
        return "`true`, `false`"
    limits = [
        f"{sign} {value:g}"
        for sign, value in (("≥", rule.minimum), ("≤", rule.maximum), ("<", rule.below))
        if value is not None
    ]
    return " ".join([{int: "integer", float: "number", str: "text"}[rule.type], *limits])


def page():
    """Returns the page with the tables that belong there."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return before + BEGIN + "\n" + tables() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
