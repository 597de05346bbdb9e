"""Faults of a series of checkpoints: damaged, half removed, unwritable."""

import os
import shutil

import pytest
from helpers.faults import disk, flip_bit, remount, truncate

from tfmann.training import checkpoint, checkpoint_series


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


@pytest.mark.parametrize("count", [1, 2, 5])
def test_damaged_weights_of_a_later_step_remove_no_checkpoint_that_is_good(tmp_path, count):
    """Their state is good, so that they were taken for the newest, and the others for old."""
    write(tmp_path, 100)
    write(tmp_path, 200)
    truncate(tmp_path / "step-00000200" / "weights.npz")
    for step in (120, 140, 160):
        write(tmp_path, step)
        remaining = checkpoint_series.remove_old(str(tmp_path), count, saved=step)
        assert remaining == [s for s in (100, 120, 140, 160) if s <= step][-count:]
        assert checkpoint_series.steps(str(tmp_path)) == [*remaining, 200]
        log: list[str] = []
        newest = checkpoint_series.latest(str(tmp_path), log.append)
        assert newest == checkpoint_series.step_folder(str(tmp_path), step) and len(log) == 1


def test_damaged_weights_of_a_later_step_do_not_remove_what_a_stopped_run_has_saved(tmp_path):
    for step in (100, 200):
        write(tmp_path, step)
    truncate(tmp_path / "step-00000200" / "weights.npz")
    write(tmp_path, 130, between=True)
    assert checkpoint_series.remove_old(str(tmp_path), 2, saved=130) == [100]
    assert checkpoint_series.steps(str(tmp_path)) == [100, 130, 200]


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


def test_best_weights_of_a_step_that_is_to_be_made_again_are_replaced(tmp_path):
    """A kill between them and the checkpoint of their step; or that checkpoint was removed."""
    source, best, log = write(tmp_path, 3), tmp_path / "best", []
    shutil.copytree(write(tmp_path, 6), best)
    checkpoint_series.rebuild(str(best), 3, str(tmp_path), log.append)
    assert log == [
        f"{best} is of step 6, from which the run does not continue: rebuilt from {source}"
    ]
    assert checkpoint.read_arrays(str(best))["a"].tolist() == [3, 3, 3]
    shutil.rmtree(source)
    checkpoint_series.rebuild(str(best), 3, str(tmp_path), pytest.fail)
    shutil.rmtree(best)
    shutil.copytree(tmp_path / "step-00000006", best)
    checkpoint_series.rebuild(str(best), 3, str(tmp_path), log.append)  # better than none
    assert log[1:] == [
        f"{best} is of step 6, from which the run does not continue; the checkpoint of step 3 no "
        "longer exists, so they stay"
    ]
    assert checkpoint.read_arrays(str(best))["a"].tolist() == [6, 6, 6]


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
