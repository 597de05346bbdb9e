"""Settings files of the rows of the tables."""

from pathlib import Path

from tfmann import config
from tfmann.papers.tables import TABLES

ROOT = Path(__file__).resolve().parents[2]
OWN_FIELDS = {cell: set(config.fields_of(spec.options)) for cell, spec in config.CELLS.items()}
TU = {"cache-news": "paper", "cache-subtitle": "paper", "cache-ted": "paper"}
TENSE = ("synthetic-tense", "tiny")
SENSES = ("synthetic-senses", "tiny")
DIALOGUES = [("bcontrast-de-en", "cpu"), ("bcontrast-en-de", "cpu")]


def path_of(table, row, scale):
    return ROOT / "hparams" / table.settings_file(row, scale)


def trained_rows(name, scale):
    """The rows of a table without those that have the weights of another row."""
    return [row for row in TABLES[name].at(scale).rows if not row.weights]


def rows(name, scale):
    """Settings by row, of the trained rows that have any at this scale."""
    table = TABLES[name].at(scale)
    paths = {row.name: path_of(table, row, scale) for row in trained_rows(name, scale)}
    return {row: config.make({}, str(path)) for row, path in paths.items() if path.exists()}


def differences(hparams, other_hparams):
    first, second = hparams.as_dict(), other_hparams.as_dict()
    return {key for key in first if first[key] != second[key]}
