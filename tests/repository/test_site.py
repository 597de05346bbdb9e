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


def test_figures_that_belong_together_stay_on_one_line():
    html = "<td>96.32 ± 0.41</td><td>-0.04 (-0.0%), p 0.345 / 0.894; 0.9 / 0.8</td><p>p &lt; 0.01"
    shown = hook("unbroken_figures").on_page_content(html, None, None, None)
    space = "\N{NO-BREAK SPACE}"
    for figures in ("96.32 ± 0.41", "p 0.345 / 0.894", "p &lt; 0.01"):
        html = html.replace(figures, figures.replace(" ", space))
    assert shown == html and space in shown
