"""Attention and heads of a table's systems: in Markdown and on the page; none of old records."""

from helpers.records import record, table, write_results

from tfmann.papers import markdown_blocks, rendering
from tfmann.papers.address_table import HEADING, address_table
from tfmann.papers.table import Row
from tfmann.papers.tables import TABLES
from tfmann.report import results_page

ROWS = (Row("a", "A"), Row("b", "B"), Row("c", "C"))


def statistics(*entries):
    return {"inspection": {"unit": "sentence", "statistics": [
        {"head": head, "phase": phase, "name": name, "mean": mean, "interval": None,
         **({} if null is None else {"untrained": {"mean": null}})}
        for head, phase, name, mean, null in entries
    ]}}  # fmt: skip


RECORDS = [
    record("a", seed=1, **statistics(("attention", "target", "entropy", 0.2, 0.9))),
    record("a", seed=2, **statistics(("attention", "target", "entropy", 0.3, 1.0))),
    record("b", seed=1),
    record("c", seed=1, **statistics(
        ("write_head_0", "source", "successive", 0.6, None),
        ("write_head_0", "source", "shift_up", 0.7, None),
        ("write_head_0", "target", "entropy", 0.5, 0.75),
    )),
]  # fmt: skip


def test_a_line_for_each_head_and_phase_and_a_mean_over_the_seeds():
    output_table = address_table(table(*ROWS), RECORDS)
    assert output_table.heading == ["system", "head", "phase", "entropy", "moves to the next slot"]
    assert output_table.rows == [
        ["A", "attention", "while the target is written", "0.25 (0.95)", "-"],
        ["C", "write head 0", "while the source is read", "-", "0.60"],
        ["C", "write head 0", "while the target is written", "0.50 (0.75)", "-"],
    ]


def test_records_without_statistics_have_no_such_table():
    assert address_table(table(*ROWS), [record("a"), record("b", inspection=None)]) is None
    assert HEADING not in rendering.render(table(*ROWS), "tiny", [record("a")])


def test_all_places_show_it(tmp_path, monkeypatch):
    monkeypatch.setitem(TABLES, "vi-en", TABLES["vi-en"]._replace(rows=ROWS))
    folder = write_results(tmp_path / "results", "vi-en-cpu", *RECORDS)
    line = "| A | attention | while the target is written | 0.25 (0.95) | - |"
    assert f"{HEADING}:\n\n| system |" in rendering.render_all(folder)
    assert line in rendering.render_all(folder)
    results = rendering.read_results(folder)
    lines = markdown_blocks._table("vi-en", "cpu", results["vi-en", "cpu"])
    assert f'<details markdown="1"><summary>{HEADING}</summary>' in lines and line in lines


def test_the_page_shows_it(tmp_path):
    of_systems = [
        {**example, "row": name}
        for example, name in zip(RECORDS, ("luong", "luong", "mad_1", "mad_2"))
    ]
    page = str(results_page.render_results(write_results(tmp_path / "r", "vi-en-cpu", *of_systems)))
    assert "while the source is read" in page and "0.25 (0.95)" in page and HEADING in page
