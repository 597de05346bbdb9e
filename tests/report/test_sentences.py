"""The words in which two texts differ, and the closest of several references."""

import pytest

from tfmann.evaluation.gold_alignments import GoldAlignment
from tfmann.report.runs import SystemRun, TranslatedTest
from tfmann.report.sentences import (
    Piece,
    choose_sentences,
    closest,
    compare_systems,
    word_differences,
)


def test_differences_are_marked_word_by_word():
    assert word_differences("a will pay .", "a paid .") == [
        Piece("same", "a"), Piece("missing", "paid"), Piece("added", "will pay"),
        Piece("same", "."),
    ]  # fmt: skip
    assert word_differences("", "a b") == [Piece("missing", "a b")]
    assert word_differences("a b", "") == [Piece("added", "a b")]
    assert word_differences("A b", "a b", lowercase=True) == [Piece("same", "A b")]
    assert [piece.kind for piece in word_differences("A b", "a b")] == ["missing", "added", "same"]


def test_text_without_spaces_is_compared_by_characters():
    assert word_differences("我去了学校。", "我去过学校。", by_character=True) == [
        Piece("same", "我去"), Piece("missing", "过"), Piece("added", "了"),
        Piece("same", "学校。"),
    ]  # fmt: skip
    assert word_differences("a bc", "a b", by_character=True)[0] == Piece("same", "a b")
    references = ["我走过学校。", "我去过学校了。"]
    assert closest("我去过学校。", references, by_character=True) == references[1]


@pytest.mark.parametrize("by_character", [True, False])
def test_as_many_sentences_are_chosen_as_asked_for(by_character):
    lines = [f"第{number}句话是这样的。" for number in range(30)]
    lines[7] = "a line with spaces"  # the only one of medium length by words
    test = TranslatedTest(lines, [lines], None, None, False, [], by_character)
    assert len(choose_sentences(test, 8)) == 8


def test_a_space_that_does_not_break_is_a_part_of_its_word():
    kinds = [piece.kind for piece in word_differences("10\u00a0000 euro", "10 000 euro")]
    assert kinds == ["missing", "added", "same"]


@pytest.mark.parametrize("lowercase", [True, False])
def test_words_are_left_out_by_the_same_case_as_differences(lowercase):
    links = frozenset({(0, 0), (1, 1)})
    run = SystemRun("a", "a", "luong", "x", ["the dog"])
    test = TranslatedTest(
        ["Der Hund"], [["The Dog"]], None, [GoldAlignment(links, links)], lowercase, [run]
    )
    (output,) = compare_systems(test, [0])[0].systems
    assert output.under_translated == ([] if lowercase else ["Der", "Hund"])
    assert {piece.kind for piece in output.to_reference} == (
        {"same"} if lowercase else {"missing", "added"}
    )


def test_the_closest_reference_is_taken():
    assert closest("a b c", ["x y", "a b d", "a"]) == "a b d"
    assert closest("A B", ["a x", "a b"], lowercase=True) == "a b"
