r"""Text files as the corpus has them: UTF-8, one sentence a line, two sides line by line.

A line ends at `\n` or `\r\n` and nowhere else: `str.splitlines` would also cut at U+2028,
U+0085, form feeds and others, which stand inside sentences of real corpora and would shift one
side against the other.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, Union

from tfmann import temporary
from tfmann.errors import UserError

PathLike = Union[str, "os.PathLike[str]"]

NO_DOCUMENT = -1  # the document id of a sentence whose corpus has no documents

_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_GZIP = b"\x1f\x8b"
_DOCUMENT_ID = re.compile(r"\d{1,18}", re.ASCII)  # fits an int64


class Pair(NamedTuple):
    """One sentence pair and the id of the document it stands in (`NO_DOCUMENT` without any)."""

    source: str
    target: str
    document: int


class Measured(NamedTuple):
    """What a file holds: lines (as `iter_lines` counts them), bytes, SHA-256 in hexadecimal."""

    lines: int
    bytes: int
    sha256: str


def iter_lines(path: PathLike) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 file without their ends.

    Drops one byte order mark at the start of the file. Every other character, U+2028, U+0085,
    NUL and a lone `\r` among them, stays where it is. A last line without an end counts.

    Raises:
      UserError: the file cannot be read, or is not UTF-8 (names line and byte offset in it).
    """
    with open_binary(path) as stream:
        yield from stream_lines(stream, path)


def stream_lines(stream: BinaryIO, name: PathLike) -> Iterator[str]:
    """Yields the lines of a stream as `iter_lines` does those of a file; errors call it `name`."""
    try:
        for number, raw in enumerate(stream, start=1):
            if number == 1 and raw.startswith(_BOM):
                raw = raw[len(_BOM) :]
                if not raw:
                    return  # nothing but the mark: an empty file, not an empty line
            yield _decode(raw, name, number)
    except OSError as error:
        raise UserError(f"cannot read {name}: {reason(error)}") from None


def iter_parallel(
    source_path: PathLike, target_path: PathLike, documents_path: PathLike | None = None
) -> Iterator[Pair]:
    """Yields the sentence pairs of a parallel corpus, holding one pair at a time.

    The documents file, if there is one, has a non-negative integer for every line.

    Raises:
      UserError: unequal line counts (found at the end, after the pairs that did match), an
        empty corpus, a document id that is none, or a file that `iter_lines` refuses.
    """
    paths = [source_path, target_path] + ([documents_path] if documents_path is not None else [])
    counts = [0] * len(paths)
    sides = [_counted(path, counts, side) for side, path in enumerate(paths)]
    for row in itertools.zip_longest(*sides):
        if None in row:
            _refuse_unequal(paths, counts, sides)
        document = NO_DOCUMENT
        if documents_path is not None:
            document = _document_id(row[2], documents_path, counts[2])
        yield Pair(row[0], row[1], document)
    if counts[0] == 0:
        raise UserError(f"{source_path} and {target_path} are empty: there is no sentence pair")


def iter_documents(path: PathLike) -> Iterator[int]:
    """The documents' ids of a file, one a line.

    Raises:
      UserError: a line is no non-negative integer.
    """
    for number, line in enumerate(iter_lines(path), start=1):
        yield _document_id(line, path, number)


def count_parallel(source_path: PathLike, target_path: PathLike) -> int:
    """Returns the number of sentence pairs; raises what `iter_parallel` raises."""
    return sum(1 for _ in iter_parallel(source_path, target_path))


def require_parallel(source_path: PathLike, target_path: PathLike) -> None:
    """Raises what `iter_parallel` raises for empty files and unequal line counts, but faster."""
    counts = []
    for path in (source_path, target_path):
        with open_binary(path) as stream:
            try:
                counts.append(sum(1 for _ in stream))
            except OSError as error:
                raise UserError(f"cannot read {path}: {reason(error)}") from None
    if counts[0] != counts[1] or counts[0] == 0:
        count_parallel(source_path, target_path)


def measure(path: PathLike) -> Measured:
    """Reads a file once, whatever bytes it holds.

    Raises:
      UserError: the file cannot be read.
    """
    digest = hashlib.sha256()
    lines = size = 0
    with open_binary(path) as stream:
        try:
            for raw in stream:
                lines += not (size == 0 and raw == _BOM)
                size += len(raw)
                digest.update(raw)
        except OSError as error:
            raise UserError(f"cannot read {path}: {reason(error)}") from None
    return Measured(lines, size, digest.hexdigest())


