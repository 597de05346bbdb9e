"""Archives made by others: nothing leaves the folder, nothing comes half.

`tarfile` learned to filter members in Python 3.12 only, so the rules are written out here:
plain files and folders, relative names without `..`, and a limit on what comes out in all.
Members go to a folder beside first and move into place when all of them are there.
"""

from __future__ import annotations

import contextlib
import gzip
import lzma
import os
import re
import shutil
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Generator
from pathlib import Path
from typing import IO, cast

from tfmann.corpus import tar
from tfmann.corpus.files import PathLike, open_binary, replacing
from tfmann.corpus.tar import RefusedError
from tfmann.errors import UserError

MAX_EXTRACTED_BYTES = 8 << 30
MAX_MEMBERS = 100_000

# name and content of every plain file; the size an archive claims is not asked for
_Members = Generator[tuple[str, IO[bytes]], None, None]

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 16
# Not LZMA, which takes the memory that a file asks it to take.
_ZIP_KINDS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,  # a zip compression that Python does not know
    RuntimeError,  # an encrypted zip
    OverflowError,
    ValueError,
)


def extract(
    archive: PathLike, directory: PathLike, max_bytes: int = MAX_EXTRACTED_BYTES
) -> list[Path]:
    """Extracts a tar (also .gz, .bz2, .xz), zip or .gz archive; returns the files it held.

    Args:
      archive: recognised by its content; a lone .gz gives one file, named without the ending.
      directory: made if need be; files of the same names are replaced.
      max_bytes: greatest sum of the sizes of all members.

    Raises:
      UserError: the archive is broken or none of these, has a member that would come to lie
        outside the directory, in place of a folder or in a file, or is a link or device, or holds
        more than max_bytes. Nothing in the directory is changed then.
    """
    with open_binary(archive):
        pass  # says what is wrong with the name, if anything
    target = Path(directory)
    try:
        target.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".extract-", dir=target))
    except OSError as error:
        raise UserError(f"cannot write in {directory}: {error.strerror}") from None
    try:
        names = _unpack(archive, staging, max_bytes)
        for name in names:
            _refuse_link_on_the_way(target, name)
            _refuse_what_stands_there(target, name)
        for name in names:  # whatever can fail is done before the first file is replaced
            (target / name).parent.mkdir(parents=True, exist_ok=True)
        return [_move(staging, target, name) for name in names]
    except RefusedError as error:
        raise UserError(f"{archive}: {error}; nothing was extracted") from None
    except OSError as error:
        raise UserError(f"cannot extract {archive}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def extract_member(
    archive: PathLike, member: str, path: PathLike, max_bytes: int = MAX_EXTRACTED_BYTES
) -> None:
    """Extracts one file of an archive to `path`; the other members are not judged.

    Args:
      archive: tar (also .gz, .bz2, .xz) or zip, recognised by its content.
      member: its name in there, without `./` before it.
      path: replaced when the whole member has been read.
      max_bytes: greatest size of the member.

    Raises:
      UserError: the archive is broken, has no plain file of that name, or it is too big.
    """
    with open_binary(archive):
        pass  # says what is wrong with the name, if anything
    try:
        with contextlib.closing(_members(archive, member)) as members:
            for _, stream in members:
                with replacing(path) as output:
                    _copy(stream, output, max_bytes, max_bytes)
                return
        raise RefusedError(f"there is no {member!r} in it")
    except RefusedError as error:
        raise UserError(f"{archive}: {error}") from None
    except _BROKEN as error:
        raise UserError(
            f"{archive}: not a sound archive ({error or type(error).__name__})"
        ) from None
    except OSError as error:
        raise UserError(f"cannot extract {archive}: {error.strerror or error}") from None


def _unpack(archive: PathLike, staging: Path, max_bytes: int) -> list[str]:
    """Writes all members into `staging`, which nobody else knows; returns their names."""
    names: dict[str, None] = {}
    room = max_bytes
    try:
        with contextlib.closing(_members(archive)) as members:
            for name, stream in members:
                if len(names) == MAX_MEMBERS:
                    raise RefusedError(f"holds more than {MAX_MEMBERS:,} files")
                if name in names:
                    raise RefusedError(f"the member {name!r} stands twice")
                room -= _write(stream, staging / name, room, max_bytes)
                names[name] = None
    except _BROKEN as error:
        raise RefusedError(f"not a sound archive ({error or type(error).__name__})") from None
    if not names:
        raise RefusedError("holds no file")
    return list(names)


