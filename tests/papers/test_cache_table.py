"""What caches match: all their statistics and Figure 3, a column for each system with a cache."""

from helpers.records import record, table, write_results

from tfmann.papers import markdown_blocks, rendering
from tfmann.papers.cache_table import cache_table
from tfmann.papers.table import Row
from tfmann.papers.tables import TABLES
from tfmann.report import results_page

ROWS = (Row("a", "A"), Row("b", "B"), Row("c", "C"))


def inspected(means, recency=(), head="cache", **more):
    entries = [
        {"head": head, "phase": "target", "name": name, "mean": mean,
         "interval": [mean - 0.1, mean + 0.2], "untrained": {"mean": 0.1, "interval": None}}
        for name, mean in means.items()
    ]  # fmt: skip
    more = {"recency": list(recency), **more}
    return {"inspection": {"statistics": entries, "sentences": 9, "sentences_of_file": 9, **more}}


INTERVALS = [[0.4, 0.6], [0.25, 0.35], None]
RECORDS = [
    record("a", **inspected({"entropy": 0.5}, head="attention")),
    record("b", seed=1, **inspected({"fuzzy": 0.5, "gate_end": 0.75, "entropy": 0.5},
                                    [0.5, 0.3, None], recency_intervals=INTERVALS)),
    record("b", seed=2, **inspected({"fuzzy": 0.7}, [0.7, 0.5, None], recency_intervals=INTERVALS)),
    record("c", **inspected({"gate_end": 0.25}, [0.0625] * 7, recency_untrained=[0.125] * 7)),
]  # fmt: skip
ROW = ["matching of slots with other words", "0.60 [0.50, 0.80] (0.10 [-])", "-"]


def test_a_line_for_each_statistic_and_for_some_of_the_slots():
    title, heading, rows = cache_table(table(*ROWS), RECORDS)
    assert title.startswith(
        "The cache (Tu et al. 2018, Figure 3 and section 4.5) over all 9 sentences of the test set"
    )
    assert heading == ["statistic", "B", "C"]  # A has none
    assert rows == [
        ROW,
        ["gate at </s>", "0.75 [0.65, 0.95] (0.10 [-])", "0.25 [0.15, 0.45] (0.10 [-])"],
        ["matching of the slot written last", "0.600 [0.400, 0.600]", "0.062 [-] (0.125 [-])"],
        ["matching of slot 2, the latest first", "0.400 [0.250, 0.350]", "0.062 [-] (0.125 [-])"],
        *([f"matching of slot {rank}, the latest first", "-", "0.062 [-] (0.125 [-])"]
          for rank in (3, 4, 5)),
    ]  # fmt: skip


def test_systems_without_a_cache_have_no_such_table():
    for records in (RECORDS[:1], [record("a")], [record("a", inspection=None)]):
        assert cache_table(table(*ROWS), records) is None


def test_all_places_show_it(tmp_path):
    of_systems = [
        {**example, "row": row}
        for example, row in zip(RECORDS, ("luong", "mad_1", "mad_1", "mad_2"))
    ]
    folder = write_results(tmp_path / "results", "vi-en-cpu", *of_systems)
    line = f"| {' | '.join(ROW)} |"
    assert line in rendering.render_all(folder)
    results = rendering.read_results(folder)["vi-en", "cpu"]
    lines = markdown_blocks._table("vi-en", "cpu", results)
    assert line in lines and sum("The cache (Tu et al." in text for text in lines) == 1
    rendered = rendering.render_cells(TABLES["vi-en"], "cpu", results)
    assert [statistics.heading[0] for statistics in rendered.memory_tables] == [
        "system",
        "statistic",
    ]
    assert ROW[1] in str(results_page.render_results(folder))
