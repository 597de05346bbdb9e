"""What goes together in a translation: the table of docs/training.md, entry by entry."""

import pytest
from helpers import small_models, tiny_runs
from helpers.translations import languages, translator

from tfmann import config
from tfmann.api import Model
from tfmann.decoding import ensemble_runs
from tfmann.decoding.ensemble import Ensemble
from tfmann.decoding.ensemble_translator import EnsembleTranslator
from tfmann.errors import UsageError
from tfmann.export.settings import require_fixed

SETTINGS = {
    "cell `cache`": [{"cell": "cache"}, {"cell": "cache", "cache_fusion": "shallow"}],
    "cell `summary` or `previous`": [{"cell": "summary"}, {"cell": "previous"}],
    "neural cache": [{"neural_cache_size": 5}],
    "translation memory": [{"translation_memory": "memory.de,memory.en"}],
    "word translations": [{"lexical_memory": "memory.npz"}],
    "several models": [{}],
    "shortlist": [{"shortlist": "shortlist.txt"}],
}


def entries():
    """The table's entries: what is in its row, what in its column, and what it says of both."""
    page = (tiny_runs.ROOT / "docs" / "training.md").read_text()
    section = page.split("## What goes together")[1].split("\n## ")[0]
    header, _, *rows = [
        [cell.strip().split("](")[0].lstrip("[") for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    return [(row[0], *pair) for row in rows for pair in zip(header[1:], row[1:]) if pair[1]]


def require(row, settings, monkeypatch):
    """Raises UsageError unless what is in a row goes with the settings of what is in a column."""
    if row == "several models":
        h = small_models.hparams("rnnsearch", **settings)
        monkeypatch.setattr(config, "settings_of_model", lambda *_: h)
        if config.cell_spec(h.cell).reads_documents:
            ensemble_runs.load_settings("runs/a", h, ["runs/b"])
        EnsembleTranslator(Ensemble([small_models.model()] * 2), languages(), h)
    elif row == "`tfmann export`" and not settings:
        Model(translator(), "", ensemble=["runs/b"]).export("nowhere")
    elif row == "`tfmann export`":
        require_fixed(small_models.hparams("rnnsearch", **settings))
    else:
        small_models.hparams("rnnsearch", **SETTINGS[row][0], **settings)


@pytest.mark.parametrize(("row", "column", "says"), entries())
def test_the_table_says_what_is_refused(row, column, says, monkeypatch):
    if (row, column) == ("shortlist", "several models"):
        row, column = column, row
    refused = []
    for settings in SETTINGS[column]:
        try:
            require(row, settings, monkeypatch)
        except UsageError:
            refused.append(settings)
    assert refused == {
        "yes": [], "no": SETTINGS[column], "yes, but no shallow fusion": SETTINGS[column][1:],
    }[says]  # fmt: skip
