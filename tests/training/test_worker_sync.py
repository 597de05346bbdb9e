"""Several workers: TF_CONFIG, the rows that each reads, and a single worker."""

import json
import os
import re
import subprocess
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from helpers import tiny_runs
from helpers.batches import are_same, encoded, random_lengths

from tfmann.config import HParams
from tfmann.data.batching import Position, Share, TrainingBatches, shard_batch
from tfmann.data.document_batches import DocumentBatches
from tfmann.errors import UsageError, UserError
from tfmann.training import tf_config, trainer
from tfmann.training.tf_config import Task
from tfmann.training.train_state import TrainState
from tfmann.training.worker_sync import WorkerLost, Workers

HOSTS = ["a:2222", "b:2222", "c:2222"]
PAIRS, ROWS = 101, 7


def config(cluster, kind="worker", index=0):
    task = {"type": kind, "index": index}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


# --- TF_CONFIG --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, "", " ", "{}"])
def test_without_a_cluster_a_process_is_alone(text):
    environment = {} if text is None else {"TF_CONFIG": text}
    assert tf_config.read_task(environment) == Task(0, 1, "")


def test_workers_are_counted_in_their_order():
    assert tf_config.read_task(config({"worker": HOSTS[:1]})).size == 1
    for index, host in enumerate(HOSTS):
        assert tf_config.read_task(config({"worker": HOSTS}, "worker", index)) == (index, 3, host)
    assert (
        tf_config.read_task(config({"worker": HOSTS}, "worker", "2")).rank == 2
    )  # as shells have it


def test_a_chief_comes_first():
    cluster = {"worker": HOSTS[:2], "chief": HOSTS[2:]}
    assert tf_config.read_task(config(cluster, "chief")) == (0, 3, "c:2222")
    assert tf_config.read_task(config(cluster, "worker", 1)) == (2, 3, "b:2222")


@pytest.mark.parametrize(
    "environment, words",
    [
        ({"TF_CONFIG": "worker"}, "not JSON"),
        ({"TF_CONFIG": "[1]"}, "a cluster and a task"),
        ({"TF_CONFIG": '{"cluster": {"worker": ["a:1", "b:1"]}}'}, "a cluster and a task"),
        (config({"worker": HOSTS}, index=3), "worker 3 is not in its cluster: worker 0, worker 1"),
        (config({"worker": HOSTS}, "chief"), "chief 0 is not in"),
        (config({"worker": HOSTS, "ps": ["d:1"]}), "'ps'"),
        (config({"worker": HOSTS, "evaluator": ["d:1"]}), "the chief evaluates"),
        (config({"worker": "a:1"}), "a list of HOST:PORT"),
        (config({"worker": None}), "a list of HOST:PORT"),
        (config({"worker": 3}), "a list of HOST:PORT"),
        (config({"worker": ["a", "b"]}), "a list of HOST:PORT"),
        (config({"worker": [1, 2]}), "a list of HOST:PORT"),
        (config({"worker": ["a:1", "a:1"]}), "twice: a:1"),
        (config({"worker": HOSTS, "chief": ["d:1", "e:1"]}), "several tasks of type chief"),
    ],
)
def test_what_cannot_be_used_is_refused(environment, words):
    with pytest.raises(UsageError, match=words):
        tf_config.read_task(environment)


# --- the rows of a worker ---------------------------------------------------------------------


@pytest.mark.parametrize("workers, replicas", [(1, 1), (2, 1), (4, 1), (2, 3), (1, 4)])
def test_rows_are_dealt_to_workers_as_to_replicas(workers, replicas):
    """Replica m of worker w gets the rows of replica w * M + m of one process."""
    count = workers * replicas
    data = training(Share())
    for index in range(workers):
        share = Share(index * replicas, replicas, count)
        parts = shard_batch(first(training(share)), replicas)
        expected = shard_batch(first(data), count)[share.first : share.first + replicas]
        for part, expected_part in zip(parts, expected):
            assert part.sentences.tolist() == expected_part.sentences.tolist()
            assert part.words == expected_part.words


def training(share, **settings):
    h = HParams(batch_size=ROWS, **settings)
    return TrainingBatches(encoded(random_lengths(PAIRS)), h, share=share)


