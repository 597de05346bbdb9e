"""Systems that a paper only lists: shown with its figure and marked, in no claim."""

from helpers.records import record, table

from tfmann.papers import rendering
from tfmann.papers.claims import CLAIMS
from tfmann.papers.table import LiteratureRow, Row
from tfmann.papers.tables import TABLES


def figures(name):
    return {system.title: system.paper_test for system in TABLES[name].literature}


def test_the_figures_are_those_of_meng():
    assert list(figures("zh-en").values()) == [35.40, 36.44, 36.95, 37.73]  # Table 1, averages
    assert list(figures("de-en").values()) == [29.00, 28.10, 32.00, 28.70, 29.70]  # Table 4
    assert list(figures("en-de").values()) == [22.70, 21.20, 26.10, 23.60, 24.30]
    assert figures("zh-en")["Coverage (Tu et al. 2016)"] == 35.40
    past_future = "RNNSearch + Past-Future layers (Zheng et al. 2018)"
    assert (figures("de-en")[past_future], figures("en-de")[past_future]) == (29.70, 24.30)


def test_literature_follows_the_rows_and_is_marked():
    with_literature = table(
        Row("a", "A", None, 36.53, paper_aer=30.0),
        Row("b", "B"),
        literature=(LiteratureRow("L (2016)", 35.4),),
    )
    for records in ([record("a")], []):
        rendered = rendering.render_cells(with_literature, "cpu", records, unmeasured=True)
        cells = dict(zip(rendered.heading, rendered.rows[-1]))
        assert cells["system"] == "L (2016), literature"
        assert (cells["paper test"], cells["ours test"]) == ("35.40", "not trained here")
        assert set(rendered.rows[-1][3:]) == {"-", "not trained here"}
        assert len(rendered.rows[-1]) == len(rendered.heading)
        assert rendered.names == ["a", "b"]
        assert any(note.text.startswith("literature:") for note in rendered.footnotes)
    plain = rendering.render(table(Row("a", "A")), "cpu", [record("a")])
    assert "literature" not in plain


def test_no_claim_names_a_system_of_the_literature():
    titles = {system.title for paper_table in TABLES.values() for system in paper_table.literature}
    assert titles
    for paper_table in TABLES.values():
        assert not titles & {name for row in paper_table.rows for name in (row.name, row.title)}
    assert CLAIMS and not any(title in repr(claim) for claim in CLAIMS for title in titles)
