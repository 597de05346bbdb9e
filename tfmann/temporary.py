"""Files and folders that are written under a temporary name, and then take their place.

The temporary name is the target's, `.tmp-` and eight random digits. Process ids will not do,
since those of containers that share a file system are often the same. Whoever writes holds the
system's lock on what it writes, and the lock ends with the process. What has such a name and no
lock was left by a kill; it goes when the same target is written again. Where a file system has no
locks, it stays.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from typing import BinaryIO

_SUFFIX = re.compile(r"\.tmp-[0-9a-f]{8}")


@contextlib.contextmanager
def file(target: str) -> Iterator[BinaryIO]:
    """Opens a file for writing that takes the place of `target` if all went well.

    Raises:
      OSError: it cannot be written.
    """
    _sweep(target)
    stream = _new_file(target)
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            os.replace(stream.name, target)  # while it is locked
        with contextlib.suppress(OSError):  # a system may not do this for a folder
            sync(os.path.dirname(target) or ".")
    finally:
        with contextlib.suppress(FileNotFoundError):  # it has taken its place
            os.unlink(stream.name)


@contextlib.contextmanager
def folder(target: str) -> Iterator[str]:
    """Makes a temporary folder, and those it lies in; what is left of it in the end goes.

    Raises:
      OSError: it cannot be made.
    """
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    _sweep(target)
    path, handle = _new_folder(target)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def discard(path: str) -> None:
    """Removes a file or folder, unless a process holds its lock or the system refuses."""
    is_folder = os.path.isdir(path)
    with contextlib.suppress(OSError):
        # A lock on a file may need the right to write, a folder can only be read.
        handle = os.open(path, (os.O_RDONLY if is_folder else os.O_RDWR) | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_folder:
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
        finally:
            os.close(handle)


def _sweep(target: str) -> None:
    """Removes what killed processes have left of `target`."""
    place, name = os.path.split(target)
    with contextlib.suppress(OSError):  # there is no such folder, or it cannot be listed
        for other in os.listdir(place or "."):
            if other.startswith(name) and _SUFFIX.fullmatch(other[len(name) :]):
                discard(os.path.join(place, other))


def sync(path: str | os.PathLike[str]) -> None:
    """Has a file, or a folder's list of names, on disk, so that a power cut loses none."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _new_name(target: str) -> str:
    return f"{target}.tmp-{secrets.token_hex(4)}"


def _new_file(target: str) -> BinaryIO:
    while True:
        stream = open(_new_name(target), "xb")  # noqa: SIM115 (the caller closes it)
        if _lock(stream.fileno(), stream.name):
            return stream
        stream.close()


def _new_folder(target: str) -> tuple[str, int]:
    while True:
        path = _new_name(target)
        os.mkdir(path)
        with contextlib.suppress(FileNotFoundError):  # swept already
            handle = os.open(path, os.O_RDONLY)
            if _lock(handle, path):
                return path, handle
            os.close(handle)


def _lock(handle: int, path: str) -> bool:
    """Locks what was just made; False where somebody has swept it away in between."""
    with contextlib.suppress(OSError):  # a file system without locks: nobody sweeps there either
        fcntl.flock(handle, fcntl.LOCK_EX)
    return os.path.exists(path)
