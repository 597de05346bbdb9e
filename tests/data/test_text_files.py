"""Text files: what a line is, what is refused, and that nothing is left half written."""

import hashlib
import os
import random
import resource
import tracemalloc

import pytest

from tfmann.data.text_files import (
    NO_DOCUMENT,
    Pair,
    count_parallel,
    iter_lines,
    iter_parallel,
    measure,
    number_lines,
    read_documents,
    write_lines,
)
from tfmann.errors import UserError


def file_of(tmp_path, content, name="text"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


@pytest.mark.parametrize(
    "content, lines",
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\r\r\nc\r", ["a\rb\r", "c\r"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b" a \n\t\n", [" a ", "\t"]),
        (b"a\x00b\n", ["a\x00b"]),
    ],
)
def test_a_line_ends_at_lf_or_crlf_only(tmp_path, content, lines):
    path = file_of(tmp_path, content)
    assert list(iter_lines(path)) == lines
    assert measure(path) == (len(lines), len(content), hashlib.sha256(content).hexdigest())


@pytest.mark.parametrize("mark", "\u2028 \u2029 \x85 \x0b \x0c \x1c \x1d \x1e \r".split(" "))
def test_other_line_separators_stay_inside_the_line(tmp_path, mark):
    line = f"left{mark}right"
    assert len(line.splitlines()) == 2, "the test must use what str.splitlines would cut at"
    assert list(iter_lines(file_of(tmp_path, line + "\nnext\n"))) == [line, "next"]


def test_what_is_not_utf8_is_named_by_file_line_and_offset(tmp_path):
    path = file_of(tmp_path, "fine\nüber".encode() + b"\xff!\nfine\n")
    with pytest.raises(UserError, match=r"text, line 2: not UTF-8 at byte offset 5 .*0xff"):
        list(iter_lines(path))


def test_an_offset_counts_from_the_line_after_the_byte_order_mark(tmp_path):
    with pytest.raises(UserError, match="line 1: not UTF-8 at byte offset 1 "):
        list(iter_lines(file_of(tmp_path, b"\xef\xbb\xbfa\xc3\n")))


def test_utf16_is_recognised(tmp_path):
    with pytest.raises(UserError, match="line 1: .*UTF-16"):
        list(iter_lines(file_of(tmp_path, "words\n".encode("utf-16"))))


@pytest.mark.parametrize("name, words", [("absent", "no such file"), (".", "directory")])
def test_what_cannot_be_read_is_named(tmp_path, name, words):
    with pytest.raises(UserError, match=words) as error:
        list(iter_lines(tmp_path / name))
    assert str(tmp_path / name) in str(error.value)


def test_a_name_with_nul_is_an_error_of_ours():
    with pytest.raises(UserError, match="null (byte|character)"):
        list(iter_lines("a\0b"))
    with pytest.raises(UserError, match="null (byte|character)"):
        write_lines("a\0b", ["x"])


def test_random_bytes_give_lines_or_a_user_error(tmp_path):
    draw = random.Random(1)
    alphabet = [b"\n", b"\r", b"\xef\xbb\xbf", b"a", b" ", b"\xff", b"\xc3", "é".encode(), b"\0"]
    refused = 0
    for _ in range(500):
        content = b"".join(draw.choice(alphabet) for _ in range(draw.randrange(12)))
        path = file_of(tmp_path, content)
        try:
            lines = list(iter_lines(path))
        except UserError:
            refused += 1
            continue
        text = content[3:] if content.startswith(b"\xef\xbb\xbf") else content
        assert len(lines) == text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
        assert not any("\n" in line for line in lines)
    assert 0 < refused < 500


def test_parallel_pairs_without_documents(tmp_path):
    source = file_of(tmp_path, "a\nb\u2028c\n\n", "s")
    target = file_of(tmp_path, "A\r\nB\r\nC", "t")
    expected = [("a", "A"), ("b\u2028c", "B"), ("", "C")]
    assert list(iter_parallel(source, target)) == [Pair(s, t, NO_DOCUMENT) for s, t in expected]
    assert count_parallel(source, target) == 3


def test_document_ids_are_carried_along(tmp_path):
    source, target = file_of(tmp_path, "a\nb\n", "s"), file_of(tmp_path, "A\nB\n", "t")
    documents = file_of(tmp_path, "7\n 1922 \n", "d")
    assert [pair.document for pair in iter_parallel(source, target, documents)] == [7, 1922]