def documents(share):
    sizes = (5, 1, 9, 2, 2, 7, 4)
    corpus = encoded(random_lengths(sum(sizes)), np.repeat(np.arange(len(sizes)), sizes))
    return DocumentBatches(corpus, HParams(batch_size=3), share)


def first(data, count=1):
    stream = data.batches(Position())
    batches = [next(stream)[0] for _ in range(count)]
    return batches[0] if count == 1 else batches


@pytest.mark.parametrize("make", [training, documents])
@pytest.mark.parametrize("workers", [2, 4])
def test_workers_read_disjoint_rows_of_the_same_batches(make, workers):
    batches = len(make(Share()).plan(0))
    full_batches = first(make(Share()), batches)
    parts = [first(make(Share(index, 1, workers)), batches) for index in range(workers)]
    for batch, *shares in zip(full_batches, *parts):
        real = [part.sentences[part.target_length > 0].tolist() for part in shares]
        assert sorted(sum(real, [])) == sorted(batch.sentences[batch.target_length > 0])
        assert all(len(part.source) for part in shares)  # a worker without a row has an empty one
        for part in (batch, *shares):
            assert part.totals.tolist() == [batch.words, int((batch.target_length > 0).sum())]


def test_documents_stay_with_their_worker():
    data = documents(Share(1, 1, 2))
    ids = [set(batch.documents[batch.target_length > 0]) for batch in first(data, 20)]
    of_first_worker = first(documents(Share(0, 1, 2)), 20)
    first_worker_ids = {
        d for batch in of_first_worker for d in batch.documents[batch.target_length > 0]
    }
    assert set.union(*ids) and not set.union(*ids) & first_worker_ids


def test_every_worker_is_at_the_same_position():
    streams = [training(Share(index, 1, 3)).batches(Position(1, 4)) for index in range(3)]
    for _ in range(30):
        assert len({next(stream)[1] for stream in streams}) == 1


def test_one_worker_has_the_batches_of_none():
    for batch, single in zip(first(training(Share()), 20), first(training(Share(0, 1, 1)), 20)):
        assert are_same(batch, single)


# --- a worker alone ---------------------------------------------------------------------------


def single_worker():
    return Workers(tf.distribute.get_strategy())


def test_who_is_alone_is_the_chief_and_agrees_with_himself():
    worker = single_worker()
    assert worker.chief and worker.size == 1 and worker.share == Share()
    assert worker.total([3, 4]).tolist() == [3, 4]
    assert worker.reduce_any(True) and not worker.reduce_any(False)
    assert worker.broadcast(0.1 + 0.2) == 0.1 + 0.2
    array = np.array([-0.0, np.nan], np.float32)
    assert worker.merge(array) is array
    worker.wait()
    worker.require_same("settings", {"a": 1})
    with worker.chief_first():
        pass


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.bool_])
def test_parts_of_arrays_are_merged_bit_by_bit(dtype, monkeypatch):
    stream = np.random.default_rng(2)
    array = stream.normal(size=[5, 3]).astype(dtype)
    array[0, 0] = -0.0
    parts = np.zeros([2, 5, 3], dtype)
    parts[0, ::2], parts[1, 1::2] = array[::2], array[1::2]
    summed = []
    monkeypatch.setattr(Workers, "total", lambda self, values: summed.append(values) or values)
    two = Workers(tf.distribute.get_strategy(), Task(0, 2))
    for part in parts:
        two.merge(part)
    monkeypatch.setattr(Workers, "total", lambda self, values: summed[0] + summed[1])
    merged = two.merge(parts[0])
    assert merged.dtype == array.dtype and merged.tobytes() == array.tobytes()


def test_only_several_workers_lose_each_other():
    text = "Graph error:\n\nCollective ops is aborted by: Socket closed. More\nand more"
    error = tf.errors.UnavailableError(None, None, text)
    with pytest.raises(tf.errors.UnavailableError), single_worker().report_lost_workers():
        raise error
    two = Workers(tf.distribute.get_strategy(), Task(1, 2))
    with pytest.raises(WorkerLost, match=r"worker 1 of 2 has.*\(Socket closed\)\. The") as caught:
        with two.report_lost_workers():
            raise error
    assert caught.value.exit_status == 75
    for unrelated in (tf.errors.InvalidArgumentError(None, None, ""), UserError(), ValueError()):
        with pytest.raises(type(unrelated)), two.report_lost_workers():
            raise unrelated


