"""Tables of document models: inputs needed before training, and rows with their baselines."""

import json
import shutil
from pathlib import Path

import pytest
from helpers.toy_table import saved_records, settings_of, started_command

from tfmann.data.text_files import iter_lines
from tfmann.papers import reproduce, run_scores, table_corpus, table_runs
from tfmann.papers.tables import TABLES
from tfmann.synthetic import Style


def change(path, **settings):
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


@pytest.fixture
def in_documents(started):
    """The row `late` looks at documents, which the manifest lists."""
    root, corpus, trained = started
    change(settings_of(root, "late"), cell="cache", unit_type="gru", cache_size=2)
    path = root / "data" / "toy.json"
    manifest = json.loads(path.read_text())
    manifest["files"] += [
        {"path": f"{split}.docs", "urls": ["https://h/f"], "lines": lines}
        for split, lines in (("train", 120), ("dev", 6), ("test", 6))
    ]
    path.write_text(json.dumps(manifest))
    return root, corpus, trained


def test_documents_are_required_before_anything_is_trained(in_documents, capsys):
    root, corpus, trained = in_documents
    (corpus / "dev.docs").unlink()
    assert reproduce.main(started_command(root, corpus)) == 1
    error = capsys.readouterr().err
    assert "the rows late read the previous sentences" in error and not trained
    assert f"there is no {corpus / 'dev.docs'}: expected a line" in error
    assert "--rows=base,later" in error
    assert reproduce.main(started_command(root, corpus, "--rows=later")) == 0
    assert [name for name, _ in trained] == ["base", "later"]


def test_documents_are_counted_where_they_are(in_documents, capsys):
    root, corpus, _ = in_documents
    assert reproduce.main(started_command(root, corpus, "--rows=base")) == 0
    documents = len(set(iter_lines(corpus / "train.docs")))
    assert f"train: 120 pairs, 0 with an empty side; {documents} documents" in (
        capsys.readouterr().out
    )


def test_gold_links_of_a_document_model_are_looked_at_in_documents(in_documents, monkeypatch):
    root, corpus, _ = in_documents
    evaluated = []
    monkeypatch.setattr(
        run_scores, "_evaluate", lambda *arguments: evaluated.append(arguments[2]) or {}
    )
    manifest = json.loads((root / "data" / "toy.json").read_text())
    manifest["alignments"] = "test.align"
    manifest["files"].append({"path": "test.align", "urls": ["https://h/f"], "lines": 6})
    (root / "data" / "toy.json").write_text(json.dumps(manifest))
    report = table_corpus._report(TABLES["vi-en"], str(corpus), "")
    of_runs = ({"cell": "cache"}, {"cell": "luong", "neural_cache_size": 5}, {"cell": "luong"})
    for settings in of_runs:
        run_scores.scores_by_gold_links(report, "out", settings)
    for flags in evaluated[:2]:
        assert flags["inference_document_file"] == str(corpus / "test.docs")
    assert "inference_document_file" not in evaluated[2]


def test_a_lexicon_is_learned_once_for_all_rows_that_replace(started, monkeypatch, capsys):
    root, corpus, trained = started
    for row in ("base", "later"):
        change(settings_of(root, row), replace_unk=True)
    runs, run_module = [], table_runs.run_module

    def train(table, scale, row, settings, out_dir, fake=table_runs.train):
        runs.append((row.name, settings.get("lexicon_file")))
        fake(table, scale, row, settings, out_dir)

    def run(module, flags, out_dir):
        runs.append((flags["mode"], out_dir))
        run_module(module, flags, out_dir)

    monkeypatch.setattr(table_runs, "train", train)
    monkeypatch.setattr(table_runs, "run_module", run)
    command = started_command(root, corpus)
    assert reproduce.main(command) == reproduce.main(command) == 0
    folder = root / "runs" / "vi-en" / "cpu" / "lexicon"
    file = str(folder / "lexicon.txt")
    assert runs == [
        ("lexicon", str(folder)), ("base", file), ("late", None), ("later", file)
    ]  # fmt: skip
    assert len(list(iter_lines(file))) > 10
    assert "lexicon_file" not in saved_records(root)["base"]["hparams"]


def test_a_lexicon_of_another_text_is_learned_again(started):
    """The corpus was exchanged, and the runs on the old one removed."""
    root, corpus, _ = started
    change(settings_of(root, "base"), replace_unk=True)
    command = started_command(root, corpus, "--rows=base")
    assert reproduce.main(command) == 0
    folder = root / "runs" / "vi-en" / "cpu"
    before = (folder / "lexicon" / "lexicon.txt").read_text()
    shutil.rmtree(folder / "base")
    for suffix in ("src", "tgt"):
        (corpus / f"train.{suffix}").write_text(f"{suffix}word\n" * 3)
    assert reproduce.main(command) == 0
    after = (folder / "lexicon" / "lexicon.txt").read_text()
    assert after != before and after.startswith("srcword\ttgtword\t")


