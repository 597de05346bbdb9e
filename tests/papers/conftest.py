"""A small table on a synthetic corpus, for the tests of `tfmann reproduce`."""

import json
import shutil
from pathlib import Path

import pytest
from helpers.toy_table import settings_of, write_statistics

from tfmann import synthetic
from tfmann.papers import inspections, table_runs
from tfmann.papers.table import Row, Table
from tfmann.papers.tables import TABLES
from tfmann.utils import resources

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def toy_root(tmp_path, monkeypatch):
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
    table = Table(
        "Toy", "toy.json", "toy", "toy_", "dev", "test",
        (Row("luong", "toy system", None, 23.3, "a note"),),
    )  # fmt: skip
    monkeypatch.setattr(resources, "_ROOT", tmp_path)
    monkeypatch.setattr(inspections, "inspect_run", write_statistics)  # a process for each run
    monkeypatch.setitem(TABLES, "vi-en", table)
    return tmp_path, corpus


@pytest.fixture
def started(toy_root, monkeypatch):
    """A table of three rows, two of which start from the first; nothing is trained."""
    root, corpus = toy_root
    rows = (
        Row("late", "late", start="base"),
        Row("base", "base"),
        Row("later", "later", None, 2.5, start="base"),
    )
    monkeypatch.setitem(TABLES, "vi-en", TABLES["vi-en"]._replace(rows=rows))
    for row in rows:
        shutil.copy(settings_of(root, "luong"), settings_of(root, row.name))
    trained, seeds = [], []

    def train(table, scale, row, settings, out_dir):
        trained.append((row.name, settings.get("init_checkpoint")))
        seeds.append((Path(out_dir).name, settings["random_seed"]))
        details = "(BP = 1.000 ratio = 1.000 hyp_len = 9 ref_len = 9)"
        first = {"value": 1.0, "signature": "s", "details": details}
        score = [first, {"value": 2.0, "signature": "s"}]
        results = {
            "best": {"dev": score, "test": score}, "parameters": 1, "steps": 7, "train_seconds": 1,
            "words_per_second": 1.0, "hardware": {"cpu": "c", "gpus": []},
            "hparams": {
                "cell": "luong", "bleu_tokenize": "none", "bleu_lowercase": False,
                "length_penalty_weight": 1.0,
                **{name: settings.get(name) for name in ("init_checkpoint", "lexicon_file")},
            },
        }  # fmt: skip
        Path(out_dir).mkdir(parents=True)
        for split in ("dev", "test"):
            (Path(out_dir) / f"output_{split}").write_text("said it said it\n" * 6)
        (Path(out_dir) / "results.json").write_text(json.dumps(results))

    train.seeds = seeds
    monkeypatch.setattr(table_runs, "train", train)
    return root, corpus, trained
