"""Processes that train together on this machine: one process's updates, one writer, any end."""

import fcntl
import os
import re
import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest
from helpers import cluster, document_corpus, odd_machine, replicas, small_models, tiny_runs
from helpers.archives import archives
from helpers.updates import ATOL, BATCHES, CASES, poison

from tfmann.config import HParams
from tfmann.data.batching import Batch, Position, without_words
from tfmann.data.document_batches import DocumentBatches
from tfmann.synthetic import Style, write_corpus
from tfmann.training import checkpoint_series, strategy
from tfmann.training.train_step import TrainStep

pytestmark = pytest.mark.slow
CLUSTERS = [(2, 1), (4, 1), (2, 2)]  # workers, and replicas of each
# One of four workers has no row.
TOGETHER = {**document_corpus.CACHE, "batch_size": 3, "optimizer": "sgd"}


# --- updates ----------------------------------------------------------------------------------


def learner(workers, variant="luong", **changes):
    settings = {"num_layers": 1, "encoder_type": "uni", "init_weight": 0.4}
    h = small_models.hparams(variant, **{**settings, **changes})
    return TrainStep(h, small_models.SOURCE_SIZE, small_models.TARGET_SIZE, workers)


def train(train_step):
    """Makes an update a batch of BATCHES, of which a worker has its rows."""
    rate = 0.01 if train_step.hparams.optimizer == "adam" else 0.5
    statistics = []
    for step, lengths in enumerate(BATCHES):
        batch = small_models.batch(lengths, seed=step)
        rows = train_step.workers.share.rows(len(lengths))
        own_rows = Batch(*(part[rows] for part in batch[:-1]), batch.totals)
        update = train_step.update(own_rows if len(rows) else without_words(batch), step, rate)
        statistics.append([float(value) for value in update])
    return np.array(statistics)


def train_on_documents(train_step):
    stream = DocumentBatches(
        document_corpus.corpus(), train_step.hparams, train_step.workers.share
    ).batches(Position())
    return np.array(
        [[float(v) for v in train_step.update(next(stream)[0], i, 0.01)] for i in range(6)]
    )


def main(folder, count):
    """One worker with `count` replicas (`cluster.run_main`)."""
    if count == 2:
        replicas.two_cpus()
        take_both_cpus()
    workers = strategy.join(HParams())
    assert workers.replicas == count and workers.broadcast(workers.rank - 0.1) == -0.1
    assert workers.broadcast(7 if workers.chief else 0) == 7
    for name, changes in CASES.items():
        train_step = learner(workers, **changes)
        save_arrays(folder, name, train_step, train(train_step))
    poison(train_step)
    train_step.update(
        without_words(small_models.batch(BATCHES[0])) if not workers.chief else batch_of_one_row(),
        8,
        0.1,
    )
    assert int(train_step.bad_step.numpy()) == 8, "the chief's infinity went unnoticed"
    train_step = learner(workers, "rnnsearch", **TOGETHER)
    save_arrays(folder, "documents", train_step, train_on_documents(train_step))
    print("done")


def batch_of_one_row():
    return small_models.batch(BATCHES[1])


def take_both_cpus():
    """Lets a worker take both logical CPUs, where TensorFlow takes one, or all GPUs."""
    from tensorflow.python.distribute import collective_all_reduce_strategy as strategy

    def devices(self, resolver, worker_device):
        return tuple(f"{worker_device}/device:CPU:{index}" for index in (0, 1)), "CPU"

    strategy.CollectiveAllReduceExtended._initialize_local_devices = devices


def save_arrays(folder, name, train_step, statistics):
    path = Path(folder, f"{name}.{train_step.workers.rank}.npz")
    caches = {f"kept/{name}": value for name, value in train_step.cache_arrays().items()}
    np.savez(path, statistics=statistics, **train_step.weight_arrays(), **caches)