def _write(stream: IO[bytes], path: Path, room: int, max_bytes: int) -> int:
    """Copies at most `room` bytes; returns their number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as output:
        return _copy(stream, output, room, max_bytes)


def _copy(stream: IO[bytes], output: IO[bytes], room: int, max_bytes: int) -> int:
    size = 0
    while chunk := _read(stream):
        size += len(chunk)
        if size > room:
            raise RefusedError(f"holds more than {max_bytes:,} bytes")
        output.write(chunk)
    return size


def _read(stream: IO[bytes]) -> bytes:
    try:
        return stream.read(_CHUNK)
    except OSError as error:  # gzip's for a wrong checksum: not to be taken for one of writing
        raise RefusedError(f"not a sound archive ({error})") from None


def _move(staging: Path, target: Path, name: str) -> Path:
    path = target / name
    os.replace(staging / name, path)
    return path


def _refuse_link_on_the_way(target: Path, name: str) -> None:
    """A link that lies in `target` already may lead a harmless name out of it."""
    root, parent = os.path.realpath(target), os.path.realpath((target / name).parent)
    if os.path.commonpath([root, parent]) != root:
        raise RefusedError(f"{name!r} would go through a link that leads out of {target}")


def _refuse_what_stands_there(target: Path, name: str) -> None:
    """A file takes the place of no folder, nor a folder that of a file."""
    path = target / name
    if path.is_dir() and not path.is_symlink():
        raise RefusedError(f"{path} is a folder, and {name!r} a file")
    for parent in map(target.joinpath, list(Path(name).parents)[:-1]):  # the last is `.`
        if os.path.lexists(parent) and not parent.is_dir():
            raise RefusedError(f"{parent} is a file, and {name!r} lies in a folder of that name")


def _members(archive: PathLike, only: str | None = None) -> _Members:
    """Yields the plain files of an archive, or the one that is called `only`."""
    if zipfile.is_zipfile(archive):
        return _zip_members(archive, only)
    if tar.is_tar(archive):
        return _tar_members(archive, only)
    with open_binary(archive) as stream:
        if stream.read(2) == _GZIP_MAGIC:
            return _gzip_member(archive)
    raise RefusedError("expected a tar, zip or gz archive")


def _tar_members(archive: PathLike, only: str | None) -> _Members:
    with contextlib.closing(tar.members(archive)) as members:
        for member, content in members:
            if only not in (None, _plain_name(member.name)):
                continue
            name = _safe_name(member.name)
            if member.isdir():
                continue
            if content is None:
                raise RefusedError(f"the member {member.name!r} is neither a file nor a folder")
            yield name, content


def _zip_members(archive: PathLike, only: str | None) -> _Members:
    with zipfile.ZipFile(archive) as bundle:
        for member in bundle.infolist():
            if only not in (None, _plain_name(member.filename)):
                continue
            name = _safe_name(member.filename)
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise RefusedError(
                    f"the member {member.filename!r} is neither a file nor a folder"
                )
            if member.is_dir():
                continue
            if member.compress_type not in _ZIP_KINDS:
                raise RefusedError(f"the member {member.filename!r} is packed in an unusual way")
            with bundle.open(member) as content:
                yield name, content


def _gzip_member(archive: PathLike) -> _Members:
    name = Path(archive).name
    with gzip.open(archive) as content:
        name = name[:-3] if name.endswith(".gz") else f"{name}.out"
        yield name, cast(IO[bytes], content)


def _safe_name(name: str) -> str:
    r"""Returns a member's name in plain form; raises RefusedError if it is not plainly inside.

    Backslashes and drive letters are refused too: they separate folders on other systems.
    """
    plain = _plain_name(name)
    if name.startswith("/") or ".." in plain.split("/") or re.search(r"\\|^[A-Za-z]:", name):
        raise RefusedError(f"the member {name!r} would come to lie outside the folder")
    return plain


def _plain_name(name: str) -> str:
    """Returns a member's name without empty parts and `.`."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))
