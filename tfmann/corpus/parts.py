"""A large file translated by several jobs: which lines are a job's, and how its part is joined.

Job I of N writes `OUT-0000I-of-0000N`, and beside it, when it is complete, `.json`: what it is a
part of and its SHA-256. The job that completes the last part joins all in order, and removes them.
Whoever finds its part already there makes it anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tfmann.corpus.documents import beginnings
from tfmann.corpus.files import iter_lines, measure, open_binary, replacing
from tfmann.errors import UsageError, UserError


class Job(NamedTuple):
    """One of `num_workers` jobs on a file."""

    jobid: int
    num_workers: int

    def part(self, path: str) -> str:
        """Where it writes its part of the file `path`."""
        return f"{path}-{self.jobid:05d}-of-{self.num_workers:05d}"


def require(jobid: int, num_workers: int) -> Job:
    """Raises UsageError if there is no such job."""
    if num_workers < 1 or not 0 <= jobid < num_workers:
        raise UsageError(
            f"jobid={jobid} with num_workers={num_workers}: jobs are numbered from 0 to "
            "num_workers - 1"
        )
    return Job(jobid, num_workers)


def cut(total: int, count: int, begins: Sequence[int] | np.ndarray | None = None) -> list[range]:
    """Cuts lines into `count` runs of about the same length; some may be empty.

    Args:
      total: how many lines there are.
      count: how many runs there are to be.
      begins: ascending, the lines before which may be cut; all if not given.
    """
    places = np.arange(total) if begins is None else np.asarray(begins, np.int64)
    places = np.append(places, total)
    wanted = np.arange(1, count) * total // count
    inner = places[np.searchsorted(places, wanted)]
    edges = [0, *inner.tolist(), total]
    return [range(begin, end) for begin, end in zip(edges, edges[1:])]


def lines_of(
    job: Job, path: str, whole_documents: bool, documents: Iterable[int] | None = None
) -> range:
    """The lines of a file, from 0, that a job translates.

    Args:
      job: which.
      path: the file.
      whole_documents: cut between documents only.
      documents: a number for the document of each line; if not given, a blank line ends one.

    Raises:
      UserError: there are not as many numbers as lines.
    """
    if not whole_documents:
        return cut(measure(path).lines, job.num_workers)[job.jobid]
    if documents is not None:
        ids, total = np.fromiter(documents, np.int64), measure(path).lines
        if len(ids) != total:
            raise UserError(
                f"{path} has {total} lines, and there are {len(ids)} documents' numbers for them"
            )
        begins = np.unique(beginnings(ids))
        return cut(len(ids), job.num_workers, begins)[job.jobid]
    blank = np.fromiter((not line.strip() for line in iter_lines(path)), bool)
    after_blank = np.ones(len(blank), bool)
    after_blank[1:] = blank[:-1]
    return cut(len(blank), job.num_workers, np.flatnonzero(after_blank))[job.jobid]


def identity(settings: Mapping[str, Any], *paths: str | None) -> str:
    """A hash of all that a translation follows from: parts with another one are not joined."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for path in paths:
        digest.update((measure(path).sha256 if path else "none").encode())
    return digest.hexdigest()


@contextlib.contextmanager
def writing(path: str, job: Job, whole: str) -> Iterator[BinaryIO]:
    """Opens a job's part of `path`; when it is complete, and the last, all are joined.

    Args:
      path: what is to come of all parts.
      job: whose part.
      whole: `identity` of what is being translated.

    Raises:
      UserError: a file cannot be written, or a part is not as its job has written it.
    """
    part = job.part(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_seal(part))
    with replacing(part) as stream:
        yield stream
    found = {"whole": whole, "sha256": measure(part).sha256}
    with replacing(_seal(part)) as stream:
        stream.write(json.dumps(found).encode())
    _join(path, job.num_workers, whole)


def strangers(path: str, count: int, whole: str) -> list[int]:
    """The jobs whose parts are complete, and of something else than `whole`."""
    seals = [_read_seal(Job(index, count).part(path)) for index in range(count)]
    return [index for index, seal in enumerate(seals) if seal.get("whole", whole) != whole]


def _seal(part: str) -> str:
    return f"{part}.json"


def _join(path: str, count: int, whole: str) -> None:
    """Joins the parts if all are there.

    Two jobs that end at once may both do so: they write the same. One whose parts the other has
    removed leaves what the other has written.
    """
    parts = [Job(index, count).part(path) for index in range(count)]
    seals = [_read_seal(part) for part in parts]
    if any(seal.get("whole") != whole for seal in seals):
        return
    try:
        with replacing(path) as stream:
            for part, seal in zip(parts, seals):
                _copy(part, seal["sha256"], stream)
    except _Removed:
        return
    for part in parts:
        for name in (_seal(part), part):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


class _Removed(Exception):
    """Another job has joined the parts meanwhile."""


def _copy(part: str, expected: str, out: BinaryIO) -> None:
    if not os.path.exists(part):
        raise _Removed
    digest = hashlib.sha256()
    with open_binary(part) as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
            out.write(block)
    if digest.hexdigest() != expected:
        job = part.rpartition("-of-")[0].rpartition("-")[2]
        raise UserError(f"{part} is not as it was written: run job {int(job)} again")


def _read_seal(part: str) -> dict[str, Any]:
    try:
        with open(_seal(part), encoding="utf-8") as stream:
            found = json.load(stream)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and "sha256" in found else {}
