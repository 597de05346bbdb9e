"""Files and folders that are written under a temporary name and renamed when they are complete.

The temporary name is the target's, then `.tmp-` and eight random hexadecimal digits. A process id
would not do: containers that share a file system often have the same ones. The writer holds the
system's lock on what it writes until its process ends. A file with such a name and no lock was
left by a killed process; it is removed when the same target is written again. On a file system
without locks it stays.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from typing import BinaryIO

_SUFFIX = re.compile(r"\.tmp-[0-9a-f]{8}")


@contextlib.contextmanager
def replacement_file(target: str) -> Iterator[BinaryIO]:
    """Opens a file for writing, which replaces `target` if the block ends without an error.

    It has the permissions of the file that it replaces.

    Raises:
      OSError: it cannot be written, or be put in the place of the other; then it keeps its name.
    """
    _remove_leftovers(target)
    stream = _new_file(target)
    is_complete = False
    try:
        with stream:
            with contextlib.suppress(OSError):  # there is no file yet
                os.fchmod(stream.fileno(), stat.S_IMODE(os.stat(target).st_mode))
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            is_complete = True
            _put_file_in_place(stream.name, target)  # while it is locked
        sync_folder(os.path.dirname(target) or ".")
    finally:
        if not is_complete:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(stream.name)


def _put_file_in_place(complete: str, target: str) -> None:
    """Renames a complete file to `target`, or copies it there.

    A file that is mounted by itself, or that another user has in a folder such as /tmp, may be
    written to but not replaced.
    """
    try:
        try:
            os.replace(complete, target)
        except OSError:
            if not os.path.isfile(target):
                raise
            shutil.copyfile(complete, target)
            os.unlink(complete)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}; all of it is in {complete}") from None


@contextlib.contextmanager
def temporary_folder(target: str) -> Iterator[str]:
    """Makes a temporary folder and its parents; removes it, unless it was renamed, at the end.

    Raises:
      OSError: it cannot be made.
    """
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    _remove_leftovers(target)
    path, handle = _new_folder(target)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(handle)


def replace_folder(complete: str, target: str) -> None:
    """Renames a complete folder to `target`; a kill between the two renames leaves one of both.

    It is for folders inside a run. `swap_folder` is for those that the user names.

    A folder that exists only as `TARGET.old` was left by such a kill. It is removed once the new
    one is in place.

    Raises:
      OSError: a folder cannot be renamed.
    """
    old = f"{target}.old"
    if os.path.exists(target):
        shutil.rmtree(old, ignore_errors=True)
    _put_in_place(complete, target, old)


def swap_folder(complete: str, target: str) -> None:
    """Renames a complete folder to `target`, a name that the user chose.

    A folder that is there gets a temporary name and is removed. It does not get the name
    `TARGET.old`, as in `replace_folder`, because that may be a folder of the user. A kill between
    the two renames leaves both folders under temporary names, until the target is written again.

    Raises:
      OSError: a folder cannot be renamed.
    """
    _put_in_place(complete, target, _temporary_name(target))


def _put_in_place(complete: str, target: str, before: str) -> None:
    """Renames `complete` to `target`; what is there is renamed to `before`, then removed."""
    if os.path.exists(target):
        os.rename(target, before)
    os.rename(complete, target)
    shutil.rmtree(before, ignore_errors=True)
    sync_folder(os.path.dirname(os.path.abspath(target)))


def remove_unlocked(path: str) -> None:
    """Removes a file or folder, unless a process holds its lock or the system refuses."""
    is_folder = os.path.isdir(path)
    with contextlib.suppress(OSError):
        # Locking a file may need the right to write; a folder can be opened for reading only.
        handle = os.open(path, (os.O_RDONLY if is_folder else os.O_RDWR) | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_folder:
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
        finally:
            os.close(handle)


def sync(path: str | os.PathLike[str]) -> None:
    """Forces a file, or a folder's list of names, to disk, so that it survives a power cut.

    Raises:
      OSError: it cannot be opened or synced.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Forces a folder's list of names to disk, where the file system can: some network ones cannot.

    An error leaves the names in place, only less safe in a power cut.
    """
    with contextlib.suppress(OSError):
        sync(path)


def _remove_leftovers(target: str) -> None:
    """Removes what killed processes have left of `target`."""
    folder, name = os.path.split(target)
    with contextlib.suppress(OSError):  # there is no such folder, or it cannot be listed
        for other in os.listdir(folder or "."):
            if other.startswith(name) and _SUFFIX.fullmatch(other[len(name) :]):
                remove_unlocked(os.path.join(folder, other))


def _temporary_name(target: str) -> str:
    return f"{target}.tmp-{secrets.token_hex(4)}"


def _new_file(target: str) -> BinaryIO:
    while True:
        stream = open(_temporary_name(target), "xb")  # noqa: SIM115 (the caller closes it)
        if _lock(stream.fileno(), stream.name):
            return stream
        stream.close()


def _new_folder(target: str) -> tuple[str, int]:
    while True:
        path = _temporary_name(target)
        os.mkdir(path)
        with contextlib.suppress(FileNotFoundError):  # another process has removed it already
            handle = os.open(path, os.O_RDONLY)
            if _lock(handle, path):
                return path, handle
            os.close(handle)


def _lock(handle: int, path: str) -> bool:
    """Locks a new file or folder; returns False if another process has removed it meanwhile."""
    with contextlib.suppress(OSError):  # without locks, no process removes leftovers either
        fcntl.flock(handle, fcntl.LOCK_EX)
    return os.path.exists(path)
