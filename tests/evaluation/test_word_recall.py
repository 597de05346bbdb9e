"""Recall by frequency: counted by hand, and from the command line."""

import pytest

from tfmann.cli import main
from tfmann.data import text_files
from tfmann.errors import UserError
from tfmann.evaluation.comparison import System
from tfmann.evaluation.word_recall import by_frequency

REFERENCE = ["the the cat sat", "a zebra sat", ""]
FIRST = System("first", ["the cat cat", "a sat zebra zebra", "the"])
SECOND = System("second", ["the the the", "sat", ""])
OCCURRENCES = {"the": 50, "sat": 2, "cat": 1, "a": 10, "dog": 1}


def test_words_are_matched_as_often_as_the_reference_has_them():
    classes = by_frequency([FIRST, SECOND], REFERENCE, OCCURRENCES, limits=(0, 1, 10))
    assert [(c.least, c.most, c.words) for c in classes] == [
        (0, 0, 1), (1, 1, 1), (2, 10, 3), (11, None, 2),
    ]  # fmt: skip
    assert [c.matched for c in classes] == [[1, 0], [1, 0], [2, 1], [1, 2]]
    assert classes[2].recall == pytest.approx([2 / 3, 1 / 3])


def test_classes_without_words_are_left_out():
    classes = by_frequency([FIRST], ["the", "", "the"], OCCURRENCES)
    assert [(c.least, c.most, c.words, c.matched) for c in classes] == [(11, 100, 2, [2])]


def test_words_are_those_that_spaces_separate():
    (row,) = by_frequency(
        [System("a", ["10 euro 000", "x y"])], ["10\u00a0000 euro", "x\u3000y"], {}
    )
    assert (row.words, row.matched) == (3, [1])


def test_other_line_counts_are_refused():
    with pytest.raises(UserError, match="first"):
        by_frequency([FIRST], REFERENCE[:2], OCCURRENCES)


def test_the_command_prints_the_table(tmp_path, capsys):
    training = ["The zebra sat", "sat"]
    for name, lines in (
        ("a", FIRST.lines), ("b", SECOND.lines), ("ref", REFERENCE), ("train", training),
    ):  # fmt: skip
        text_files.write_lines(tmp_path / name, lines)
    argv = ["compare", "--system", str(tmp_path / "a"), str(tmp_path / "b"),
            f"--reference={tmp_path / 'ref'}", f"--training={tmp_path / 'train'}"]  # fmt: skip
    assert main.main(argv) == 0
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in capsys.readouterr().out.partition("Recall of the first")[2].splitlines()
        if line.startswith("|")
    ]
    assert rows[0][:2] == ["in the training text", "words"]
    assert rows[2] == ["0", "4", "75.0 %", "50.0 % (-25.0)"]  # the, the, cat, a
    assert rows[3] == ["1", "1", "100.0 %", "0.0 % (-100.0)"]
    assert rows[4] == ["2 to 10", "2", "50.0 %", "50.0 % (+0.0)"]
    assert main.main([*argv, "--lowercase"]) == 0
    assert "| 1                    | 3" in capsys.readouterr().out
