"""Faults that need no model: the lock over kills, logs, what killed runs left, changed inputs."""

import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from helpers.faults import ROOT, disk, flip_bit, remount, truncate

from tfmann.config import HParams
from tfmann.data import encoded_corpus, fingerprints, run_vocabularies, text_files
from tfmann.data.subword import WordSegmenter
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import Vocabulary
from tfmann.errors import UserError
from tfmann.training import checkpoint, checkpoint_series
from tfmann.utils.checksummed_json import add_checksum
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


# --- what a run began with --------------------------------------------------------------------


@pytest.fixture
def run(tmp_path):
    """The settings and the folder of a run, as far as its text is concerned."""
    for name in ("train", "dev", "test", "vocab"):
        for side in ("src", "tgt"):
            text_files.write_lines(tmp_path / f"{name}.{side}", ["<unk>", "<s>", "</s>", "word"])
    prefixes = {f"{name}_prefix": str(tmp_path / name) for name in ("train", "dev", "vocab")}
    hparams = HParams(src="src", tgt="tgt", test_prefix=str(tmp_path / "test"), **prefixes)
    out = tmp_path / "run"
    (out / "best_bleu").mkdir(parents=True)
    languages = run_vocabularies.load_or_build(hparams, str(tmp_path / "new"), print)
    run_vocabularies.save(languages, hparams, str(out))
    return hparams, str(out)


def settle(run, **changes):
    hparams, out = run
    return run_vocabularies.load_or_build(hparams.replace(**changes), out, print)


@pytest.mark.parametrize("name", ["train.src", "train.tgt", "dev.src", "dev.tgt", "vocab.tgt"])
def test_text_that_changed_behind_its_path_is_refused(run, tmp_path, name):
    path = tmp_path / name
    settle(run)
    content = path.read_bytes()
    flip_bit(path)
    with pytest.raises(UserError, match=rf"{name} \({name.split('.')[0]}_prefix\) has changed"):
        settle(run)
    run_vocabularies.load(*run)  # to translate with it is another thing
    path.write_bytes(content)
    settle(run)


def test_other_text_on_another_path_is_a_wish(run, tmp_path):
    for side in ("src", "tgt"):
        text_files.write_lines(tmp_path / f"more.{side}", ["word word"])
    settle(run, train_prefix=str(tmp_path / "more"))
    flip_bit(tmp_path / "test.src")
    settle(run)
    for path in tmp_path.glob("vocab.*"):
        path.unlink()
    settle(run)


@pytest.mark.parametrize("side", ["src", "tgt"])
def test_a_vocabulary_that_changed_in_the_runs_folder_is_refused(run, tmp_path, side):
    text_files.write_lines(tmp_path / "run" / f"vocab.{side}", ["<unk>", "<s>", "</s>", "wird"])
    for look in (lambda: settle(run), lambda: run_vocabularies.load(*run)):
        with pytest.raises(UserError, match=rf"run/vocab\.{side} has changed since this model"):
            look()


@pytest.mark.parametrize("damage", [flip_bit, truncate, lambda path: path.write_text("[]")])
def test_a_damaged_note_of_what_was_there(run, tmp_path, damage):
    path = tmp_path / "run" / "inputs.json"
    damage(path)
    with pytest.raises(UserError, match=r"inputs\.json is damaged.*Remove it"):
        settle(run)
    path.unlink()
    settle(run)


@pytest.mark.parametrize("body", [{}, {"own": []}, {"own": {}, "dev_prefix": {"given": "x"}}])
def test_a_note_of_another_shape_is_refused_though_its_seal_is_right(run, tmp_path, body):
    (tmp_path / "run" / "inputs.json").write_text(json.dumps(add_checksum(body)))
    with pytest.raises(UserError, match=r"inputs\.json is damaged.*Remove it"):
        settle(run)


def test_a_lost_note_is_reported_and_written_again(run, tmp_path):
    log = []
    (tmp_path / "run" / "inputs.json").unlink()
    flip_bit(tmp_path / "train.src")
    fingerprints.require_same_vocabularies(run[1], {"vocab.src": "anything"})
    for _ in range(2):
        run_vocabularies.record_lost_fingerprints(settle(run), *run, log.append)
        assert len(log) == 1 and log[0].startswith(f"{run[1]} has no inputs.json: whether text")
    flip_bit(tmp_path / "train.src")
    with pytest.raises(UserError, match=r"train\.src \(train_prefix\) has changed"):
        settle(run)


