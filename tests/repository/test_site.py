"""The parts of the documentation site that a program writes."""

import importlib.util
from pathlib import Path

from tfmann import config

SITE = Path(__file__).resolve().parents[2] / "scripts" / "site"


def hook(name):
    spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_settings_have_every_setting():
    tables = hook("settings_tables").tables()
    rows = [line for line in tables.splitlines() if line.startswith("| `")]
    settings = {row.split("`")[1] for row in rows}
    assert settings == set(config.FIELDS)
    assert all(row.replace("\\|", "").count("|") == 5 for row in rows)
    for cell in config.FIELDS["cell"].choices:
        assert f"### `{cell}`" in tables


def test_the_page_of_settings_has_a_place_for_the_tables():
    module = hook("settings_tables")
    page = (SITE.parents[1] / "docs" / "settings.md").read_text("utf-8")
    assert module.MARKER in page
    assert "| `num_units` |" in module.on_page_markdown(page, None, None, None)
