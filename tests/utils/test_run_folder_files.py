"""Which files of a run's folder are of its last training."""

import os

import pytest

from tfmann.utils.run_folder import has_best, is_of_last_training


def write_best(folder, name="best_bleu"):
    (folder / name).mkdir()
    for file in ("state.json", "weights.npz"):
        (folder / name / file).touch()


def test_a_file_that_is_older_than_the_results_is_of_an_earlier_training(tmp_path):
    root, file = str(tmp_path), tmp_path / "output_more"
    assert not is_of_last_training(file, root)
    file.write_text("translations")
    assert is_of_last_training(file, root)
    (tmp_path / "results.json").write_text("{}")
    write_best(tmp_path)
    os.utime(file, (1_000, 1_000))
    os.utime(tmp_path / "results.json", (2_000, 2_000))
    assert not is_of_last_training(file, root)
    os.utime(file, (3_000, 3_000))
    assert is_of_last_training(file, root)


def test_without_weights_it_counts_for_it_cannot_be_made_again(tmp_path):
    (tmp_path / "output_more").write_text("translations")
    os.utime(tmp_path / "output_more", (1_000, 1_000))
    (tmp_path / "results.json").write_text("{}")
    assert is_of_last_training(tmp_path / "output_more", str(tmp_path))


@pytest.mark.parametrize("lost", ["state.json", "weights.npz"])
def test_a_best_checkpoint_that_was_removed_by_half_is_none(tmp_path, lost):
    root = str(tmp_path)
    (tmp_path / "checkpoints" / "step-00000009").mkdir(parents=True)
    assert not has_best(root)
    write_best(tmp_path)
    assert has_best(root)
    (tmp_path / "best_bleu").rename(tmp_path / "best_bleu.old")
    assert has_best(root)
    write_best(tmp_path)
    (tmp_path / "best_bleu" / lost).unlink()
    assert not has_best(root)
