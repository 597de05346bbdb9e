"""The PyTorch DNC in `benchmarks.peers`: what both programs learn, and how they are called."""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # the benchmarks are not installed

from benchmarks.peers import copy_task, memories, ours_memory_driver  # noqa: E402


def test_both_programs_copy_the_same_batches():
    flags = copy_task.parse("", ["--size=tasks", "--warmup=2", "--steps=3"])
    seen = []

    def update(batch):
        seen.append(batch)
        return float(len(seen))

    stream = copy_task.measure(update, flags)
    first, second = next(stream), next(stream)
    assert (first["updates"], first["sequences"], first["loss"]) == (3, 96, 5.0)
    assert (second["updates"], second["loss"]) == (3, 9.0)  # one update before the clock starts
    expected = itertools.islice(copy_task.batches(copy_task.SIZES["tasks"]), 9)
    for ours, theirs in zip(seen, expected):
        assert ours.inputs.shape == (21, 32, 9)
        np.testing.assert_array_equal(ours.targets, theirs.targets)


def test_memories_call_both_programs(capsys):
    flags = memories.parse(["--size=large", "--threads=2", "--systems=dnc,ours_xla"])
    peer, ours = (memories.command(flags, system) for system in flags.systems)
    assert peer[0].endswith("/dnc/bin/python") and "--jit_compile" in ours
    for command in (peer, ours):
        parsed = copy_task.parse("", command[3:])
        assert parsed.resident and (parsed.size, parsed.threads) == ("large", 2)
    with pytest.raises(SystemExit):
        memories.parse(["--systems=ntm"])
    assert "--systems: there are dnc, ours, ours_xla" in capsys.readouterr().err


def test_our_memory_is_measured(monkeypatch, capsys):
    monkeypatch.setitem(copy_task.SIZES, "tasks", copy_task.Size(3, 2, 2, 4, 2, 2))
    ours_memory_driver.main(["--warmup=1", "--steps=1"])
    record = json.loads(capsys.readouterr().out)
    assert record["updates"] == 1 and record["loss"] > 0 and record["parameters"] > 0
