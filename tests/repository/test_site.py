"""The parts of the documentation site that a program writes."""

import importlib.util
from pathlib import Path

from tfmann import config

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def script(name):
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_settings_have_every_setting_and_cell():
    tables = script("settings_tables").tables()
    rows = [line for line in tables.splitlines() if line.startswith("| `")]
    cells = config.FIELDS["cell"].choices
    assert [row.split("`")[1] for row in rows[-len(cells) :]] == list(cells)
    settings = [row.split("`")[1] for row in rows[: -len(cells)]]
    assert sorted(settings) == sorted(config.FIELDS)
    separators = {row.replace("\\|", "").count("|") for row in rows[: -len(cells)]}
    assert separators == {5, 6}


def test_the_page_of_settings_has_the_tables():
    module = script("settings_tables")
    assert module.PAGE.read_text("utf-8") == module.page(), "run python scripts/settings_tables.py"


def test_figures_that_belong_together_stay_on_one_line():
    html = "<td>96.32 ± 0.41</td><td>-0.04 (-0.0%), p 0.345 / 0.894; 0.9 / 0.8</td><p>p &lt; 0.01"
    shown = script("site/unbroken_figures").on_page_content(html, None, None, None)
    space = "\N{NO-BREAK SPACE}"
    for figures in ("96.32 ± 0.41", "p 0.345 / 0.894", "p &lt; 0.01"):
        html = html.replace(figures, figures.replace(" ", space))
    assert shown == html and space in shown
