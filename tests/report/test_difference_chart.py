"""The figures of differences: positions in order, numbers as text, files as the records have it."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from helpers.claims import runs
from helpers.records import record, table, write_results

from tfmann.cli import report as command
from tfmann.papers.markdown_blocks import FIGURES
from tfmann.papers.table import Row
from tfmann.papers.tables import TABLES
from tfmann.report import difference_chart, results_page

ROOT = Path(__file__).resolve().parents[2]
SHOWN = table(
    Row("luong", "L", paper_test=23.3), Row("mad_1", "M <1>", paper_test=23.1),
    Row("ntm_1", "N"), baselines=("luong",), scales=("cpu",),
)  # fmt: skip
CURVE = {"history": [{"step": step, "dev_bleu": 9.0, "dev_ppl": 7.0} for step in range(1, 6)]}
RECORDS = [*runs([12.0, 12.5, 11.5], [11.0] * 3, spread=0.1, **CURVE), record("ntm_1", 9.0)]


def test_a_chart_has_a_bar_for_each_row():
    (chart,) = difference_chart.difference_charts(SHOWN, RECORDS)
    ((_, (first, second)),) = chart.parts
    assert first.text == "+1.00 [-0.31, +2.31], 3 seeds" and first.is_evidence
    assert second.text.endswith("one seed") and not second.is_evidence
    left, right = chart.x_ticks[0][0], chart.x_ticks[-1][0]
    assert left <= second.low <= second.mean < chart.zero < first.mean < first.high <= right
    assert first.low < chart.zero < min(first.seeds)
    assert first.paper < chart.zero and second.paper is None and second.seeds == []
    assert first.y < first.middle < second.y < second.middle < chart.bottom < chart.height
    assert [text for _, text in chart.x_ticks if text == "0"] == ["0"]


def test_rows_that_never_differ_have_a_chart():
    (chart,) = difference_chart.difference_charts(SHOWN, runs([11.0] * 2, [11.0] * 2))
    assert chart.parts[0].bars[0].mean == chart.parts[0].bars[0].low == chart.zero


def test_a_figure_is_svg_with_escaped_text(tmp_path, monkeypatch):
    monkeypatch.setitem(TABLES, "toy", SHOWN)
    results = write_results(tmp_path, "toy-cpu", *RECORDS)
    figure = difference_chart.render_figures(results)["toy-cpu-luong"]
    root = ElementTree.fromstring(figure)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "M <1>" in [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def test_the_overview_has_a_heading_for_each_table(monkeypatch):
    for number, name in enumerate(("toy", "other")):
        monkeypatch.setitem(TABLES, name, SHOWN._replace(title=f"T{number}, BLEU without case"))
    results = {("other", "cpu"): RECORDS, ("toy", "cpu"): RECORDS, ("vi-en", "cpu"): []}
    chart = difference_chart.overview_chart(results)
    headings = [line.text for part in chart.parts for line in part.lines if line.kind == "heading"]
    assert headings == ["T0", "T1"]  # as the tables are listed
    for part in chart.parts:
        assert part.lines[-1].text == "against L" and [bar.title for bar in part.bars] == ["M <1>"]
        assert part.lines[-1].y < part.bars[0].middle
    first, second = chart.parts
    assert first.bars[0].middle < second.lines[0].y < second.bars[0].middle < chart.bottom
    assert difference_chart.overview_chart({("toy", "cpu"): RECORDS[:2]}) is None


def test_the_command_writes_the_figures_that_the_file_shows(tmp_path, monkeypatch):
    monkeypatch.setitem(TABLES, "toy", SHOWN)
    results = write_results(tmp_path / "results", "toy-cpu", *RECORDS)
    write_results(results, "vi-en-cpu", *RECORDS)  # a table that the file does not show
    readme = tmp_path / "page.md"
    blocks = ("toy-cpu", "overview")
    readme.write_text("".join(f"<!-- results: {name} -->\n<!-- end -->\n" for name in blocks))
    assert command.main(["readme", f"--readme={readme}", f"--results_dir={results}"]) == 0
    assert f"![Differences in test BLEU from L]({FIGURES}/toy-cpu-luong.svg)" in readme.read_text()
    names = {path.name for path in (tmp_path / FIGURES).iterdir()}
    assert names == {"toy-cpu-luong.svg", "overview.svg"}


def test_the_figures_are_what_the_results_say():
    folder = ROOT / "docs" / "results" / FIGURES
    figures = difference_chart.render_figures(ROOT / "results")
    written = {path.stem: path.read_text("utf-8") for path in folder.iterdir()}
    assert written == figures, "run: tfmann report readme; git rm those of no table"


@pytest.mark.parametrize("with_records", [True, False])
def test_the_page_has_the_figures(tmp_path, monkeypatch, with_records):
    monkeypatch.setitem(results_page._PAPERS, "All cells", {"toy": SHOWN})
    monkeypatch.setitem(TABLES, "toy", SHOWN)
    page = results_page.render_results(
        write_results(tmp_path, "toy-cpu", *(RECORDS if with_records else ()))
    )
    assert ('<svg class="differences"' in page) == with_records
