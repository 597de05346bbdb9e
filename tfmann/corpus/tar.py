"""Tar archives, packed or not, member by member and in bounded memory.

`tarfile` alone reads a header of whatever length it claims, and keeps all members that it has
passed; liblzma takes the memory that a file asks it to take. Each makes gigabytes of a few MB. So
`tarfile` reads here from a stream that counts what a header takes, and keeps nothing.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import tarfile
import zlib
from collections.abc import Generator, Iterator
from typing import IO, Any

from tfmann.corpus.files import PathLike, open_binary

# Of one member, with what goes before it: long names, pax records, a map of holes.
MAX_HEADER_BYTES = 1 << 20
MAX_XZ_MEMORY = 256 << 20  # what `xz -9` has packed takes 65 MiB

_CHUNK = 1 << 16
_UNREADABLE = (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError)


class RefusedError(Exception):
    """Why an archive is not extracted."""


def is_tar(archive: PathLike) -> bool:
    """Whether a file begins as a tar, or as a packed one.

    Raises:
      RefusedError: it does, with a header that is too long.
    """
    try:
        with _opened(archive):
            return True
    except _UNREADABLE:
        return False


def members(archive: PathLike) -> Generator[tuple[tarfile.TarInfo, IO[bytes] | None], None, None]:
    """Yields every member, and the content of those that are plain files, to be read at once.

    Raises:
      RefusedError: a header is too long, or the members do not follow each other.
    """
    with _opened(archive) as (tar, stream):
        while True:
            stream.room = MAX_HEADER_BYTES
            member = tar.next()
            stream.room = None
            if member is None:
                return
            tar.members.clear()  # type: ignore[attr-defined]
            if sum(len(key) + len(value) for key, value in tar.pax_headers.items()) > (
                MAX_HEADER_BYTES
            ):
                raise RefusedError(f"its headers hold more than {MAX_HEADER_BYTES:,} bytes")
            yield member, tar.extractfile(member) if member.isfile() else None


@contextlib.contextmanager
def _opened(archive: PathLike) -> Iterator[tuple[tarfile.TarFile, _Forwards]]:
    with open_binary(archive) as file, _unpacking(file) as unpacked:
        stream = _Forwards(unpacked)
        with tarfile.TarFile(fileobj=stream, mode="r") as tar:  # type: ignore[arg-type]
            yield tar, stream


def _unpacking(file: IO[bytes]) -> Any:
    """A context in which to read a file as it was before it was packed."""
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.open(file)
    if magic.startswith(b"BZh"):
        return bz2.open(file)
    if magic == b"\xfd7zXZ\0" or magic.startswith(b"\x5d\0\0"):
        return contextlib.nullcontext(_Xz(file))
    return contextlib.nullcontext(file)


class _Forwards:
    """A stream that is read from beginning to end, as `tarfile` has it."""

    def __init__(self, stream: Any):
        """Begins where `stream` stands; the first header is read when `tarfile` opens it."""
        self._stream, self._position = stream, 0
        self.room: int | None = MAX_HEADER_BYTES  # bytes that may be read yet; None: any number

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        """Passes over what lies between, which is content that nobody wants."""
        if position < self._position:
            raise RefusedError("not a sound archive (its members overlap)")
        room, self.room = self.room, None
        while self._position < position:
            if not self.read(min(position - self._position, _CHUNK)):
                break  # tarfile looks whether there is more
        self.room = room

    def read(self, size: int) -> bytes:
        if self.room is not None:
            self.room -= size
            if self.room < 0:
                raise RefusedError(f"a header in it has more than {MAX_HEADER_BYTES:,} bytes")
        try:
            content = self._stream.read(size)
        except OSError as error:  # gzip's for a wrong checksum: not to be taken for one of writing
            raise RefusedError(f"not a sound archive ({error})") from None
        self._position += len(content)
        return content


class _Xz:
    """What xz has packed; `lzma.open` has no limit for the memory that this takes."""

    def __init__(self, file: IO[bytes]):
        self._file, self._left = file, b""
        self._decompressor = lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY)

    def read(self, size: int) -> bytes:
        """`size` bytes, or fewer at the end.

        Raises:
          RefusedError: it takes too much memory.
          lzma.LZMAError, EOFError: it is damaged.
        """
        content = bytearray()
        while len(content) < size:
            if self._decompressor.eof and not self._another():
                break
            if self._decompressor.needs_input and not self._left:
                self._left = self._file.read(_CHUNK)
                if not self._left:
                    raise EOFError("it ends too early")
            content += self._unpack(size - len(content))
        return bytes(content)

    def _unpack(self, size: int) -> bytes:
        packed, self._left = self._left, b""
        try:
            return self._decompressor.decompress(packed, size)
        except lzma.LZMAError as error:
            if "limit" in str(error):
                raise RefusedError(f"takes more than {MAX_XZ_MEMORY:,} bytes to unpack") from None
            raise

    def _another(self) -> bool:
        """Goes on to the next stream of the file, after zeros; False if there is none."""
        left = self._decompressor.unused_data.lstrip(b"\0")
        while not left and (chunk := self._file.read(_CHUNK)):
            left = chunk.lstrip(b"\0")
        if left:
            self._decompressor = lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY)
            self._left = left
        return bool(left)
