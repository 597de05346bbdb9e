"""Records that several processes write, and results of a run that was continued."""

import json
import multiprocessing
from pathlib import Path

from helpers.records import record

from tfmann.papers import records


def _save(path, first):
    for number in range(20):
        records.save_records([record(f"row {first + number}", seed=1)], path)


def test_processes_that_save_at_once_lose_no_record(tmp_path):
    path = tmp_path / "results" / "toy-cpu.jsonl"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_save, args=(path, first)) for first in (0, 100)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert len(records.read_records(path)) == 40
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_update_changes_keys_of_the_record_that_is_there(tmp_path):
    path = tmp_path / "toy-cpu.jsonl"
    records.save_records([record("a", seed=1, steps=1, date="old")], path)
    records.save_records([record("a", seed=1, steps=2, date="new")], path)
    records.update_records({("a", 1): {"significance": []}, ("b", 1): {"steps": 3}}, path)
    assert records.read_records(path) == [record("a", seed=1, steps=2, date="new", significance=[])]


def test_a_run_that_was_continued_has_not_ended(tmp_path):
    Path(tmp_path, "results.json").write_text(json.dumps({"steps": 1000}))
    (tmp_path / "checkpoints" / "step-00001000").mkdir(parents=True)
    assert records.results_of(str(tmp_path)) == {"steps": 1000}
    (tmp_path / "checkpoints" / "step-00001500").mkdir()
    assert records.results_of(str(tmp_path)) is None
