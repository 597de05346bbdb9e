"""Shards of a large file that several jobs translate: a job's lines, and joining the outputs.

Job I of N writes `OUT-0000I-of-0000N`, and when that is complete a `.json` next to it, with the
shard's SHA-256 and a fingerprint of the inputs. The job that completes the last shard joins all in
order and removes them. A job whose shard already exists writes it again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tfmann.data.documents import document_starts
from tfmann.data.text_files import iter_lines, measure, number_lines
from tfmann.errors import UsageError, UserError
from tfmann.utils.files import (
    atomic_write,
    file_digest,
    open_binary,
    read_json_object,
    stream_digest,
    write_json,
)


class Job(NamedTuple):
    """One of `num_workers` jobs on a file."""

    jobid: int
    num_workers: int

    def shard_path(self, path: str) -> str:
        """Returns the path of the job's shard of `path`."""
        return f"{path}-{self.jobid:05d}-of-{self.num_workers:05d}"


def require_job(jobid: int, num_workers: int) -> Job:
    """Returns the job; raises UsageError if there is none of that number."""
    if num_workers < 1 or not 0 <= jobid < num_workers:
        raise UsageError(
            f"jobid={jobid} with num_workers={num_workers}: jobs are numbered from 0 to "
            "num_workers - 1"
        )
    return Job(jobid, num_workers)


def split_lines(
    total: int, count: int, boundaries: Sequence[int] | np.ndarray | None = None
) -> list[range]:
    """Splits lines into consecutive ranges of about equal length; some may be empty.

    Args:
      total: number of lines.
      count: number of ranges.
      boundaries: ascending, the lines at which a range may begin; None for any line.
    """
    allowed = np.arange(total) if boundaries is None else np.asarray(boundaries, np.int64)
    allowed = np.append(allowed, total)
    even = np.arange(1, count) * total // count
    inner = allowed[np.searchsorted(allowed, even)]
    edges = [0, *inner.tolist(), total]
    return [range(begin, end) for begin, end in zip(edges, edges[1:])]


def shard_lines(
    job: Job, path: str, whole_documents: bool, documents: Iterable[int] | None = None
) -> range:
    """Returns the lines of a file, from 0, that a job translates.

    Args:
      job: the job.
      path: the file.
      whole_documents: split between documents only.
      documents: the document id of each line; if not given, a blank line ends a document.

    Raises:
      UserError: there are more or fewer ids than lines.
    """
    if not whole_documents:
        return split_lines(measure(path).lines, job.num_workers)[job.jobid]
    if documents is None:
        numbered = number_lines(iter_lines(path), None)
        ids = np.fromiter((number for _, number in numbered), np.int64)
    else:
        ids, total = np.fromiter(documents, np.int64), measure(path).lines
        if len(ids) != total:
            raise UserError(
                f"{path} has {total} lines, and there are {len(ids)} documents' numbers for them"
            )
    boundaries = np.unique(document_starts(ids))
    return split_lines(len(ids), job.num_workers, boundaries)[job.jobid]


def input_fingerprint(settings: Mapping[str, Any], *paths: str | None) -> str:
    """Returns a hash of all that decides a translation; shards of different ones are not joined."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for path in paths:
        digest.update((file_digest(path) if path else "none").encode())
    return digest.hexdigest()


@contextlib.contextmanager
def write_shards(
    paths: Sequence[str], job: Job, fingerprint: str
) -> Iterator[tuple[BinaryIO, ...]]:
    """Opens a job's shards of some outputs for writing; the last job to end joins all shards.

    Args:
      paths: the files that all shards make up.
      job: the job whose shards they are.
      fingerprint: `input_fingerprint` of what is being translated.

    Raises:
      UserError: a file cannot be written, or a shard has changed since its job wrote it.
    """
    shards = [job.shard_path(path) for path in paths]
    for shard in shards:
        Path(_record_path(shard)).unlink(missing_ok=True)
    with contextlib.ExitStack() as stack:
        yield tuple(stack.enter_context(atomic_write(shard)) for shard in shards)
    for shard in shards:
        record = {"whole": fingerprint, "sha256": file_digest(shard)}
        write_json(_record_path(shard), record, indent=None)
    _join(paths, job.num_workers, fingerprint)


def conflicting_jobs(path: str, count: int, fingerprint: str) -> list[int]:
    """Returns the jobs whose shards are complete, but of other inputs."""
    records = [_read_record(Job(index, count).shard_path(path)) for index in range(count)]
    return [
        index
        for index, record in enumerate(records)
        if record.get("whole", fingerprint) != fingerprint
    ]


def _join(paths: Sequence[str], count: int, fingerprint: str) -> None:
    """Joins the shards of all outputs if they are complete.

    Two jobs that end at the same time may both do so, and write the same bytes. If the other job
    has already removed the shards, its result stays. A job that is killed while it removes them
    leaves a record of the outputs, by which the same job, run again, removes the others.
    """
    shards = {path: [Job(i, count).shard_path(path) for i in range(count)] for path in paths}
    joined = f"{paths[0]}-joined-of-{count:05d}.json"
    if not _were_joined(paths, joined, fingerprint):
        records = {path: [_read_record(shard) for shard in shards[path]] for path in paths}
        if any(r.get("whole") != fingerprint for path in paths for r in records[path]):
            return
        try:
            for path in paths:
                with atomic_write(path) as stream:
                    for shard, record in zip(shards[path], records[path]):
                        _copy(shard, record["sha256"], stream)
        except _AlreadyJoinedError:
            return
        digests = [file_digest(path) for path in paths]
        write_json(joined, {"whole": fingerprint, "sha256": digests}, indent=None)
    for shard in (shard for path in paths for shard in shards[path]):
        _remove(_record_path(shard))
        _remove(shard)
    _remove(joined)


def _were_joined(paths: Sequence[str], joined: str, fingerprint: str) -> bool:
    """Returns whether a job has joined the outputs, and was killed while it removed the shards."""
    record = read_json_object(joined)
    if record.get("whole") != fingerprint or not all(map(os.path.isfile, paths)):
        return False
    return record.get("sha256") == [file_digest(path) for path in paths]


def _remove(path: str) -> None:
    Path(path).unlink(missing_ok=True)


class _AlreadyJoinedError(Exception):
    """Another job has joined and removed the shards meanwhile."""


def _copy(shard: str, expected: str, out: BinaryIO) -> None:
    try:
        with open_binary(shard) as stream:
            digest = stream_digest(stream, copy_to=out)
    except UserError:
        if not os.path.exists(shard):
            raise _AlreadyJoinedError from None
        raise
    if digest != expected:
        job = shard.rpartition("-of-")[0].rpartition("-")[2]
        raise UserError(f"{shard} has changed since it was written: run job {int(job)} again")


def _record_path(shard: str) -> str:
    return f"{shard}.json"


def _read_record(shard: str) -> dict[str, Any]:
    """Returns the record of a complete shard, else an empty one."""
    record = read_json_object(_record_path(shard))
    return record if "sha256" in record else {}
