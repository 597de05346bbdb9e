"""The file of a lexicon: a source word, a target word and a weight from 0 to 1 a line.

The three are separated by white space. The weight may be a probability or any other measure of
association: of several lines for a source word the one of the greatest weight counts, of equal
ones the first. An empty file is a lexicon without words.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from tfmann.corpus.files import PathLike, iter_lines, write_lines
from tfmann.corpus.vocab import WHITE_SPACE
from tfmann.errors import UsageError, UserError
from tfmann.hparams import HParams

_NAME = "lexicon.txt"


class Entry(NamedTuple):
    """A word and its translation."""

    source: str
    target: str
    weight: float


def path(hparams: HParams, out_dir: str) -> str:
    """The file of a run's lexicon: `lexicon_file`, or a place in the run's folder."""
    return hparams.lexicon_file or os.path.join(out_dir, _NAME)


def require(hparams: HParams, out_dir: str) -> None:
    """Raises UserError where `replace_unk` is asked for and there is no lexicon."""
    place = path(hparams, out_dir)
    if hparams.replace_unk and not os.path.exists(place):
        raise UserError(
            f"replace_unk needs a lexicon, and there is no file {place}: learn it with "
            "--mode=lexicon, or give one as --lexicon_file"
        )


def load(hparams: HParams, out_dir: str) -> dict[str, str] | None:
    """Reads the lexicon of a run, or returns None where `replace_unk` is not asked for.

    Raises:
      UserError: there is none, or it cannot be read.
    """
    require(hparams, out_dir)
    return read(path(hparams, out_dir)) if hparams.replace_unk else None


def refuse_subwords(hparams: HParams) -> None:
    """Raises UsageError where text is cut into subwords, which a lexicon does not have."""
    if hparams.subword_option:
        raise UsageError(
            "a lexicon of replace_unk is about words: "
            f"subword_option={hparams.subword_option!r} leaves hardly any unknown"
        )


def write(place: PathLike, entries: Iterable[Entry]) -> None:
    """Writes a lexicon; raises UserError if it cannot."""
    write_lines(place, (f"{e.source}\t{e.target}\t{e.weight:.6g}" for e in entries))


def read(place: PathLike) -> dict[str, str]:
    """Reads a lexicon: the best translation of each source word.

    Raises:
      UserError: the file cannot be read, or a line is none of a lexicon.
    """
    best: dict[str, Entry] = {}
    for number, line in enumerate(iter_lines(place), start=1):
        entry = _parse(line)
        if entry is None:
            raise UserError(
                f"{place}, line {number}: {line[:60]!r} is no line of a lexicon; expected a source "
                "word, a target word and a weight from 0 to 1"
            )
        known = best.get(entry.source)
        if known is None or entry.weight > known.weight:
            best[entry.source] = entry
    return {source: entry.target for source, entry in best.items()}


def _parse(line: str) -> Entry | None:
    parts = [part for part in WHITE_SPACE.split(line) if part]
    try:
        source, target, weight = parts
        entry = Entry(source, target, float(weight))
    except ValueError:
        return None
    return entry if 0.0 <= entry.weight <= 1.0 else None
