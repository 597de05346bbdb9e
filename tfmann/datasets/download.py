"""Download of one file of a manifest: from mirrors in order, resumed, and checked.

Bytes arrive in `NAME.part`. After a broken connection the next attempt, also that of a later run,
continues from its end; a part that fails its checks is removed. The `pooch` library has neither
resumption nor mirrors nor checks of line counts, which are most of this module.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, BinaryIO

from tfmann.data.text_files import measure
from tfmann.datasets.manifest import FileEntry
from tfmann.errors import UserError

_ATTEMPTS = 3  # per mirror; each continues where the last stopped
_TIMEOUT = 30.0  # seconds without a byte
_CHUNK = 1 << 16


class _MirrorError(Exception):
    """A mirror does not deliver the file; `reached` is whether it answered at all."""

    def __init__(self, reason: str, reached: bool = True) -> None:
        super().__init__(reason)
        self.reached = reached


class _StoppedEarlyError(Exception):
    """A transfer ended early; `lost` is whether it was lost on the way and may come again."""

    def __init__(self, reason: str, lost: bool) -> None:
        super().__init__(reason)
        self.lost = lost


def problem_with(path: str, entry: FileEntry) -> str | None:
    """Returns how a file differs from the published one, or None if no check fails."""
    measured = measure(path)
    if entry.sha256 is not None:
        if measured.sha256 != entry.sha256:
            return f"its SHA-256 is {measured.sha256}, expected {entry.sha256}"
        return None  # the hash decides, sizes add nothing
    if entry.bytes is not None and measured.bytes != entry.bytes:
        return f"it has {measured.bytes:,} bytes, expected {entry.bytes:,}"
    if entry.lines is not None and measured.lines != entry.lines:
        return f"it has {measured.lines:,} lines, expected {entry.lines:,}"
    return None


def put_in_place(new: str, path: str) -> None:
    """Moves a file that passed its checks to `path`.

    A file that is there stays as `path`.old, or `path`.old2 and so on if there is one already.
    """
    if os.path.isfile(path):
        names = (f"{path}.old{number}" for number in itertools.chain([""], itertools.count(2)))
        old = next(name for name in names if not os.path.lexists(name))
        os.replace(path, old)
        print(f"{path} was not as published; it is {old} now", file=sys.stderr, flush=True)
    os.replace(new, path)


def download(entry: FileEntry, path: str) -> None:
    """Downloads a file; replaces `path`, as `put_in_place` does, only if it passes its checks.

    Raises:
      UserError: no mirror delivered the right file (names each with its failure), or the disk is
        full.
    """
    part = f"{path}.part"
    failures: list[tuple[str, _MirrorError]] = []
    for url in entry.urls:
        try:
            _from_mirror(url, part, entry)
            put_in_place(part, path)
            return
        except _MirrorError as failure:
            failures.append((url, failure))
        except OSError as error:
            Path(part).unlink(missing_ok=True)
            raise UserError(f"cannot write {path}: {error.strerror}") from None
    raise UserError(f"cannot download {entry.path}: {_summary(failures, part)}")


def _summary(failures: list[tuple[str, _MirrorError]], part: str) -> str:
    if not any(failure.reached for _, failure in failures):
        hosts = dict.fromkeys(
            f"{urllib.parse.urlsplit(url).netloc}: {why}" for url, why in failures
        )
        return f"no server could be reached; this machine seems to be offline ({'; '.join(hosts)})"
    lines = [f"\n  {url}: {why}" for url, why in failures]
    if os.path.exists(part):
        lines.append(
            f"\n  {os.path.getsize(part):,} bytes are kept; run again to continue from there"
        )
    return "".join(lines)


def _from_mirror(url: str, part: str, entry: FileEntry) -> None:
    """Downloads the complete and checked file to `part`, or raises _MirrorError."""
    stopped = None
    for _ in range(_ATTEMPTS):
        offset = os.path.getsize(part) if os.path.exists(part) else 0
        try:
            _transfer(url, part, offset, entry)
        except _StoppedEarlyError as error:
            stopped = error
            continue
        problem = problem_with(part, entry)
        if problem is None:
            return
        Path(part).unlink(missing_ok=True)
        if not offset:
            raise _MirrorError(f"got another file: {problem}")
        # The part may be of another version of the file: try once more, from the start.
    if stopped is None or not stopped.lost:
        Path(part).unlink(missing_ok=True)  # this server cannot complete it
    raise _MirrorError(str(stopped or "got another file each time"))


def _transfer(url: str, part: str, offset: int, entry: FileEntry) -> None:
    """Requests the file from byte `offset` on; appends to `part`, or starts it again."""
    with contextlib.closing(_open(url, offset)) as response:
        if response.status == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # `part` is complete or of another version: the check decides
        if response.status == http.client.PARTIAL_CONTENT:
            if not response.headers.get("Content-Range", "").startswith(f"bytes {offset}-"):
                Path(part).unlink(missing_ok=True)
                raise _StoppedEarlyError("the server sent another range than requested", lost=False)
        else:
            offset = 0  # the server sends the whole file
        length = response.headers.get("Content-Length", "")
        expected = offset + int(length) if length.isdigit() else None
        with open(part, "ab" if offset else "wb") as stream:
            received = offset + _copy(response, stream, entry, offset, expected)
            stream.flush()
            os.fsync(stream.fileno())
    too_long = entry.bytes is not None and received > entry.bytes
    if expected is not None and received < expected and not too_long:
        # A server that has continued can do so again; a length that is wrong gives no more bytes.
        continued = received > offset > 0
        raise _StoppedEarlyError(
            f"it ended after {received:,} of {expected:,} bytes", lost=continued
        )


def _open(url: str, offset: int) -> Any:
    # identity: a compressed answer would have another length and other offsets.
    headers = {"User-Agent": "tfmann", "Accept-Encoding": "identity"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    try:
        response = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=_TIMEOUT
        )
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and offset:
            return error
        with error:
            raise _MirrorError(f"HTTP {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        refused = isinstance(error.reason, ssl.SSLError)  # it did answer
        raise _MirrorError(_words(error.reason), reached=refused) from None
    except (http.client.HTTPException, ValueError) as error:
        raise _MirrorError(f"no HTTP answer: {_words(error)}") from None
    except OSError as error:
        raise _MirrorError(_words(error), reached=False) from None
    if response.status not in (http.client.OK, http.client.PARTIAL_CONTENT):
        with response:
            raise _MirrorError(f"HTTP {response.status}")
    return response


def _copy(
    response: Any, stream: BinaryIO, entry: FileEntry, offset: int, expected: int | None
) -> int:
    """Copies the body, with a progress bar on a terminal; returns the number of bytes."""
    from tqdm import tqdm

    copied = 0
    with tqdm(
        desc=entry.path,
        total=expected,
        initial=offset,
        unit="B",
        unit_scale=True,
        disable=not sys.stderr.isatty(),
    ) as bar:
        while True:
            try:
                chunk = response.read(_CHUNK)
            except http.client.IncompleteRead as error:
                stream.write(error.partial)
                if expected is None:  # the caller has no length to check
                    raise _StoppedEarlyError(
                        f"it ended after {offset + copied + len(error.partial):,} bytes", lost=True
                    ) from None
                return copied + len(error.partial)
            except (OSError, http.client.HTTPException) as error:
                raise _StoppedEarlyError(
                    f"the connection broke: {_words(error)}", lost=True
                ) from None
            if not chunk:
                return copied
            stream.write(chunk)
            copied += len(chunk)
            bar.update(len(chunk))
            if entry.bytes is not None and offset + copied > entry.bytes:
                return copied  # too long already: the check will fail


def _words(error: Any) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)
