"""Tables on an invented corpus: trained once, continued, rendered from saved records."""

import contextlib
import io
import json
import shutil
from pathlib import Path

import pytest
import tensorflow as tf
from helpers.records import record
from helpers.toy_table import started_command

from tfmann import config, nmt
from tfmann.data import fingerprints
from tfmann.datasets import tokenization
from tfmann.errors import UserError
from tfmann.papers import (
    processes,
    records,
    rendering,
    reproduce,
    run_scores,
    table_corpus,
    table_runs,
)
from tfmann.papers.tables import TABLES

ROOT = Path(__file__).resolve().parents[2]


def test_every_row_has_its_settings_at_every_scale_of_its_table():
    for name, of_scales in TABLES.items():
        for scale in of_scales.scales:
            table = of_scales.at(scale)
            for row in table.rows:
                config.make({}, str(ROOT / "hparams" / table.settings_file(row, scale)))
            assert table.manifest is None or (ROOT / "data" / table.manifest).exists(), name


def test_results_readme_is_what_the_results_say():
    results = ROOT / "results"
    if results.exists():
        assert (results / "README.md").read_text("utf-8") == rendering.render_all(results)


def test_results_name_no_machine_path():
    for path in (ROOT / "results").glob("*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            settings = json.loads(line).get("hparams", {})
            assert not [v for v in settings.values() if isinstance(v, str) and v.startswith("/")]


def test_trains_once_then_only_prints(untraced, toy_root, capsys, monkeypatch):
    def run_here(command):
        """Trains in this process, which has loaded TensorFlow."""
        assert command[1:3] == ["-m", "tfmann.nmt"]
        with contextlib.redirect_stdout(io.StringIO()):
            return nmt.main(command[3:])

    monkeypatch.setattr(processes, "run_to_end", run_here)
    root, corpus = toy_root
    settings = root / "hparams" / "cpu" / "toy" / "toy_luong.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "tgt_max_len_infer": 4}))
    command = [
        "vi-en", "--scale=cpu", f"--corpus_dir={corpus}", f"--out_dir={root / 'runs'}",
        f"--results_dir={root / 'results'}",
    ]  # fmt: skip
    assert reproduce.main(command) == 0
    out = capsys.readouterr().out
    assert "120 pairs" in out and "| toy system | - | 23.3* |" in out and "* a note" in out
    saved = [json.loads(x) for x in (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()]
    assert len(saved) == 1 and saved[0]["steps"] == 4 and saved[0]["pairs"]["train"] == 120
    assert not [k for k in saved[0]["hparams"] if k.endswith("_prefix")]
    assert saved[0]["inspection"] == {
        "statistics": [],
        "unit": "sentence",
        "tests": 1,
        "revision": "r",
    }
    results = root / "runs" / "vi-en" / "cpu" / "luong" / "results.json"
    stamp = results.stat().st_mtime_ns
    assert reproduce.main(command) == 0
    assert results.stat().st_mtime_ns == stamp
    assert (root / "results" / "README.md").read_text() == rendering.render_all(root / "results")
    assert "has changed since" not in capsys.readouterr().out
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "num_train_steps": 6}))
    assert reproduce.main(command) == 0
    assert results.stat().st_mtime_ns == stamp
    out = capsys.readouterr().out
    assert f"{settings} has changed since (num_train_steps=6 was 4): the run is left as it" in out
    assert f"remove {results} to continue it" in out
    fewer = json.loads(settings.read_text())
    settings.write_text(json.dumps({key: fewer[key] for key in fewer if key != "num_units"}))
    assert reproduce.main(command) == 0
    out, default = capsys.readouterr().out, config.HParams().num_units
    assert f"(num_units={default} was {fewer['num_units']}, num_train_steps=6 was 4)" in out
    settings.write_text(json.dumps(fewer))
    results.unlink()
    assert reproduce.main(command) == 0
    assert "continuing from" in (results.parent / "train.log").read_text()
    assert json.loads((root / "results" / "vi-en-cpu.jsonl").read_text())["steps"] == 6


