"""Faults that need no model: the lock over kills, logs, leftovers of killed runs, full disks."""

import fcntl
import os
import resource
import signal
import subprocess
import sys

import pytest
from helpers.faults import ROOT, disk, remount

from tfmann.data import encoded_corpus, text_files
from tfmann.data.subword import WordSegmenter
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import Vocabulary
from tfmann.errors import UserError
from tfmann.utils.run_folder import RunFolder

HOLDER = """
import sys, time
from tfmann.utils.run_folder import RunFolder
with RunFolder(sys.argv[1], lambda line: None) as folder:
    folder.log("held")
    print("held", flush=True)
    time.sleep(600)
"""
TALKER = """
import sys
from tfmann.utils.run_folder import RunFolder
with RunFolder(sys.argv[1], lambda line: print(line, flush=True)) as folder:
    folder.log("one")
    folder.log("two")
"""


def test_the_lock_ends_with_its_process(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    holder = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(UserError, match="another process is training"),
            RunFolder(str(tmp_path), print),
        ):
            pass
        holder.send_signal(signal.SIGSTOP)  # not even one that does nothing lets others in
        with (
            pytest.raises(UserError, match="another process is training"),
            RunFolder(str(tmp_path), print),
        ):
            pass
        (tmp_path / "lock").unlink()
        with (
            pytest.raises(UserError, match="another process is training"),
            RunFolder(str(tmp_path), print),
        ):
            pass
        holder.kill()
        holder.wait()
        assert (tmp_path / "lock").exists()
        with RunFolder(str(tmp_path), print) as folder:
            folder.log("mine")
    finally:
        holder.kill()
        holder.communicate()
    assert (tmp_path / "train.log").read_text() == "held\nmine\n"


@pytest.mark.parametrize("name", ["lock", "train.log"])
def test_a_link_leads_to_nobody_elses_file(name, tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).symlink_to(tmp_path / "mine")
    with pytest.raises(UserError, match=f"out/{name} is a link; a file of the run's own"):
        with RunFolder(str(tmp_path / "out"), print):
            pytest.fail("opened")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_file_system_that_locks_no_folder(tmp_path, monkeypatch):
    real = fcntl.flock

    def flock(handle, operation):
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(9, "Bad file descriptor")
        real(handle, operation)

    monkeypatch.setattr("fcntl.flock", flock)
    with RunFolder(str(tmp_path), print), pytest.raises(UserError, match="another process is"):
        RunFolder(str(tmp_path), print).__enter__()


def test_a_file_system_without_locks_is_named_as_what_it_is(tmp_path, monkeypatch):
    def no_locks(*args):
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with (
        pytest.raises(UserError, match="cannot be locked: No locks available"),
        RunFolder(str(tmp_path), print),
    ):
        pass


def test_what_killed_runs_left_is_removed_and_nothing_else(tmp_path):
    (tmp_path / "best_bleu.tmp").mkdir()
    (tmp_path / "best_bleu.tmp" / "weights.npz").write_text("half")
    for name in ("output_dev.tmp77", "results.json.tmp1", "vocab.src.tmp123", "hparams.json.tmp5"):
        (tmp_path / name).write_text("half")
    other_files = {"results.json", "vocab.tmp", "mine.tmp7", "lexicon.txt.tmp8", "best_bleu.old"}
    for name in other_files:
        (tmp_path / name).write_text("whole")
    with RunFolder(str(tmp_path), print):
        pass
    assert set(os.listdir(tmp_path)) == other_files | {"checkpoints", "lock", "train.log"}


def test_a_log_on_a_full_disk_stops_nothing(tmp_path):
    """Not even when it is closed, as a buffer would be written then."""
    printed = []
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with RunFolder(str(tmp_path), printed.append) as folder:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # no file may grow
            folder.log("first")
            folder.log("second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert printed == ["first", "second"] and (tmp_path / "train.log").read_bytes() == b""


def test_a_reader_that_has_gone_stops_nothing(tmp_path):
    """Standard output is closed; what would be printed is in the log, and the end is a good one."""
    ends = os.pipe()
    os.close(ends[0])
    command = [sys.executable, "-c", TALKER, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, stdout=ends[1], stderr=subprocess.PIPE)
    os.close(ends[1])
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "train.log").read_text() == "one\ntwo\n"


# --- encoded text -----------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path):
    """A function that encodes a small corpus in a folder and returns the arrays."""
    text_files.write_lines(tmp_path / "t.src", ["a b", "b", "c"] * 400)
    text_files.write_lines(tmp_path / "t.tgt", ["x", "y x y", "x"] * 400)
    sides = [TextEncoder(Vocabulary.from_tokens(words), WordSegmenter()) for words in ("abc", "xy")]

    def run(folder):
        paths = [str(tmp_path / f"t.{side}") for side in ("src", "tgt")]
        arrays = encoded_corpus.encode(
            LanguagePair(*sides), *paths, None, str(folder), lambda line: None
        )
        return [array.tolist() for array in arrays]

    return run


@pytest.mark.parametrize("size", ["4k", "12k", "20k", "28k", "36k"])
def test_a_disk_too_small_for_the_encoded_text(corpus, tmp_path, size):
    """Wherever it ends, nothing half written is left; with room, it is as elsewhere."""
    expected = corpus(tmp_path / "elsewhere")
    with disk(tmp_path / "disk", size) as mount_point:
        with pytest.raises(UserError, match="No space left on device. Make room"):
            corpus(mount_point)
        assert os.listdir(mount_point) == []
        remount(mount_point, "size=1m")
        assert corpus(mount_point) == expected
