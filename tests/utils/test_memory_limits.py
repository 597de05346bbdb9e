"""Sizes that do not fit into memory are refused before allocation, with their bytes."""

import re
import resource
import subprocess
import sys

import pytest
from helpers import small_models, tiny_runs

from tfmann import nmt
from tfmann.decoding.searcher import Searcher
from tfmann.errors import UsageError, run_command
from tfmann.utils import memory_limits


@pytest.mark.parametrize(
    "number, words",
    [(0, "0 bytes"), (999, "999 bytes"), (25_300_000_000, "25.3 GB"), (4e30, "4e+12 EB")],
)
def test_bytes_are_shown_as_people_write_them(number, words):
    assert memory_limits.format_bytes(number) == words


@pytest.mark.parametrize("kind", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_the_memory_is_the_machines_or_what_a_limit_leaves_of_it(kind):
    memory = memory_limits.available_memory()
    assert 1e8 < memory < 1e15
    limit = int(memory) // 2
    code = (
        "from tfmann.utils import memory_limits as m; held = bytearray(10**8); "
        "print(m.available_memory())"
    )

    def lower():
        resource.setrlimit(kind, (limit, limit))

    result = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=lower, stdout=subprocess.PIPE, cwd=tiny_runs.ROOT
    )
    assert limit - 3e8 < float(result.stdout) < limit - 1e8


def test_weights_are_counted_together(monkeypatch):
    monkeypatch.setattr(memory_limits, "available_memory", lambda: 4 * 100)
    budget = memory_limits.WeightBudget()
    budget.add("a", [5, 4])
    budget.add("b", [20])
    budget.add("c", [15])  # while it is created, there are 8 bytes and another 8 a number
    with pytest.raises(
        UsageError, match=r"up to d \[12\] would take 412 bytes .* 400 bytes of mem"
    ):
        budget.add("d", [12])


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny_runs.corpus(tmp_path_factory.mktemp("corpus"), 40)


# some 140 words of the source and of the target; 16 sentences of 12 words, and </s>, a batch
TOO_LARGE = [
    ({"num_units": 2**30}, 1e9,
     r"the weights up to model/.*kernel \[8, 4294967296\] would take [56]"),
    ({"embedding_size": 2**31 - 1}, 1e9, r"weights up to model/source_embedding .* TB at least"),
    ({"cell": "ntm", "num_memory_locations": 2**31 - 1, "memory_unit_size": 1000}, 1e9,
     r"initial_memory \[2147483647, 1000\] would take 34.4 TB"),
    ({}, 60_000, r"parameters with the slots of optimizer='adam' would take "),
    ({"cell": "dnc", "num_memory_locations": 2000, "memory_unit_size": 4}, 2e8,
     r"an update over 1\d\d target words would take .* GB at least, and there are 200 MB of mem"),
    ({"cell": "cache", "cache_size": 10**9}, 1e9,
     "the memory of one sentence would take 96 GB at least"),
    ({"infer_mode": "beam_search", "beam_width": 1000}, 1e6,
     r"a search for 12 .* 1000 hypotheses each would take .* MB at least.*, beam_width or memory$"),
    ({"infer_mode": "sample", "num_translations_per_input": 1000}, 1e6,
     r"12 sentences with 1000 hypotheses each .*, num_translations_per_input or memory$"),
    ({"infer_mode": "beam_search", "beam_width": 1000, "dev_infer_mode": "greedy"}, 1e6,
     "a search for 12 sentences with 1000 hypotheses each"),  # of the last scores
]  # fmt: skip


@pytest.mark.parametrize("changes, memory, words", TOO_LARGE, ids=lambda case: str(case)[:30])
def test_what_is_too_large_is_refused_with_its_bytes(
    data, tmp_path, capsys, monkeypatch, changes, memory, words
):
    monkeypatch.setattr(memory_limits, "available_memory", lambda: memory)
    argv = tiny_runs.flags(data, tmp_path / "out", num_train_steps=1, **changes)
    assert nmt.main(argv) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith("tfmann: ") and stderr.count("\n") == 1, stderr
    assert re.search(words, stderr), stderr
    assert not (tmp_path / "out" / "hparams.json").exists()


def test_a_search_counts_what_states_have_for_each_source_token(monkeypatch):
    """Every hypothesis of `mematt` has its own annotations `[S, D]`."""
    model, other = map(small_models.model, ("mematt", "rnnsearch"))
    searcher = Searcher(model, model.hparams)
    numbers = 2 * 3 * (model.target_size + model.hparams.num_units + 10 * 16)  # D = 16
    monkeypatch.setattr(memory_limits, "available_memory", lambda: 4.0 * numbers)
    searcher.require_room(2, 3, 10)
    with pytest.raises(UsageError, match="a search for 2 sentences with 3 hypotheses each"):
        searcher.require_room(2, 3, 11)
    Searcher(other, other.hparams).require_room(2, 3, 1000)


def without_room_for_a_thread():
    raise RuntimeError("can't start new thread")


def exhausted():
    import tensorflow as tf

    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating a tensor\nof a size")


@pytest.mark.parametrize(
    "kind, words",
    [
        (exhausted, "OOM when allocating a tensor. Smaller"),
        (lambda: bytearray(2**62), "no details are given. Smaller"),
        (without_room_for_a_thread, "can't start new thread. Smaller"),
    ],
)
def test_memory_that_runs_out_all_the_same_is_one_message(capsys, kind, words):
    assert run_command(kind) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("tfmann: memory has run out: ") and stderr.count("\n") == 1
    assert words in stderr
