"""Does a document keep to its tense? Of text that the synthetic corpus's grammar wrote.

There only the first source sentence of a document says when it happens. A translator that uses the
sentences before one has to get the tense of the others right, and to get it wrong, as often as
chance has it, where it reads them in the documents of others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfmann.corpus.documents import beginnings
from tfmann.corpus.synthetic import tense_of
from tfmann.evaluation.bleu import check_parallel


class Tense(NamedTuple):
    """How many sentences have their reference's tense, of those that are not a document's first."""

    right: int
    sentences: int


def tense_accuracy(
    translations: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    documents: Sequence[int],
) -> Tense:
    """Counts the sentences that are told in the reference's tense.

    The first of a document is left out, and so is one whose reference shows no single tense. A
    translation that shows none is wrong.

    Args:
      translations: words of each sentence, a list each.
      references: the same.
      documents: each sentence's document, a number that changes where a document ends.

    Raises:
      UserError: the three differ in length, or there is nothing.
    """
    check_parallel(
        [
            ("the translations", translations),
            ("the references", references),
            ("the documents", documents),
        ]
    )
    right = sentences = 0
    for index in _later(documents):
        wanted = tense_of(references[index])
        if wanted is not None:
            sentences += 1
            right += tense_of(translations[index]) == wanted
    return Tense(right, sentences)


def shuffle_between_documents(documents: Sequence[int], seed: int) -> np.ndarray:
    """Which sentence stands where when all but the first of each document change places.

    Args:
      documents: as of `tense_accuracy`.
      seed: of the exchange, which knows nothing of the documents: that a sentence comes back into
        its own is chance.

    Returns:
      `order` `[n]`: at place i, in the document of i, now stands sentence `order[i]`.
    """
    order = np.arange(len(documents))
    later = _later(documents)
    order[later] = np.random.Generator(np.random.PCG64(seed)).permutation(later)
    return order


def put_back(lines: Sequence[str], order: np.ndarray) -> list[str]:
    """Undoes `shuffle_between_documents`: line i goes back to the place of sentence `order[i]`."""
    return [lines[place] for place in np.argsort(order)]


def _later(documents: Sequence[int]) -> np.ndarray:
    """Indexes of the sentences that are not the first of their document."""
    return np.flatnonzero(beginnings(documents) != np.arange(len(documents)))
