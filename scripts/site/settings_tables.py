"""A hook of mkdocs: the tables of docs/settings.md, written from the declarations of settings."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tfmann.config import architecture, cells, data, fields, search, training  # noqa: E402

MARKER = "<!-- tables of settings -->"
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
HEAD = ["| setting | default | allowed | meaning |", "|---|---|---|---|"]


def on_page_markdown(markdown, page, config, files):
    """Replaces the marker by the tables."""
    return markdown.replace(MARKER, tables())


def tables():
    """Returns all settings as Markdown: those of every model, then those of each cell."""
    lines, listed = [], set()
    for title, part in PARTS.items():
        new = {key: rule for key, rule in fields.fields_of(part).items() if key not in listed}
        listed |= set(new)
        lines += _table(title, new)
    lines += ["## Settings of one cell", ""]
    for name, spec in cells.CELLS.items():
        lines += _table(f"`{name}`", fields.fields_of(spec.options), level=3)
    return "\n".join(lines)


def _table(title, rules, level=2):
    head = [f"{'#' * level} {title}", ""]
    if not rules:
        return [*head, "No settings of its own.", ""]
    return [*head, *HEAD, *(_row(key, rule) for key, rule in rules.items()), ""]


def _row(key, rule):
    default = "" if rule.default is None else f"`{_text(rule.default)}`"
    columns = [f"`{key}`", default, _allowed(rule), rule.help]
    return "| " + " | ".join(column.replace("|", "\\|") for column in columns) + " |"


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