def test_a_worker_parts_after_the_others_have_its_part_of_the_last_sum(monkeypatch):
    """A sum that fails because others have parted is of no concern; any other failure is."""
    two = Workers(tf.distribute.get_strategy(), Task(0, 2))
    calls = []

    def fail(self, values):
        calls.append(values)
        raise errors.pop()

    monkeypatch.setattr(Workers, "total", fail)
    errors = [tf.errors.UnavailableError(None, None, "Socket closed")]
    two.part()
    assert len(calls) == 1
    errors = [tf.errors.InvalidArgumentError(None, None, "")]
    with pytest.raises(tf.errors.InvalidArgumentError):
        two.part()


def test_no_worker_ends_before_the_others_know_that_settings_differ(monkeypatch):
    two, sums = Workers(tf.distribute.get_strategy(), Task(0, 2)), []

    def total(self, values):
        sums.append(len(values))
        return np.asarray(values) + 1  # another digest than this worker's

    monkeypatch.setattr(Workers, "total", total)
    with pytest.raises(UserError, match="do not have the chief's settings"):
        two.require_same("settings", {"a": 1})
    assert sums == [4, 1, 1]  # the digest, the number of workers, and the parting


# --- the examples of docs/cluster.md -------------------------------------------------------------


def section():
    return (tiny_runs.ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", section(), re.MULTILINE | re.DOTALL)


def run_shell(script, tmp_path, **environment):
    """Runs a script where `tfmann` prints its TF_CONFIG and the cluster's tools are pretended."""
    tools = {
        "tfmann": 'echo "$TF_CONFIG" | tr "\\n" " "; echo; echo "$@"',
        "scontrol": "echo node7; echo node8",
        "srun": 'shift; for SLURM_PROCID in 0 1; do export SLURM_PROCID; "$@"; done',
    }
    for name, body in tools.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    environment = {**os.environ, **environment, "PATH": path}
    result = subprocess.run(
        ["bash", "-ec", script], env=environment, capture_output=True, text=True, check=True
    )
    lines = result.stdout.splitlines()
    tasks = [tf_config.read_task({"TF_CONFIG": line}) for line in lines[::2]]
    assert all(line.startswith("train --distribution=mirrored") for line in lines[1::2])
    return tasks


def test_tf_config_by_hand_is_right(tmp_path):
    assert run_shell(blocks("")[0], tmp_path) == [(0, 2, "host0:2222")]


def test_the_script_for_slurm_is_right(tmp_path):
    tasks = run_shell(blocks("bash")[0], tmp_path, SLURM_JOB_NODELIST="node[7-8]")
    assert tasks == [(0, 2, "node7:2222"), (1, 2, "node8:2222")]


def test_the_manifest_for_kubernetes_is_right(tmp_path):
    manifest = blocks("yaml")[0]
    indented = manifest.partition("- |\n")[2].partition("        volumeMounts")[0]
    tasks = [
        run_shell(textwrap.dedent(indented), tmp_path, JOB_COMPLETION_INDEX=str(index))[0]
        for index in (0, 1)
    ]
    assert tasks == [(0, 2, "mine-0.mine:2222"), (1, 2, "mine-1.mine:2222")]


@pytest.mark.parametrize("is_evaluated", [True, False])
def test_a_worker_evaluates_the_last_weights_if_the_chief_does(monkeypatch, is_evaluated):
    """It has no history of its own, and as many exchanges as the chief."""
    calls = []
    monkeypatch.setattr(trainer, "_evaluate_saved", lambda *_: calls.append("evaluate"))
    chief_says = SimpleNamespace(chief=False, reduce_any=lambda own: own or not is_evaluated)
    train_step = SimpleNamespace(workers=chief_says, hparams=SimpleNamespace(num_train_steps=4))
    trainer._end(train_step, TrainState(step=4, best_step=4), "root", SimpleNamespace())
    assert calls == ([] if is_evaluated else ["evaluate"])
