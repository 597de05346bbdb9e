"""Parallel text to ids once, into memory-mapped arrays that no corpus is too long for.

A folder holds per side the ids of all lines one after the other (int32) and where each line begins
(int64), and the document of each pair (int64). Its name is a hash of the text, the vocabularies and
the segmentation: changed text is encoded anew, unchanged text never. Before the arrays are used
they are compared with their SHA-256, and made anew if a bit is not as it was.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shutil
from array import array
from typing import Callable, NamedTuple

import numpy as np

from tfmann import temporary
from tfmann.corpus.files import file_digest, iter_parallel, reason
from tfmann.corpus.text import Languages
from tfmann.errors import UserError

_FORMAT = 1  # raise it when the arrays' layout changes
_FLUSH = 1 << 20  # ids kept in memory before they are written
_FILES = ("source.ids", "source.starts", "target.ids", "target.starts", "documents")
_SUMS = "sha256.json"  # of these files, by name


class Encoded(NamedTuple):
    """An encoded corpus of n pairs; the arrays are memory-mapped and read-only."""

    source_ids: np.ndarray  # [sum of lengths] int32
    source_starts: np.ndarray  # [n + 1] int64
    target_ids: np.ndarray
    target_starts: np.ndarray
    documents: np.ndarray  # [n] int64, -1 where the corpus has none

    def __len__(self) -> int:  # type: ignore[override]
        """Number of pairs."""
        return len(self.documents)

    def source(self, index: int) -> np.ndarray:
        """Ids of a source line, without `</s>`."""
        return self.source_ids[self.source_starts[index] : self.source_starts[index + 1]]

    def target(self, index: int) -> np.ndarray:
        """Ids of a target line, without `</s>`."""
        return self.target_ids[self.target_starts[index] : self.target_starts[index + 1]]


def encode(
    languages: Languages,
    source_path: str,
    target_path: str,
    documents_path: str | None,
    folder: str,
    log: Callable[[str], None] = print,
) -> Encoded:
    """Encodes a corpus below `folder`, or maps what an earlier run left there.

    Raises:
      UserError: the text cannot be used (see `files.iter_parallel`), or the disk is full.
    """
    place = _place(languages, source_path, target_path, documents_path, folder)
    found = _map(place)
    if found is not None:
        return found
    log(f"encoding {source_path} and {target_path}")
    for left in glob.glob(os.path.join(glob.escape(folder), "*.tmp*")):  # by runs that were killed
        shutil.rmtree(left, ignore_errors=True)
    try:
        with temporary.folder(place) as unfinished:
            _write(languages, source_path, target_path, documents_path, unfinished)
            shutil.rmtree(place, ignore_errors=True)
            os.rename(unfinished, place)
    except OSError as error:
        raise UserError(
            f"cannot write the encoded corpus in {folder}: {reason(error)}. Make room (or mend the "
            "folder) and give the same command again."
        ) from None
    mapped = _map(place)
    if mapped is None:
        raise UserError(f"the encoded corpus in {place} is incomplete right after it was written")
    return mapped


def encoded(
    languages: Languages,
    source_path: str,
    target_path: str,
    documents_path: str | None,
    folder: str,
) -> Encoded | None:
    """Maps what `encode` left below `folder`; None if it is not there."""
    return _map(_place(languages, source_path, target_path, documents_path, folder))


def _place(
    languages: Languages,
    source_path: str,
    target_path: str,
    documents_path: str | None,
    folder: str,
) -> str:
    paths = [source_path, target_path] + ([documents_path] if documents_path else [])
    return os.path.join(folder, _key(languages, paths))


def _key(languages: Languages, paths: list[str]) -> str:
    digest = hashlib.sha256(f"format {_FORMAT}".encode())
    for side in languages:
        digest.update(side.vocabulary.fingerprint.encode())
        digest.update(side.segmenter.fingerprint.encode())
    for path in paths:
        digest.update(bytes.fromhex(file_digest(path)))
    return digest.hexdigest()[:16]


def _write(
    languages: Languages,
    source_path: str,
    target_path: str,
    documents_path: str | None,
    folder: str,
) -> None:
    starts = (array("q", [0]), array("q", [0]))
    documents = array("q")
    names = ("source", "target")
    buffers = [array("i"), array("i")]
    with contextlib.ExitStack() as stack:  # closes both, though a full disk refuses the first
        paths = [os.path.join(folder, f"{name}.ids") for name in names]
        streams = [stack.enter_context(open(path, "wb")) for path in paths]
        for pair in iter_parallel(source_path, target_path, documents_path):
            documents.append(pair.document)
            for side, line in enumerate((pair.source, pair.target)):
                ids = languages[side].encode(line)
                buffers[side].extend(ids)
                starts[side].append(starts[side][-1] + len(ids))
                if len(buffers[side]) > _FLUSH:
                    buffers[side].tofile(streams[side])
                    del buffers[side][:]
        for stream, buffer in zip(streams, buffers):
            buffer.tofile(stream)
            stream.flush()
            os.fsync(stream.fileno())
    for name, values in zip(names, starts):
        _save(values, os.path.join(folder, f"{name}.starts"))
    _save(documents, os.path.join(folder, "documents"))
    sums = {name: file_digest(os.path.join(folder, name)) for name in _FILES}
    with open(os.path.join(folder, _SUMS), "w", encoding="utf-8") as listing:
        json.dump(sums, listing)
        listing.flush()
        os.fsync(listing.fileno())


def _save(values: array, path: str) -> None:
    """Not by NumPy, which can close a file on a full disk without saying that it is cut short."""
    with open(path, "wb") as stream:
        values.tofile(stream)
        stream.flush()
        os.fsync(stream.fileno())


def _map(place: str) -> Encoded | None:
    """Maps a folder, or returns None if it is missing or any file is not as it was written."""
    try:
        with open(os.path.join(place, _SUMS), encoding="utf-8") as stream:
            sums = json.load(stream)
        if any(file_digest(os.path.join(place, name)) != sums[name] for name in _FILES):
            return None
    except (UserError, OSError, ValueError, LookupError, TypeError, RecursionError):
        return None

    def load(name: str, dtype: type) -> np.ndarray:
        path = os.path.join(place, name)
        if not os.path.getsize(path):
            return np.zeros([0], dtype)
        return np.memmap(path, dtype=dtype, mode="r")

    return Encoded(
        source_ids=load("source.ids", np.int32),
        source_starts=load("source.starts", np.int64),
        target_ids=load("target.ids", np.int32),
        target_starts=load("target.starts", np.int64),
        documents=load("documents", np.int64),
    )