@pytest.mark.parametrize("text", ["", "x", "-1", "1.0", "1 2", "١", "9" * 19])
def test_a_document_id_that_is_none_is_named_by_line(tmp_path, text):
    source, target = file_of(tmp_path, "a\nb\n", "s"), file_of(tmp_path, "A\nB\n", "t")
    documents = file_of(tmp_path, f"3\n{text}\n", "d")
    with pytest.raises(UserError, match="d, line 2: expected the document's id"):
        list(iter_parallel(source, target, documents))


@pytest.mark.parametrize("source_lines, target_lines", [(2, 5), (5, 2), (0, 1)])
def test_unequal_counts_name_both_files_and_both_counts(tmp_path, source_lines, target_lines):
    source = file_of(tmp_path, "a\n" * source_lines, "s")
    target = file_of(tmp_path, "A\n" * target_lines, "t")
    with pytest.raises(UserError) as error:
        count_parallel(source, target)
    assert f"{source} has {source_lines}, {target} has {target_lines} lines" in str(error.value)


def test_a_documents_file_of_another_length_is_refused(tmp_path):
    source, target = file_of(tmp_path, "a\n", "s"), file_of(tmp_path, "A\n", "t")
    with pytest.raises(UserError, match=r"d has 2 lines"):
        list(iter_parallel(source, target, file_of(tmp_path, "1\n1\n", "d")))


def test_a_blank_line_is_the_last_of_its_document():
    lines = ["a", "", "", "b", "c", " "]
    assert list(number_lines(lines, None)) == list(zip(lines, [0, 0, 1, 2, 2, 2]))


def test_given_ids_number_the_lines_and_must_be_as_many():
    assert list(number_lines(["a", ""], [7, 8])) == [("a", 7), ("", 8)]
    with pytest.raises(UserError, match="line 2 has no document id"):
        list(number_lines(["a", "b"], [7]))
    with pytest.raises(UserError, match="more document ids than lines: expected 1"):
        list(number_lines(["a"], [7, 8]))


def test_ids_of_a_text_of_another_length_name_both_files(tmp_path):
    path = tmp_path / "docs"
    path.write_text("3\n3\n")
    assert read_documents(path, "text", 2) == [3, 3]
    with pytest.raises(UserError, match="text has 1, .*docs has 2 lines"):
        read_documents(path, "text", 1)


def test_an_empty_corpus_is_refused(tmp_path):
    source, target = file_of(tmp_path, "", "s"), file_of(tmp_path, "", "t")
    with pytest.raises(UserError, match="empty"):
        list(iter_parallel(source, target))


def test_counting_keeps_memory_flat(tmp_path):
    source = file_of(tmp_path, "some words of a sentence\n" * 40_000, "s")  # 1 MB
    tracemalloc.start()
    try:
        assert count_parallel(source, source) == 40_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 300_000


def test_written_lines_come_back(tmp_path):
    lines = ["", "a b", "\u2028", "x\rz", "\x85\x0c", "é" * 3]
    path = tmp_path / "out"
    write_lines(path, lines)
    assert list(iter_lines(path)) == lines
    assert os.listdir(tmp_path) == ["out"]


def interrupted():
    yield "new"
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "lines, error",
    [
        (["ok", "two\nlines"], ValueError),
        (["ok", "\ud800"], UserError),
        (interrupted(), KeyboardInterrupt),
    ],
)
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, lines, error):
    path = file_of(tmp_path, "old\n", "out")
    with pytest.raises(error):
        write_lines(path, lines)
    assert path.read_text() == "old\n"
    assert os.listdir(tmp_path) == ["out"]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path):
    path = file_of(tmp_path, "old\n", "out")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # writes fail past 20 kB
    try:
        with pytest.raises(UserError, match="cannot write .*out"):
            write_lines(path, ["x" * 100] * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old\n"
    assert os.listdir(tmp_path) == ["out"]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(UserError, match="cannot write .*absent"):
        write_lines(tmp_path / "absent" / "out", ["x"])
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="cannot write .*folder"):
        write_lines(tmp_path / "folder", ["x"])
    assert os.listdir(tmp_path) == ["folder"]
