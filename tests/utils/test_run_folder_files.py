"""Which files of a run's folder are of its last training."""

import os

from tfmann.utils.run_folder import is_of_last_training


def test_a_file_that_is_older_than_the_results_is_of_an_earlier_training(tmp_path):
    root, file = str(tmp_path), tmp_path / "output_more"
    assert not is_of_last_training(file, root)
    file.write_text("translations")
    assert is_of_last_training(file, root)
    (tmp_path / "results.json").write_text("{}")
    (tmp_path / "best_bleu").mkdir()
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
