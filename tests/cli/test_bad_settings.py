"""Settings, drawn at random; `python -m benchmarks.trust settings` draws more of them."""

import json
from pathlib import Path

import pytest
from helpers import faults  # noqa: F401  (lets the benchmarks be imported)

from benchmarks.trust import draws, settings
from tfmann import nmt
from tfmann.config import FIELDS


def draw_commands(count):
    return [draws.command(f"3 {number}", Path("data"), Path("out")) for number in range(count)]


def test_a_draw_follows_from_its_name():
    assert draw_commands(50) == draw_commands(50)
    assert len({tuple(argv) for argv in draw_commands(50)}) > 40


def test_every_setting_is_drawn_and_so_are_the_edges_of_its_range():
    sizes = {**draws.TINY, **draws.TINY_MEMORIES}
    plain = {f"--{key}={value}" for key, value in sizes.items()}
    flags = {flag for argv in draw_commands(30000) for flag in argv} - plain
    assert {flag[2:].partition("=")[0] for flag in flags} >= set(FIELDS)
    for expected in ("--num_units=0", "--num_units=1", "--dropout=1.0", "--num_layers=33",
                   "--beam_width=1000", "--beam_width=1001", "--random_seed=2147483648",
                   "--num_units=1000000000", "--cell=kvmematt", "--learning_rate=nan"):  # fmt: skip
        assert expected in flags


@pytest.mark.parametrize(
    "status, message, end",
    [
        (0, "", "trained"),
        (143, "tfmann: stopped at step 3; the same command continues from there\n", "trained"),
        (2, "tfmann: dropout: 1.0 is not below 1.0\n", "refused"),
        (2, "tfmann: flag --key_value_system=\u2028: value should be one of <attn>\n", "refused"),
        (2, "a warning\ntfmann: dropout: 1.0 is not below 1.0\n", "unclear"),
        (1, "tfmann: a\ntfmann: b\n", "unclear"),
        (1, "", "unclear"),
        (-9, "tfmann: a\n", "unclear"),
    ],
)
def test_an_ending_is_judged_by_status_and_message(status, message, end):
    assert settings.classify(status, message) == end


def test_a_traceback_is_one(monkeypatch):
    monkeypatch.setattr(nmt, "main", lambda argv: 1 // 0)
    end, message = settings._run([])
    assert end == "traceback" and "ZeroDivisionError" in message


SERVED = """
import json, os, sys, time
for line in sys.stdin:
    if line == "2\\n":
        os._exit(7)
    if line in ("3\\n", "3 compiled\\n"):
        time.sleep(60)
    print(json.dumps(["traceback" if line == "1\\n" else "refused", line]), flush=True)
    if line == "4\\n":
        break
"""


def test_draws_that_end_the_worker_or_never_end_are_counted_and_the_next_continues(
    tmp_path, capsys
):
    worker = settings.Worker(3, tmp_path / "corpus", limit=2.0)
    worker._argv = [settings.sys.executable, "-c", SERVED]
    try:
        record = settings.block(worker, 3, range(7), tmp_path)
    finally:
        worker.close()
    counts = {key: record[key] for key in ("refused", "traceback", "ended", "over_time")}
    assert counts == {"refused": 4, "traceback": 1, "ended": 1, "over_time": 1}
    assert [draw["number"] for draw in record["not_well"]] == [1, 2, 3]
    assert "the worker ended with status 7" in capsys.readouterr().err
    assert json.loads(json.dumps(record))["draws"] == 7
