"""Safe extraction of untrusted archives: all members inside the folder, or none at all.

Only plain files and folders with relative names without `..` are allowed, and the bytes that come
out are limited. Members are written to a temporary folder first and moved when all are complete.

`tarfile.data_filter` (Python 3.9.17, 3.10.12, 3.11.4) does not replace these rules: it has no limit
on bytes or headers, allows links and strips a leading `/` where the whole archive is refused here,
and knows nothing of zip.
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

from tfmann.datasets import tar
from tfmann.datasets.tar import RefusedError
from tfmann.errors import UserError
from tfmann.utils.files import PathLike, atomic_write, open_binary

MAX_EXTRACTED_BYTES = 8 << 30
MAX_MEMBERS = 100_000

# the name and content of each plain file; the size that its header claims is not trusted
_Members = Generator[tuple[str, IO[bytes]], None, None]

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 16
# Not LZMA: an archive decides how much memory it takes.
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    NotImplementedError,  # a zip method that Python cannot read
    RuntimeError,  # an encrypted zip
    OverflowError,
    ValueError,
)


def extract(
    archive: PathLike, directory: PathLike, max_bytes: int = MAX_EXTRACTED_BYTES
) -> list[Path]:
    """Extracts a tar (also .gz, .bz2, .xz), zip or .gz archive; returns the paths of its files.

    Args:
      archive: recognised by its content; a plain .gz gives one file, named without the suffix.
      directory: created if missing; files of the same names are replaced.
      max_bytes: limit on the sum of the members' sizes.

    Raises:
      UserError: the archive is damaged or of another kind, has a member that is a link or device
        or would be outside the directory, in place of a folder or below a file, or has more than
        max_bytes. The directory is then unchanged.
    """
    with open_binary(archive):
        pass  # raises an error that names the file
    target = Path(directory)
    try:
        target.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".extract-", dir=target))
    except OSError as error:
        raise UserError(f"cannot write in {directory}: {error.strerror}") from None
    try:
        names = _extract_all(archive, staging, max_bytes)
        for name in names:
            _refuse_leading_out(target, name)
            _refuse_conflict(target, name)
        for name in names:  # what can fail comes before the first replacement
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
    """Extracts one file of an archive to `path`; the other members are not checked.

    Args:
      archive: tar (also .gz, .bz2, .xz) or zip, recognised by its content.
      member: its name in the archive, without a leading `./`.
      path: the file to write, replaced when the member is complete.
      max_bytes: limit on the member's size.

    Raises:
      UserError: the archive is damaged, or has no plain file of that name, or a too large one.
    """
    with open_binary(archive):
        pass  # raises an error that names the file
    try:
        with contextlib.closing(_members(archive, member)) as members:
            for _, stream in members:
                with atomic_write(path) as output:
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


def _extract_all(archive: PathLike, staging: Path, max_bytes: int) -> list[str]:
    """Writes all members into the folder `staging`; returns their names."""
    names: dict[str, None] = {}
    bytes_left = max_bytes
    try:
        with contextlib.closing(_members(archive)) as members:
            for name, stream in members:
                if len(names) == MAX_MEMBERS:
                    raise RefusedError(f"holds more than {MAX_MEMBERS:,} files")
                if name in names:
                    raise RefusedError(f"the member {name!r} is listed twice")
                bytes_left -= _write(stream, staging / name, bytes_left, max_bytes)
                names[name] = None
    except _BROKEN as error:
        raise RefusedError(f"not a sound archive ({error or type(error).__name__})") from None
    if not names:
        raise RefusedError("holds no file")
    return list(names)


def _write(stream: IO[bytes], path: Path, bytes_left: int, max_bytes: int) -> int:
    """Writes a stream of at most `bytes_left` bytes to a file; returns their number."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "xb") as output:
        return _copy(stream, output, bytes_left, max_bytes)


def _copy(stream: IO[bytes], output: IO[bytes], bytes_left: int, max_bytes: int) -> int:
    size = 0
    while chunk := _read(stream):
        size += len(chunk)
        if size > bytes_left:
            raise RefusedError(f"holds more than {max_bytes:,} bytes")
        output.write(chunk)
    return size


def _read(stream: IO[bytes]) -> bytes:
    try:
        return stream.read(_CHUNK)
    except OSError as error:  # gzip's for a wrong checksum, not an error of writing
        raise RefusedError(f"not a sound archive ({error})") from None


def _move(staging: Path, target: Path, name: str) -> Path:
    path = target / name
    os.replace(staging / name, path)
    return path


def _refuse_leading_out(target: Path, name: str) -> None:
    """Refuses a name that an existing link in `target` leads out of it."""
    root, parent = os.path.realpath(target), os.path.realpath((target / name).parent)
    if os.path.commonpath([root, parent]) != root:
        raise RefusedError(f"{name!r} would go through a link that leads out of {target}")


def _refuse_conflict(target: Path, name: str) -> None:
    """Refuses to replace a folder by a file, or a file by a folder."""
    path = target / name
    if path.is_dir() and not path.is_symlink():
        raise RefusedError(f"{path} is a folder, and {name!r} a file")
    for parent in map(target.joinpath, list(Path(name).parents)[:-1]):  # the last is `.`
        if os.path.lexists(parent) and not parent.is_dir():
            raise RefusedError(f"{parent} is a file, and {name!r} lies in a folder of that name")


def _members(archive: PathLike, only: str | None = None) -> _Members:
    """Yields the plain files of an archive, or only the one of the name `only`."""
    if tar.is_tar(archive):  # first, because a zip is known by its end: a tar may end in one
        return _tar_members(archive, only)
    if zipfile.is_zipfile(archive):
        return _zip_members(archive, only)
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
                raise RefusedError(f"the member {member.filename!r} is neither a file nor a folder")
            if member.is_dir():
                continue
            if member.compress_type not in _ZIP_METHODS:
                raise RefusedError(f"the member {member.filename!r} is packed in an unusual way")
            with bundle.open(member) as content:
                yield name, content


def _gzip_member(archive: PathLike) -> _Members:
    name = Path(archive).name
    with gzip.open(archive) as content:
        name = name[:-3] if name.endswith(".gz") else f"{name}.out"
        yield name, cast(IO[bytes], content)


def _safe_name(name: str) -> str:
    r"""Returns a member's name in plain form; raises RefusedError if it may be outside.

    Backslashes and drive letters are refused too: other systems read them as paths.
    """
    plain = _plain_name(name)
    if name.startswith("/") or ".." in plain.split("/") or re.search(r"\\|^[A-Za-z]:", name):
        raise RefusedError(f"the member {name!r} would come to lie outside the folder")
    return plain


def _plain_name(name: str) -> str:
    """Returns a member's name without empty parts and `.`."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))
