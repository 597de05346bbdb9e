"""The parts of `benchmarks.trust` that kill commands, stream lines and wait for memory to grow."""

import json
import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.trust import command_kills, killable, kills, lines, soak, tables  # noqa: E402
from benchmarks.trust.__main__ import main as trust  # noqa: E402

LENGTHS = [command_kills.Length(2.0, 7, 9.0), command_kills.Length(4.0, 50, 30.0)]


def read_records(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


# --- kills --------------------------------------------------------------------------------------


@pytest.mark.parametrize("waits", [False, True])
def test_moments_are_spread_over_all_command_lines_and_both_measures(waits):
    drawn = [command_kills.draw(random.Random(n), LENGTHS, waits) for n in range(400)]
    moments = [kill for of_point in drawn for kill in of_point]
    assert {len(of_point) for of_point in drawn} == {1, 2}
    assert {kill["signal"] for kill in moments} == {9, 15}
    assert all(("cpu" in kill) != waits for kill in moments if "call" not in kill)
    for line, length in enumerate(LENGTHS):
        of_line = [kill for kill in moments if kill["line"] == line]
        assert {kill["call"] for kill in of_line if "call" in kill} <= set(range(length.calls))
        unit = "seconds" if waits else "cpu"
        most = max(kill.get(unit, 0) for kill in of_line)
        assert 0.8 * getattr(length, unit) < most <= getattr(length, unit)


def test_recorded_points_are_those_of_the_command(tmp_path):
    record = {"benchmark": "trust kills", "seed": 1, "first": 0, "points": 3, "command": "export",
              "settings": {**killable.SETTINGS, "pairs": killable.PAIRS}}  # fmt: skip
    out = tmp_path / "trust.jsonl"
    out.write_text(json.dumps(record) + "\n")
    assert kills.recorded_blocks(out, "export", 1) == [record]
    assert kills.recorded_blocks(out, "export", 2) == kills.recorded_blocks(out, "jobs", 1) == []


@pytest.mark.thorough
def test_a_killed_command_is_compared_with_an_undisturbed_one(tmp_path):
    out = tmp_path / "trust.jsonl"
    flags = ["--commands=synthetic", "--count=2", "--block=1", f"--out={out}"]
    assert trust(["kills", *flags]) == 0
    records = read_records(out)
    assert [record["first"] for record in records] == [0, 1]
    assert all(record["points"] == record["identical"] == 1 for record in records)
    assert trust(["kills", *flags]) == 0 and read_records(out) == records


@pytest.mark.thorough
def test_what_a_killed_command_leaves_is_seen(tmp_path, monkeypatch):
    reset = command_kills.Subject.reset
    resets = iter(range(100))

    def littered(self):
        reset(self)
        if next(resets) > 1:  # the undisturbed ones come first
            (self.out / "left").touch()

    monkeypatch.setattr(command_kills.Subject, "reset", littered)
    out = tmp_path / "trust.jsonl"
    assert trust(["kills", "--commands=synthetic", "--count=1", f"--out={out}"]) == 1
    (record,) = read_records(out)
    assert record["identical"] == 0 and record["differing"][0]["differs"] == ["left"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "name", [name for name in kills.NAMES if name not in ("train", "synthetic")]
)
def test_every_command_is_killed_once(name, tmp_path):
    out = tmp_path / "trust.jsonl"
    assert trust(["kills", f"--commands={name}", "--count=1", f"--out={out}"]) == 0
    (record,) = read_records(out)
    assert record["command"] == name and record["identical"] == record["points"] == 1


# --- lines --------------------------------------------------------------------------------------


def test_lines_are_of_every_kind_and_half_of_them_come_again():
    drawn = list(lines.stream_lines(4000, seed=1))
    assert drawn == list(lines.stream_lines(4000, seed=1))
    assert {kind for kind, _, _ in drawn} == set(lines.KINDS)
    assert 0.45 < sum(number is not None for _, number, _ in drawn) / len(drawn) < 0.55
    text = "".join(text for _, _, text in drawn)
    assert "\n" not in text and {"\0", "\u2028", "\x85", "\t", "\r"} <= set(text)
    assert text.encode().decode() == text


def test_answers_are_checked():
    checks = lines.Checks()
    for kind, number, text, answer in (
        ("words", 1, "hund", b"a"), ("words", 1, "hund", b"a"), ("words", 1, "hund", b"b"),
        ("words", None, "hund", b"c"), ("blank", None, " \t", b""), ("blank", None, " \t", b"d"),
    ):  # fmt: skip
        checks.add(kind, number, text, answer)
    assert (checks.answered, checks.unlike, checks.wrong_blanks) == (6, 1, 1)
    assert checks.kinds == {"words": 4, "blank": 2}


@pytest.mark.thorough
def test_lines_stream_through_the_command(tmp_path):
    out = tmp_path / "trust.jsonl"
    assert trust(["lines", "--count=1500", f"--out={out}"]) == 0
    (record,) = read_records(out)
    assert record["lines"] == record["answered"] == 1500 and not record["failed"]
    assert 0 < record["peak_mib_at_a_tenth"] <= record["peak_mib"]


# --- soak ---------------------------------------------------------------------------------------


def test_the_slope_is_of_the_second_half():
    samples = [(float(second), 500.0 if second < 50 else 100 + 0.01 * second)
               for second in range(100)]  # fmt: skip
    assert soak.slope(samples) == pytest.approx(36.0)
    assert soak.slope(samples[:1]) == 0.0


@pytest.mark.parametrize(
    "status, messages, end",
    [
        (0, "", "trained"),
        (1, "step 2\ntfmann: memory has run out: x. y\n", "one message"),
        (1, "tfmann: a\ntfmann: b\n", "unclear"),
        (1, "Traceback (most recent call last):\ntfmann: a\n", "unclear"),
        (1, "", "unclear"),
        (-6, "terminate called\n", "aborted"),
    ],
)
def test_an_end_for_lack_of_memory_is_judged_by_status_and_message(status, messages, end):
    assert soak.classify(status, messages) == end


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_training_and_serving_are_watched(tmp_path):
    out = tmp_path / "trust.jsonl"
    flags = ["--minutes=0.7", "--every=1", "--runs=1", "--slope_mib=1e9", f"--out={out}"]
    trust(["soak", "--what=train,serve,exhaust", *flags])
    training, serving, exhaustion = read_records(out)
    assert training["samples"] > 9 and training["status"] == 143
    assert serving["requests"] > 0 and serving["wrong"] == serving["status"] == 0
    assert sum(exhaustion["ends"].values()) == 1 and exhaustion["bad"] == []


# --- totals -------------------------------------------------------------------------------------


def test_totals_are_sums_by_command():
    point = dict.fromkeys(
        ("points", "identical", "killed", "terminated", "while_at_files", "saved_and_exited_143"), 2
    )
    records = [
        {"benchmark": "trust kills", **point},
        {"benchmark": "trust kills", "command": "jobs", **point, "identical": 1},
        {"benchmark": "trust kills", "command": "jobs", **point},
    ]
    ((title, _, table),) = tables.sections(records)
    assert title == "Killed commands"
    assert table[2:] == [
        "| train | 2 | 2 | 2 | 2 | 2 | 2 |", "| jobs | 4 | 3 | 4 | 4 | 4 | 4 |",
        "| all | 6 | 5 | 6 | 6 | 6 | 6 |",
    ]  # fmt: skip


# --- settings -----------------------------------------------------------------------------------


@pytest.mark.thorough
def test_settings_are_drawn_by_the_command(tmp_path):
    out = tmp_path / "trust.jsonl"
    assert trust(["settings", "--count=2", "--block=1", f"--out={out}"]) == 0
    records = read_records(out)
    assert [(record["first"], record["draws"]) for record in records] == [(0, 1), (1, 1)]
    assert not any(record["not_well"] for record in records)
