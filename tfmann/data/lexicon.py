"""Lexicon files: on each line a source word, a target word and a weight from 0 to 1.

The three are separated by white space. The weight may be a probability or any other measure of
association. For `replace_unk`, the line with the greatest weight wins among several for a source
word, and the first among equal ones; for `shortlist`, all count (`shortlist_lexicon`). An empty
file is a lexicon without words.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tfmann.config import Architecture, TranslationSettings
from tfmann.data.text_files import iter_lines, write_lines
from tfmann.data.vocab import WHITE_SPACE
from tfmann.errors import UsageError, UserError
from tfmann.utils.files import PathLike

_NAME = "lexicon.txt"
_SHORTLIST_NAME = "shortlist.txt"


class Entry(NamedTuple):
    """A line of a lexicon."""

    source: str
    target: str
    weight: float


def path(hparams: TranslationSettings, out_dir: str) -> str:
    """Returns the path of a run's lexicon: `lexicon_file`, or a file in the run's folder."""
    return hparams.lexicon_file or os.path.join(out_dir, _NAME)


def shortlist_path(hparams: TranslationSettings, out_dir: str) -> str:
    """Returns where a run's lexicon of `shortlist` is written."""
    return hparams.shortlist or os.path.join(out_dir, _SHORTLIST_NAME)


def require(hparams: TranslationSettings, out_dir: str) -> None:
    """Raises UserError if there is no lexicon of `replace_unk` or `shortlist`, where one is set."""
    if hparams.shortlist and not os.path.isfile(hparams.shortlist):
        raise UserError(
            f"shortlist: there is no file {hparams.shortlist}: `tfmann shortlist --out_dir="
            f"{out_dir}` learns a lexicon for this model"
        )
    name = path(hparams, out_dir)
    if hparams.replace_unk and not os.path.exists(name):
        raise UserError(
            f"replace_unk needs a lexicon, and there is no file {name}: learn it with "
            "`tfmann lexicon`, or give one as --lexicon_file"
        )


def load(hparams: TranslationSettings, out_dir: str) -> dict[str, str] | None:
    """Reads the lexicon of a run; returns None if `replace_unk` is not set.

    Raises:
      UserError: it is missing or cannot be read.
    """
    require(hparams, out_dir)
    return read(path(hparams, out_dir)) if hparams.replace_unk else None


def refuse_subwords(hparams: Architecture) -> None:
    """Raises UsageError if text is segmented into subwords, which no lexicon has."""
    if hparams.subword_option:
        raise UsageError(
            "a lexicon of replace_unk is about words: "
            f"subword_option={hparams.subword_option!r} leaves hardly any unknown"
        )


def write(name: PathLike, entries: Iterable[Entry]) -> None:
    """Writes a lexicon; raises UserError if it cannot."""
    write_lines(name, (f"{e.source}\t{e.target}\t{e.weight:.6g}" for e in entries))


def read(name: PathLike) -> dict[str, str]:
    """Reads a lexicon; returns the best translation of each source word.

    Raises:
      UserError: the file cannot be read, or a line has another form.
    """
    best: dict[str, Entry] = {}
    for entry in iter_entries(name):
        other = best.get(entry.source)
        if other is None or entry.weight > other.weight:
            best[entry.source] = entry
    return {source: entry.target for source, entry in best.items()}


def iter_entries(name: PathLike) -> Iterator[Entry]:
    """Yields the lines of a lexicon; raises UserError as `read` does."""
    for number, line in enumerate(iter_lines(name), start=1):
        entry = _parse(line)
        if entry is None:
            raise UserError(
                f"{name}, line {number}: {line[:60]!r} is no line of a lexicon; expected a source "
                "word, a target word and a weight from 0 to 1"
            )
        yield entry


def _parse(line: str) -> Entry | None:
    parts = line.split("\t")  # as `write` does: a lexicon has up to millions of lines
    if len(parts) != 3 or not all(parts) or " " in line or "\r" in line:
        parts = [part for part in WHITE_SPACE.split(line) if part]
    try:
        source, target, weight = parts
        entry = Entry(source, target, float(weight))
    except ValueError:
        return None
    return entry if 0.0 <= entry.weight <= 1.0 else None
