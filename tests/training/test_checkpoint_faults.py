"""Checkpoints that a kill or a full disk interrupts: no moment to fail loses one."""

import errno
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import faults
from helpers.checkpoints import arrays, is_checkpoint_of, write

import tfmann
from tfmann.errors import UserError
from tfmann.training import checkpoint, checkpoint_series

# --- killed while saving ----------------------------------------------------------------------

# Children of a process without TensorFlow save over an older checkpoint, and die at their n-th
# call to the operating system, n = 0, 1, 2, ... until one of them gets through.
KILLED = """
import itertools, os, sys
import builtins, shutil
from tfmann.training import checkpoint, checkpoint_series, named_variables

def arrays(seed):
    import numpy as np
    return {"a": np.full([3], seed, np.float32)}

root = sys.argv[1]
older, newer = (checkpoint_series.step_folder(root, int(step)) for step in sys.argv[2:])

def save(folder, seed):
    checkpoint.write(folder, arrays(seed), arrays(seed), {"seed": seed})
    checkpoint_series.remove_old(root, 2)

def dying(function, calls, fatal):
    def call(*args, **kwargs):
        if next(calls) == fatal:
            os._exit(9)
        return function(*args, **kwargs)
    return call

def child(fatal):
    calls = itertools.count()
    for module, names in (
        (os, ("makedirs", "rename", "fsync", "open", "close", "unlink", "rmdir", "listdir")),
        (shutil, ("rmtree",)), (builtins, ("open",)), (checkpoint.zipfile, ("ZipFile",)),
    ):
        for name in names:
            setattr(module, name, dying(getattr(module, name), calls, fatal))
    save(newer, 2)
    os._exit(0)

for fatal in itertools.count():
    shutil.rmtree(newer, ignore_errors=True)
    save(older, 1)
    pid = os.fork()
    if not pid:
        child(fatal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    latest = checkpoint_series.latest(root, print)
    seed = checkpoint.read_state(latest)["seed"]
    for name in ("weights", "optimizer"):
        assert set(checkpoint.read_arrays(latest, name)["a"]) == {seed}, (fatal, name)
    print(status, seed)
    if status == 0:
        break
"""


@pytest.mark.parametrize("older, newer", [(7, 7), (5, 7)])
def test_killed_at_any_call_while_saving(older, newer, tmp_path):
    """The older or the newer checkpoint is whole; killed between two renames, one comes back."""
    result = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(older), str(newer)],
        cwd=Path(tfmann.__file__).parent.parent, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    lines = [line.split() for line in result.stdout.splitlines()]
    assert len(lines) > 15
    assert [line[0] for line in lines] == ["9"] * (len(lines) - 1) + ["0"]
    seeds = [line[1] for line in lines]
    assert seeds == sorted(seeds) and set(seeds) == {"1", "2"}
    assert sorted(os.listdir(tmp_path)) == sorted({f"step-0000000{i}" for i in (older, newer)})


def test_killed_between_the_renames(tmp_path):
    folder = write(tmp_path, 7)
    folder.rename(f"{folder}.old")
    # to a reader, the run may be about to give its name to the next one
    assert checkpoint_series.latest(str(tmp_path)) == f"{folder}.old"
    assert checkpoint_series.steps(str(tmp_path)) == [7]  # as the run itself looks for them
    assert checkpoint_series.latest(str(tmp_path)) == str(folder)
    assert is_checkpoint_of(folder, 7)
    shutil.copytree(folder, f"{folder}.old")  # killed after the second one
    write(tmp_path, 7, seed=8)
    assert is_checkpoint_of(folder, 8) and checkpoint_series.steps(str(tmp_path)) == [7]


def test_a_checkpoint_left_by_a_kill_is_used_until_the_next_is_complete(tmp_path, monkeypatch):
    folder, log = write(tmp_path, 7), []
    old = f"{folder}.old"
    assert checkpoint.existing_folder(str(folder), log.append) == str(folder) and not log
    folder.rename(old)
    assert checkpoint.existing_folder(str(folder), log.append) == old
    assert len(log) == 1 and str(folder) in log[0] and old in log[0]

    def killed(*paths):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "rename", killed)
        write(tmp_path, 7, seed=8)
    assert is_checkpoint_of(Path(old), 7)
    write(tmp_path, 7, seed=8)
    assert is_checkpoint_of(folder, 8) and os.listdir(tmp_path) == [folder.name]
    absent = str(tmp_path / "absent")
    assert checkpoint.existing_folder(absent, pytest.fail) == absent


# --- no room ----------------------------------------------------------------------------------


def refuse(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "where", ["os.fsync", "os.rename", "os.makedirs", "numpy.lib.format.write_array", "json.dump"]
)
def test_a_full_disk_leaves_the_older_checkpoints(where, tmp_path, monkeypatch):
    older, folder = write(tmp_path, 5), write(tmp_path, 7, seed=1)
    monkeypatch.setattr(where, refuse)
    for step in (7, 10):
        with pytest.raises(UserError, match=f"step-{step:08d}: No space left on device.*unchanged"):
            write(tmp_path, step, seed=2)
    monkeypatch.undo()
    assert is_checkpoint_of(older, 5) and checkpoint_series.latest(str(tmp_path)) == str(folder)
    assert is_checkpoint_of(folder, 1)
    assert sorted(os.listdir(tmp_path)) == ["step-00000005", "step-00000007"]


def test_folders_that_cannot_be_synced_are_written_all_the_same(tmp_path, monkeypatch):
    """As on some network file systems."""

    def sync_files(handle, sync=os.fsync):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        sync(handle)

    monkeypatch.setattr(os, "fsync", sync_files)
    assert is_checkpoint_of(write(tmp_path, 7), 7)
    assert is_checkpoint_of(write(tmp_path, 7, seed=2), 2)
    assert os.listdir(tmp_path) == ["step-00000007"]


def test_a_really_full_disk(tmp_path):
    """On a file system of 256 KiB, where the second large checkpoint does not fit."""
    with faults.disk(tmp_path / "disk", "256k") as disk:
        folder = write(disk, 5)
        for size in (10_000, 60_000, 200_000):
            large = {"model/large": np.arange(size, dtype=np.float32)}
            try:
                checkpoint.write(str(disk / "step-00000010"), large, large, {})
            except UserError as error:
                assert "No space left on device" in str(error) and size > 10_000
            else:
                assert size == 10_000
            assert sorted(os.listdir(disk)) == ["step-00000005", "step-00000010"]
        assert is_checkpoint_of(folder, 5)
        read = checkpoint.read_arrays(str(disk / "step-00000010"))
        assert len(read["model/large"]) == 10_000


def test_a_place_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(UserError, match="cannot write the checkpoint"):
        checkpoint.write(str(tmp_path / "file" / "step-00000001"), arrays(), None, {})
    assert (tmp_path / "file").read_text() == "kept"
