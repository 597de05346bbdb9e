"""Files of word vectors, in the text format of word2vec, GloVe and fastText.

Each line has a word and its numbers, separated by spaces. A first line of two whole numbers, the
number of words and the width, is no vector. A run's files are `EMBED_PREFIX.src` and
`EMBED_PREFIX.tgt`.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterator

from tfmann.config import HParams
from tfmann.data.corpus_paths import parallel_paths
from tfmann.data.text_files import iter_lines
from tfmann.data.vocab import SPECIALS, Vocabulary
from tfmann.errors import UserError


def find(hparams: HParams) -> dict[str, str]:
    """Returns the files of `embed_prefix` by side, "source" and "target"; one may be missing.

    Raises:
      UserError: there is neither.
    """
    paths = parallel_paths(hparams, str(hparams.embed_prefix))
    existing = {
        side: path for side, path in zip(("source", "target"), paths) if os.path.exists(path)
    }
    if not existing:
        raise UserError(
            f"embed_prefix={hparams.embed_prefix}: there is neither {paths[0]} nor {paths[1]}"
        )
    return existing


def require(hparams: HParams) -> None:
    """Looks at the first line of each file of `embed_prefix`.

    Raises:
      UserError: there is no file, or its vectors are not as wide as embeddings.
    """
    for path in find(hparams).values():
        _, word, numbers = next(_lines(path), (0, "", ""))
        if not numbers:
            raise UserError(
                f"{path} has no word vectors; expected a word and its numbers on each line"
            )
        width = int(numbers) if _is_header(word, numbers) else len(numbers.split())
        if width != hparams.embedding_width:
            raise UserError(
                f"{path} has vectors of {width} numbers, and embeddings are "
                f"{hparams.embedding_width} wide: expected --embedding_size={width}, or other "
                "vectors"
            )


def read(path: str, vocabulary: Vocabulary, width: int) -> dict[str, array[float]]:
    """Reads the vectors of a vocabulary's words; of equal words the first counts.

    `<unk>`, `<s>` and `</s>` mean something else in every model, and are left out. So are words
    with a space, which some published files have and no vocabulary.

    Args:
      path: the file.
      vocabulary: of the words to read.
      width: of a vector.

    Returns:
      the vector of each word, in float32.

    Raises:
      UserError: the file cannot be read, a vector has fewer than `width` numbers or an
        infinite one, all have more, or no word is in the vocabulary.
    """
    found: dict[str, array[float]] = {}
    too_wide = ""
    for number, word, numbers in _lines(path):
        is_wanted = word in vocabulary and word not in SPECIALS and word not in found
        if not is_wanted or (number == 1 and _is_header(word, numbers)):
            continue
        fields = numbers.split()
        if len(fields) <= width:  # or a word with a space, of which `word` is the first part
            found[word] = _vector(fields, width, f"{path}, line {number}")
        elif not too_wide:
            too_wide = f"{path}, line {number}: expected {width} numbers, found {len(fields)}"
    if too_wide and not found:
        raise UserError(too_wide)
    if not found:
        raise UserError(
            f"{path} has a vector for none of the {len(vocabulary):,} words of the vocabulary, "
            f"such as {vocabulary.tokens[-1]!r}: expected the same words or subwords"
        )
    return found


def _lines(path: str) -> Iterator[tuple[int, str, str]]:
    """Yields the number, the first field and the others, not yet split, of each line with text."""
    for number, line in enumerate(iter_lines(path), start=1):
        word, _, numbers = line.replace("\t", " ").strip(" \r").partition(" ")
        if word:
            yield number, word, numbers


def _is_header(word: str, numbers: str) -> bool:
    """Returns whether a first line has the number of words and the width."""
    return word.isdecimal() and numbers.isdecimal()


def _vector(fields: list[str], width: int, where: str) -> array[float]:
    try:
        vector = array("f", map(float, fields))
    except ValueError as error:
        raise UserError(f"{where}: {error}; expected a word and {width} numbers") from None
    if len(vector) != width or not all(map(math.isfinite, vector)):
        raise UserError(f"{where}: expected a word and {width} finite numbers, found {len(vector)}")
    return vector