@pytest.fixture(scope="module", params=CLUSTERS, ids=lambda c: f"{c[0]}x{c[1]}")
def trained(request, tmp_path_factory):
    """Returns the number of workers, and the folder with their results."""
    workers, count = request.param
    folder = tmp_path_factory.mktemp("cluster")
    cluster.run_main(__file__, workers, folder, count)
    return workers, folder


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("case", [*CASES, "documents"])
def test_a_cluster_makes_the_updates_of_one_device(case, trained):
    workers, folder = trained
    changes = CASES.get(case) or {"variant": "rnnsearch", **TOGETHER}
    train_step = learner(None, **changes)
    start = train_step.weight_arrays()
    statistics = train_on_documents(train_step) if case == "documents" else train(train_step)
    expected = {
        **train_step.weight_arrays(),
        **{f"kept/{n}": v for n, v in train_step.cache_arrays().items()},
    }
    atol = ATOL.get(case, 1e-6)
    with np.load(folder / f"{case}.0.npz") as actual:
        np.testing.assert_allclose(actual["statistics"], statistics, rtol=1e-5)
        assert sorted(actual.files) == sorted([*expected, "statistics"])
        for name, value in expected.items():
            assert name not in start or np.abs(value - start[name]).max() > 1e-6, name
            array = actual[name][: len(value)] if name.startswith("kept/") else actual[name]
            np.testing.assert_allclose(array, value, atol=atol, err_msg=name)
        for index in range(1, workers):
            with np.load(folder / f"{case}.{index}.npz") as of_worker:
                for name in actual.files:
                    assert np.array_equal(of_worker[name], actual[name]), (name, index)


# --- runs by the command line -----------------------------------------------------------------

