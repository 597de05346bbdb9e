"""Published corpora: fetched and checked, or taken from a folder that has them already.

    tfmann fetch MANIFEST --directory D [--corpus_dir LOCAL]

With `--corpus_dir` nothing is downloaded: the files there are checked and reported.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import urllib.parse
from collections.abc import Sequence
from typing import BinaryIO

from tfmann import resources, temporary
from tfmann.corpus.archives import extract, extract_member
from tfmann.corpus.download import download, problem_with
from tfmann.corpus.files import Measured, PathLike, iter_parallel, measure
from tfmann.corpus.manifest import FileEntry, Manifest, load_manifest
from tfmann.corpus.sgml import to_plain_text
from tfmann.errors import UserError, status_of

__all__ = ["Manifest", "Report", "SplitReport", "extract", "fetch", "load_manifest", "use_local"]


@dataclasses.dataclass(frozen=True)
class SplitReport:
    """What one split of a corpus on disk holds.

    Attributes:
      name: train, dev or test.
      prefix: path of its files without the languages' suffixes.
      pairs: number of sentence pairs.
      empty_sided: how many of them have an empty side.
      variant: which copy this is, if not the published one line for line.
      documents: how many they are in; None where that is not known.
    """

    name: str
    prefix: str
    pairs: int
    empty_sided: int
    variant: str
    documents: int | None

    def __str__(self) -> str:
        return (
            f"{self.name} ({self.prefix}): {self.pairs:,} pairs, "
            f"{self.empty_sided:,} of them with an empty side{self.more}"
        )

    @property
    def more(self) -> str:
        """What else is to be said of it, after a semicolon each."""
        documents = f"{self.documents:,} documents" if self.documents is not None else ""
        return "".join(f"; {one}" for one in (documents, self.variant) if one)


@dataclasses.dataclass(frozen=True)
class Report:
    """A corpus on disk, after its check.

    Attributes:
      splits: split name -> what it holds.
      matches: path -> whether its SHA-256 is the published one; None if that is not known.
    """

    manifest: Manifest
    directory: str
    splits: dict[str, SplitReport]
    matches: dict[str, bool | None]

    def hparams(self) -> dict[str, str]:
        """Returns the settings (`hparams` keys) that point a run at this corpus."""
        settings = {"src": self.manifest.source, "tgt": self.manifest.target}
        for name, split in self.splits.items():
            settings[f"{name}_prefix"] = split.prefix
        if self.manifest.vocabularies is not None:
            settings["vocab_prefix"] = os.path.join(
                self.directory, *self.manifest.vocabularies.split("/")
            )
        return settings

    def __str__(self) -> str:
        lines = [f"{self.manifest.name} in {self.directory}"]
        lines += [f"  {split}" for split in self.splits.values()]
        for words, state in (
            ("as published (SHA-256)", True),
            ("not the published bytes (SHA-256 differs)", False),
            ("no published SHA-256 to compare with", None),
        ):
            paths = [path for path, match in self.matches.items() if match is state]
            if paths:
                lines.append(f"  {words}: {', '.join(paths)}")
        return "\n".join(lines)


def fetch(manifest: Manifest, directory: PathLike) -> Report:
    """Downloads the files of a corpus that are not there yet, and checks all of them.

    Raises:
      UserError: a file cannot be had; says whether this machine is offline, and how to use
        files that were got otherwise. Files that arrived stay; running again goes on.
        Or nobody can download the corpus; says how to come by it.
    """
    if manifest.obtain:
        raise UserError(
            f"{manifest.name} cannot be downloaded: {manifest.obtain}\n"
            f"{_how_to_use_local_files(manifest)}"
        )
    for entry in manifest.files:
        try:
            _get(manifest, entry, os.fspath(directory))
        except UserError as error:
            raise UserError(f"{error}\n{_how_to_use_local_files(manifest)}") from None
    return use_local(manifest, directory)


def _get(manifest: Manifest, entry: FileEntry, directory: str) -> str:
    """Downloads a file, or takes it out of its archive, unless it is there; returns its path."""
    path = os.path.join(directory, *entry.path.split("/"))
    if os.path.isfile(path) and problem_with(path, entry) is None:
        return path
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder for {path}: {error.strerror}") from None
    if entry.members:
        archives = [
            _get(manifest, manifest.archive_of(member), directory) for member in entry.members
        ]
        _take_out(archives, entry, path)
        return path
    host = urllib.parse.urlsplit(entry.urls[0]).netloc
    print(f"{entry.path}: downloading from {host}", file=sys.stderr, flush=True)
    download(entry, path)
    return path


def _take_out(archives: Sequence[str], entry: FileEntry, path: str) -> None:
    """Puts the members of a file, joined, at `path`, as plain text, if it is the right one."""
    try:
        with temporary.folder(path) as folder:
            part, whole = os.path.join(folder, "part"), os.path.join(folder, "whole")
            with open(whole, "wb") as stream:
                for archive, one in zip(archives, entry.members):
                    extract_member(archive, one.member, part)
                    if one.member.endswith(".sgm"):
                        to_plain_text(part, part)
                    _append(part, stream)
            problem = problem_with(whole, entry)
            if problem is not None:
                names = " and ".join(one.member for one in entry.members)
                raise UserError(
                    f"{names} of {' and '.join(archives)} is not what was expected: {problem}"
                )
            os.replace(whole, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _append(path: str, stream: BinaryIO) -> None:
    """Copies a file that may lack its last line end, so that no line runs into the next file's."""
    last = b"\n"
    with open(path, "rb") as source:
        while block := source.read(1 << 20):
            stream.write(block)
            last = block[-1:]
    if last != b"\n":
        stream.write(b"\n")


