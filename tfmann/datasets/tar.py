"""Tar archives, compressed or not, read member by member in bounded memory.

`tarfile` alone reads headers of any length and remembers all members, and liblzma allocates as
much memory as a file requests: each can turn a few MB into gigabytes, and `tarfile.data_filter`
runs only after the header is read. Here `tarfile` reads from a stream that limits headers, and
remembers nothing.
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

from tfmann.utils.files import PathLike, open_binary

# Of one member, with its long names, pax records and map of holes.
MAX_HEADER_BYTES = 1 << 20
MAX_XZ_MEMORY = 256 << 20  # output of `xz -9` takes 65 MiB

_CHUNK = 1 << 16
_UNREADABLE = (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError)


class RefusedError(Exception):
    """An archive is not extracted; the message says why."""


def is_tar(archive: PathLike) -> bool:
    """Returns whether a file starts as a tar archive, compressed or not.

    Raises:
      RefusedError: it does, but its first header is too long.
    """
    try:
        with _opened(archive):
            return True
    except _UNREADABLE:
        return False


def members(archive: PathLike) -> Generator[tuple[tarfile.TarInfo, IO[bytes] | None], None, None]:
    """Yields every member with its content, or None if it is no plain file; read it at once.

    Raises:
      RefusedError: a header is too long, or the members do not follow each other.
    """
    with _opened(archive) as (tar, stream):
        while True:
            stream.bytes_left = MAX_HEADER_BYTES
            member = tar.next()
            stream.bytes_left = None
            if member is None:
                return
            tar.members.clear()  # type: ignore[attr-defined]
            if sum(len(key) + len(value) for key, value in tar.pax_headers.items()) > (
                MAX_HEADER_BYTES
            ):
                raise RefusedError(f"its headers hold more than {MAX_HEADER_BYTES:,} bytes")
            yield member, tar.extractfile(member) if member.isfile() else None


@contextlib.contextmanager
def _opened(archive: PathLike) -> Iterator[tuple[tarfile.TarFile, _ForwardStream]]:
    with open_binary(archive) as file, _decompressed(file) as unpacked:
        stream = _ForwardStream(unpacked)
        with tarfile.TarFile(fileobj=stream, mode="r") as tar:  # type: ignore[arg-type]
            yield tar, stream


def _decompressed(file: IO[bytes]) -> Any:
    """Returns a context manager with the decompressed content of a file."""
    magic = file.read(6)
    file.seek(0)
    if magic.startswith(b"\x1f\x8b"):
        return gzip.open(file)
    if magic.startswith(b"BZh"):
        return bz2.open(file)
    if magic == b"\xfd7zXZ\0" or magic.startswith(b"\x5d\0\0"):
        return contextlib.nullcontext(_XzStream(file))
    return contextlib.nullcontext(file)


class _ForwardStream:
    """A stream for `tarfile` that is read in one direction, with a limit on what a header takes."""

    def __init__(self, stream: Any):
        """Starts at the position of `stream`; `tarfile` reads the first header when it opens it."""
        self._stream, self._position = stream, 0
        self.bytes_left: int | None = MAX_HEADER_BYTES  # None: no limit

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> None:
        """Skips to a later position, past content that was not read."""
        if position < self._position:
            raise RefusedError("not a sound archive (its members overlap)")
        limit, self.bytes_left = self.bytes_left, None
        while self._position < position:
            if not self.read(min(position - self._position, _CHUNK)):
                break  # tarfile checks for the end itself
        self.bytes_left = limit

    def read(self, size: int) -> bytes:
        if self.bytes_left is not None:
            self.bytes_left -= size
            if self.bytes_left < 0:
                raise RefusedError(f"a header in it has more than {MAX_HEADER_BYTES:,} bytes")
        try:
            content = self._stream.read(size)
        except OSError as error:  # gzip's for a wrong checksum, not an error of writing
            raise RefusedError(f"not a sound archive ({error})") from None
        self._position += len(content)
        return content


class _XzStream:
    """The decompressed content of an xz file; `lzma.open` cannot limit the memory."""

    def __init__(self, file: IO[bytes]):
        self._file, self._left = file, b""
        self._decompressor = lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY)

    def read(self, size: int) -> bytes:
        """Returns `size` bytes, or fewer at the end.

        Raises:
          RefusedError: it needs too much memory.
          lzma.LZMAError, EOFError: it is damaged.
        """
        content = bytearray()
        while len(content) < size:
            if self._decompressor.eof and not self._next_stream():
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

    def _next_stream(self) -> bool:
        """Moves to the next stream of the file, after zeros; returns False if there is none."""
        left = self._decompressor.unused_data.lstrip(b"\0")
        while not left and (chunk := self._file.read(_CHUNK)):
            left = chunk.lstrip(b"\0")
        if left:
            self._decompressor = lzma.LZMADecompressor(memlimit=MAX_XZ_MEMORY)
            self._left = left
        return bool(left)
