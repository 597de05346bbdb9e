"""Attention and heads of a table's systems: in Markdown and on the page; none of old records."""

import pytest
from helpers.records import record, table, write_results

from tfmann.papers import markdown_blocks, rendering
from tfmann.papers.memory_table import memory_table
from tfmann.papers.table import Row
from tfmann.papers.tables import TABLES
from tfmann.report import results_page

ROWS = (Row("a", "A"), Row("b", "B"), Row("c", "C"))


def statistics(*entries, sentences=1000):
    return {"inspection": {"unit": "sentence", "sentences": sentences, "sentences_of_file": 1000,
                           "statistics": [
        {"head": head, "phase": phase, "name": name, "mean": mean,
         "interval": [mean - spread, mean + 2 * spread] if spread else None,
         **({} if null is None else {"untrained": {"mean": null, "interval": [null, null]}})}
        for head, phase, name, mean, spread, null in entries
    ]}}  # fmt: skip


RECORDS = [
    record("a", seed=1, **statistics(("attention", "target", "entropy", 0.2, 0.01, 0.9))),
    record("a", seed=2, **statistics(("attention", "target", "entropy", 0.3, 0.03, 1.0))),
    record("b", seed=1),
    record("c", seed=1, **statistics(
        ("write_head_0", "source", "successive", 0.6, 0.001, None),
        ("write_head_0", "source", "shift_up", 0.7, 0, None),
        ("write_head_0", "target", "entropy", 0.5, 0, 0.75),
    )),
]  # fmt: skip


TITLE = (
    "Attention, heads and cache over all 1,000 sentences of the test set: means over the seeds "
    "that were measured; [low, high]: "
)
CELL = "0.25 [0.23, 0.29] (0.95)"  # from 0.19 to 0.22 and from 0.27 to 0.36


def test_a_line_for_each_head_and_phase_and_a_mean_over_the_seeds():
    output_table = memory_table(table(*ROWS), RECORDS)
    assert output_table.heading == ["system", "head", "phase", "entropy", "moves to the next slot"]
    assert output_table.rows == [
        ["A", "attention", "while the target is written", CELL, "-"],
        ["C", "write head 0", "while the source is read", "-", "0.60"],
        ["C", "write head 0", "while the target is written", "0.50 [-] (0.75)", "-"],
    ]


def test_a_missing_interval_is_marked_and_explained():
    note = "; [-]: no interval, of an earlier version's record or of a single unit; (...): "
    assert note in memory_table(table(*ROWS), RECORDS).title
    assert "[-]" not in memory_table(table(*ROWS), RECORDS[:2]).title
    assert "; (...): with untrained weights" in memory_table(table(*ROWS), RECORDS[:2]).title


def test_what_rounds_to_zero_has_no_sign():
    chance = record("a", **statistics(("write_head_0", "target", "marking", -0.004, 0.001, -0.001)))
    assert memory_table(table(*ROWS), [chance]).rows[0][3] == "0.00 [-0.01, 0.00] (0.00)"


def test_records_without_statistics_have_no_such_table():
    assert memory_table(table(*ROWS), [record("a"), record("b", inspection=None)]) is None
    assert "heads and cache" not in rendering.render(table(*ROWS), "tiny", [record("a")])


@pytest.mark.parametrize(
    ("of_each", "more", "where"),
    [
        ([500, 500], {}, "the first 500 of 1,000 sentences of the test set"),
        ([1000, 1000], {"more_tests": {"b": ()}}, "all 1,000 sentences of the first test set"),
        ([1000, 1000], {"more_tests": {"b": ()}, "tests": 2}, "all 1,000 sentences of 2 test sets"),
        ([500, 1000], {}, "the test set"),
        ([1000, None], {}, "the test set"),
    ],
)
def test_no_more_sentences_are_claimed_than_were_measured(of_each, more, where):
    tests = more.get("tests")
    records = [
        record(row, **statistics(("attention", "target", "entropy", 0.2, 0.01, 0.9),
                                 sentences=sentences), **more)
        for row, sentences in zip("ab", of_each)
    ]  # fmt: skip
    for measured in records if tests else ():
        measured["inspection"]["tests"] = tests
    if None in of_each:
        del records[1]["inspection"]["sentences_of_file"]
    rendered = memory_table(table(*ROWS), records)
    assert rendered.title.startswith(f"Attention, heads and cache over {where}: means")
    if len(set(of_each)) == 1:
        assert "sentences" not in rendered.heading
        return
    shown = {500: "the first 500 of 1,000", 1000: "all 1,000", None: "-"}
    assert rendered.heading[3:] == ["sentences", "entropy"]
    assert [row[3] for row in rendered.rows] == [shown[sentences] for sentences in of_each]


def test_all_places_show_it(tmp_path, monkeypatch):
    monkeypatch.setitem(TABLES, "vi-en", TABLES["vi-en"]._replace(rows=ROWS, stand_in={}))
    folder = write_results(tmp_path / "results", "vi-en-cpu", *RECORDS)
    line = f"| A | attention | while the target is written | {CELL} | - |"
    text = rendering.render_all(folder)
    assert TITLE in text and ": with untrained weights:\n\n| system |" in text
    assert line in text
    results = rendering.read_results(folder)
    lines = markdown_blocks._table("vi-en", "cpu", results["vi-en", "cpu"])
    (summary,) = [text for text in lines if "<summary>" in text and TITLE in text]
    assert summary.startswith('<details markdown="1"><summary>Attention, heads') and line in lines


def test_the_page_shows_it(tmp_path):
    of_systems = [
        {**example, "row": name}
        for example, name in zip(RECORDS, ("luong", "luong", "mad_1", "mad_2"))
    ]
    page = str(results_page.render_results(write_results(tmp_path / "r", "vi-en-cpu", *of_systems)))
    assert "while the source is read" in page and CELL in page and TITLE in page
