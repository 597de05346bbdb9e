"""Tables: trained once, gone on with, rendered from what is kept; on an invented corpus."""

import json
from pathlib import Path

import pytest

from tfmann import reproduce
from tfmann.corpus import synthetic
from tfmann.report import tables

ROOT = Path(__file__).resolve().parent.parent


def test_every_row_has_its_settings_at_both_scales_where_a_paper_has_it():
    from tfmann import hparams

    for name, table in tables.TABLES.items():
        for row in table.rows:
            file = f"{table.prefix}_{row.name}.json"
            hparams.make({}, str(ROOT / "hparams" / "cpu" / table.folder / file))
            if row.paper_test is not None:
                hparams.make({}, str(ROOT / "hparams" / table.folder / file))
        assert (ROOT / "data" / table.manifest).exists(), name


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
        "Toy", "toy.json", "toy", "toy", "dev", "test",
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