def test_a_given_lexicon_that_changed_is_refused(run, tmp_path):
    """It changes translations, and by those of dev the best weights are chosen."""
    lexicon = tmp_path / "lexicon"
    text_files.write_lines(lexicon, ["word wort 1"])
    hparams = run[0].replace(replace_unk=True, lexicon_file=str(lexicon))
    fingerprints.record(hparams, run[1], {})
    settle((hparams, run[1]))
    text_files.write_lines(lexicon, ["word wert 1"])
    with pytest.raises(UserError, match=r"lexicon \(lexicon_file\) has changed"):
        settle((hparams, run[1]))


# --- checkpoints ------------------------------------------------------------------------------


def write(root, step, **state):
    import numpy as np

    folder = checkpoint_series.step_folder(str(root), step)
    checkpoint.write(folder, {"a": np.full([3], step, np.float32)}, None, {"step": step, **state})
    return folder


def test_a_checkpoint_between_goes_with_the_next(tmp_path):
    """The remaining checkpoints are those of a run without interruption."""
    for step, between, remaining in (
        (3, False, [3]), (6, False, [3, 6]), (7, True, [3, 6, 7]), (8, True, [3, 6, 8]),
        (9, False, [6, 9]), (12, False, [9, 12]),
    ):  # fmt: skip
        write(tmp_path, step, between=between)
        checkpoint_series.remove_old(str(tmp_path), 2)
        assert checkpoint_series.steps(str(tmp_path)) == remaining


def test_a_damaged_checkpoint_counts_only_where_a_save_comes_to_it_again(tmp_path):
    def due(step):
        return step % 3 == 0 and step <= 12

    for step in (3, 6, 7, 9, 99):
        write(tmp_path, step, between=step == 7)
    for step in (7, 9, 99):
        (tmp_path / f"step-{step:08d}" / "state.json").write_text("{}")
    assert checkpoint_series.remove_old(str(tmp_path), 2, due) == [6, 9]
    assert checkpoint_series.steps(str(tmp_path)) == [6, 7, 9, 99], (
        "the newest that can be read is 6"
    )
    write(tmp_path, 8, between=True)
    assert checkpoint_series.remove_old(str(tmp_path), 2, due) == [6, 9]
    assert checkpoint_series.steps(str(tmp_path)) == [6, 8, 9, 99]
    write(tmp_path, 9)
    write(tmp_path, 12)
    assert checkpoint_series.remove_old(str(tmp_path), 2, due) == [9, 12]
    assert checkpoint_series.steps(str(tmp_path)) == [9, 12, 99]


def test_killed_while_an_old_checkpoint_is_removed(tmp_path, monkeypatch):
    """It is away as a whole, and what is left of it goes with the next."""
    for step in (3, 6, 9):
        write(tmp_path, step)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *args, **options: None)
        checkpoint_series.remove_old(str(tmp_path), 2)
    assert checkpoint_series.steps(str(tmp_path)) == [6, 9] and len(os.listdir(tmp_path)) == 3
    checkpoint_series.remove_old(str(tmp_path), 2)
    assert sorted(os.listdir(tmp_path)) == ["step-00000006", "step-00000009"]


def test_damaged_best_weights_come_back_from_their_checkpoint(tmp_path):
    source, best, log = write(tmp_path, 3), tmp_path / "best", []
    shutil.copytree(source, best)
    checkpoint_series.rebuild(str(best), 3, str(tmp_path), log.append)
    assert not log
    flip_bit(best / "weights.npz")
    checkpoint_series.rebuild(str(best), 3, str(tmp_path), log.append)
    assert len(log) == 1 and log[0].endswith(f"rebuilt from {source}")
    assert checkpoint.read_arrays(str(best))["a"].tolist() == [3, 3, 3]
    assert checkpoint.read_state(str(best))["step"] == 3
    flip_bit(best / "weights.npz")
    for damage in (lambda: truncate(tmp_path / "step-00000003" / "weights.npz"),
                   lambda: shutil.rmtree(source)):  # fmt: skip
        damage()
        with pytest.raises(checkpoint.Unreadable, match="best/weights.*step 3, .*from a copy"):
            checkpoint_series.rebuild(str(best), 3, str(tmp_path), pytest.fail)


def test_an_average_says_what_it_lacks(tmp_path):
    folders = [write(tmp_path, step) for step in (3, 6)]
    flip_bit(tmp_path / "step-00000003" / "weights.npz")
    with pytest.raises(checkpoint.Unreadable, match=f"average.*or remove {folders[0]}"):
        checkpoint_series.average(folders)


def test_a_killed_save_on_a_disk_that_can_only_be_read(tmp_path):
    with disk(tmp_path / "disk", "1m") as mount_point:
        write(mount_point, 3)
        folder = write(mount_point, 6)
        os.rename(folder, f"{folder}.old")
        remount(mount_point, "ro")
        assert checkpoint_series.steps(str(mount_point)) == [3]
        remount(mount_point, "rw")
        assert checkpoint_series.steps(str(mount_point)) == [3, 6]
