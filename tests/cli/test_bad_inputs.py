"""Bad input, drawn at random; `python -m benchmarks.trust inputs` draws more of it."""

import pytest

from benchmarks.trust import bad_text
from benchmarks.trust.inputs import KINDS, check
from benchmarks.trust.judge import Folder
from tfmann import nmt
from tfmann.data.text_files import iter_lines
from tfmann.datasets import archives
from tfmann.errors import UserError

ALWAYS_REFUSED = {"settings"}


@pytest.mark.parametrize("name", KINDS)
def test_bad_input_is_refused_or_taken_whole(name):
    accepted, refused = check(KINDS[name], 40, seed=1)
    assert accepted + refused >= 40
    assert refused, "nothing was refused: the cases are too good"
    assert accepted or name in ALWAYS_REFUSED, "everything was refused: the cases are too bad"


@pytest.mark.thorough
def test_a_very_long_line_has_one_answer(tmp_path):
    content = b"hund " * 100_000 + b"\nhund\n"
    assert bad_text.translated(Folder(tmp_path), content)


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf", b"a\rb", b"a\x00b\n\n", b"a\r\n\r\n"])
def test_lines_are_counted_as_files_are_read(content, tmp_path):
    (tmp_path / "in").write_bytes(content)
    read = [line.encode() for line in iter_lines(tmp_path / "in")]
    counted = bad_text.lines_of(content)
    assert [line.rstrip(b"\r") for line in counted] == [line.rstrip(b"\r") for line in read]


def test_what_does_not_hold_is_found(monkeypatch):
    def careless(archive, folder, most):
        (folder.parent.parent / "stray").touch()
        raise UserError("no")

    monkeypatch.setattr(archives, "extract", careless)
    with pytest.raises(AssertionError, match="left its folder"):
        check(KINDS["archive"], 5, seed=1)

    monkeypatch.setattr(nmt, "main", lambda argv: 0)  # succeeds, and writes nothing
    with pytest.raises(AssertionError):
        check(KINDS["text"], 5, seed=1)
