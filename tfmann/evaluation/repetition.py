"""N-grams that translations repeat and their references do not: a sign of over-translation.

It needs no alignment. An n-gram that occurs c times in a translation is repeated c - max(1, r)
times, where r is the greatest number of times that it occurs in one of the sentence's references.
These are the over-translated n-grams of OTEM (Yang et al. 2018): neither a repetition that the
reference has too nor a merely different word counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tfmann.errors import UserError

ORDERS = (1, 2, 3, 4)


class Repetition(NamedTuple):
    """N-grams of one order that each of N translations repeats beyond its references.

    Attributes:
      order: n.
      repeated: `[N]` repeated n-grams of each translation.
      ngrams: `[N]` all n-grams of each translation.
    """

    order: int
    repeated: np.ndarray
    ngrams: np.ndarray

    @property
    def share(self) -> float:
        """The share of the translations' n-grams, from 0 to 1."""
        total = self.ngrams.sum()
        return float(self.repeated.sum() / total) if total else 0.0


def repetition(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]
) -> list[Repetition]:
    """Counts the repeated n-grams of a set, for each n of `ORDERS`.

    Args:
      hypotheses: the words of each translation.
      references: one list per reference set, each as long as ``hypotheses``.

    Raises:
      UserError: there is no reference set, or one has another length than the translations.
    """
    if not references:
        raise UserError("no references: expected at least one, since it shows what may be repeated")
    for lines in references:
        if len(lines) != len(hypotheses):
            raise UserError(f"{len(hypotheses)} translations do not match {len(lines)} references")
    return [_of_order(order, hypotheses, references) for order in ORDERS]


def _of_order(
    order: int,
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
) -> Repetition:
    repeated, total = np.zeros((2, len(hypotheses)), np.int64)
    for index, (hypothesis, *references_of_line) in enumerate(zip(hypotheses, *references)):
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in references_of_line:
            allowed |= Counter(_ngrams(reference, order))
        counts = Counter(_ngrams(hypothesis, order))
        repeated[index] = sum(
            max(0, count - max(1, allowed[gram])) for gram, count in counts.items()
        )
        total[index] = sum(counts.values())
    return Repetition(order, repeated, total)


def _ngrams(words: Sequence[str], order: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[i : i + order]) for i in range(len(words) - order + 1))
