"""The synthetic corpus in the form of a published one: a manifest and a report of its files."""

from __future__ import annotations

import os

from tfmann.data.text_files import iter_lines
from tfmann.datasets import catalog
from tfmann.datasets.manifest import FileEntry, Manifest
from tfmann.errors import UserError
from tfmann.synthetic.documents import generate
from tfmann.synthetic.style import PLAIN, Style
from tfmann.synthetic.writer import write_corpus
from tfmann.utils.files import PathLike

SEED = 1
_COMPARED = 500  # pairs at the beginning of train, a tenth of a second


def as_report(
    directory: PathLike,
    train: int,
    dev: int,
    test: int,
    style: Style = PLAIN,
    given: bool = False,
) -> catalog.Report:
    """Writes the corpus if it is missing, and checks it.

    Args:
      directory: its folder.
      train: number of sentence pairs for training.
      dev: number of sentence pairs that checkpoints are chosen by.
      test: number of sentence pairs for the scores.
      style: what its sentences and documents are like.
      given: whether its folder was chosen by the user: its text may be of another version or seed.

    Raises:
      UserError: existing files have other sizes, or other text unless it is given; or they cannot
        be written.
    """
    if not os.path.exists(os.path.join(directory, "vocab.tgt")):
        write_corpus(directory, train, dev, test, SEED, style)
    elif not given:
        _require_current(directory, style)
    return catalog.use_local(_manifest({"train": train, "dev": dev, "test": test}), directory)


def _require_current(directory: PathLike, style: Style) -> None:
    """Compares the beginning of a corpus with what this version writes.

    Raises:
      UserError: it begins otherwise, as that of another version, seed or style does.
    """
    examples = generate(_COMPARED, SEED, style)
    for suffix, written in (
        ("src", [" ".join(example.source) for example in examples]),
        ("tgt", [" ".join(example.target) for example in examples]),
    ):
        path = os.path.join(directory, f"train.{suffix}")
        for number, (line, expected) in enumerate(zip(iter_lines(path), written), start=1):
            if line != expected:
                raise UserError(
                    f"{path}: line {number} is not what this version of tfmann writes; expected: "
                    f"{expected}\nThe runs in its folder were trained on it: choose another "
                    "--out_dir. To use this corpus as it is, give its folder as --corpus_dir"
                )


def _manifest(pairs: dict[str, int]) -> Manifest:
    def entry(name: str, lines: int | None) -> FileEntry:
        return FileEntry(path=name, urls=(), sha256=None, bytes=None, lines=lines)

    sides = ("src", "tgt")
    suffixes = (*sides, "docs")
    files = [entry(f"{split}.{suffix}", n) for split, n in pairs.items() for suffix in suffixes]
    return Manifest(
        name="synthetic",
        description=f"an invented language, from tfmann.synthetic with seed {SEED}",
        licence="that of this program, which writes it",
        tokenisation="words and full stops",
        note="",
        obtain="",
        source="src",
        target="tgt",
        splits={split: split for split in pairs},
        more_tests=(),
        vocabularies="vocab",
        alignments="test.align",
        files=(
            *files,
            *(entry(f"vocab.{side}", None) for side in sides),
            entry("test.align", pairs["test"]),
        ),
        archives=(),
    )
