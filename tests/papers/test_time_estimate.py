"""Estimates of a table's time from the recorded times of its rows."""

import pytest
from helpers.records import record, write_results

from tfmann.papers.table_runs import estimate_time, format_duration


@pytest.fixture
def path(tmp_path):
    lines = [("a", 1, 600), ("a", 2, 1200), ("b", 1, 5400)]
    hardware = {"cpu": "Some Processor", "cores": 2, "gpus": []}
    runs = [
        record(row, seed=seed, train_seconds=seconds, hardware=hardware)
        for row, seed, seconds in lines
    ]
    return write_results(tmp_path, "toy-cpu", *runs) / "toy-cpu.jsonl"


def test_known_rows_are_added_up(path):
    assert estimate_time(["a", "a", "b"], 5, path) == (
        "3 of 5 runs are left to train: about 2 h 00 min plus the time to translate, as "
        "toy-cpu.jsonl records it on Some Processor"
    )


def test_an_unknown_row_takes_the_mean_of_the_others(path):
    estimate = estimate_time(["b", "c"], 2, path)  # 90 minutes, and (15 + 90) / 2
    assert "about 2 h 22 min" in estimate and estimate.endswith("1 of them guessed from other rows")


def test_what_nobody_measured_is_not_guessed(path):
    unmeasured = path.parent / "other-cpu.jsonl"
    assert estimate_time(["a"], 1, unmeasured).endswith("how long that takes has not been measured")


def test_nothing_is_left(path):
    assert estimate_time([], 3, path) == "all 3 runs have ended: nothing is left to train"


def test_durations():
    texts = [format_duration(seconds) for seconds in (1, 89, 3599, 3600, 86_400)]
    assert texts == ["1 min", "1 min", "1 h 00 min", "1 h 00 min", "24 h 00 min"]
