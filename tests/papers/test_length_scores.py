"""BLEU by length: the numbers of `tfmann compare` in records and tables, none from old records."""

import pytest
from helpers.records import record, table, write_results
from helpers.simulated_systems import corpus, damage

from tfmann.evaluation import comparison
from tfmann.papers import length_scores, markdown_blocks, rendering
from tfmann.papers.output_scores import Output
from tfmann.papers.table import Row
from tfmann.papers.tables import TABLES

ROWS = (Row("a", "A"), Row("b", "B"), Row("c", "C"))


def by_length(*scores):
    """Returns the classes of a record, with 20 sentences each, and one with too few."""
    limits = (0, *(limit + 1 for limit in comparison.LIMITS))
    ends = (*comparison.LIMITS, None)
    return {"by_length": [
        {"shortest": shortest, "longest": longest, "sentences": sentences, "bleu": bleu}
        for shortest, longest, sentences, bleu in zip(limits, ends, (20, 20, 19), scores)
    ]}  # fmt: skip


RECORDS = [
    record("a", seed=1, **by_length(10.0, 20.0, 40.0)),
    record("a", seed=2, **by_length(14.0, 20.0)),
    record("b", seed=1),
    record("c", seed=1, **by_length(30.0)),
]


def text_of(seed, words):
    references = corpus(seed, 30)
    sources = [f"{line} {'x ' * words}" for line in references]
    return sources, Output(damage(references, seed + 1, 0.3), [references], None)


def test_a_run_has_the_scores_that_the_comparison_of_its_output_has():
    sources, output = text_of(1, 4)
    classes = length_scores.measure([(sources, output)], "none", False)
    system = comparison.System("s", output.translations)
    lengths = [len(line.split()) for line in sources]  # of the source, longer than the target
    expected = comparison.by_length([system], output.references, lengths)
    assert len(expected) > 1
    assert [(scores["shortest"], scores["longest"], scores["sentences"]) for scores in classes] == [
        (row.shortest, row.longest, row.sentences) for row in expected
    ]
    assert [scores["bleu"] for scores in classes] == pytest.approx(
        [scores.bleu[0] for scores in expected]
    )


def test_several_tests_have_the_mean_of_those_with_such_sentences():
    short, long = text_of(1, 0), text_of(2, 11)
    of_two_tests = length_scores.measure([short, long], "none", False)
    of_each_test = [length_scores.measure([text], "none", False) for text in (short, long)]
    for scores in of_two_tests:
        parts = [
            entry
            for part in of_each_test
            for entry in part
            if entry["shortest"] == scores["shortest"]
        ]
        assert scores["sentences"] == sum(entry["sentences"] for entry in parts)
        assert scores["bleu"] == pytest.approx(sum(entry["bleu"] for entry in parts) / len(parts))
    lengths_of_two, lengths_of_short = (
        {entry["shortest"] for entry in scores} for scores in (of_two_tests, of_each_test[0])
    )
    assert lengths_of_two > lengths_of_short


def test_systems_have_a_line_of_means_and_those_without_scores_none():
    rendered = length_scores.length_table(table(*ROWS), RECORDS)
    assert rendered.heading == ["system", "0 to 10 (20)", "11 to 20 (20)"]
    assert rendered.rows == [["A", "12.00 ± 2.83", "20.00 ± 0.00"], ["C", "30.00", "-"]]


def test_the_text_of_a_table_ends_with_bleu_by_length():
    text = rendering.render(table(*ROWS), "cpu", RECORDS)
    assert f"\n\n{length_scores.HEADING}:\n\n| system | 0 to 10 (20) | 11 to 20 (20) |\n" in text
    assert text.endswith("| C | 30.00 | - |")


def test_old_records_show_nothing():
    runs = [record("a"), record("b")]
    assert length_scores.length_table(table(*ROWS), runs) is None
    assert "BLEU by" not in rendering.render(table(*ROWS), "cpu", runs)


def test_a_block_folds_bleu_by_length_away(tmp_path, monkeypatch):
    monkeypatch.setitem(TABLES, "toy", table(*ROWS, scales=("cpu",)))
    block = "<!-- results: toy-cpu -->\n<!-- end -->\n"
    text = markdown_blocks.fill(block, write_results(tmp_path / "results", "toy-cpu", *RECORDS))
    assert f"<summary>{length_scores.HEADING}</summary>\n\n| system | 0 to 10 (20)" in text
    assert text.endswith("| C | 30.00 | - |\n\n</details>\n<!-- end -->\n")
    assert markdown_blocks.fill(text, tmp_path / "results") == text
    old = markdown_blocks.fill(block, write_results(tmp_path / "old", "toy-cpu", record("a")))
    assert "details" not in old
