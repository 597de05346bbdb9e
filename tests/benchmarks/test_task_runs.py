"""Runs of the learning tasks of benchmarks/tasks: interrupted, continued, tested, plotted."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.task_sizes import TINY

_ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(_ROOT))  # the benchmarks are not installed

from benchmarks import report  # noqa: E402
from benchmarks.tasks import generate, model, plot, solved, train  # noqa: E402
from tfmann.errors import UsageError, UserError  # noqa: E402


class Killed(Exception):
    pass


@pytest.fixture
def quick(monkeypatch):
    """Few sequences to validate on."""
    validation = generate.Task.validation
    monkeypatch.setattr(generate.Task, "validation", lambda task: validation(task, 2, 2))


def tiny_run(out, cell="lstm", steps=20, log=lambda line: None, **changes):
    config = train.configuration("copy", cell, 2, **{**TINY[cell], **changes})
    return train.run(config, steps, str(out), steps_per_eval=5, test_rows=2, log=log)


def arrays_of(path):
    with np.load(path, allow_pickle=False) as archive:
        return {key: archive[key] for key in archive.files if key != "state"}


def without_times(record):
    curve = [{k: v for k, v in point.items() if k != "cpu_seconds"} for point in record["curve"]]
    keys = ("config", "steps", "parameters", "best", "test", "converged_at")
    return {**{key: record[key] for key in keys}, "curve": curve}


@pytest.mark.quick("lstm")
@pytest.mark.parametrize("cell", ["ntm", "lstm"])
def test_a_run_killed_and_continued_equals_an_uninterrupted_one(tmp_path, monkeypatch, quick, cell):
    uninterrupted = tiny_run(tmp_path / "whole", cell)
    assert [point["step"] for point in uninterrupted["curve"]] == [5, 10, 15, 20]
    draw_batch = generate.Task.training

    def training(self, seed, update, rows):
        if update == 13:
            raise Killed
        return draw_batch(self, seed, update, rows)

    with monkeypatch.context() as patch:
        patch.setattr(generate.Task, "training", training)
        with pytest.raises(Killed):
            tiny_run(tmp_path / "parts", cell)
    lines = []
    record = tiny_run(tmp_path / "parts", cell, log=lines.append)
    assert lines[0] == f"copy-{cell}-2: continues after 10 updates"
    assert without_times(record) == without_times(uninterrupted)
    actual, expected = (arrays_of(tmp_path / part / f"copy-{cell}-2.npz")
                     for part in ("parts", "whole"))  # fmt: skip
    assert actual.keys() == expected.keys()
    assert all(np.array_equal(actual[key], expected[key]) for key in expected)
    assert sorted(os.listdir(tmp_path / "parts")) == [f"copy-{cell}-2.jsonl", f"copy-{cell}-2.npz"]


def test_a_finished_run_is_left_alone_and_continues_to_a_greater_number(tmp_path, quick):
    first = tiny_run(tmp_path, steps=10)
    lines = []
    assert tiny_run(tmp_path, steps=10, log=lines.append) == first
    assert lines == [f"{tmp_path}/copy-lstm-2.jsonl exists already"]
    more = tiny_run(tmp_path, steps=15)
    assert more["steps"] == 15 and more["curve"][:2] == first["curve"]
    stored = (tmp_path / "copy-lstm-2.jsonl").read_text("utf-8")
    assert json.loads(stored) == more and stored.count("\n") == 1


def test_a_checkpoint_of_other_settings_or_a_damaged_one_is_refused(tmp_path, quick):
    tiny_run(tmp_path, steps=5)
    with pytest.raises(UsageError, match="other settings"):
        tiny_run(tmp_path, steps=10, num_units=9)
    (tmp_path / "copy-lstm-2.npz").write_bytes(b"PK\x03\x04")
    with pytest.raises(UserError, match="remove it to start again"):
        tiny_run(tmp_path, steps=10)


def test_a_record_says_what_it_is_of(tmp_path, quick):
    record = tiny_run(tmp_path, steps=5)
    assert record["config"]["settings"]["random_seed"] == 2
    assert {"revision", "versions", "hardware", "date", "cpu_seconds"} <= record.keys()
    sizes = [tuple(tested["size"]) for tested in record["test"]]
    assert sizes == list(generate.TASKS["copy"].sweeps[0].sizes)
    assert [tested["bits"] for tested in record["test"]] == [8 * size for (size,) in sizes]


def test_the_best_weights_are_tested_not_the_last(monkeypatch, quick):
    run = train.Run(train.configuration("copy", "lstm", 2, **TINY["lstm"]))
    run.evaluate(run.train(1))
    at_best = run.learner.variables[0].numpy()
    monkeypatch.setattr(train, "_measure", lambda learner, batch: (1e9, 1e9))
    run.evaluate(run.train(2))
    assert not np.array_equal(run.learner.variables[0], at_best)
    monkeypatch.undo()
    run.test(rows=1)
    assert np.array_equal(run.learner.variables[0], at_best)
    assert run.best["step"] == 1


def test_a_dnc_gets_a_larger_memory_for_sizes_it_never_saw(monkeypatch):
    slots = {}
    for cell in ("ntm", "dnc", "dnc-content-only"):
        run = train.Run(train.configuration("copy", cell, 2, **TINY[cell[:3]]))
        trained = {v.name: v.shape for v in run.learner.variables}
        slots_of_tests = []

        def measure(learner, batch, slots_of_tests=slots_of_tests, trained=trained):
            assert {v.name: v.shape for v in learner.variables} == trained
            slots_of_tests.append(learner.hparams.num_memory_locations)
            return 0.0, 0.0

        monkeypatch.setattr(train, "_measure", measure)
        run.test(rows=1)
        slots[cell] = slots_of_tests
    lengths = [size[0] for size in generate.TASKS["copy"].sweeps[0].sizes]
    assert slots["ntm"] == [6] * len(lengths)
    assert slots["dnc"] == slots["dnc-content-only"]
    assert slots["dnc"] == [6 if length <= 10 else 128 for length in lengths]


def test_a_loss_that_is_no_number_stops_the_run():
    run = train.Run(train.configuration("copy", "lstm", 2, **TINY["lstm"]))
    run.learner.variables[0].assign_add(np.full(run.learner.variables[0].shape, np.nan))
    with pytest.raises(UserError, match="the loss is nan before update 3"):
        run.train(3)


@pytest.mark.slow
def test_kill_9_and_the_same_command_again(tmp_path):
    command = [sys.executable, "-m", "benchmarks.tasks", "--task=copy", "--cell=lstm", "--seed=4"]
    command += ["--num_units=8", "--steps=1500"]

    def start(out):
        return subprocess.Popen(
            [*command, f"--out={out}"], cwd=_ROOT, stdout=subprocess.PIPE, text=True
        )

    hurt = start(tmp_path / "parts")
    while not (tmp_path / "parts" / "copy-lstm-4.npz").exists():
        assert hurt.poll() is None
        time.sleep(0.01)
    hurt.send_signal(signal.SIGKILL)
    hurt.communicate()
    assert not (tmp_path / "parts" / "copy-lstm-4.jsonl").exists()
    output, _ = start(tmp_path / "parts").communicate()
    assert re.match(r"copy-lstm-4: continues after \d+ updates\n", output)
    start(tmp_path / "whole").communicate()
    records = [json.loads((tmp_path / part / "copy-lstm-4.jsonl").read_text("utf-8"))
               for part in ("parts", "whole")]  # fmt: skip
    assert without_times(records[0]) == without_times(records[1])


# --- plots --------------------------------------------------------------------------------------


def record_of(cell, scale, task="copy", **settings):
    settings = {"random_seed": 1, **({"address_start": 10.0} if cell == "ntm" else {}), **settings}
    sizes = [size for sweep in generate.TASKS[task].sweeps for size in sweep.sizes]
    return {
        "benchmark": "learning-tasks",
        "config": {"task": task, "cell": cell, "settings": settings},
        "test": [{"size": list(s), "bits": 8 * s[0], "wrong_bits": scale * s[0]} for s in sizes],
        "curve": [{"step": step, "wrong_bits": scale * 40 / step} for step in (250, 500)],
    }


def test_plots_show_the_median_of_the_runs_and_where_training_ended():
    records = [record_of("ntm", scale) for scale in (1, 2, 4)] + [record_of("lstm", 5)]
    records.append(record_of("ntm", 3, address_start=0.0))
    axes = plot.length_figure(records).axes
    assert len(axes) == 1
    lines = {line.get_label(): line for line in axes[0].lines}
    sizes = [size for (size,) in generate.TASKS["copy"].sweeps[0].sizes]
    assert list(lines["NTM, 3 runs"].get_xdata()) == sizes
    assert list(lines["NTM, 3 runs"].get_ydata()) == [2 * size for size in sizes]
    assert list(lines[plot.SPREAD].get_ydata()) == [3 * size for size in sizes]
    assert list(lines["LSTM"].get_ydata()) == [5 * size for size in sizes]
    assert list(lines["guessing"].get_ydata()) == [4 * size for size in sizes]
    assert [10, 10] in [list(line.get_xdata()) for line in axes[0].lines]
    curves = {line.get_label(): line for line in plot.curves_figure(records).axes[0].lines}
    assert list(curves["NTM, 3 runs"].get_xdata()) == [250, 500]
    assert list(curves["NTM, 3 runs"].get_ydata()) == pytest.approx([0.32, 0.16])


def test_a_variant_is_its_cell_with_other_settings_and_a_line_of_its_own():
    labels = set()
    for name, (cell, changes) in model.VARIANTS.items():
        settings = train.configuration("copy", cell, 2)["settings"]
        config = train.configuration("copy", name, 2)
        assert config["cell"] == name and config["settings"] == {**settings, **changes}
        run = record_of(name, 1)
        labels.add(plot.variant(run))
        assert plot.variant(run) in {
            line.get_label() for line in plot.length_figure([run]).axes[0].lines
        }
    assert len(labels) == 4 and not labels & {"NTM", "DNC", "LSTM", plot.SPREAD}


def test_plots_are_written(tmp_path, capsys):
    records = [record_of(cell, 1, task) for cell in model.CELLS for task in generate.TASKS]
    records.append({"benchmark": "memory"})  # another benchmark's
    file = tmp_path / "runs.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    assert len(plot.length_figure(plot.read([str(file)])).axes) == 4
    assert plot.main([str(file), f"--out={tmp_path}/plots"]) == 0
    assert plot.main([str(file), f"--out={tmp_path}/plots", "--name=seeds"]) == 0
    for name in ("learning-tasks-length.png", "learning-tasks-curves.png", "seeds-curves.png"):
        assert (tmp_path / "plots" / name).read_bytes().startswith(b"\x89PNG")
    file.write_text('{"benchmark": "memory"}\n', "utf-8")
    assert plot.main([str(file), f"--out={tmp_path}/plots"]) == 1
    assert "no run of the learning tasks" in capsys.readouterr().err
    assert plot.main([f"{tmp_path}/none.jsonl", f"--out={tmp_path}/plots"]) == 1


def test_the_report_has_a_line_for_every_run(monkeypatch):
    records = [record_of(cell, 0.5) for cell in ("lstm", "ntm")]
    for record in records:
        record.update(parameters=1234, steps=5000, cpu_seconds=120.0, converged_at=None)
    records[1]["converged_at"] = 250
    monkeypatch.setattr(report, "read_benchmark", {"learning-tasks": records}.get)
    rows = [line for line in report.learning_tasks() if line.startswith("| copy")]
    assert rows[0].startswith("| copy | LSTM | 1 | 1,234 | 5,000 | 2 | no | 5.00 | 12: 6.00 (96), ")
    assert rows[1].startswith("| copy | NTM | 1 | 1,234 | 5,000 | 2 | 250 | 5.00 | ")
    assert rows[1].endswith("40: 20.00 (320) |")


def test_the_report_counts_the_seeds_that_solve_a_task(monkeypatch):
    updates = {"dnc": [250, 500, 1000], "ntm": [None, 4250, None], "lstm": [None]}
    records = [
        {**record_of(cell, scale), "steps": 5000, "converged_at": update}
        for cell, found in updates.items()
        for scale, update in enumerate(found)
    ]
    monkeypatch.setattr(report, "read_benchmark", {"learning-tasks-seeds": records}.get)
    rows = [line for line in report.learning_seeds() if line.startswith("| copy")]
    assert rows == [
        "| copy | DNC | 3 | 5,000 | 3 of 3 | 250 | 500 | 1,000 | 20.00 | 0.00 | 40.00 |",
        "| copy | LSTM | 1 | 5,000 | 0 of 1 | never | never | never | 0.00 | 0.00 | 0.00 |",
        "| copy | NTM | 3 | 5,000 | 1 of 3 | 4,250 | never | never | 20.00 | 0.00 | 40.00 |",
    ]
    with pytest.raises(ValueError):  # a share of runs of different lengths means nothing
        solved.table([records[0], {**records[1], "steps": 10000}])
