"""The synthetic corpus as if it were a published one: a manifest, and a report of what is there."""

from __future__ import annotations

import os

from tfmann.corpus import datasets
from tfmann.corpus.files import PathLike
from tfmann.corpus.manifest import FileEntry, Manifest
from tfmann.corpus.synthetic.writer import write_corpus

SEED = 1


def as_report(
    directory: PathLike, train: int, dev: int, test: int, document_tense: bool = False
) -> datasets.Report:
    """Writes the corpus if it is not there, and checks it.

    Args:
      directory: where it goes.
      train: sentence pairs to train on.
      dev: to choose a checkpoint by.
      test: to score.
      document_tense: only the first source sentence of a document says when it happens.

    Raises:
      UserError: what is there is of other sizes, or cannot be written.
    """
    if not os.path.exists(os.path.join(directory, "vocab.tgt")):
        write_corpus(directory, train, dev, test, SEED, document_tense)
    return datasets.use_local(_manifest({"train": train, "dev": dev, "test": test}), directory)


def _manifest(pairs: dict[str, int]) -> Manifest:
    def entry(name: str, lines: int | None) -> FileEntry:
        return FileEntry(path=name, urls=(), sha256=None, bytes=None, lines=lines)

    sides = ("src", "tgt")
    suffixes = (*sides, "docs")
    files = [entry(f"{split}.{suffix}", n) for split, n in pairs.items() for suffix in suffixes]
    return Manifest(
        name="synthetic",
        description=f"an invented language, from tfmann.corpus.synthetic with seed {SEED}",
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
