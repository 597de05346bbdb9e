"""The files of a user's parallel text, as they were given: plain or packed, with documents or not.

Messages name these files, not the copies that `raw_corpus` writes.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tfmann.data.text_files import document_id, iter_lines, stream_lines
from tfmann.errors import UsageError, UserError
from tfmann.utils.files import open_binary


def find(prefix: str, source: str, target: str) -> list[str]:
    """Returns the files of both sides and, if it is there, the one of documents.

    Raises:
      UserError: a side is missing.
    """
    paths = []
    for suffix in (source, target, "docs"):
        candidates = [f"{prefix}.{suffix}", f"{prefix}.{suffix}.gz"]
        existing = [path for path in candidates if os.path.exists(path)]
        if not existing and suffix != "docs":
            raise UserError(f"no such file: {candidates[0]} (nor {candidates[1]})")
        paths += existing[:1]
    return paths


def refuse_folder(paths: Iterable[str], directory: str) -> None:
    """Raises UsageError if a file, or the file it links to, is in a folder that is to be written.

    A text could be lost there.
    """
    folder = os.path.realpath(directory)
    for path in paths:
        if folder in (os.path.realpath(os.path.dirname(path)),
                      os.path.dirname(os.path.realpath(path))):  # fmt: skip
            raise UsageError(
                f"{path} is in the folder that is written, and would be lost: give another --output"
            )


def refuse_replacing(names: Iterable[str], directory: str, record: Mapping[str, Any]) -> None:
    """Raises UsageError if a file to be replaced in a prepared folder is the user's own.

    Args:
      names: of the files to be replaced or removed.
      directory: the folder.
      record: of what `tfmann prepare` has written there; without one, as after a kill, all files
        count as its own.
    """
    ours = record.get("files", {})
    for name in sorted(names):
        path = os.path.join(directory, name)
        if ours and name not in ours and os.path.exists(path):
            raise UsageError(
                f"{path} is not a file that `tfmann prepare` wrote, and would be lost: move it, or "
                "give another --output"
            )


def lines(path: str) -> Iterator[str]:
    """Yields the lines of a file; raises UserError if it cannot be read."""
    if not path.endswith(".gz"):
        yield from iter_lines(path)
        return
    with open_binary(path) as packed, gzip.GzipFile(fileobj=packed) as stream:
        try:
            yield from stream_lines(stream, path)  # type: ignore[arg-type]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise UserError(f"{path} is not gzip, is damaged or cut off: {error}") from None


def require_parallel(paths: list[str]) -> None:
    """Reads the files that `find` returns.

    Raises:
      UserError: one cannot be read, they are empty or differ in length, or a line of the documents
        is no number.
    """
    counts = [sum(1 for _ in lines(path)) for path in paths]
    if len(set(counts)) > 1:
        counted = ", ".join(f"{path} has {count:,}" for path, count in zip(paths, counts))
        raise UserError(
            f"unequal line counts: {counted}; line i of each must belong to the same pair"
        )
    if not counts[0]:
        raise UserError(f"{' and '.join(paths[:2])} are empty: there is no sentence pair")
    for path in paths[2:]:
        for number, line in enumerate(lines(path), start=1):
            document_id(line, path, number)