def use_local(manifest: Manifest, directory: PathLike) -> Report:
    """Checks a folder that has the files of a corpus, the published ones or a known variant.

    Documents may be missing, which is for those to refuse who look at them.

    Raises:
      UserError: other files are missing, the sides of a split differ in length, its documents are
        not numbers, or a file has a line count that neither the published one nor a known variant
        has.
    """
    directory = os.fspath(directory)
    paths = {
        entry.path: os.path.join(directory, *entry.path.split("/")) for entry in manifest.files
    }
    missing = [name for name, path in paths.items() if not os.path.isfile(path)]
    needed = [name for name in missing if not manifest.may_lack(name)]
    if needed:
        raise UserError(
            f"{directory} lacks {', '.join(needed)}\n{_how_to_use_local_files(manifest)}"
        )
    entries = {entry.path: entry for entry in manifest.files if entry.path not in missing}
    found = {name: measure(paths[name]) for name in entries}
    splits = {}
    for name, prefix in manifest.splits.items():
        sides, documents = manifest.sides(prefix), manifest.documents(prefix)
        files = [paths[side] for side in (*sides, documents) if side in entries]
        variants = {_variant(entries[side], found[side], paths[side]) for side in sides} - {""}
        place = os.path.join(directory, *prefix.split("/"))
        splits[name] = _split(name, place, files, "; ".join(variants))
    for name, entry in entries.items():  # those of no split, the vocabularies, too
        _variant(entry, found[name], paths[name])
    matches = {
        name: found[name].sha256 == entry.sha256 if entry.sha256 else None
        for name, entry in entries.items()
    }
    return Report(manifest, directory, splits, matches)


def _split(name: str, prefix: str, files: Sequence[str], variant: str) -> SplitReport:
    """Counts what is in the files of a split: both sides, and its documents if they are there."""
    pairs = empty = documents = 0
    last = None
    for pair in iter_parallel(*files):
        pairs += 1
        empty += not (pair.source.strip() and pair.target.strip())
        documents += pair.document != last
        last = pair.document
    return SplitReport(name, prefix, pairs, empty, variant, documents if len(files) == 3 else None)


def _variant(entry: FileEntry, found: Measured, path: str) -> str:
    """Returns which known variant a file is by its line count, `""` for the published one."""
    if found.sha256 == entry.sha256 or found.lines == entry.lines:
        return ""
    for other in entry.accept_lines:
        if found.lines == other.lines:
            return other.note
    if entry.lines is None:
        return ""
    known = [entry.lines, *(other.lines for other in entry.accept_lines)]
    raise UserError(
        f"{path} has {found.lines:,} lines; expected {' or '.join(f'{n:,}' for n in known)}"
    )


def _how_to_use_local_files(manifest: Manifest) -> str:
    names = ", ".join(entry.path for entry in manifest.files)
    documents = any(manifest.may_lack(entry.path) for entry in manifest.files)
    which = " (.docs only for systems that look at documents)" if documents else ""
    return (
        "If you have the corpus elsewhere, give its folder (make: CORPUS_DIR=path; here: "
        f"--corpus_dir path). These files are expected in it{which}: {names}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="tfmann")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("fetch", help="download and check a corpus")
    command.add_argument("manifest", help="a file, or the name of one that comes with tfmann")
    command.add_argument("--directory", required=True, help="where the files go")
    command.add_argument("--corpus_dir", default="", help="folder with the files: no download")
    options = parser.parse_args(arguments)
    return status_of(lambda: print(_report(options)))


def _report(options: argparse.Namespace) -> Report:
    manifest = load_manifest(resources.manifest_path(options.manifest))
    if options.corpus_dir:
        return use_local(manifest, options.corpus_dir)
    return fetch(manifest, options.directory)


if __name__ == "__main__":
    sys.exit(main())