STEPS, SAVE = 12, 3
RUN = {
    **document_corpus.CACHE,
    "num_train_steps": STEPS,
    "steps_per_checkpoint": SAVE,
    "steps_per_external_eval": 6,
    "batch_size": 5,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    write_corpus(folder, 120, 12, 12, seed=3, style=Style(document_tense=True))
    return folder


def has_logged(out, step, begin=0):
    """Returns whether a step was logged after the first `begin` bytes of the log."""
    text = (out / "train.log").read_bytes()[begin:].decode()
    return re.search(rf"^step {step} lr", text, re.MULTILINE)


def signal_worker(argv, out, folder, step, victim, number):
    """Signals a worker after a step; returns the exit statuses and what was printed."""
    log = out / "train.log"
    before = log.stat().st_size if log.exists() else 0  # of runs that were hurt earlier

    with cluster.train(argv, 2, folder) as started:
        started.until(lambda: log.exists() and has_logged(out, step, before))
        started.processes[victim].send_signal(number)
        return started.statuses(), started.outputs


def steps_of_restarts(stdout):
    return [int(step) for step in re.findall(r"continuing from \S+step-(\d+)", stdout)]


@pytest.fixture(scope="module")
def uninterrupted(data, tmp_path_factory):
    """A folder in which two workers have trained."""
    out, logs = tmp_path_factory.mktemp("whole") / "out", tmp_path_factory.mktemp("logs")
    with cluster.train(tiny_runs.flags(data, out, **RUN), 2, logs) as started:
        assert started.statuses() == [0, 0], started.outputs
        outputs = started.outputs
    assert outputs[1] == "" and outputs[0] == (out / "train.log").read_text()
    assert len(list((out / "train_log").iterdir())) == 1
    return out


def assert_same_ends(out, uninterrupted):
    """Asserts that the weights, the caches and the translations are the same, bit for bit."""
    actual, expected = archives(out), archives(uninterrupted)
    last = {name for name in expected if name.startswith((f"step-{STEPS:08d}", "best"))}
    assert any("documents/" in name for name in last)
    assert {n: actual[n] for n in last} == {n: expected[n] for n in last}
    assert (out / "output_test").read_text() == (uninterrupted / "output_test").read_text()


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("odd", [0, 1])
def test_a_slow_disk_and_another_clock_change_nothing(data, uninterrupted, tmp_path, odd):
    out = tmp_path / "out"
    argv = tiny_runs.flags(data, out, **RUN)
    programs: list = [["-m", "tfmann.nmt"], ["-m", "tfmann.nmt"]]
    programs[odd] = [odd_machine.__file__]
    commands = [[*program, *argv] for program in programs]
    with cluster.Cluster(commands, tmp_path / "log") as started:
        assert started.statuses() == [0, 0], started.outputs
    assert_same_ends(out, uninterrupted)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_that_stands_still_for_a_while_changes_nothing(
    data, uninterrupted, tmp_path, victim
):
    out = tmp_path / "out"
    with cluster.train(tiny_runs.flags(data, out, **RUN), 2, tmp_path / "log") as started:
        started.until(lambda: (out / "train.log").exists() and has_logged(out, 4))
        started.processes[victim].send_signal(signal.SIGSTOP)
        time.sleep(5)
        started.processes[victim].send_signal(signal.SIGCONT)
        assert started.statuses() == [0, 0], started.outputs
    assert_same_ends(out, uninterrupted)


@pytest.mark.timeout(3600)
def test_workers_are_killed_and_stopped_and_end_as_those_that_were_not(
    data, uninterrupted, tmp_path
):
    out = tmp_path / "hurt"
    argv = tiny_runs.flags(data, out, **RUN)
    saved, lost_message = 0, "tfmann: worker {} of 2 has lost the others: "
    for victim, step in ((1, 4), (0, 7)):
        statuses, outputs = signal_worker(
            argv, out, tmp_path / f"kill{victim}", step, victim, signal.SIGKILL
        )
        assert statuses[victim] == -signal.SIGKILL and statuses[1 - victim] == 75, outputs
        assert lost_message.format(1 - victim) in outputs[1 - victim] and "Traceback" not in str(
            outputs
        )
        assert steps_of_restarts(outputs[0]) == ([saved] if saved else [])
        saved = checkpoint_series.steps(str(out / "checkpoints"))[-1]
        assert saved % SAVE == 0 and saved >= step - SAVE
        assert checkpoint_series.latest(str(out / "checkpoints"), pytest.fail)
    statuses, outputs = signal_worker(argv, out, tmp_path / "stop", saved + 1, 1, signal.SIGTERM)
    assert statuses == [143, 143], outputs
    stopped = re.search(r"tfmann: stopped at step (\d+); the same command", outputs[1]).group(1)
    assert checkpoint_series.steps(str(out / "checkpoints"))[-1] == int(stopped)
    with cluster.train(argv, 2, tmp_path / "last") as started:
        assert started.statuses() == [0, 0], started.outputs
        assert steps_of_restarts(started.outputs[0]) == [int(stopped)]
    assert_same_ends(out, uninterrupted)


@pytest.mark.timeout(1200)
def test_what_workers_cannot_do_ends_in_one_message_each(data, tmp_path):
    out = tmp_path / "out"
    commands = [
        ["-m", "tfmann.nmt", *tiny_runs.flags(data, out, dropout=rate)] for rate in (0.1, 0.2)
    ]
    with cluster.Cluster(commands, tmp_path / "unlike") as started:
        assert started.statuses() == [1, 1], started.outputs
        for output in started.outputs:
            assert output.startswith("tfmann: 1 of 2 workers do not have the chief's settings"), (
                output
            )
            assert output.count("\n") == 1
    commands = [["-m", "tfmann.nmt", *tiny_runs.flags(data, tmp_path / name)] for name in "ab"]
    with cluster.Cluster(commands, tmp_path / "apart") as started:
        assert started.statuses() == [75, 1], started.outputs
        assert "on a file system that they share" in started.outputs[1]
        assert not (tmp_path / "b").exists()
    with open(out / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with cluster.train(tiny_runs.flags(data, out), 2, tmp_path / "locked") as started:
            assert started.statuses() == [1, 75], started.outputs
            assert "another process is training in" in started.outputs[0]
            assert "has lost the others" in started.outputs[1]


@pytest.mark.timeout(600)
def test_an_address_that_is_taken_is_named(data, uninterrupted, tmp_path, monkeypatch):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setattr(cluster, "addresses", lambda count: [address, "127.0.0.1:1"][:count])
        argv = tiny_runs.flags(data, tmp_path / "out")
        with cluster.Cluster([["-m", "tfmann.nmt", *argv]], tmp_path / "log", of=2) as started:
            assert started.statuses() == [1], started.outputs
            assert f"cannot listen at {address}" in started.outputs[0]
    assert not os.path.exists(tmp_path / "out")
    monkeypatch.undo()
    argv = tiny_runs.flags(data, tmp_path / "out", **RUN)
    with cluster.train(argv, 2, tmp_path / "again") as started:
        assert started.statuses() == [0, 0], started.outputs
    assert_same_ends(tmp_path / "out", uninterrupted)
