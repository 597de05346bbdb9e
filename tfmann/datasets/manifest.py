"""Manifests: the files of a published corpus, their addresses and their checksums.

`data/README.md` describes the format. It is read strictly, because a misspelled key would otherwise
switch off a check silently.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tfmann.errors import UsageError
from tfmann.utils.files import PathLike

SPLITS = ("train", "dev", "test")

_MISSING = object()
_ARCHIVE_KEYS = ("path", "urls", "sha256", "bytes")
_FILE_KEYS = (*_ARCHIVE_KEYS, "lines", "accept_lines", "archive", "member", "parts")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Every part starts with a letter, digit or `_`, which excludes `..`, a leading `/`, hidden names.
_SAFE_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*)*")


@dataclasses.dataclass(frozen=True)
class OtherCount:
    """The line count of a known variant of a file, and a description of the variant."""

    lines: int
    note: str


@dataclasses.dataclass(frozen=True)
class Member:
    """A file in an archive; one named `.sgm` is converted to plain text.

    An archive named `.json` has dialogues, and `datasets.dialogues.MEMBERS` as its files.
    """

    archive: str
    member: str


@dataclasses.dataclass(frozen=True)
class FileEntry:
    """One file of a corpus, or an archive with files of it.

    Attributes:
      path: its path below the corpus folder, with `/` between folders.
      urls: mirrors in the order of trial; none for a file of an archive, or one that cannot be
        downloaded.
      sha256, bytes, lines: of the published file; a download has at least one of them.
      accept_lines: other line counts that a local copy may have.
      members: the files of archives that it is concatenated from.
    """

    path: str
    urls: tuple[str, ...]
    sha256: str | None
    bytes: int | None
    lines: int | None
    accept_lines: tuple[OtherCount, ...] = ()
    members: tuple[Member, ...] = ()


@dataclasses.dataclass(frozen=True)
class Manifest:
    """A corpus of two languages in three splits; file names are PREFIX.LANGUAGE.

    Attributes:
      obtain: how to get a corpus that cannot be downloaded, "" for one that can.
      source, target: the file suffixes of the two sides.
      splits: split name -> prefix.
      more_tests: prefixes of further test sets.
      vocabularies: prefix of the published vocabularies; None if there are none.
      alignments: path of the gold links of the test set, `i-j` or `ipj` with the source position
        first, from 0; None if there are none.
      files: every file, those of the splits, vocabularies and alignments among them.
      archives: downloads that files are extracted from; a local copy needs none of them.
    """

    name: str
    description: str
    licence: str
    tokenisation: str
    note: str
    obtain: str
    source: str
    target: str
    splits: Mapping[str, str]
    more_tests: tuple[str, ...]
    vocabularies: str | None
    alignments: str | None
    files: tuple[FileEntry, ...]
    archives: tuple[FileEntry, ...]

    def sides(self, prefix: str) -> tuple[str, str]:
        """Returns the paths of the source and the target file of a prefix.

        Of several references, `PREFIX.target0`, `PREFIX.target1` ..., it is the first.
        """
        target = f"{prefix}.{self.target}"
        several = f"{target}0" in {entry.path for entry in self.files}
        return f"{prefix}.{self.source}", f"{target}0" if several else target

    def further_references(self, prefix: str) -> list[str]:
        """Returns `PREFIX.target1`, `PREFIX.target2` ... as far as `files` lists them."""
        paths = {entry.path for entry in self.files}
        references = (f"{prefix}.{self.target}{number}" for number in itertools.count(1))
        return list(itertools.takewhile(paths.__contains__, references))

    def documents(self, prefix: str) -> str | None:
        """Returns the path of a prefix's document ids if `files` lists it, else None."""
        path = f"{prefix}.docs"
        return path if path in {entry.path for entry in self.files} else None

    def may_lack(self, path: str) -> bool:
        """Returns whether a local copy may lack a file: document ids, which few models read."""
        return path in map(self.documents, [*self.splits.values(), *self.more_tests])

    def archive_of(self, member: Member) -> FileEntry:
        """Returns the archive that holds a member."""
        return next(archive for archive in self.archives if archive.path == member.archive)


