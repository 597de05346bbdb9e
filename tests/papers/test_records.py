"""Files of records and results, damaged ones too."""

import json
from pathlib import Path
from statistics import fmean, stdev

import pytest
from helpers.records import record

from tfmann.errors import UserError
from tfmann.papers import records, table_runs
from tfmann.papers.metrics import RESAMPLED_UNITS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("damaged", ['{"row": "b", "see', "7", "[]"])
def test_a_damaged_line_of_a_file_is_named(tmp_path, damaged):
    path = tmp_path / "vi-en-cpu.jsonl"
    path.write_text(f'{{"row": "a"}}\n\n{damaged}\n', "utf-8")
    with pytest.raises(UserError, match=r"vi-en-cpu\.jsonl, line 3: expected a JSON object"):
        records.read_records(path)
    path.write_text('{"row": "a"}\n\n{"row": "b"}\n', "utf-8")
    assert records.read_records(path) == [{"row": "a"}, {"row": "b"}]


@pytest.mark.parametrize("key", ["row", "best", "hparams", "train_seconds"])
def test_a_record_without_a_key_of_every_run_is_named(tmp_path, key):
    path = tmp_path / "vi-en-cpu.jsonl"
    runs = [record("a", seed=1), record("a", seed=2)]
    del runs[1][key]
    path.write_text("".join(json.dumps(run) + "\n" for run in runs), "utf-8")
    with pytest.raises(UserError, match=rf"record 2 \(row .*, seed 2\): no {key}\. Take"):
        records.read_results(tmp_path)


def test_a_second_record_of_a_run_is_named(tmp_path):
    path = tmp_path / "vi-en-cpu.jsonl"
    runs = [record("a", seed=1), record("a", seed=2), record("a")]  # without a seed it is 1
    path.write_text("".join(json.dumps(run) + "\n" for run in runs), "utf-8")
    with pytest.raises(UserError, match=r"record 3 .*: record 1 is of the same row and seed"):
        records.read_results(tmp_path)


def test_a_row_without_training_has_no_time_of_training(tmp_path):
    run = record("a", weights="b")
    del run["train_seconds"], run["words_per_second"]
    (tmp_path / "vi-en-cpu.jsonl").write_text(json.dumps(run) + "\n", "utf-8")
    assert records.read_results(tmp_path) == {("vi-en", "cpu"): [run]}


@pytest.mark.parametrize("key", ["row", "hardware"])
def test_a_table_is_not_rebuilt_over_a_record_without_a_key(tmp_path, key):
    path = tmp_path / "vi-en-cpu.jsonl"
    run = record("a", seed=1)
    del run[key]
    path.write_text(json.dumps(run) + "\n", "utf-8")
    with pytest.raises(UserError, match=rf"record 1 \(row .*, seed 1\): no {key}\. Take"):
        table_runs.estimate_time(["b"], 2, path)
    with pytest.raises(UserError, match=f"no {key}"):
        records.save_records([record("b", seed=1)], path)
    assert json.loads(path.read_text("utf-8")) == run


@pytest.mark.parametrize("contents", ["", "[]", "7", "{}", '{"hparams": {}}'])
def test_what_no_ended_run_has_written_is_no_result(tmp_path, contents):
    assert records.results_of(str(tmp_path)) is None
    (tmp_path / "results.json").write_text(contents, "utf-8")
    assert records.results_of(str(tmp_path)) is None
    (tmp_path / "results.json").write_text(json.dumps({"steps": 7}), "utf-8")
    assert records.results_of(str(tmp_path)) == {"steps": 7}


def test_recorded_repetitions_are_of_the_scored_translations():
    """Both count the same words; the translations by averaged weights have other ones."""
    for path in sorted((ROOT / "results").glob("*.jsonl")):
        for run in records.read_records(path):
            if "repetition" in run and "more_tests" not in run:
                words = run["repetition"][0]["ngrams"]
                details = run["best"]["test"][0]["details"]
                assert f" hyp_len = {words} " in details, (path.name, run["row"], run["seed"])


def test_recorded_resamples_are_of_the_scored_translations():
    """The mean of the resamples is near the score, in standard deviations of the resamples."""
    checked = 0
    for path in sorted((ROOT / "results").glob("*.jsonl")):
        for run in records.read_records(path):
            for split in ("dev", "test"):
                scores = (run.get("resampled") or {}).get(split, {}).get("bleu")
                if scores and "more_tests" not in run:
                    error = fmean(scores) / RESAMPLED_UNITS - run["best"][split][0]["value"]
                    spread = stdev(scores) / RESAMPLED_UNITS
                    assert abs(error) < 0.4 * spread, (path.name, run["row"], run["seed"], split)
                    checked += 1
    assert checked > 500
