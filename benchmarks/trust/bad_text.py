"""Unexpected text, through the command line of a small model.

Valid UTF-8 must give one line of output for every line of input, blank lines for blank ones.
Anything else must be refused in one line, without an output file.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import strategies as st

from benchmarks.trust import random_model
from benchmarks.trust.judge import Folder, Outcome, judge_command
from tfmann import api, nmt

_CAP = 4  # words of a translation

_words = st.sampled_from([*random_model.WORDS, "<unk>", "<s>", "</s>", "@@", "|||", "unbekannt"])
_characters = st.characters(exclude_categories=["Cs"])
_controls = st.sampled_from("\0\x01\x0b\x0c\r\x1b\x1c\x85\u2028\u2029\u200f\u202e\ufeff\ufffe")
_line = st.one_of(
    st.text(_characters, max_size=40),
    st.text(st.one_of(_controls, _characters), max_size=20),
    st.lists(_words, max_size=12).map(" ".join),
    st.lists(_words, max_size=6).map("\t \u00a0".join),
    st.builds(lambda word, times: f"{word} " * times, _words, st.integers(100, 400)),
    st.just(""),
    st.just("  \t "),
    st.just("x" * 5000),
)
_valid = st.builds(
    lambda lines, end, last, mark: mark + end.join(lines).encode() + last,
    st.lists(_line, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([b"", b"\n"]),
    st.sampled_from([b"", b"\xef\xbb\xbf"]),
)
_spoilt = st.builds(
    lambda content, at, wrong: content[:at] + wrong + content[at:],
    _valid,
    st.integers(0, 60),
    st.sampled_from([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xff\xfea\0", b"\xf8\x88\x80\x80\x80"]),
)
files = st.one_of(_valid, _valid, _spoilt, st.binary(max_size=80))


@functools.cache
def _model(cell: str) -> tuple[str, api.Model]:
    """Returns a folder with a model of random weights, and the model, which is loaded once."""
    folder = Path(tempfile.mkdtemp(prefix="tfmann-trust-"))
    search = {"beam_width": 3, "infer_batch_size": 4, "tgt_max_len_infer": _CAP}
    random_model.write(folder, cell=cell, **search)
    return str(folder), api.load(str(folder))


def _command(folder: Folder, cell: str, *argv: str) -> Outcome:
    out_dir, model = _model(cell)
    output = folder.path / "out"
    with mock.patch.object(api, "load", lambda *_, **__: model):
        return judge_command(
            lambda: nmt.main([f"--out_dir={out_dir}", f"--inference_output_file={output}", *argv]),
            output,
        )


def lines_of(content: bytes) -> list[bytes] | None:
    """Returns the lines of a file, or None if it is not UTF-8; an independent implementation."""
    content = content[3:] if content.startswith(b"\xef\xbb\xbf") else content
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return None
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def translated(folder: Folder, content: bytes) -> bool:
    """Translates a file; returns whether it was accepted."""
    outcome = _command(folder, "luong", f"--inference_input_file={folder.write('in', content)}")
    source_lines = lines_of(content)
    assert outcome.accepted == (source_lines is not None), outcome
    if source_lines is not None:
        assert len(outcome.lines) == len(source_lines), (len(outcome.lines), len(source_lines))
        for line, answer in zip(source_lines, outcome.lines):
            assert bool(answer) <= bool(line.strip(b" \t\r")), (line, answer)
    return outcome.accepted


def scored(folder: Folder, contents: tuple[bytes, bytes]) -> bool:
    """Scores two files whose lines should be parallel; returns whether they were accepted."""
    sides = [folder.write(name, content) for name, content in zip(("in", "ref"), contents)]
    flags = [f"--inference_input_file={sides[0]}", f"--inference_ref_file={sides[1]}"]
    outcome = _command(folder, "luong", "--mode=score", *flags)
    sides_lines = [lines_of(content) for content in contents]
    counts = [None if lines is None else len(lines) for lines in sides_lines]
    parallel = bool(counts[0]) and counts[0] == counts[1]
    assert outcome.accepted == parallel, outcome
    if parallel:
        assert len(outcome.lines) == counts[0]
        assert all(float(line) <= 0 for line in outcome.lines)
    return outcome.accepted


def in_documents(folder: Folder, contents: tuple[bytes, bytes]) -> bool:
    """Translates a file in documents, with a model that reads the previous sentences."""
    flags = [
        f"--inference_input_file={folder.write('in', contents[0])}",
        f"--inference_document_file={folder.write('docs', contents[1])}",
    ]
    outcome = _command(folder, "summary", *flags)
    sides_lines = [lines_of(content) for content in contents]
    ids = [line.strip(b" \t\r") for line in sides_lines[1] or []]
    valid_ids = all(document.isdigit() and len(document) <= 18 for document in ids)
    count = None if None in sides_lines else len(sides_lines[0] or [])
    parallel = count == len(ids) and valid_ids
    assert outcome.accepted == parallel, outcome
    if parallel:
        assert len(outcome.lines) == count
    return outcome.accepted


_numbers = st.lists(st.integers(-1, 3).map(str), max_size=6).map("\n".join).map(str.encode)
pairs = st.one_of(
    st.tuples(files, files),
    st.lists(st.tuples(_line, _line), max_size=5).map(
        lambda rows: (
            tuple("".join(f"{line}\n" for line in side).encode() for side in zip(*rows))
            or (b"", b"")
        )
    ),
)
with_documents = st.one_of(
    st.tuples(files, _numbers),
    st.lists(st.tuples(_line, st.integers(0, 2)), max_size=5).map(
        lambda rows: (
            tuple("".join(f"{value}\n" for value in side).encode() for side in zip(*rows))
            or (b"", b"")
        )
    ),
)
