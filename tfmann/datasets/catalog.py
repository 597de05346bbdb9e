"""Published corpora: downloaded and checked, or read from a local copy.

    tfmann fetch MANIFEST --directory D [--corpus_dir LOCAL]

With `--corpus_dir` nothing is downloaded; the files there are checked and reported.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from tfmann.data.text_files import Measured, count_parallel, iter_parallel, measure
from tfmann.datasets import dialogues
from tfmann.datasets.archives import extract, extract_member
from tfmann.datasets.download import download, problem_with, put_in_place
from tfmann.datasets.manifest import FileEntry, Manifest, load_manifest
from tfmann.datasets.sgml import to_plain_text
from tfmann.errors import UserError, run_command
from tfmann.utils import atomic_files, resources
from tfmann.utils.arguments import ArgumentParser
from tfmann.utils.files import PathLike

__all__ = ["Manifest", "Report", "SplitReport", "extract", "fetch", "load_manifest", "use_local"]


@dataclasses.dataclass(frozen=True)
class SplitReport:
    """The content of one split of a corpus on disk.

    Attributes:
      name: train, dev or test.
      prefix: path of its files without the suffixes.
      pairs: number of sentence pairs.
      empty_sided: number of pairs with an empty side.
      variant: description of a known variant, "" for the published text.
      documents: number of documents; None if unknown.
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
            f"{self.empty_sided:,} of them with an empty side{self.details}"
        )

    @property
    def details(self) -> str:
        """Number of documents and variant, each after a semicolon, if known."""
        documents = f"{self.documents:,} documents" if self.documents is not None else ""
        return "".join(f"; {detail}" for detail in (documents, self.variant) if detail)


@dataclasses.dataclass(frozen=True)
class Report:
    """A corpus on disk, after its check.

    Attributes:
      splits: split name -> its content.
      matches: path -> whether its SHA-256 is the published one; None if none is published.
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
        for description, match in (
            ("as published (SHA-256)", True),
            ("not the published bytes (SHA-256 differs)", False),
            ("no published SHA-256 to compare with", None),
        ):
            paths = [path for path, value in self.matches.items() if value is match]
            if paths:
                lines.append(f"  {description}: {', '.join(paths)}")
        return "\n".join(lines)


def fetch(manifest: Manifest, directory: PathLike) -> Report:
    """Downloads the missing files of a corpus, and checks all of them.

    A file of a known variant is used as it is. Any other file that is not as published is replaced,
    and stays as `NAME.old`, or `NAME.old2` and so on if there is one already.

    Raises:
      UserError: a file cannot be downloaded; says whether this machine is offline, and how to
        use a local copy. Complete files stay, so that running again continues. Or the corpus
        cannot be downloaded at all; says how to get it.
    """
    if manifest.obtain:
        raise UserError(
            f"{manifest.name} cannot be downloaded: {manifest.obtain}\n"
            f"{_how_to_use_local_files(manifest)}"
        )
    for entry in manifest.files:
        try:
            _fetch_file(manifest, entry, os.fspath(directory))
        except UserError as error:
            raise UserError(f"{error}\n{_how_to_use_local_files(manifest)}") from None
    return use_local(manifest, directory)


def _fetch_file(manifest: Manifest, entry: FileEntry, directory: str) -> str:
    """Downloads a file or extracts it from its archives, unless it exists; returns its path."""
    path = os.path.join(directory, *entry.path.split("/"))
    if os.path.isfile(path) and (problem_with(path, entry) is None or _is_variant(path, entry)):
        return path
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder for {path}: {error.strerror}") from None
    if entry.members:
        archives = [
            _fetch_file(manifest, manifest.archive_of(member), directory)
            for member in entry.members
        ]
        _extract_file(archives, entry, path)
        return path
    host = urllib.parse.urlsplit(entry.urls[0]).netloc
    print(f"{entry.path}: downloading from {host}", file=sys.stderr, flush=True)
    download(entry, path)
    return path


def _extract_file(archives: Sequence[str], entry: FileEntry, path: str) -> None:
    """Concatenates the members of a file, as plain text, and moves the result to `path`."""
    try:
        with atomic_files.temporary_folder(path) as folder:
            part, joined = os.path.join(folder, "part"), os.path.join(folder, "whole")
            with open(joined, "wb") as stream:
                for archive, member in zip(archives, entry.members):
                    if archive.endswith(".json"):
                        dialogues.write_member(archive, member.member, part)
                    else:
                        extract_member(archive, member.member, part)
                    if member.member.endswith(".sgm"):
                        to_plain_text(part, part)
                    _append(part, stream)
            problem = problem_with(joined, entry)
            if problem is not None:
                names = " and ".join(member.member for member in entry.members)
                raise UserError(
                    f"{names} of {' and '.join(archives)} is not what was expected: {problem}"
                )
            put_in_place(joined, path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def _append(path: str, stream: BinaryIO) -> None:
    """Copies a file, and adds a line end if its last line has none."""
    last = b"\n"
    with open(path, "rb") as source:
        while block := source.read(1 << 20):
            stream.write(block)
            last = block[-1:]
    if last != b"\n":
        stream.write(b"\n")


def use_local(manifest: Manifest, directory: PathLike) -> Report:
    """Checks a folder with the files of a corpus, as published or in a known variant.

    Document ids may be missing; models that read them refuse that later.

    Raises:
      UserError: another file is missing, the sides of a split differ in length, its document ids
        are not numbers, or a line count is neither the published one nor a known variant's.
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
    measured = {name: measure(paths[name]) for name in entries}
    splits = {}
    for name, prefix in manifest.splits.items():
        sides, documents = manifest.sides(prefix), manifest.documents(prefix)
        files = [paths[side] for side in (*sides, documents) if side in entries]
        variants = {_variant(entries[side], measured[side], paths[side]) for side in sides} - {""}
        local_prefix = os.path.join(directory, *prefix.split("/"))
        splits[name] = _split(name, local_prefix, files, "; ".join(sorted(variants)))
        _count_references(manifest, prefix, paths)
    for prefix in manifest.more_tests:
        sides, documents = manifest.sides(prefix), manifest.documents(prefix)
        count_parallel(*(paths[name] for name in (*sides, documents) if name in entries))
        _count_references(manifest, prefix, paths)
    for name, entry in entries.items():  # of all files, vocabularies included
        _variant(entry, measured[name], paths[name])
    matches = {
        name: measured[name].sha256 == entry.sha256 if entry.sha256 else None
        for name, entry in entries.items()
    }
    return Report(manifest, directory, splits, matches)


