"""The lines of a log and the progress bar: speeds without compiling, lines that stay whole."""

import io
from types import SimpleNamespace

import pytest
import tensorflow as tf

from tfmann.config import HParams
from tfmann.training import update_statistics
from tfmann.training.train_state import TrainState
from tfmann.utils.run_folder import RunFolder


@pytest.fixture
def clock(monkeypatch):
    """A clock that only the test moves."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(update_statistics.time, "perf_counter", lambda: now.seconds)
    return now


UPDATE = SimpleNamespace(cross_entropy=tf.constant(20.0), gradient_norm=tf.constant(1.5))


def add(meter, clock, seconds, words=10):
    clock.seconds += seconds
    meter.add(UPDATE, words)


def test_the_update_that_compiles_is_left_out_of_the_speed(clock):
    meter = update_statistics.Meter()
    add(meter, clock, 30.0, words=7)
    for _ in range(4):
        add(meter, clock, 0.5)
    assert meter.steady and meter.words == 47
    statistics = meter.read()
    assert statistics["step_seconds"] == pytest.approx(0.5)
    assert statistics["words_per_second"] == pytest.approx(20.0)
    assert statistics["seconds"] == pytest.approx(32.0)  # what training has taken counts it
    add(meter, clock, 0.25)
    assert meter.steady and meter.read()["step_seconds"] == pytest.approx(0.25)


def test_no_time_left_is_computed_from_the_update_that_compiles(clock):
    meter = update_statistics.Meter()
    h, state = HParams(num_train_steps=12001), TrainState(step=1)
    add(meter, clock, 20.0)
    steady = meter.steady
    statistics = {**meter.read(), "learning_rate": 1.0}
    assert not steady and statistics["step_seconds"] == pytest.approx(20.0)
    line = update_statistics.log_line(h, state, statistics, steady)
    assert "left" not in line and line.endswith(", with the time to compile it")
    add(meter, clock, 0.5)
    steady = meter.steady
    statistics = {**meter.read(), "learning_rate": 1.0}
    line = update_statistics.log_line(h, state, statistics, steady)
    assert line.endswith(", 1h40m of updates left")


def screen(output):
    """The lines that a terminal shows: a carriage return goes back to the line's beginning."""
    lines = []
    for line in output.split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part) :]
        lines.append(shown.rstrip())
    return lines


def test_a_terminal_shows_log_lines_above_the_progress_bar(monkeypatch, tmp_path):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setattr("sys.stderr", terminal)
    h = HParams(num_train_steps=9)
    with (
        RunFolder(str(tmp_path), print) as folder,
        update_statistics.progress_bar(h, TrainState(), visible=True) as bar,
    ):
        for step in range(3):
            bar.update(1)
            folder.log(f"step {step + 1}")
    *lines, last, end = screen(terminal.getvalue())
    assert lines == ["step 1", "step 2", "step 3"] and end == ""
    assert last.startswith("training:  33%")
    assert (tmp_path / "train.log").read_text() == "step 1\nstep 2\nstep 3\n"
