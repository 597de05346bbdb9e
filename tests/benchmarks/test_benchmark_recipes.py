"""Runs that are recorded as recipes: settings without places, once each, or one message."""

import json

from benchmarks import recipes
from tfmann.config import HParams


def write_run(folder, seed=1, **settings):
    h = HParams(random_seed=seed, train_prefix="/somewhere/train", **settings)
    results = {
        "cell": h.cell, "steps": 5, "train_seconds": 90.0, "hparams": h.as_dict(),
        "history": [{"step": 5, "dev_ppl": 9.0, "dev_bleu": 1.0}], "best": {}, "revision": "abc",
    }  # fmt: skip
    folder.mkdir()
    (folder / "results.json").write_text(json.dumps(results), encoding="utf-8")
    return str(folder)


def test_runs_are_recorded_once_with_what_was_set(tmp_path):
    out = tmp_path / "recipes.jsonl"
    runs = [write_run(tmp_path / "a", 1), write_run(tmp_path / "b", 2, label_smoothing=0.1)]
    for folders in (runs[:1], runs):
        assert recipes.main(["--corpus=toy", f"--out={out}", *folders]) == 0
    first, second = (json.loads(line) for line in out.read_text().splitlines())
    assert (first["seed"], second["seed"]) == (1, 2) and first["minutes"] == 1.5
    assert second["settings"] == {"label_smoothing": 0.1, "random_seed": 2}
    assert second["history"] == [{"step": 5, "dev_ppl": 9.0, "dev_bleu": 1.0}]
    assert "somewhere" not in out.read_text()


def test_a_setting_without_a_default_is_recorded_unless_it_is_a_place(tmp_path):
    memory = {"translation_memory": "/somewhere/store", "translation_memory_lambda": 0.4}
    write_run(tmp_path / "a", **memory, learning_rate=0.5, src="de")
    settings = recipes.record(tmp_path / "a", "toy")["settings"]
    assert settings == {
        "translation_memory_lambda": 0.4, "learning_rate": 0.5, "src": "de",
    }  # fmt: skip


def test_a_run_that_has_not_ended_is_refused_and_nothing_is_written(tmp_path, capsys):
    out = tmp_path / "recipes.jsonl"
    good = write_run(tmp_path / "a")
    assert recipes.main(["--corpus=toy", f"--out={out}", good, str(tmp_path / "none")]) == 1
    assert "none/results.json: expected the results of a finished run" in capsys.readouterr().err
    assert not out.exists()