def file_digest(path: PathLike) -> str:
    """SHA-256 of a file, in hexadecimal.

    Raises:
      UserError: the file cannot be read.
    """
    digest = hashlib.sha256()
    with open_binary(path) as stream:
        try:
            for block in iter(lambda: stream.read(1 << 20), b""):
                digest.update(block)
        except OSError as error:
            raise UserError(f"cannot read {path}: {reason(error)}") from None
    return digest.hexdigest()


def write_lines(path: PathLike, lines: Iterable[str]) -> None:
    r"""Writes lines, each ended by `\n`, so that `path` is either as before or complete.

    Raises:
      UserError: the file cannot be written, or a line cannot be UTF-8 (a lone surrogate).
      ValueError: a line holds `\n`, which would come back as two lines.
    """
    with replacing(path) as stream:
        for number, line in enumerate(lines, start=1):
            if "\n" in line:
                raise ValueError(f"line {number} for {path} holds a line break: {line!r}")
            try:
                stream.write(line.encode("utf-8") + b"\n")
            except UnicodeEncodeError as error:
                raise UserError(
                    f"cannot write {path}: line {number} is not Unicode text: {error.reason}"
                ) from None


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """Opens a file beside `path` for writing; it takes the place of `path` if all went well.

    A device or a pipe is written to as it is: nothing can stand in for `/dev/null`.

    Raises:
      UserError: it cannot be written (no such folder, no permission, disk full).
    """
    in_place = os.path.exists(path) and not os.path.isfile(path)
    try:
        target = os.fspath(path) if in_place else os.path.realpath(path)
    except ValueError as error:  # a NUL in the name
        raise UserError(f"cannot write {path}: {reason(error)}") from None
    try:
        with open(target, "wb") if in_place else temporary.file(target) as stream:
            yield stream
    except BrokenPipeError:  # of standard output, not of this file
        raise
    except OSError as error:
        raise UserError(f"cannot write {path}: {reason(error)}") from None


def swap(unfinished: str, folder: str) -> None:
    """Puts a complete folder in another's place; a kill between the renames leaves one of both.

    What is there as `.old` alone was left by such a kill; it goes when the new one stands.
    """
    old = f"{folder}.old"
    if os.path.exists(folder):
        shutil.rmtree(old, ignore_errors=True)
        os.rename(folder, old)
    os.rename(unfinished, folder)
    shutil.rmtree(old, ignore_errors=True)
    temporary.sync(os.path.dirname(os.path.abspath(folder)))


def open_binary(path: PathLike) -> BinaryIO:
    """Opens a file for reading bytes.

    Raises:
      UserError: there is no such file, it is a directory, or it cannot be read.
    """
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a directory; a file was expected") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UserError(f"cannot read {path}: {reason(error)}") from None


def reason(error: Exception) -> str:
    """What went wrong, in the words of the operating system if it was that."""
    return getattr(error, "strerror", None) or str(error)


def _decode(raw: bytes, path: PathLike, number: int) -> str:
    if raw.endswith(b"\r\n"):
        raw = raw[:-2]
    elif raw.endswith(b"\n"):
        raw = raw[:-1]
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        if number == 1 and raw.startswith(_GZIP):
            raise UserError(f"{path} is compressed by gzip: decompress it first") from None
        utf16 = number == 1 and raw.startswith(_UTF16_BOMS)
        hint = "the file begins as UTF-16 does" if utf16 else error.reason
        raise UserError(
            f"{path}, line {number}: not UTF-8 at byte offset {error.start} of the line "
            f"(0x{raw[error.start]:02x}: {hint}); convert the file to UTF-8"
        ) from None


def _counted(path: PathLike, counts: list[int], side: int) -> Iterator[str]:
    """Yields the lines and keeps `counts[side]` at the number of those read."""
    for line in iter_lines(path):
        counts[side] += 1
        yield line


def _refuse_unequal(paths: list[PathLike], counts: list[int], sides: list[Iterator[str]]) -> None:
    for side in sides:  # read to the end, so that the message has every count
        for _ in side:
            pass
    found = ", ".join(f"{path} has {count:,}" for path, count in zip(paths, counts))
    raise UserError(
        f"unequal line counts: {found} lines; line i of each file must belong to the same pair"
    )


def _document_id(text: str, path: PathLike, number: int) -> int:
    if not _DOCUMENT_ID.fullmatch(text.strip(" \t\r")):
        raise UserError(
            f"{path}, line {number}: expected the document's id, a non-negative integer, "
            f"got {text[:40]!r}"
        )
    return int(text)
