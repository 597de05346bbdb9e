"""A run that is stopped at any moment and started again ends as one that never was."""

import json
import os
import re
import signal
import time

import numpy as np
import pytest
from helpers import tiny_runs
from helpers.archives import archives

from tfmann.training import checkpoint, checkpoint_series

STEPS, SAVE, EVALUATE = 30, 5, 15
RUN = {
    "num_train_steps": STEPS,
    "steps_per_checkpoint": SAVE,
    "steps_per_external_eval": EVALUATE,
    "num_keep_ckpts": 3,
    "avg_ckpts": True,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny_runs.corpus(tmp_path_factory.mktemp("corpus"), 300)


# --- moments of a run, in their order ---------------------------------------------------------


def steps_logged(out, position):
    """Updates that a run has logged since its log was `position` bytes long."""
    new = (out / "train.log").read_bytes()[position:].decode()
    return [int(number) for number in re.findall(r"^step (\d+) lr", new, re.MULTILINE)]


def trained(step):
    """After the update that makes `step` steps."""
    return lambda out, position: max(steps_logged(out, position), default=0) >= step


def saving(step):
    """While the checkpoint of `step` is written: its folder has not its last name yet."""
    name = f"step-{step:08d}"
    return lambda out, position: any(n >= name for n in os.listdir(out / "checkpoints"))


def evaluating(step):
    """While dev is translated and scored, and the best weights are written."""
    after = trained(step)
    return lambda out, position: after(out, position) and (out / "output_dev").exists()


def moments(seed, begin):
    """Five moments after step `begin`, all three kinds among them."""
    every = []
    for step in range(begin + 1, STEPS + 1):
        every.append((f"after update {step}", trained(step)))
        if step % EVALUATE == 0:
            every.append((f"evaluating at {step}", evaluating(step)))
        if step % SAVE == 0:
            every.append((f"saving {step}", saving(step)))
    stream = np.random.default_rng(seed)
    while True:
        chosen = [every[i] for i in sorted(stream.choice(len(every), 5, replace=False))]
        if len({name.split()[0] for name, _ in chosen}) == 3:
            return chosen


def run_until_signal(argv, out, moment, number, delay, log):
    """Starts the run and sends it a signal at a moment; returns its exit status."""
    path = out / "train.log"
    position = path.stat().st_size if path.exists() else 0
    process = tiny_runs.start(argv, log)
    try:
        while process.poll() is None:
            if path.exists() and moment(out, position):
                time.sleep(delay)
                process.send_signal(number)
                break
            time.sleep(0.003)
        return process.wait()
    finally:
        process.kill()
        process.wait()


def ending(out):
    """Everything a run leaves that has to be the same."""
    results = json.loads((out / "results.json").read_text())
    numbers = ("steps", "best_step", "parameters", "words", "history", "best", "average")
    state = checkpoint.read_state(str(out / "checkpoints" / f"step-{STEPS:08d}"))
    texts = {name: (out / name).read_text() for name in ("output_dev", "output_test")}
    return {
        **{name: results[name] for name in numbers},
        **{name: state[name] for name in ("position", "best_bleu", "stale_evaluations")},
        "checkpoints": checkpoint_series.steps(str(out / "checkpoints")),
        **texts,
    }


@pytest.mark.thorough
@pytest.mark.timeout(1500)
def test_killed_at_five_random_moments_and_terminated_once(data, tmp_path):
    """SIGTERM once, `kill -9` five times: the same weights, bit for bit, and the same scores."""
    uninterrupted, out, log = tmp_path / "whole", tmp_path / "hurt", tmp_path / "log"
    reference = tiny_runs.start(tiny_runs.flags(data, uninterrupted, **RUN), tmp_path / "reference")
    try:
        argv = tiny_runs.flags(data, out, **RUN)
        assert run_until_signal(argv, out, trained(3), signal.SIGTERM, 0, log) == 143, (
            log.read_text()
        )
        stopped = re.search(r"tfmann: stopped at step (\d+); the same command", log.read_text())
        begin = int(stopped.group(1))
        assert checkpoint_series.steps(str(out / "checkpoints"))[-1] == begin
        stream = np.random.default_rng(4)
        kills = moments(2, begin)
        for name, moment in kills:
            delay = stream.uniform(0, 0.01)
            status = run_until_signal(argv, out, moment, signal.SIGKILL, delay, log)
            assert status == -signal.SIGKILL, (name, log.read_text())
        assert tiny_runs.start(argv, log).wait() == 0, log.read_text()
        assert reference.wait() == 0, (tmp_path / "reference").read_text()
    finally:
        reference.kill()
        reference.wait()
    assert log.read_text().count("continuing from") == 1 + len(kills)
    assert "Traceback" not in log.read_text()
    assert ending(out) == ending(uninterrupted), [name for name, _ in kills]
    assert archives(out) == archives(uninterrupted)
    assert len(os.listdir(out / "checkpoints")) == RUN["num_keep_ckpts"]
