"""Contrastive scoring: does a model prefer a right translation to wrong ones, in its document?

A sentence with contrasts is an item. It is right if the model gives its reference a greater
log-probability than each contrast, with the references before it in the document as the history of
all (Bawden et al. 2018, "Evaluating Discourse Phenomena in Neural Machine Translation").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, NamedTuple

from tfmann.data.documents import document_starts
from tfmann.errors import UserError

SEPARATOR = " ||| "

# Pairs of source and translation, and the number of each one's document, to log-probabilities.
Score = Callable[[Sequence[tuple[str, str]], Sequence[int]], Sequence[float]]


class Accuracy(NamedTuple):
    """Items whose reference is preferred to all contrasts."""

    right: int
    items: int


def read_contrasts(lines: Sequence[str]) -> list[list[str]]:
    """Returns the contrasts of each line: those between `|||`, none of a blank line.

    Raises:
      UserError: there is no contrast in any line, or one is blank; names the line.
    """
    contrasts = [line.split(SEPARATOR.strip()) if line.strip() else [] for line in lines]
    for number, several in enumerate(contrasts, start=1):
        if not all(contrast.strip() for contrast in several):
            raise UserError(f"line {number} of the contrasts: there is a blank one next to |||")
    if not any(contrasts):
        raise UserError("the contrasts: expected one in some line, and all lines are blank")
    return [[contrast.strip() for contrast in several] for several in contrasts]


def contrast_scores(
    score: Score,
    pairs: Sequence[tuple[str, str]],
    contrasts: Sequence[Sequence[str]],
    documents: Sequence[int],
    reads_documents: bool,
) -> list[list[float]]:
    """Scores the contrasts of each sentence, after the references before it in its document.

    Args:
      score: scores translations, with those before them in the same document as their history.
      pairs: source and reference of each sentence.
      contrasts: wrong translations of each sentence.
      documents: the number of each sentence's document.
      reads_documents: whether the history matters.

    Returns:
      the log-probability of each contrast, by sentence.
    """
    starts = document_starts(documents)
    forced: list[tuple[str, str]] = []
    numbers: list[int] = []
    last: list[int] = []  # the index of each contrast in `forced`
    for index, several in enumerate(contrasts):
        before = list(pairs[starts[index] : index]) if reads_documents else []
        for contrast in several:
            forced += [*before, (pairs[index][0], contrast)]
            numbers += [len(last)] * (len(before) + 1)
            last.append(len(forced) - 1)
    scores = score(forced, numbers)
    ordered_scores = iter([scores[index] for index in last])
    return [[next(ordered_scores) for _ in several] for several in contrasts]


def accuracy(references: Sequence[float], contrasts: Sequence[Sequence[float]]) -> Accuracy:
    """Counts the items and those whose reference has a greater score than all contrasts."""
    items = [(right, wrong) for right, wrong in zip(references, contrasts) if wrong]
    return Accuracy(sum(right > max(wrong) for right, wrong in items), len(items))