@pytest.fixture
def raw_toy_root(toy_root, monkeypatch):
    """The same with a table of raw text, on a known variant of its corpus."""
    root, corpus = toy_root
    path = root / "data" / "toy.json"
    manifest = json.loads(path.read_text())
    manifest["vocabularies"] = None
    accepted = [{"lines": 120, "note": "a stand-in"}]
    manifest["files"] = [f for f in manifest["files"] if not f["path"].startswith("vocab")]
    for entry in manifest["files"]:
        if entry["path"].startswith("train"):
            entry.update(lines=7, accept_lines=accepted)
        file = corpus / entry["path"]
        lines = file.read_text(encoding="utf-8").splitlines()
        file.write_text("".join(f"„{line}”, {line}!\n" for line in lines), encoding="utf-8")
    path.write_text(json.dumps(manifest))
    row = root / "hparams" / "cpu" / "toy" / "toy_luong.json"
    row.write_text(json.dumps({**json.loads(row.read_text()), "subword_option": "bpe"}))
    table = TABLES["vi-en"]._replace(bpe_merges={"cpu": 15})
    monkeypatch.setitem(TABLES, "vi-en", table)
    return root, corpus


@pytest.mark.thorough
def test_raw_text_is_prepared_once_and_scored_as_text_too(raw_toy_root, capsys):
    root, corpus = raw_toy_root
    command = [
        "vi-en", "--scale=cpu", f"--corpus_dir={corpus}", f"--out_dir={root / 'runs'}",
        f"--results_dir={root / 'results'}",
    ]  # fmt: skip
    assert reproduce.main(command) == 0
    out = capsys.readouterr().out
    assert "learning 15 merges" in out and "120 pairs, 0 with an empty side; a stand-in" in out
    assert "| 13a dev | 13a test | brevity penalty |" in out and "\n- train: a stand-in\n" in out
    assert "tok:none" in out and "tok:13a" in out
    rows = [line.split(" | ") for line in out.splitlines() if line.startswith("|")]
    heading, _, row = rows[:3]  # BLEU by length follows
    assert len(heading) == len(row) == 17
    (line,) = (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()
    saved = json.loads(line)
    assert saved["preparation"]["merges"] == 15 and saved["variants"] == {"train": "a stand-in"}
    assert set(saved["detokenised"]) == {"dev", "test"}
    assert "subword_model" not in saved["hparams"] and saved["hparams"]["subword_option"] == "bpe"
    vocabulary = (root / "runs" / "vi-en" / "cpu" / "luong" / "vocab.tgt").read_text()
    assert "@@\n" in vocabulary and '\n"\n' in vocabulary
    assert reproduce.main(command) == 0
    assert "learning" not in capsys.readouterr().out


def test_text_is_scored_against_the_raw_references(raw_toy_root, tmp_path):
    root, corpus = raw_toy_root
    report = table_corpus._report(TABLES["vi-en"], str(corpus), "")
    for name in ("dev", "test"):
        raw = (corpus / f"{name}.tgt").read_text(encoding="utf-8").splitlines()
        tokens = [tokenization.tokenise(line.replace("„", '"').replace("”", '"')) for line in raw]
        (tmp_path / f"output_{name}").write_text("".join(f"{line}\n" for line in tokens))
        plain = "".join(f"{line.replace('„', chr(34)).replace('”', chr(34))}\n" for line in raw)
        (corpus / f"{name}.tgt").write_text(plain)
    for name, score in run_scores.score_detokenised(report, str(tmp_path)).items():
        assert score["value"] == pytest.approx(100) and "tok:13a" in score["signature"]
        text = (tmp_path / f"output_{name}.detok").read_text()
        assert text == (corpus / f"{name}.tgt").read_text().replace(" .", ".")


def test_a_row_starts_from_the_best_checkpoint_of_another(started, capsys):
    root, corpus, trained = started
    base = str(root / "runs" / "vi-en" / "cpu" / "base" / "best_bleu")
    assert reproduce.main(started_command(root, corpus)) == 0
    assert trained == [("base", None), ("late", base), ("later", base)]
    out = capsys.readouterr().out
    assert "late, which starts from base" in out and "because other rows" not in out
    assert "| +7 |" in out and "| 7 |" in out and "+N updates: in addition to those of base" in out
    saved = [json.loads(x) for x in (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()]
    assert [record.get("start") for record in saved] == [None, "base", "base"]
    assert not [record for record in saved if "init_checkpoint" in record["hparams"]]


def test_the_row_to_start_from_is_trained_first_and_once(started, capsys):
    root, corpus, trained = started
    command = started_command(root, corpus, "--rows=later,late")
    assert reproduce.main(command) == reproduce.main(command) == 0
    assert [name for name, _ in trained] == ["base", "later", "late"]
    assert "base is included because other rows start from it" in capsys.readouterr().out


def test_a_row_whose_start_was_trained_further_is_named(started, capsys):
    """Its table would say that it had made the new number of updates before its own."""
    root, corpus, _ = started
    command = started_command(root, corpus, "--rows=late")
    assert reproduce.main(command) == 0
    folder = root / "runs" / "vi-en" / "cpu"
    for row, day in (("base", 1), ("late", 2)):
        results = json.loads((folder / row / "results.json").read_text())
        dated = {**results, "date": f"2026-01-0{day}T00:00:00+00:00"}
        (folder / row / "results.json").write_text(json.dumps(dated))
    assert reproduce.main(command) == 0
    assert "has ended again" not in capsys.readouterr().out
    again = {**dated, "steps": 900, "date": "2026-01-03T00:00:00+00:00"}
    (folder / "base" / "results.json").write_text(json.dumps(again))
    assert reproduce.main(command) == 0
    out = capsys.readouterr().out
    assert (
        f"since late was trained, {folder / 'base'}, from which it starts, has ended again" in out
    )
    assert f"remove {folder / 'late'} to train it again" in out


def test_a_row_is_trained_with_every_seed_from_the_start_of_its_seed(started, capsys):
    root, corpus, trained = started
    folder = root / "runs" / "vi-en" / "cpu"
    assert reproduce.main(started_command(root, corpus, "--rows=late", "--seeds=1,3")) == 0
    assert table_runs.train.seeds == [
        ("base", "1"), ("late", "1"), ("base-seed3", "3"), ("late-seed3", "3")
    ]  # fmt: skip
    assert [start for _, start in trained] == [
        None, str(folder / "base" / "best_bleu"), None, str(folder / "base-seed3" / "best_bleu")
    ]  # fmt: skip
    out = capsys.readouterr().out
    assert "2 rows, each with seed 1, 3" in out and "row 2 of 2, seed 3: late" in out
    assert "| late | - | - | 1.00 ± 0.00 | 1.00 ± 0.00 |" in out
    assert reproduce.main(started_command(root, corpus, "--rows=late", "--seeds=3 2")) == 0
    assert [where for where, _ in table_runs.train.seeds[4:]] == ["base-seed2", "late-seed2"]
    saved = [json.loads(x) for x in (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()]
    assert [(record["row"], record["seed"]) for record in saved] == [
        ("base", 1), ("late", 1), ("base", 3), ("late", 3), ("base", 2), ("late", 2)
    ]  # fmt: skip


def test_a_table_has_its_own_seeds(started, monkeypatch):
    root, corpus, _ = started
    table = TABLES["vi-en"]._replace(seeds=(4, 5))
    monkeypatch.setitem(TABLES, "vi-en", table)
    assert reproduce.main(started_command(root, corpus, "--rows=base")) == 0
    assert table_runs.train.seeds == [("base-seed4", "4"), ("base-seed5", "5")]


def test_a_line_that_names_no_seed_is_of_the_first(tmp_path):
    path = tmp_path / "kept.jsonl"
    lines = [record("a", old=1), record("b", old=1), record("a", seed=2, old=1)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    new = [record("a", seed=1), record("b", seed=2)]
    records.save_records(new, path)
    saved = [json.loads(line) for line in path.read_text().splitlines()]
    assert saved == [new[0], lines[1], lines[2], new[1]]


@pytest.mark.parametrize("changed", ["train.src", "dev.tgt", "test.tgt"])
def test_a_run_of_another_text_is_not_recorded_as_one_of_this(started, capsys, changed):
    root, corpus, trained = started
    assert reproduce.main(started_command(root, corpus, "--rows=late")) == 0
    base = root / "runs" / "vi-en" / "cpu" / "base"
    text = {f"{name}_prefix": str(corpus / name) for name in ("train", "dev", "test")}
    fingerprints.record(config.make({"src": "src", "tgt": "tgt", **text}), str(base), {})
    copy = shutil.copytree(corpus, root / "copy")
    (copy / "train.docs").unlink()  # a copy may lack it
    assert reproduce.main(started_command(root, copy, "--rows=late")) == 0
    saved = (root / "results" / "vi-en-cpu.jsonl").read_text()
    lines = (copy / changed).read_text().splitlines(keepends=True)
    (copy / changed).write_text("".join(["another\n", *lines[1:]]))
    capsys.readouterr()
    assert reproduce.main(started_command(root, copy, "--rows=late")) == 1
    error = capsys.readouterr().err
    assert f"{copy / changed} is not the text of the run in {base}: give" in error
    assert (root / "results" / "vi-en-cpu.jsonl").read_text() == saved
    assert [name for name, _ in trained] == ["base", "late"]


def test_a_run_of_another_text_is_not_compared_with(started, monkeypatch, capsys):
    """Found after days of training, its translations would be of another test."""
    root, corpus, trained = started
    monkeypatch.setitem(TABLES, "vi-en", TABLES["vi-en"]._replace(baselines=("later",)))
    assert reproduce.main(started_command(root, corpus, "--rows=later")) == 0
    folder = root / "runs" / "vi-en" / "cpu"
    text = {f"{name}_prefix": str(corpus / name) for name in ("train", "dev", "test")}
    fingerprints.record(
        config.make({"src": "src", "tgt": "tgt", **text}), str(folder / "later"), {}
    )
    shutil.rmtree(folder / "base")  # of the old text too, but trained again
    copy = shutil.copytree(corpus, root / "copy")
    (copy / "train.src").write_text("another\n" + (copy / "train.src").read_text())
    (copy / "train.tgt").write_text("another\n" + (copy / "train.tgt").read_text())
    assert reproduce.main(started_command(root, copy, "--rows=late")) == 1
    error = capsys.readouterr().err
    assert f"{copy / 'train.src'} is not the text of the run in {folder / 'later'}: give" in error
    assert [name for name, _ in trained] == ["base", "later"]


@pytest.mark.parametrize("seeds", ["x", "1,,", "1.5", "-1", ",", "99999999999", "4294967296"])
def test_seeds_that_are_none_are_refused(started, seeds, capsys):
    root, corpus, trained = started
    assert reproduce.main(started_command(root, corpus, f"--seeds={seeds}")) == 2
    error = capsys.readouterr().err
    assert error.startswith("tfmann: --seeds") and not trained


@pytest.mark.parametrize("table", [
    "zh-en", "alignment", "en-ja", "en-ja-ntcir", "en-ja-aspec", "cache-news", "cache-subtitle",
    "cache-ted",
])  # fmt: skip
def test_a_corpus_that_cannot_be_downloaded_is_requested_by_its_files(table, capsys):
    assert reproduce.main([table, "--scale=paper"]) == 1
    error = capsys.readouterr().err
    assert "cannot be downloaded: its text" in error and "CORPUS_DIR" in error
    chinese = table == "alignment" or table.startswith("cache")
    sides = ("zh", "en") if chinese else (table[:2], table[3:5])
    assert "train.{}, train.{}".format(*sides) in error


def test_unknown_row_is_named(toy_root, capsys):
    root, corpus = toy_root
    status = reproduce.main(
        ["vi-en", "--scale=cpu", f"--corpus_dir={corpus}", "--rows=loung", f"--out_dir={root}"]
    )
    assert status == 2 and "loung" in capsys.readouterr().err


def test_a_folder_of_records_that_cannot_be_used_is_named_before_training(toy_root, capsys):
    root, corpus = toy_root
    (root / "file").write_text("")
    (root / "mine").mkdir()
    (root / "mine" / "README.md").write_text("# my project\n")
    for folder, status, message in (
        (root / "file" / "in", 1, "file/in cannot be used: Not a directory"),
        (root / "mine", 2, "mine/README.md is not from tfmann, and would be replaced"),
        ("", 2, "--results_dir is empty: give a name, or leave the flag out"),
    ):
        argv = started_command(root, corpus, f"--results_dir={folder}")
        assert reproduce.main(argv) == status
        printed = capsys.readouterr()
        assert message in printed.err and printed.err.count("\n") == 1
    assert (root / "mine" / "README.md").read_text() == "# my project\n"
    assert not (root / "runs").exists()


def test_missing_corpus_is_one_line(toy_root, capsys):
    root, _ = toy_root
    status = reproduce.main(["vi-en", "--scale=cpu", f"--corpus_dir={root / 'none'}"])
    error = capsys.readouterr().err
    assert status in (1, 2) and "Traceback" not in error and error.startswith("tfmann:")


def test_the_synthetic_table_writes_its_corpus(tmp_path, monkeypatch, capsys):
    trained = []

    def train(table, scale, row, settings, out_dir):
        trained.append((scale, row.name, settings))
        raise UserError("not trained here")

    monkeypatch.setattr(table_runs, "train", train)
    monkeypatch.setattr(table_corpus, "SYNTHETIC_PAIRS", {"train": 30, "dev": 5, "test": 5})
    command = ["synthetic", "--rows=mad", f"--out_dir={tmp_path}"]
    assert reproduce.main(command) == reproduce.main(command) == 1
    assert "train: 30 pairs" in capsys.readouterr().out
    corpus = tmp_path / "synthetic" / "tiny" / "corpus"
    assert trained[0] == trained[1]
    assert trained[0][:2] == ("tiny", "mad")
    assert trained[0][2]["vocab_prefix"] == str(corpus / "vocab")
    assert len((corpus / "train.src").read_text("utf-8").splitlines()) == 30
    monkeypatch.setattr(table_corpus, "SYNTHETIC_PAIRS", {"train": 31, "dev": 5, "test": 5})
    assert reproduce.main(command) == 1
    assert "train.src" in capsys.readouterr().err


@pytest.mark.parametrize("table,scale", [("synthetic", "cpu"), ("vi-en", "tiny")])
def test_a_scale_that_a_table_has_not_is_refused(table, scale, capsys):
    assert reproduce.main([table, f"--scale={scale}"]) == 2
    assert f"not '{scale}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "table,gpus,scale",
    [("vi-en", 1, "gpu"), ("ro-en", 1, "paper"), ("vi-en", 0, "cpu"), ("synthetic", 1, "tiny")],
)
def test_the_devices_choose_the_scale(table, gpus, scale, monkeypatch, capsys):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"] * gpus)
    assert reproduce._scale(TABLES[table], None) == scale
    assert ("a GPU is visible" in capsys.readouterr().out) == (scale in ("gpu", "paper"))
