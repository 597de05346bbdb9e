"""The words in which two texts differ, and the closest of several references."""

from tfmann.report.sentences import Piece, closest, word_differences


def test_differences_are_marked_word_by_word():
    assert word_differences("a will pay .", "a paid .") == [
        Piece("same", "a"), Piece("missing", "paid"), Piece("added", "will pay"),
        Piece("same", "."),
    ]  # fmt: skip
    assert word_differences("", "a b") == [Piece("missing", "a b")]
    assert word_differences("a b", "") == [Piece("added", "a b")]
    assert word_differences("A b", "a b", lowercase=True) == [Piece("same", "A b")]
    assert [piece.kind for piece in word_differences("A b", "a b")] == ["missing", "added", "same"]


def test_the_closest_reference_is_taken():
    assert closest("a b c", ["x y", "a b d", "a"]) == "a b d"
    assert closest("A B", ["a x", "a b"], lowercase=True) == "a b"
