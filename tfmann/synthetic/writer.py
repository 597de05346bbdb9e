"""The synthetic corpus on disk: three splits that share no sentence pair, and vocabularies."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

from tfmann.errors import UserError
from tfmann.synthetic.documents import Example, examples
from tfmann.synthetic.draws import Draws
from tfmann.synthetic.phrases import Phrase
from tfmann.synthetic.style import PLAIN, Style
from tfmann.utils import atomic_files

SPLIT_FILES = ("src", "tgt", "docs", "align")
SPECIALS = ("<unk>", "<s>", "</s>")
_TITLE = "# A synthetic parallel corpus"
_README = """{title}

This text is SYNTHETIC: a seeded grammar of tfmann wrote it, in an invented source language and a
strictly regular English. No person said any of it. Numbers measured on it say how a model handles
the phenomena it was built from; they say nothing about real text and have to be labelled synthetic.

Made by:

    tfmann synthetic --output_dir=DIR --train={train} --dev={dev} --test={test} \\
        --seed={seed}{flags}

| file | one line |
| --- | --- |
| `{{train,dev,test}}.src`, `.tgt` | is a sentence, its words separated by spaces |
| `.docs` | is the number of the document that the sentence belongs to, counted in its split |
| `.align` | is the gold word alignment, `i-j`: source word i, target word j, from 0 |
| `vocab.src`, `vocab.tgt` | is a word of train, frequent words first, after the special ones |

Tense: {tense}
Topic: {topic}

Dev and test use only words that train has, and share no sentence pair with train or each other.
"""
_TENSE = {
    False: "every source sentence has a tense particle and alone determines its translation.",
    True: "only the first source sentence of a document says when it happens, by a time adverb.",
}
_TOPIC = {
    False: "a sentence with an ambiguous noun has another word that shows its topic.",
    True: "the first sentence of a document shows it, others may not; all have an ambiguous noun.",
}


def write_corpus(
    directory: str | os.PathLike[str],
    train: int,
    dev: int,
    test: int,
    seed: int,
    style: Style = PLAIN,
) -> None:
    """Writes splits of these numbers of sentence pairs, their vocabularies and a README.

    The same arguments give the same bytes. The files are moved into place when all are complete.
    Memory grows by about a hundred bytes for each distinct sentence pair.

    Raises:
        UserError: the directory has other files of these names or cannot be written to, a size is
            negative or train empty, or train has too few words for dev and test.
    """
    sizes = {"train": train, "dev": dev, "test": test}
    if train < 1 or dev < 0 or test < 0:
        raise UserError(f"synthetic corpus: train must be at least 1, dev and test 0; got {sizes}")
    readme = _README.format(
        title=_TITLE,
        flags=style.flags(),
        seed=seed,
        tense=_TENSE[style.document_tense],
        topic=_TOPIC[style.document_topic],
        **sizes,
    )
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_files.temporary_folder(str(folder / ".writing")) as temporary:
            _write(Path(temporary), ["README"], ((line,) for line in readme.splitlines()))
            _write_splits(Path(temporary), sizes, seed, style)
            names = sorted(os.listdir(temporary))  # README first: it marks the others as ours
            _refuse_foreign_files(folder, names)
            for name in names:
                os.replace(Path(temporary, name), folder / name)
    except OSError as error:
        where = error.filename or folder
        raise UserError(f"{where}: cannot be written: {error.strerror}") from error


def _refuse_foreign_files(folder: Path, names: Sequence[str]) -> None:
    """Refuses to overwrite files unless a README shows that they are a synthetic corpus."""
    readme = folder / "README"
    if readme.exists() and readme.read_text("utf-8", "replace").startswith(_TITLE):
        return
    for name in names:
        if (folder / name).exists():
            raise UserError(
                f"{folder / name}: would be written over, but is not of a synthetic corpus; "
                "choose another directory"
            )


def _write_splits(folder: Path, sizes: dict[str, int], seed: int, style: Style) -> None:
    words: tuple[Counter[str], Counter[str]] = Counter(), Counter()  # source, target; of train
    written: set[bytes] = set()  # digests of the pairs written so far

    def accept(sentence: Phrase) -> bool:
        """Returns whether a pair is new and has only words of train."""
        sides = [word.text for word in sentence.source], [image.text for image in sentence.target]
        known = all(word in counts for side, counts in zip(sides, words) for word in side)
        return known and _digest(*sides) not in written

    def lines(pairs: Iterable[Example], counts: Sequence[Counter[str]]) -> Iterator[Sequence[str]]:
        for pair in pairs:
            sides = pair.source, pair.target
            written.add(_digest(*sides))
            for side, count in zip(sides, counts):
                count.update(side)
            links = (f"{i}-{j}" for i, j in pair.alignment)
            yield " ".join(pair.source), " ".join(pair.target), str(pair.document), " ".join(links)

    for split, size in sizes.items():
        of_train = split == "train"
        of_split = style if of_train else style.for_evaluation()
        pairs = examples(Draws(seed, split), of_split, None if of_train else accept)
        names = [f"{split}.{suffix}" for suffix in SPLIT_FILES]
        _write(folder, names, lines(itertools.islice(pairs, size), words if of_train else ()))
    for name, count in zip(("vocab.src", "vocab.tgt"), words):
        ranked = sorted(count.items(), key=lambda item: (-item[1], item[0]))
        _write(folder, [name], ((word,) for word in (*SPECIALS, *(word for word, _ in ranked))))


def _digest(source: Sequence[str], target: Sequence[str]) -> bytes:
    return blake2b(f"{' '.join(source)}\t{' '.join(target)}".encode(), digest_size=10).digest()


def _write(folder: Path, names: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Writes cell k of every row as a line of file k, and syncs the files."""
    with contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(open(folder / name, "w", encoding="utf-8", newline="\n"))
            for name in names
        ]
        for row in rows:
            for file, cell in zip(files, row):
                file.write(cell + "\n")
        for file in files:
            file.flush()
            os.fsync(file.fileno())
