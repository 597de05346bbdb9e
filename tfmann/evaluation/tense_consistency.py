"""The consistency of tense in documents of the synthetic corpus.

There, only the first source sentence of a document reveals its tense. A translator that uses the
previous sentences should get the tense of the others right, and only as often as by chance with the
history of another document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfmann.data.documents import later_sentences
from tfmann.evaluation.bleu import check_parallel
from tfmann.synthetic import tense_of


class Tense(NamedTuple):
    """Which of N sentences count, and which of them are in their reference's tense.

    Attributes:
      right: `[N]` 0 or 1.
      sentences: `[N]` 0 or 1.
    """

    right: np.ndarray
    sentences: np.ndarray


def tense_accuracy(
    translations: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    documents: Sequence[int],
) -> Tense:
    """Finds the sentences that are in the reference's tense.

    The first sentence of a document is left out, and so is one whose reference has no single tense.
    A translation without a tense is wrong.

    Args:
      translations: the words of each translation.
      references: the words of each reference.
      documents: each sentence's document, a number that changes where a document ends.

    Raises:
      UserError: the three differ in length, or are empty.
    """
    check_parallel(
        [
            ("the translations", translations),
            ("the references", references),
            ("the documents", documents),
        ]
    )
    right, sentences = np.zeros((2, len(references)), np.int64)
    for index in later_sentences(documents):
        expected = tense_of(references[index])
        if expected is not None:
            sentences[index] = 1
            right[index] = tense_of(translations[index]) == expected
    return Tense(right, sentences)
