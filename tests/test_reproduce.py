"""Tables: trained once, gone on with, rendered from what is kept; on an invented corpus."""

import json
from pathlib import Path

import pytest

from tfmann import reproduce
from tfmann.corpus import synthetic, tokenise
from tfmann.errors import UserError
from tfmann.report import tables

ROOT = Path(__file__).resolve().parent.parent


def test_every_row_has_its_settings_at_both_scales_where_a_paper_has_it():
    from tfmann import hparams

    for name, table in tables.TABLES.items():
        for row in table.rows:
            for scale in table.scales:
                if scale != "paper" or row.paper_test is not None:
                    hparams.make({}, str(ROOT / "hparams" / table.settings_file(row, scale)))
        assert table.manifest is None or (ROOT / "data" / table.manifest).exists(), name


def test_results_readme_is_what_the_results_say():
    results = ROOT / "results"
    if results.exists():
        assert (results / "README.md").read_text("utf-8") == tables.render_all(results)


def test_results_name_no_machine_path():
    for path in (ROOT / "results").glob("*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            settings = json.loads(line).get("hparams", {})
            assert not [v for v in settings.values() if isinstance(v, str) and v.startswith("/")]


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A root with a tiny table on a synthetic corpus."""
    corpus = tmp_path / "corpus"
    synthetic.write_corpus(str(corpus), train=120, dev=6, test=6, seed=1)
    manifest = json.loads((ROOT / "data" / "iwslt15_vi_en.json").read_text("utf-8"))
    text = json.dumps(manifest)
    for old, new in (("tst2012", "dev"), ("tst2013", "test")):
        text = text.replace(f"{old}.", f"{new}.").replace(f'"{old}"', f'"{new}"')
    text = text.replace('.vi"', '.src"').replace('.en"', '.tgt"')
    text = text.replace('"source": "vi"', '"source": "src"')
    text = text.replace('"target": "en"', '"target": "tgt"')
    manifest = json.loads(text)
    for entry in manifest["files"]:
        for key in ("lines", "bytes", "accept_lines"):
            entry.pop(key, None)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "toy.json").write_text(json.dumps(manifest))
    folder = tmp_path / "hparams" / "cpu" / "toy"
    folder.mkdir(parents=True)
    settings = {
        "cell": "luong", "num_units": 8, "encoder_type": "bi", "num_train_steps": 4,
        "steps_per_stats": 2, "steps_per_external_eval": 4, "beam_width": 2, "batch_size": 16,
        "num_attention_images": 0,
    }  # fmt: skip
    (folder / "toy_luong.json").write_text(json.dumps(settings))
    table = tables.Table(
        "Toy", "toy.json", "toy", "toy_", "dev", "test",
        (tables.Row("luong", "toy system", None, 23.3, "a note"),),
    )  # fmt: skip
    monkeypatch.setattr(reproduce, "_ROOT", tmp_path)
    monkeypatch.setitem(tables.TABLES, "vi-en", table)
    return tmp_path, corpus


def test_trains_once_then_only_prints(world, capsys):
    root, corpus = world
    command = [
        "vi-en", "--scale=cpu", f"--corpus_dir={corpus}", f"--out_dir={root / 'runs'}",
        f"--results_dir={root / 'results'}",
    ]  # fmt: skip
    assert reproduce.main(command) == 0
    out = capsys.readouterr().out
    assert "120 pairs" in out and "| toy system | - | 23.3* |" in out and "* a note" in out
    kept = [json.loads(x) for x in (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()]
    assert len(kept) == 1 and kept[0]["steps"] == 4 and kept[0]["pairs"]["train"] == 120
    assert not [k for k in kept[0]["hparams"] if k.endswith("_prefix")]
    results = root / "runs" / "vi-en" / "cpu" / "luong" / "results.json"
    stamp = results.stat().st_mtime_ns
    assert reproduce.main(command) == 0
    assert results.stat().st_mtime_ns == stamp
    assert (root / "results" / "README.md").read_text() == tables.render_all(root / "results")


@pytest.fixture
def raw_world(world, monkeypatch):
    """The same with a table of raw text, on a known variant of its corpus."""
    root, corpus = world
    path = root / "data" / "toy.json"
    manifest = json.loads(path.read_text())
    manifest["vocabularies"] = None
    other = [{"lines": 120, "note": "a stand-in"}]
    manifest["files"] = [f for f in manifest["files"] if not f["path"].startswith("vocab")]
    for entry in manifest["files"]:
        if entry["path"].startswith("train"):
            entry.update(lines=7, accept_lines=other)
        file = corpus / entry["path"]
        lines = file.read_text(encoding="utf-8").splitlines()
        file.write_text("".join(f"„{line}”, {line}!\n" for line in lines), encoding="utf-8")
    path.write_text(json.dumps(manifest))
    row = root / "hparams" / "cpu" / "toy" / "toy_luong.json"
    row.write_text(json.dumps({**json.loads(row.read_text()), "subword_option": "bpe"}))
    table = tables.TABLES["vi-en"]._replace(bpe_merges={"cpu": 15})
    monkeypatch.setitem(tables.TABLES, "vi-en", table)
    return root, corpus


def test_raw_text_is_prepared_once_and_scored_as_text_too(raw_world, capsys):
    root, corpus = raw_world
    command = [
        "vi-en", "--scale=cpu", f"--corpus_dir={corpus}", f"--out_dir={root / 'runs'}",
        f"--results_dir={root / 'results'}",
    ]  # fmt: skip
    assert reproduce.main(command) == 0
    out = capsys.readouterr().out
    assert "learning 15 merges" in out and "120 pairs, 0 with an empty side; a stand-in" in out
    assert "| ours test | 13a dev | 13a test | chrF |" in out and "\ntrain: a stand-in\n" in out
    assert "tok:none" in out and "tok:13a" in out
    heading, _, row = (line.split(" | ") for line in out.splitlines() if line.startswith("|"))
    assert len(heading) == len(row) == 12
    (line,) = (root / "results" / "vi-en-cpu.jsonl").read_text().splitlines()
    kept = json.loads(line)
    assert kept["preparation"]["merges"] == 15 and kept["variants"] == {"train": "a stand-in"}
    assert set(kept["detokenised"]) == {"dev", "test"}
    assert "subword_model" not in kept["hparams"] and kept["hparams"]["subword_option"] == "bpe"
    vocabulary = (root / "runs" / "vi-en" / "cpu" / "luong" / "vocab.tgt").read_text()
    assert "@@\n" in vocabulary and '\n"\n' in vocabulary
    assert reproduce.main(command) == 0
    assert "learning" not in capsys.readouterr().out


def test_text_is_scored_against_the_raw_references(raw_world, tmp_path):
    root, corpus = raw_world
    report = reproduce._corpus(tables.TABLES["vi-en"], str(corpus), "")
    for name in ("dev", "test"):
        raw = (corpus / f"{name}.tgt").read_text(encoding="utf-8").splitlines()
        tokens = [tokenise.tokenise(line.replace("„", '"').replace("”", '"')) for line in raw]
        (tmp_path / f"output_{name}").write_text("".join(f"{line}\n" for line in tokens))
        plain = "".join(f"{line.replace('„', chr(34)).replace('”', chr(34))}\n" for line in raw)
        (corpus / f"{name}.tgt").write_text(plain)
    for name, score in reproduce._detokenised_scores(report, str(tmp_path)).items():
        assert score["value"] == pytest.approx(100) and "tok:13a" in score["signature"]
        text = (tmp_path / f"output_{name}.detok").read_text()
        assert text == (corpus / f"{name}.tgt").read_text().replace(" .", ".")


def test_unknown_row_is_named(world, capsys):
    root, corpus = world
    status = reproduce.main(
        ["vi-en", "--scale=cpu", f"--corpus_dir={corpus}", "--rows=loung", f"--out_dir={root}"]
    )
    assert status == 1 and "loung" in capsys.readouterr().err


def test_missing_corpus_is_one_line(world, capsys):
    root, _ = world
    status = reproduce.main(["vi-en", "--scale=cpu", f"--corpus_dir={root / 'none'}"])
    error = capsys.readouterr().err
    assert status in (1, 2) and "Traceback" not in error and error.startswith("tfmann:")


def test_the_synthetic_table_writes_its_corpus(tmp_path, monkeypatch, capsys):
    trained = []

    def train(table, scale, row, settings, out_dir):
        trained.append((scale, row.name, settings))
        raise UserError("not trained here")

    monkeypatch.setattr(reproduce, "_train", train)
    monkeypatch.setattr(reproduce, "_SYNTHETIC", {"train": 30, "dev": 5, "test": 5})
    command = ["synthetic", "--rows=mad", f"--out_dir={tmp_path}"]
    assert reproduce.main(command) == reproduce.main(command) == 1
    assert "train: 30 pairs" in capsys.readouterr().out
    corpus = tmp_path / "synthetic" / "tiny" / "corpus"
    assert trained[0] == trained[1]
    assert trained[0][:2] == ("tiny", "mad")
    assert trained[0][2]["vocab_prefix"] == str(corpus / "vocab")
    assert len((corpus / "train.src").read_text("utf-8").splitlines()) == 30
    monkeypatch.setattr(reproduce, "_SYNTHETIC", {"train": 31, "dev": 5, "test": 5})
    assert reproduce.main(command) == 1
    assert "train.src" in capsys.readouterr().err


@pytest.mark.parametrize("table,scale", [("synthetic", "cpu"), ("vi-en", "tiny")])
def test_a_scale_that_a_table_has_not_is_refused(table, scale, capsys):
    assert reproduce.main([table, f"--scale={scale}"]) == 2
    assert f"not '{scale}'" in capsys.readouterr().err
