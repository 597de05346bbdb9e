"""The figure of BLEU by length: means over the seeds, in classes from short to long."""

import pytest
from helpers.records import record, table, write_results
from helpers.report_page import tips

from tfmann.papers.table import Row
from tfmann.papers.tables import TABLES
from tfmann.report import results_page
from tfmann.report.curves import BOTTOM, LEFT, RIGHT, TOP
from tfmann.report.length_chart import length_chart


def classes(short, long):
    return {"by_length": [
        {"shortest": 0, "longest": 10, "sentences": 40, "bleu": short},
        {"shortest": 41, "longest": 50, "sentences": 19, "bleu": 99.0},
        {"shortest": 51, "longest": None, "sentences": 20, "bleu": long},
    ]}  # fmt: skip


SHOWN = table(Row("a", "A"), Row("b", "B"), Row("c", "C"), scales=("cpu",))
RECORDS = [
    record("a", seed=1), record("b", seed=1, **classes(10.0, 5.0)),
    record("b", seed=2, **classes(14.0, 7.0)), record("c", seed=1, **classes(3.0, 1.0)),
]  # fmt: skip


def test_lines_are_means_over_the_seeds_inside_the_frame_without_rare_lengths():
    chart = length_chart(SHOWN, RECORDS)
    assert chart.systems == [(1, "B"), (2, "C")]
    assert [text for _, text in chart.x_ticks] == ["0–10", "51+"]
    line = chart.lines[0]
    assert [point.text for point in line.points] == [
        "12.00 at 0 to 10 words", "6.00 at 51 and more words"
    ]  # fmt: skip
    assert line.points[0].y < line.points[1].y  # more is further up
    for point in (point for line in chart.lines for point in line.points):
        assert LEFT < point.x < RIGHT and TOP <= point.y <= BOTTOM


@pytest.mark.parametrize("bleu", [0.0, 28.53])
def test_a_single_point_has_an_axis_whose_labels_differ(bleu):
    only = {"by_length": [{"shortest": 0, "longest": 10, "sentences": 40, "bleu": bleu}]}
    chart = length_chart(SHOWN, [record("a", seed=1, **only)])
    labels = [text for _, text in chart.y_ticks]
    assert len(set(labels)) == len(labels) and all(len(label) <= 4 for label in labels), labels
    assert float(labels[0]) <= bleu <= float(labels[-1])


def test_records_without_lengths_have_no_figure():
    assert length_chart(SHOWN, [record("a")]) is None
    assert length_chart(SHOWN, []) is None


def test_the_page_has_the_figure_and_the_numbers(tmp_path, monkeypatch):
    monkeypatch.setitem(TABLES, "toy", SHOWN)
    monkeypatch.setitem(results_page._PAPERS, "All cells", {"toy": SHOWN})
    page = results_page.render_results(write_results(tmp_path / "new", "toy-cpu", *RECORDS))
    assert "12.00 at 0 to 10 words" in tips(page)["B"]
    assert "12.00 ± 2.83" in page and "51 and more (20)" in page
    page = results_page.render_results(write_results(tmp_path / "old", "toy-cpu", record("a")))
    assert "BLEU by words of the source sentence" not in page


def test_the_page_has_the_literature(tmp_path):
    page = results_page.render_results(tmp_path)
    assert "Coverage (Tu et al. 2016), literature" in page
    assert '<td class="missing">not trained here</td>' in page
