"""Temporary files and folders: of two at once, of a killed process, where nothing can be locked."""

import contextlib
import errno
import os
import signal
import subprocess
import sys

import pytest
from helpers.faults import ROOT

from tfmann.errors import UserError
from tfmann.utils import atomic_files
from tfmann.utils.files import atomic_write

WRITER = """
import sys, time
from tfmann.utils.atomic_files import replacement_file, temporary_folder
with replacement_file(sys.argv[1]) as stream, temporary_folder(sys.argv[2]) as folder:
    open(folder + "/part", "w").close()
    print("writing", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def writer(tmp_path):
    """A process that writes `out` and `place` and does not end."""
    argv = [sys.executable, "-c", WRITER, str(tmp_path / "out"), str(tmp_path / "place")]
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"writing\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def write(tmp_path):
    with atomic_files.replacement_file(str(tmp_path / "out")) as stream:
        stream.write(b"mine")
    with atomic_files.temporary_folder(str(tmp_path / "place")) as folder:
        os.rename(folder, tmp_path / "place")


def test_two_that_write_at_once_have_a_file_each(tmp_path):
    target = tmp_path / "out"
    with atomic_files.replacement_file(str(target)) as first:
        first.write(b"first")
        with atomic_files.replacement_file(str(target)) as second:
            second.write(b"second")
        assert target.read_bytes() == b"second"
    assert target.read_bytes() == b"first" and os.listdir(tmp_path) == ["out"]


def test_two_that_write_at_once_have_a_folder_each(tmp_path):
    target = tmp_path / "deep" / "place"
    with (
        atomic_files.temporary_folder(str(target)) as first,
        atomic_files.temporary_folder(str(target)) as second,
    ):
        assert first != second and os.listdir(first) == os.listdir(second) == []
    assert os.listdir(tmp_path / "deep") == []


def test_what_a_kill_left_goes_with_the_next_and_nothing_else_does(tmp_path):
    other_files = {"out.tmp7", "out.tmp-mine", "out.tmp-0123abcd.txt", "about.tmp-0123abcd"}
    for name in other_files:
        (tmp_path / name).write_text("mine")
    with writer(tmp_path) as process:
        process.send_signal(signal.SIGSTOP)  # it writes still, if slowly
        for _ in range(2):
            write(tmp_path)
            assert len(os.listdir(tmp_path)) == len(other_files) + 4
            os.rmdir(tmp_path / "place")
        process.kill()
        process.wait()
        assert len(os.listdir(tmp_path)) == len(other_files) + 3
    write(tmp_path)
    assert set(os.listdir(tmp_path)) == other_files | {"out", "place"}


def test_swept_between_making_and_locking(tmp_path, monkeypatch):
    real, swept = atomic_files.fcntl.flock, []

    def flock(handle, operation):
        if operation == atomic_files.fcntl.LOCK_EX and len(swept) < 2:
            swept.append(os.readlink(f"/proc/self/fd/{handle}"))
            atomic_files.remove_unlocked(swept[-1])
        real(handle, operation)

    monkeypatch.setattr(atomic_files.fcntl, "flock", flock)
    with atomic_files.replacement_file(str(tmp_path / "out")) as stream:
        assert len(swept) == 2
        stream.write(b"mine")
    swept.clear()
    with atomic_files.temporary_folder(str(tmp_path / "place")) as folder:
        assert len(swept) == 2 and os.path.isdir(folder)
    assert os.listdir(tmp_path) == ["out"] and (tmp_path / "out").read_bytes() == b"mine"


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def no_locks(*args):
        raise OSError(37, "No locks available")

    left = tmp_path / "out.tmp-0123abcd"
    left.write_text("who knows whose")
    monkeypatch.setattr(atomic_files.fcntl, "flock", no_locks)
    write(tmp_path)
    assert set(os.listdir(tmp_path)) == {"out", "place", left.name}


def test_a_rename_is_on_disk_before_the_file_counts_as_written(tmp_path, monkeypatch):
    real, synced = os.fsync, []

    def fsync(handle):
        synced.append((os.path.isdir(f"/proc/self/fd/{handle}"), (tmp_path / "out").exists()))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_files.replacement_file(str(tmp_path / "out")) as stream:
        stream.write(b"mine")
    assert synced == [(False, False), (True, True)]  # the file, then the list of names


def test_the_permissions_of_the_replaced_file_stay(tmp_path):
    (tmp_path / "out").write_text("before")
    (tmp_path / "out").chmod(0o600)
    write(tmp_path)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


def _refuse_to_replace(complete, target):
    raise OSError(errno.EBUSY, "Device or resource busy")


def test_what_cannot_be_replaced_is_written_to(tmp_path, monkeypatch):
    """Such as a file that is mounted by itself."""
    (tmp_path / "out").write_text("before")
    inode = (tmp_path / "out").stat().st_ino
    monkeypatch.setattr(os, "replace", _refuse_to_replace)
    write(tmp_path)
    assert (tmp_path / "out").read_text() == "mine" and (tmp_path / "out").stat().st_ino == inode
    assert sorted(os.listdir(tmp_path)) == ["out", "place"]


def test_what_is_complete_and_has_no_place_is_kept_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "replace", _refuse_to_replace)
    with (
        pytest.raises(UserError, match="busy; all of it is in (.*)$") as caught,
        atomic_write(tmp_path / "out") as stream,
    ):
        stream.write(b"mine")
    kept = str(caught.value).rpartition(" is in ")[2]
    assert os.listdir(tmp_path) == [os.path.basename(kept)]
    with open(kept, "rb") as stream:
        assert stream.read() == b"mine"


SHELL = """
import sys
from tfmann.utils.files import atomic_write
for name in sys.argv[1:]:
    with atomic_write(name) as stream:
        stream.write(name.encode() + b"\\n")
"""


@pytest.mark.parametrize("mode", ["ab", "wb"])
def test_an_open_descriptor_is_written_to(tmp_path, mode):
    """The shell's `>>` and `>` of a file stay what they are."""
    names = ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"]
    (tmp_path / "all").write_text("before\n")
    with (tmp_path / "all").open(mode) as out:
        subprocess.run([sys.executable, "-c", SHELL, *names], cwd=ROOT, stdout=out, check=True)
        out.write(b"after\n")
    first = ["before"] if mode == "ab" else []
    assert (tmp_path / "all").read_text().splitlines() == [*first, *names, "after"]


def test_what_fails_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), atomic_files.replacement_file(str(tmp_path / "out")):
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), atomic_files.temporary_folder(str(tmp_path / "place")):
        raise ZeroDivisionError
    with (
        pytest.raises(FileNotFoundError),
        atomic_files.replacement_file(str(tmp_path / "absent" / "out")),
    ):
        pytest.fail("written")
    assert os.listdir(tmp_path) == []
