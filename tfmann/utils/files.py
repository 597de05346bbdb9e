"""Reading and writing of single files, with errors that a user understands."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Union

from tfmann.errors import UserError
from tfmann.utils import atomic_files

PathLike = Union[str, "os.PathLike[str]"]

_NUMBERS = re.compile(r"\[\n\s+(-?\d[^\]\[{\"]*)\n\s+\]")  # a list of numbers, each on its line
_STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}
_DESCRIPTOR = re.compile("/(?:dev|proc/self)/fd/([0-9]+)")
_BLOCK = 1 << 20  # bytes read at a time


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
        raise UserError(f"cannot read {path}: {error_reason(error)}") from None


def read_bytes(path: PathLike) -> bytes:
    """Returns the content of a file; raises UserError if it cannot be read."""
    with open_binary(path) as stream:
        return stream.read()


@contextlib.contextmanager
def atomic_write(path: PathLike) -> Iterator[BinaryIO]:
    """Opens a temporary file for writing, which replaces `path` if the block ends without an error.

    A device or a pipe, such as `/dev/null`, is written to directly, and so is an open descriptor,
    such as `/dev/stdout`, even if it is of a file: its other content stays.

    Raises:
      UserError: it cannot be written (no such folder, no permission, disk full).
    """
    try:
        with _open_target(path) as stream:
            yield stream
    except BrokenPipeError:  # of standard output, not of this file
        raise
    except OSError as error:
        raise UserError(f"cannot write {path}: {error_reason(error)}") from None


def _open_target(path: PathLike) -> contextlib.AbstractContextManager[BinaryIO]:
    descriptor = open_descriptor(path)
    if descriptor is not None:
        return os.fdopen(os.dup(descriptor), "wb")
    if os.path.exists(path) and not os.path.isfile(path):
        return open(path, "wb")
    try:
        return atomic_files.replacement_file(os.path.realpath(path))
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, str(error)) from None


def open_descriptor(path: PathLike) -> int | None:
    """Returns the number of the open descriptor that a path names; None for any other path."""
    name = os.fspath(path)
    if name in _STANDARD:
        return _STANDARD[name]
    match = _DESCRIPTOR.fullmatch(name)
    return int(match[1]) if match else None


def write_json(path: PathLike, value: Any, indent: int | None = 1) -> None:
    """Writes a value as JSON; raises UserError if the file cannot be written."""
    with atomic_write(path) as stream:
        stream.write(json.dumps(value, indent=indent).encode())


def readable_json(value: Any) -> str:
    """Returns indented JSON, with a list of numbers on one line.

    No string can look like one: in JSON its line ends are escaped.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False)
    return _NUMBERS.sub(lambda match: f"[{' '.join(match[1].split())}]", text)


def read_json_object(path: PathLike) -> dict[str, Any]:
    """Returns the object of a JSON file; an empty one if there is none, or it cannot be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def file_digest(path: PathLike) -> str:
    """Returns the SHA-256 of a file, in hexadecimal.

    Raises:
      UserError: the file cannot be read.
    """
    with open_binary(path) as stream:
        try:
            return stream_digest(stream)
        except OSError as error:
            raise UserError(f"cannot read {path}: {error_reason(error)}") from None


def stream_digest(stream: BinaryIO, copy_to: BinaryIO | None = None) -> str:
    """Returns the SHA-256 of the rest of a stream, in hexadecimal; copies it if `copy_to` is given.

    Raises:
      OSError: the one cannot be read, or the other not be written.
    """
    digest = hashlib.sha256()
    for block in iter(lambda: stream.read(_BLOCK), b""):
        digest.update(block)
        if copy_to is not None:
            copy_to.write(block)
    return digest.hexdigest()


def error_reason(error: Exception) -> str:
    """Returns the operating system's description of an error if it has one, else its message."""
    return getattr(error, "strerror", None) or str(error)
