"""Parallel text as ids, encoded once into memory-mapped arrays for a corpus of any length.

A folder has for each side the ids of all lines, one after the other (int32), and the start of each
line (int64), and the document id of each pair (int64). Its name is a hash of text, vocabularies
and segmentation, so that only changed text is encoded again. The arrays' SHA-256 is verified before
they are used; damaged arrays are rebuilt.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import shutil
from array import array
from typing import Callable, NamedTuple, Optional

import numpy as np

from tfmann.data.text_encoder import LanguagePair
from tfmann.data.text_files import iter_parallel
from tfmann.errors import UserError
from tfmann.utils import atomic_files
from tfmann.utils.files import error_reason, file_digest

_FORMAT = 1  # raise it when the arrays' layout changes
_BUFFERED_IDS = 1 << 20  # ids in memory before they are written
_FILES = ("source.ids", "source.starts", "target.ids", "target.starts", "documents")
_DIGESTS = "sha256.json"  # of these files, by name

_Paths = tuple[str, str, Optional[str]]  # source, target, documents


class EncodedCorpus(NamedTuple):
    """An encoded corpus of n pairs; the arrays are memory-mapped and read-only."""

    source_ids: np.ndarray  # [sum of lengths] int32
    source_starts: np.ndarray  # [n + 1] int64
    target_ids: np.ndarray
    target_starts: np.ndarray
    documents: np.ndarray  # [n] int64, -1 if the corpus has none

    def __len__(self) -> int:  # type: ignore[override]
        """Returns the number of pairs."""
        return len(self.documents)

    def source(self, index: int) -> np.ndarray:
        """Returns the ids of a source line, without `</s>`."""
        return self.source_ids[self.source_starts[index] : self.source_starts[index + 1]]

    def target(self, index: int) -> np.ndarray:
        """Returns the ids of a target line, without `</s>`."""
        return self.target_ids[self.target_starts[index] : self.target_starts[index + 1]]


def encode(
    languages: LanguagePair,
    source_path: str,
    target_path: str,
    documents_path: str | None,
    folder: str,
    log: Callable[[str], None] = print,
) -> EncodedCorpus:
    """Encodes a corpus below `folder`, unless it has been encoded already, and maps the arrays.

    Raises:
      UserError: the text cannot be used (see `text_files.iter_parallel`), or the disk is full.
    """
    paths = (source_path, target_path, documents_path)
    path = _corpus_folder(languages, paths, folder)
    corpus = _map(path)
    if corpus is not None:
        return corpus
    log(f"encoding {source_path} and {target_path}")
    for leftover in glob.glob(os.path.join(glob.escape(folder), "*.tmp*")):  # of killed runs
        atomic_files.remove_unlocked(leftover)
    try:
        with atomic_files.temporary_folder(path) as unfinished:
            _write(languages, paths, unfinished)
            if _corpus_folder(languages, paths, folder) != path:
                raise UserError(
                    f"{source_path} or {target_path} has changed while it was read: give the same "
                    "command again when nothing writes to it"
                )
            corpus = _map(path)  # another process may have encoded it meanwhile
            if corpus is not None:
                return corpus
            shutil.rmtree(path, ignore_errors=True)
            os.rename(unfinished, path)
    except OSError as error:
        raise UserError(
            f"cannot write the encoded corpus in {folder}: {error_reason(error)}. Make room "
            "(or repair the folder) and give the same command again."
        ) from None
    corpus = _map(path)
    if corpus is None:
        raise UserError(f"the encoded corpus in {path} is incomplete right after it was written")
    return corpus


def encoded(
    languages: LanguagePair,
    source_path: str,
    target_path: str,
    documents_path: str | None,
    folder: str,
) -> EncodedCorpus | None:
    """Maps a corpus that `encode` has written below `folder`; returns None if there is none."""
    return _map(_corpus_folder(languages, (source_path, target_path, documents_path), folder))


def _corpus_folder(languages: LanguagePair, paths: _Paths, folder: str) -> str:
    """Returns the folder of a corpus, named by a hash of all that its ids depend on."""
    digest = hashlib.sha256(f"format {_FORMAT}".encode())
    for encoder in languages:
        digest.update(encoder.vocabulary.fingerprint.encode())
        digest.update(encoder.segmenter.fingerprint.encode())
    for path in filter(None, paths):
        digest.update(bytes.fromhex(file_digest(path)))
    return os.path.join(folder, digest.hexdigest()[:16])


def _write(languages: LanguagePair, paths: _Paths, folder: str) -> None:
    starts = (array("q", [0]), array("q", [0]))
    documents = array("q")
    names = ("source", "target")
    buffers = [array("i"), array("i")]
    with contextlib.ExitStack() as stack:  # closes both even if a full disk refuses the first
        streams = [
            stack.enter_context(open(os.path.join(folder, f"{name}.ids"), "wb")) for name in names
        ]
        for pair in iter_parallel(*paths):
            documents.append(pair.document)
            for side, line in enumerate((pair.source, pair.target)):
                ids = languages[side].encode(line)
                buffers[side].extend(ids)
                starts[side].append(starts[side][-1] + len(ids))
                if len(buffers[side]) > _BUFFERED_IDS:
                    buffers[side].tofile(streams[side])
                    del buffers[side][:]
        for stream, buffer in zip(streams, buffers):
            buffer.tofile(stream)
            stream.flush()
            os.fsync(stream.fileno())
    for name, values in zip(names, starts):
        _save(values, os.path.join(folder, f"{name}.starts"))
    _save(documents, os.path.join(folder, "documents"))
    digests = {name: file_digest(os.path.join(folder, name)) for name in _FILES}
    with open(os.path.join(folder, _DIGESTS), "w", encoding="utf-8") as listing:
        json.dump(digests, listing)
        listing.flush()
        os.fsync(listing.fileno())


def _save(values: array, path: str) -> None:
    """Writes an array; NumPy would not report that a full disk has cut the file short."""
    with open(path, "wb") as stream:
        values.tofile(stream)
        stream.flush()
        os.fsync(stream.fileno())


def _map(folder: str) -> EncodedCorpus | None:
    """Maps a corpus' folder; returns None if it is missing or a file has changed."""
    try:
        with open(os.path.join(folder, _DIGESTS), encoding="utf-8") as stream:
            digests = json.load(stream)
        if any(file_digest(os.path.join(folder, name)) != digests[name] for name in _FILES):
            return None
        return EncodedCorpus(
            source_ids=_load(folder, "source.ids", np.int32),
            source_starts=_load(folder, "source.starts", np.int64),
            target_ids=_load(folder, "target.ids", np.int32),
            target_starts=_load(folder, "target.starts", np.int64),
            documents=_load(folder, "documents", np.int64),
        )
    except (UserError, OSError, ValueError, LookupError, TypeError, RecursionError):
        return None  # also where another process has just replaced a damaged folder


def _load(folder: str, name: str, dtype: type) -> np.ndarray:
    """Maps a file; one without bytes cannot be mapped."""
    path = os.path.join(folder, name)
    if not os.path.getsize(path):
        return np.zeros([0], dtype)
    return np.memmap(path, dtype=dtype, mode="r")