def _count_references(manifest: Manifest, prefix: str, paths: Mapping[str, str]) -> None:
    """Raises UserError if a reference after the first is not as long as the source."""
    source, _ = manifest.sides(prefix)
    for reference in manifest.further_references(prefix):
        count_parallel(paths[source], paths[reference])


def _split(name: str, prefix: str, files: Sequence[str], variant: str) -> SplitReport:
    """Counts pairs and documents in the files of a split: both sides, and document ids if any."""
    pairs = empty = documents = 0
    last = None
    for pair in iter_parallel(*files):
        pairs += 1
        empty += not (pair.source.strip() and pair.target.strip())
        documents += pair.document != last
        last = pair.document
    return SplitReport(name, prefix, pairs, empty, variant, documents if len(files) == 3 else None)


def _variant(entry: FileEntry, measured: Measured, path: str) -> str:
    """Returns the description of the variant with a file's line count, `""` if published."""
    if measured.sha256 == entry.sha256 or measured.lines == entry.lines:
        return ""
    for other in entry.accept_lines:
        if measured.lines == other.lines:
            return other.note
    if entry.lines is None:
        return ""
    expected = [entry.lines, *(other.lines for other in entry.accept_lines)]
    raise UserError(
        f"{path} has {measured.lines:,} lines; expected {' or '.join(f'{n:,}' for n in expected)}"
    )


def _is_variant(path: str, entry: FileEntry) -> bool:
    """Returns whether a file has the line count of a known variant."""
    accepted = {other.lines for other in entry.accept_lines}
    return bool(accepted) and measure(path).lines in accepted


def _how_to_use_local_files(manifest: Manifest) -> str:
    names = ", ".join(entry.path for entry in manifest.files)
    documents = any(manifest.may_lack(entry.path) for entry in manifest.files)
    condition = " (.docs only for systems that look at documents)" if documents else ""
    return (
        "If you have the corpus elsewhere, give its folder (make: CORPUS_DIR=path; here: "
        f"--corpus_dir path). These files are expected in it{condition}: {names}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = ArgumentParser(prog="tfmann")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser(
        "fetch",
        help="download and check a corpus",
        description="Downloads the files of a corpus that are missing in --directory, and checks "
        "all of them. With --corpus_dir it checks the files there, and copies nothing.",
    )
    command.add_argument("manifest", help="a file, or the name of one that comes with tfmann")
    command.add_argument("--directory", required=True, help="where the files go")
    command.add_argument("--corpus_dir", default="", help="folder with the files: no download")
    options = parser.parse_args(arguments)
    return run_command(lambda: print(_report(options)))


def _report(options: argparse.Namespace) -> Report:
    manifest = load_manifest(resources.manifest_path(options.manifest))
    if options.corpus_dir:
        return use_local(manifest, options.corpus_dir)
    return fetch(manifest, options.directory)


if __name__ == "__main__":
    sys.exit(main())
