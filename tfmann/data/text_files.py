r"""Text files of a corpus: UTF-8, one sentence on each line, two sides line by line.

A line ends at `\n` or `\r\n` and nowhere else: `str.splitlines` would also split at U+2028,
U+0085, form feeds and others, which occur inside sentences of real corpora and would shift one
side against the other.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

from tfmann.errors import UserError
from tfmann.utils.files import PathLike, atomic_write, error_reason, open_binary

NO_DOCUMENT = -1  # the document id of a sentence whose corpus has no documents

_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_GZIP = b"\x1f\x8b"
_DOCUMENT_ID = re.compile(r"\d{1,18}", re.ASCII)  # fits an int64


class Pair(NamedTuple):
    """A sentence pair and the id of its document (`NO_DOCUMENT` if there is none)."""

    source: str
    target: str
    document: int


class Measured(NamedTuple):
    """The size of a file in lines (as `iter_lines` counts them) and bytes, and its SHA-256."""

    lines: int
    bytes: int
    sha256: str


def iter_lines(path: PathLike) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 file without their ends.

    Drops one byte order mark at the start of the file. Every other character, including U+2028,
    U+0085, NUL and a single `\r`, stays. A last line without an end counts.

    Raises:
      UserError: the file cannot be read, or is not UTF-8 (names the line and the byte offset).
    """
    with open_binary(path) as stream:
        yield from stream_lines(stream, path)


def stream_lines(stream: BinaryIO, name: PathLike) -> Iterator[str]:
    """Yields the lines of a stream as `iter_lines` does; `name` is its name in errors."""
    try:
        for number, raw in enumerate(stream, start=1):
            if number == 1 and raw.startswith(_BOM):
                raw = raw[len(_BOM) :]
                if not raw:
                    return  # only the mark: an empty file, not an empty line
            yield _decode(raw, name, number)
    except OSError as error:
        raise UserError(f"cannot read {name}: {error_reason(error)}") from None


def iter_parallel(
    source_path: PathLike, target_path: PathLike, documents_path: PathLike | None = None
) -> Iterator[Pair]:
    """Yields the sentence pairs of a parallel corpus, with one pair in memory at a time.

    The documents file, if given, has a non-negative integer on every line.

    Raises:
      UserError: unequal line counts (found at the end, after the pairs that did match), an
        empty corpus, a malformed document id, or a file that `iter_lines` refuses.
    """
    paths = [source_path, target_path] + ([documents_path] if documents_path is not None else [])
    counts = [0] * len(paths)
    sides = [_counted(path, counts, side) for side, path in enumerate(paths)]
    for row in itertools.zip_longest(*sides):
        if None in row:
            _refuse_unequal(paths, counts, sides)
        document = NO_DOCUMENT
        if documents_path is not None:
            document = document_id(row[2], documents_path, counts[2])
        yield Pair(row[0], row[1], document)
    if counts[0] == 0:
        raise UserError(f"{source_path} and {target_path} are empty: there is no sentence pair")


def iter_documents(path: PathLike) -> Iterator[int]:
    """Yields the document ids of a file, one on each line.

    Raises:
      UserError: a line is not a non-negative integer.
    """
    for number, line in enumerate(iter_lines(path), start=1):
        yield document_id(line, path, number)


def read_documents(path: PathLike, text_path: PathLike, count: int) -> list[int]:
    """Reads the document ids of a text with `count` lines.

    Raises:
      UserError: there are more or fewer ids, or a line is not a non-negative integer.
    """
    documents = list(iter_documents(path))
    if len(documents) != count:
        raise UserError(
            f"unequal line counts: {text_path} has {count:,}, {path} has {len(documents):,} lines; "
            "each line needs the id of its document"
        )
    return documents


def number_lines(
    lines: Iterable[str], documents: Iterable[int] | None
) -> Iterator[tuple[str, int]]:
    """Pairs each line with the id of its document; without ids, a blank line ends a document.

    Raises:
      UserError: there are more or fewer ids than lines.
    """
    if documents is None:
        number = 0
        for line in lines:
            yield line, number
            number += not line.strip()
        return
    ids: Any = itertools.chain(documents, itertools.repeat(None))
    count = 0
    for count, (line, document) in enumerate(zip(lines, ids), start=1):
        if document is None:
            raise UserError(f"line {count} has no document id: expected one id for each line")
        yield line, document
    if next(ids) is not None:
        raise UserError(f"there are more document ids than lines: expected {count}")


def count_parallel(
    source_path: PathLike, target_path: PathLike, documents_path: PathLike | None = None
) -> int:
    """Returns the number of sentence pairs; raises what `iter_parallel` raises."""
    return sum(1 for _ in iter_parallel(source_path, target_path, documents_path))


def require_parallel(source_path: PathLike, target_path: PathLike) -> None:
    """Raises what `iter_parallel` raises for empty files and unequal line counts, only faster."""
    counts = []
    for path in (source_path, target_path):
        with open_binary(path) as stream:
            try:
                counts.append(sum(1 for _ in stream))
            except OSError as error:
                raise UserError(f"cannot read {path}: {error_reason(error)}") from None
    if counts[0] != counts[1] or counts[0] == 0:
        count_parallel(source_path, target_path)


def measure(path: PathLike) -> Measured:
    """Measures a file of any content in one pass.

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
            raise UserError(f"cannot read {path}: {error_reason(error)}") from None
    return Measured(lines, size, digest.hexdigest())


def write_lines(path: PathLike, lines: Iterable[str]) -> None:
    r"""Writes lines, each ended by `\n`, so that `path` is either unchanged or complete.

    Raises:
      UserError: the file cannot be written, or a line has no UTF-8 form (a lone surrogate).
      ValueError: a line contains `\n`, and would be read as two lines.
    """
    with atomic_write(path) as stream:
        for number, line in enumerate(lines, start=1):
            if "\n" in line:
                raise ValueError(f"line {number} for {path} contains a line break: {line!r}")
            try:
                stream.write(line.encode("utf-8") + b"\n")
            except UnicodeEncodeError as error:
                raise UserError(
                    f"cannot write {path}: line {number} is not Unicode text: {error.reason}"
                ) from None


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
    """Yields the lines of a file, and counts them in `counts[side]`."""
    for line in iter_lines(path):
        counts[side] += 1
        yield line


def _refuse_unequal(paths: list[PathLike], counts: list[int], sides: list[Iterator[str]]) -> None:
    for side in sides:  # to the end, so that the message has every count
        for _ in side:
            pass
    sizes = ", ".join(f"{path} has {count:,}" for path, count in zip(paths, counts))
    raise UserError(
        f"unequal line counts: {sizes} lines; line i of each file must belong to the same pair"
    )


def document_id(text: str, path: PathLike, number: int) -> int:
    """Returns the id on a line of a file of documents; raises UserError if there is none."""
    if not _DOCUMENT_ID.fullmatch(text.strip(" \t\r")):
        raise UserError(
            f"{path}, line {number}: expected the document's id, a non-negative integer, "
            f"got {text[:40]!r}"
        )
    return int(text)