def load_manifest(path: PathLike) -> Manifest:
    """Reads and checks a manifest.

    Raises:
      UsageError: the file is missing, is not JSON, has a key that is unknown, missing or of
        the wrong type, or does not list a file that a split needs; the message names the key.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        record = json.loads(text, object_pairs_hook=_unique)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the manifest {path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from None
    try:
        return _manifest(record)
    except _ManifestError as error:
        raise UsageError(f"{path}: {error}") from None


class _ManifestError(ValueError):
    """A fault of a manifest; the message does not name its file."""


def _manifest(record: Any) -> Manifest:
    reader = _Reader(record, "", [field.name for field in dataclasses.fields(Manifest)])
    splits = _Reader(reader.take("splits", dict), "splits", SPLITS)
    lists = {
        key: tuple(
            _entry(record, f"{key}[{i}]", keys)
            for i, record in enumerate(reader.take(key, list, default=default))
        )
        for key, keys, default in (
            ("files", _FILE_KEYS, _MISSING),
            ("archives", _ARCHIVE_KEYS, []),
        )
    }
    manifest = Manifest(
        name=reader.take("name", str),
        description=reader.take("description", str),
        licence=reader.take("licence", str),
        tokenisation=reader.take("tokenisation", str),
        note=reader.take("note", str, default=""),
        obtain=reader.take("obtain", str, default=""),
        source=reader.take("source", str),
        target=reader.take("target", str),
        splits={name: _prefix(splits, name) for name in SPLITS},
        more_tests=tuple(map(str, reader.take("more_tests", list, default=[]))),
        vocabularies=_prefix(reader, "vocabularies") if reader.has("vocabularies") else None,
        alignments=reader.take("alignments", str, default=None),
        files=lists["files"],
        archives=lists["archives"],
    )
    _check_files(manifest)
    return manifest


def _prefix(reader: _Reader, key: str) -> str:
    return _Reader(reader.take(key, dict), reader.name(key), ["prefix"]).take("prefix", str)


def _entry(record: Any, where: str, keys: Iterable[str]) -> FileEntry:
    reader = _Reader(record, where, keys)
    entry = FileEntry(
        path=reader.take("path", str),
        urls=tuple(reader.take("urls", list, default=[])),
        sha256=reader.take("sha256", str, default=None),
        bytes=reader.take("bytes", int, default=None),
        lines=reader.take("lines", int, default=None),
        accept_lines=tuple(
            _other_count(other, f"{where}.accept_lines[{i}]")
            for i, other in enumerate(reader.take("accept_lines", list, default=[]))
        ),
        members=tuple(_members(reader, where)),
    )
    _check_entry(entry, where)
    return entry


def _members(reader: _Reader, where: str) -> Iterator[Member]:
    """Yields the file of `archive` and `member`, or those of `parts`."""
    if reader.has("archive") != reader.has("member") or (
        reader.has("archive") + reader.has("parts") + reader.has("urls") > 1
    ):
        raise _ManifestError(
            f"{where}: expected urls, or an archive and a member, or parts, only one of them"
        )
    if reader.has("archive"):
        yield Member(reader.take("archive", str), reader.take("member", str))
    for i, part in enumerate(reader.take("parts", list, default=[])):
        keys = _Reader(part, f"{where}.parts[{i}]", ("archive", "member"))
        yield Member(keys.take("archive", str), keys.take("member", str))


def _check_entry(entry: FileEntry, where: str) -> None:
    if not _SAFE_PATH.fullmatch(entry.path):
        raise _ManifestError(
            f"{where}.path={entry.path!r}: expected a plain path inside the corpus folder"
        )
    if not all(map(_is_address, entry.urls)):
        raise _ManifestError(f"{where}.urls: expected one or more addresses, http:// or https://")
    if entry.sha256 is not None and not _SHA256.fullmatch(entry.sha256):
        raise _ManifestError(f"{where}.sha256={entry.sha256!r}: expected 64 hexadecimal digits")
    checks = (entry.sha256, entry.bytes, entry.lines)
    if entry.urls and checks == (None, None, None):
        raise _ManifestError(f"{where}: sha256, bytes or lines: one is needed to check the file by")


def _is_address(url: Any) -> bool:
    return isinstance(url, str) and url.startswith(("https://", "http://"))


def _other_count(record: Any, where: str) -> OtherCount:
    reader = _Reader(record, where, ["lines", "note"])
    return OtherCount(lines=reader.take("lines", int), note=reader.take("note", str))


def _check_files(manifest: Manifest) -> None:
    paths = [entry.path for entry in manifest.files]
    archives = [archive.path for archive in manifest.archives]
    twice = {path for path in paths + archives if (paths + archives).count(path) > 1}
    if twice:
        raise _ManifestError(f"files: {', '.join(sorted(twice))} is listed twice")
    for i, entry in enumerate(manifest.files):
        _check_origin(entry, f"files[{i}]", archives, manifest.obtain)
    for i, archive in enumerate(manifest.archives):
        if not archive.urls:
            raise _ManifestError(f"archives[{i}].urls: expected one or more addresses")
    if manifest.source == manifest.target:
        raise _ManifestError(f"source and target are both {manifest.source!r}")
    prefixes = [*manifest.splits.values(), *manifest.more_tests]
    if manifest.vocabularies is not None:
        prefixes.append(manifest.vocabularies)
    needed = [path for prefix in prefixes for path in manifest.sides(prefix)]
    for path in [*needed, *filter(None, [manifest.alignments])]:
        if path not in paths:
            raise _ManifestError(f"files: {path!r} is missing{_nearest(path, paths)}")


def _check_origin(entry: FileEntry, where: str, archives: list[str], obtain: str) -> None:
    """Refuses a file without a source, or with one if the corpus cannot be downloaded."""
    if obtain and (entry.urls or entry.members):
        raise _ManifestError(f"{where}: expected neither urls nor an archive with 'obtain'")
    if not (obtain or entry.urls or entry.members):
        raise _ManifestError(f"{where}.urls: expected one or more addresses, http:// or https://")
    for member in entry.members:
        if member.archive not in archives:
            raise _ManifestError(
                f"{where}: the archive {member.archive!r} is not among archives"
                f"{_nearest(member.archive, archives)}"
            )


class _Reader:
    """Reads the keys of a JSON object strictly."""

    def __init__(self, record: Any, where: str, keys: Iterable[str]) -> None:
        self._where = where
        keys = list(keys)
        if not isinstance(record, dict):
            raise _ManifestError(
                f"{where or 'the manifest'}: expected an object, got {_kind(record)}"
            )
        for key in record:
            if key not in keys:
                raise _ManifestError(f"unknown key {self.name(key)!r}{_nearest(key, keys)}")
        self._record = record

    def name(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def has(self, key: str) -> bool:
        return self._record.get(key) is not None

    def take(self, key: str, kind: type, default: Any = _MISSING) -> Any:
        """Returns a value of the given type; null and absence mean the default."""
        value = self._record.get(key)
        if value is None:
            if default is _MISSING:
                raise _ManifestError(f"the key {self.name(key)!r} is missing")
            return default
        if not isinstance(value, kind) or isinstance(value, bool):
            raise _ManifestError(f"{self.name(key)}: expected {kind.__name__}, got {_kind(value)}")
        if isinstance(value, int) and value < 0:
            raise _ManifestError(f"{self.name(key)}={value}: expected a count")
        return value


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def _nearest(name: str, names: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(items)
    if len(record) != len(items):
        keys = [key for key, _ in items]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} is listed twice")
    return record
