"""Lexical consistency in the records of a table's runs, and in its columns and footnotes."""

import os
import shutil

import pytest
from helpers.records import record, table
from helpers.toy_table import settings_of, started_command

from tfmann.data.text_files import iter_documents, iter_lines, write_lines
from tfmann.evaluation import lexical_consistency
from tfmann.evaluation.gold_alignments import words_of
from tfmann.evaluation.lexical_consistency import measure
from tfmann.papers import consistency_scores, metrics, rendering, reproduce, table_corpus
from tfmann.papers.table import Row
from tfmann.papers.tables import TABLES

COUNTS = {"pairs": 40, "alike": 30, "other_pairs": 200, "other_alike": 100}


@pytest.fixture
def corpus(started, monkeypatch):
    monkeypatch.setattr(lexical_consistency, "FREQUENT", 0)  # six sentences repeat few words
    root, folder, _ = started
    assert settings_of(root, "base").exists()
    return table_corpus.find_corpus(TABLES["vi-en"].at("cpu"), "cpu", str(folder), str(root))


def test_the_tests_are_measured_with_a_lexicon_of_the_training_text(corpus, tmp_path, capsys):
    """A run whose translations are the references has the references' counts."""
    references = corpus.references()[0]
    shutil.copy(references, tmp_path / "output_test")
    scores, resamples = consistency_scores.scores(corpus, str(tmp_path))
    assert resamples == {}  # six sentences are of too few documents
    own = {key: value for key, value in scores.items() if key != "reference"}
    assert own == scores["reference"] and scores["other_pairs"] + scores["pairs"] > 0
    sources, lines = (
        words_of(iter_lines(path)) for path in (corpus.test_sources()["output_test"], references)
    )
    documents = list(iter_documents(corpus.test_documents()["output_test"]))
    prefix = corpus.settings["train_prefix"]
    lexicon = consistency_scores._lexicon(prefix, corpus.settings["src"], corpus.settings["tgt"])
    again = measure(sources, lines, documents, lexicon)
    assert own["pairs"] == again.pairs.sum() and own["other_alike"] == again.other_alike
    (tmp_path / "output_test").write_text("\n" * len(lines))
    silent, _ = consistency_scores.scores(corpus, str(tmp_path))
    assert silent["pairs"] == 0 and silent["reference"] == scores["reference"]
    assert capsys.readouterr().out.count("learning a lexicon") == 1


def test_words_of_the_lexicon_are_those_of_the_tests(tmp_path):
    for side in ("s", "t"):
        write_lines(tmp_path / f"a.{side}", [f"{side}\u00a0{side}"])
    lexicon = consistency_scores._lexicon(str(tmp_path / "a"), "s", "t")
    assert {word: set(weights) for word, weights in lexicon.items()} == {"s\u00a0s": {"t\u00a0t"}}


def test_tests_without_documents_have_none(corpus, tmp_path):
    os.remove(corpus.test_documents()["output_test"])
    assert consistency_scores.scores(corpus, str(tmp_path)) == ({}, {})


def test_percentages_columns_and_footnote():
    run = record("a", lexical_consistency={**COUNTS, "reference": {**COUNTS, "alike": 36}})
    assert metrics.consistency_percentage(run) == 75.0
    assert metrics.consistency_percentage(run, "other_") == 50.0
    assert metrics.consistency_percentage(record("b")) is None
    text = rendering.render(table(Row("a", "A"), Row("b", "B")), "cpu", [run, record("b")])
    heading = text.splitlines()[2]
    assert "| consistent | consistent, two documents |" in heading
    assert "| 75.00 | 50.00 |" in text
    assert "; first reference: 90.00% of 40, 50.00%" in text
    silent = record("a", lexical_consistency={**dict.fromkeys(COUNTS, 0), "reference": COUNTS})
    assert metrics.consistency_percentage(silent) is None


def test_reproduce_records_it(started):
    root, corpus, _ = started
    assert reproduce.main(started_command(root, corpus, "--rows=base")) == 0
    (line,) = (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()
    assert '"lexical_consistency": {"pairs": ' in line