@pytest.fixture
def compared(started, monkeypatch):
    """Every row has translations of its own; `base` and `later` are the baselines."""
    root, corpus, trained = started
    rows = TABLES["vi-en"].rows
    ordered = (rows[1], rows[2], rows[0])  # base, later, late
    table = TABLES["vi-en"]._replace(rows=ordered, baselines=("base", "later"))
    monkeypatch.setitem(TABLES, "vi-en", table)
    truth = list(iter_lines(corpus / "test.tgt"))
    translations = {
        "base": [line.split()[0] for line in truth],
        "later": truth[:5] + ["nothing at all of it"],
        "late": [line.upper() for line in truth],
    }

    def train(table, scale, row, settings, out_dir, fake=table_runs.train):
        fake(table, scale, row, settings, out_dir)
        Path(out_dir, "output_test").write_text("".join(f"{x}\n" for x in translations[row.name]))
        results = json.loads(Path(out_dir, "results.json").read_text())
        results["hparams"].update(bleu_tokenize="none", bleu_lowercase=True)
        Path(out_dir, "results.json").write_text(json.dumps(results))

    monkeypatch.setattr(table_runs, "train", train)
    return root, corpus


def test_rows_are_compared_with_the_baselines_before_them(compared, capsys):
    root, corpus = compared
    assert reproduce.main(started_command(root, corpus)) == 0
    records = saved_records(root)
    assert "significance" not in records["base"]
    (test,) = records["later"]["significance"]
    assert test["baseline"] == "base" and test["difference"] > 20 and test["wins"] >= 5
    first, second = records["late"]["significance"]
    assert (first["baseline"], second["baseline"]) == ("base", "later")
    assert (first["wins"], first["losses"], first["sign_p"]) == (6, 0, 2 / 2**6)  # without case
    assert (second["wins"], second["losses"]) == (1, 0)
    assert second["sign_p"] == 1.0 and 0 < first["bootstrap_p"] <= 1
    text = capsys.readouterr().out
    assert "| vs. base | vs. later |" in text and "case:lc" in first["signature"]


def test_rows_that_have_ended_are_kept_when_a_later_one_stops(compared, monkeypatch):
    root, corpus = compared
    table = TABLES["vi-en"]
    base, later, late = table.rows
    changed = table._replace(rows=(base, late, later))  # a baseline comes after its row
    monkeypatch.setitem(TABLES, "vi-en", changed)
    train = table_runs.train

    def stopped(table, scale, row, settings, out_dir):
        if row.name == "later":
            raise KeyboardInterrupt
        train(table, scale, row, settings, out_dir)

    monkeypatch.setattr(table_runs, "train", stopped)
    assert reproduce.main(started_command(root, corpus)) == 130
    records = saved_records(root)
    assert set(records) == {"base", "late"}
    assert [test["baseline"] for test in records["late"]["significance"]] == ["base"]
    monkeypatch.setattr(table_runs, "train", train)
    assert reproduce.main(started_command(root, corpus)) == 0
    records = saved_records(root)
    assert [test["baseline"] for test in records["late"]["significance"]] == ["base", "later"]
    assert [test["baseline"] for test in records["later"]["significance"]] == ["base"]


def test_rows_are_compared_again_with_a_baseline_that_was_decoded_again(compared):
    root, corpus = compared
    assert reproduce.main(started_command(root, corpus)) == 0
    before = saved_records(root)
    truth = (corpus / "test.tgt").read_text()
    (root / "runs" / "vi-en" / "cpu" / "base" / "output_test").write_text(truth)
    assert reproduce.main(started_command(root, corpus, "--rows=base")) == 0
    after = saved_records(root)
    assert list(after) == list(before)
    assert before["later"]["significance"][0]["difference"] > 20
    assert after["later"]["significance"][0]["difference"] < 0
    assert after["late"]["significance"][0]["difference"] == 0
    assert after["late"]["significance"][1] == before["late"]["significance"][1]


def test_tests_against_a_run_that_is_gone_are_kept(compared):
    root, corpus = compared
    assert reproduce.main(started_command(root, corpus)) == 0
    before = saved_records(root)
    runs = root / "runs" / "vi-en" / "cpu"
    shutil.rmtree(runs / "later")
    assert reproduce.main(started_command(root, corpus, "--rows=late")) == 0
    assert saved_records(root) == before
    results = json.loads((runs / "late" / "results.json").read_text())
    (runs / "late" / "results.json").write_text(json.dumps({**results, "date": "trained again"}))
    assert reproduce.main(started_command(root, corpus, "--rows=late")) == 0
    (test,) = saved_records(root)["late"]["significance"]
    assert test["baseline"] == "base"


def test_a_baseline_that_was_not_trained_is_left_out(compared):
    root, corpus = compared
    assert reproduce.main(started_command(root, corpus, "--rows=late")) == 0
    assert [test["baseline"] for test in saved_records(root)["late"]["significance"]] == ["base"]


def test_the_tense_of_a_table_is_measured(started, monkeypatch, capsys):
    root, corpus, _ = started
    table = TABLES["vi-en"]._replace(style=Style(document_tense=True))
    monkeypatch.setitem(TABLES, "vi-en", table)
    assert reproduce.main(started_command(root, corpus, "--rows=base")) == 0
    tense = saved_records(root)["base"]["tense"]
    assert tense["right"] == tense["other_right"]
    assert "| tense, other document |" in capsys.readouterr().out
