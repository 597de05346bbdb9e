"""A disturbed run ends as an undisturbed one, or stops with one message and can be continued.

Most tests begin with a run that was stopped at step 10 of 18, whose last checkpoints are of the
steps 6, 9 and 10, and whose best weights are of step 9.
"""

import os
import shutil
import signal
import subprocess

import pytest
from helpers.faults import ForkedCommand, disk, files_of, flip_bit, remount, truncate

from benchmarks.trust.ending import differences, ending
from benchmarks.trust.killable import PAIRS
from benchmarks.trust.killable import training_flags as command
from tfmann.synthetic import write_corpus
from tfmann.training import checkpoint_series
from tfmann.utils.run_folder import RunFolder


@pytest.fixture(scope="module")
def forked(tmp_path_factory):
    runner = ForkedCommand(tmp_path_factory.mktemp("forked"))
    yield runner
    runner.forks.close()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_corpus(folder, PAIRS, 6, 6, seed=3)
    return folder


@pytest.fixture(scope="module")
def undisturbed(forked, data, tmp_path_factory):
    """The folder of a run that nothing happened to."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    forked.succeeds(command(data, out))
    return out


@pytest.fixture(scope="module")
def stopped(forked, data, tmp_path_factory):
    """The folder of a run that was stopped at step 10."""
    out = tmp_path_factory.mktemp("stopped") / "out"
    stop = ["run_faults:stop_at", 10, signal.SIGTERM]
    message = forked.refused(command(data, out), 143, prepare=stop)
    assert message == "tfmann: stopped at step 10; the same command continues from there"
    assert checkpoint_series.steps(str(out / "checkpoints"))[-3:] == [6, 9, 10]
    return out


@pytest.fixture
def begun_run(stopped, tmp_path):
    """A copy of it."""
    shutil.copytree(stopped, tmp_path / "out")
    return tmp_path / "out"


def differing_files(out, undisturbed):
    return differences(ending(out), ending(undisturbed))


# --- it ends as it would have -----------------------------------------------------------------


@pytest.mark.slow
def test_again_on_one_processor(forked, data, undisturbed, tmp_path):
    forked.succeeds(command(data, tmp_path / "out"), prepare=["run_faults:one_processor"])
    assert differing_files(tmp_path / "out", undisturbed) == []


@pytest.mark.bfloat16
@pytest.mark.slow
def test_again_with_bfloat16_products(forked, data, undisturbed, tmp_path):
    rough = "--precision=mixed_bfloat16"
    forked.succeeds([*command(data, tmp_path / "first"), rough])
    forked.succeeds(
        [*command(data, tmp_path / "again"), rough], prepare=["run_faults:one_processor"]
    )
    assert differing_files(tmp_path / "again", tmp_path / "first") == []
    assert differing_files(tmp_path / "first", undisturbed) != []


@pytest.mark.thorough
def test_damaged_files_are_rebuilt(forked, data, undisturbed, begun_run):
    """The newest checkpoint, the best weights and both encoded corpora."""
    flip_bit(begun_run / "checkpoints" / "step-00000010" / "optimizer.npz")
    truncate(begun_run / "best_bleu" / "weights.npz")
    folders = sorted((begun_run / "encoded").iterdir())
    assert len(folders) == 2
    flip_bit(folders[0] / "target.ids")
    truncate(folders[1] / "source.starts")
    forked.succeeds(command(data, begun_run))
    assert "step-00000010/optimizer.npz is not as it was written: falling back" in forked.output
    assert "best_bleu/weights.npz is not as it was written: rebuilt from" in forked.output
    assert forked.output.count("encoding ") == 2
    assert differing_files(begun_run, undisturbed) == []


@pytest.mark.thorough
@pytest.mark.parametrize("damage", ["cut", "empty"])
def test_a_damaged_checkpoint_between_two_saves_is_passed_over(
    forked, data, undisturbed, begun_run, damage
):
    """The one of being stopped, whose step no save comes to again; and one of no step at all."""
    folder = begun_run / "checkpoints" / "step-00000010"
    if damage == "cut":
        truncate(folder / "state.json")
    else:
        shutil.rmtree(folder)
        folder.mkdir()
    unreadable = begun_run / "checkpoints" / "step-99999999"
    unreadable.mkdir()
    (unreadable / "state.json").write_text("{}")
    forked.succeeds(command(data, begun_run))
    assert "step-00000010/state.json is missing or damaged: falling back" in forked.output
    shutil.rmtree(unreadable)  # of which nothing is known: it stays
    assert differing_files(begun_run, undisturbed) == []


@pytest.mark.thorough
def test_a_clock_that_goes_backwards_and_a_full_terminal(forked, data, undisturbed, begun_run):
    """Files are from the future; nothing can be printed, and `train.log` has it all."""
    for path in begun_run.rglob("*"):
        os.utime(path, (4e9, 4e9))
    for path in data.iterdir():
        os.utime(path, (4e9, 4e9))
    forked.succeeds(
        command(data, begun_run), prepare=["run_faults:clock_backwards"], log="/dev/full"
    )
    assert "step 18: dev ppl" in (begun_run / "train.log").read_text()
    assert differing_files(begun_run, undisturbed) == []


@pytest.mark.slow
@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopped_shortly_before_the_end(forked, data, undisturbed, begun_run, number, status):
    """The checkpoint of step 17 is of no average of the last ones."""
    stop = ["run_faults:stop_at", 17, number]
    message = forked.refused(command(data, begun_run), status, prepare=stop)
    assert "stopped at step 17" in message
    forked.succeeds(command(data, begun_run))
    assert differing_files(begun_run, undisturbed) == []


@pytest.mark.slow
def test_all_checkpoints_but_the_oldest_are_damaged(forked, data, undisturbed, begun_run):
    (begun_run / "checkpoints" / "step-00000010" / "state.json").unlink()
    flip_bit(begun_run / "checkpoints" / "step-00000009" / "weights.npz")
    forked.succeeds(command(data, begun_run))
    assert "continuing from" in forked.output and "step-00000006" in forked.output
    assert differing_files(begun_run, undisturbed) == []


@pytest.mark.slow
def test_a_disk_that_fills_up_and_is_emptied(forked, data, undisturbed, tmp_path):
    """By somebody else, so that there is no room for a line of the log."""
    with disk(tmp_path / "disk", "3m") as mount_point:
        argv = command(data, mount_point / "out")
        message = forked.refused(argv, prepare=["run_faults:fill_at", 5, str(mount_point)])
        assert "No space left on device" in message and "repeat the command" in message
        assert checkpoint_series.steps(str(mount_point / "out" / "checkpoints")) == [3]
        assert not list((mount_point / "out").rglob("*.tmp*"))
        (mount_point / "filler").unlink()
        forked.succeeds(argv)
        assert differing_files(mount_point / "out", undisturbed) == []


# --- it stops with one message, and everything is as it was -----------------------------------


def test_every_checkpoint_is_damaged(forked, data, begun_run):
    names = ("weights.npz", "state.json", "optimizer.npz")
    for folder, name in zip(sorted((begun_run / "checkpoints").iterdir()), (*names, *names)):
        truncate(folder / name)
    before = files_of(begun_run)
    message = forked.refused(command(data, begun_run))
    assert "none of the " in message and "Restore one from a copy" in message
    assert files_of(begun_run) == before


def test_the_best_weights_and_their_checkpoint_are_damaged(forked, data, begun_run):
    truncate(begun_run / "best_bleu" / "weights.npz")
    flip_bit(begun_run / "checkpoints" / "step-00000009" / "weights.npz")
    before = files_of(begun_run)
    message = forked.refused(command(data, begun_run))
    assert "best_bleu/weights.npz" in message and "step 9" in message and "from a copy" in message
    assert files_of(begun_run) == before


@pytest.mark.parametrize("name, of_run", [("train.src", False), ("dev.tgt", False),
                                          ("vocab.tgt", True)])  # fmt: skip
def test_text_or_vocabulary_changed_between_runs(forked, data, begun_run, name, of_run):
    path = (begun_run if of_run else data) / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"e", b"i", 1))
    before = files_of(begun_run)
    try:
        message = forked.refused(command(data, begun_run))
        assert str(path) in message and (
            "has changed since" in message or "not as it was" in message
        )
        assert files_of(begun_run) == before
    finally:
        path.write_bytes(content)


def test_settings_changed_between_runs(forked, data, begun_run):
    path = begun_run / "hparams.json"
    for change in (lambda text: text[:-9], lambda text: text.replace(": 12,", ": 13,", 1)):
        good = path.read_text()
        path.write_text(change(good))
        before = files_of(begun_run)
        message = forked.refused(command(data, begun_run), 2)
        assert "is not JSON" in message or "num_units=12 (saved: 13)" in message, message
        assert files_of(begun_run) == before
        path.write_text(good)


def test_a_gradient_that_is_not_a_number(forked, data, begun_run):
    before = files_of(begun_run)
    message = forked.refused(command(data, begun_run), prepare=["run_faults:nan_at", 11])
    assert "loss or gradient is not finite at step 10" in message
    assert files_of(begun_run) == before


def test_files_must_not_grow(forked, data, begun_run):
    """As `ulimit -f` has it; the next checkpoint is greater than the limit."""
    before = files_of(begun_run)
    limit = (begun_run / "checkpoints" / "step-00000010" / "weights.npz").stat().st_size - 1
    message = forked.refused(command(data, begun_run), file_size=limit)
    assert "cannot write the checkpoint" in message and "File too large" in message
    assert files_of(begun_run) == before


def test_a_folder_that_cannot_be_written_to(forked, data, stopped, tmp_path):
    with disk(tmp_path / "disk", "3m") as mount_point:
        out = mount_point / "out"
        shutil.copytree(stopped, out)
        before = files_of(out)
        remount(mount_point, "ro")
        message = forked.refused(command(data, out))
        assert message == f"tfmann: out_dir {out} cannot be used: Read-only file system"
        assert files_of(out) == before


def test_checkpoints_that_cannot_be_written_any_more(forked, data, begun_run, tmp_path):
    with disk(tmp_path / "disk", "4k"):  # or there is nothing to test
        before, checkpoints = files_of(begun_run), str(begun_run / "checkpoints")
    try:
        message = forked.refused(
            command(data, begun_run), prepare=["run_faults:read_only_at", 11, checkpoints]
        )
    finally:
        subprocess.run(["umount", checkpoints], check=True)
    assert "Read-only file system" in message and "repeat the command" in message
    assert files_of(begun_run) == before


def test_a_second_process_is_refused(forked, data, begun_run):
    before = files_of(begun_run)
    with RunFolder(str(begun_run), print):
        message = forked.refused(command(data, begun_run))
    assert message == f"tfmann: another process is training in {begun_run}"
    assert files_of(begun_run) == before


# --- translating ------------------------------------------------------------------------------


def translate(data, out, **more):
    flags = {"out_dir": out, "inference_input_file": data / "test.src", **more}
    return [f"--{name}={value}" for name, value in flags.items()]


def test_a_disk_that_is_full_of_translations(forked, data, stopped, tmp_path):
    """The earlier file is undamaged, and there is no other file."""
    with disk(tmp_path / "disk", "4k") as mount_point:
        result = mount_point / "result"
        result.write_text("an earlier one\n")
        message = forked.refused(translate(data, stopped, inference_output_file=result))
        assert message == f"tfmann: cannot write {result}: No space left on device"
        assert os.listdir(mount_point) == ["result"] and result.read_text() == "an earlier one\n"


def test_nowhere_to_put_translations(forked, data, stopped):
    message = forked.refused(translate(data, stopped), prepare=["run_faults:no_output"])
    assert message == "tfmann: standard output is closed: give --inference_output_file"


def test_a_model_that_can_only_be_read(forked, data, stopped, tmp_path):
    """As on a disk mounted read-only, a kill in the middle of a save included."""
    with disk(tmp_path / "disk", "3m") as mount_point:
        out = mount_point / "out"
        shutil.copytree(stopped, out)
        os.rename(out / "best_bleu", out / "best_bleu.old")
        remount(mount_point, "ro")
        forked.succeeds(translate(data, out, inference_output_file=tmp_path / "result"))
        assert len((tmp_path / "result").read_text().splitlines()) == 6
        assert "best_bleu.old" in forked.output
