"""Contrastive scoring: does a model prefer a right translation to wrong ones, in its document?

A sentence with contrasts is an item. It is right if the model gives its reference a greater
log-probability than each contrast, with the references before it in the document as the history of
all (Bawden et al. 2018, "Evaluating Discourse Phenomena in Neural Machine Translation").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, NamedTuple

from tfmann.errors import UserError

SEPARATOR = " ||| "

# From pairs of source and translation, the number of each one's document, and whether it belongs to
# the history of later ones, to log-probabilities.
Score = Callable[[Sequence[tuple[str, str]], Sequence[int], Sequence[bool]], Sequence[float]]


class Accuracy(NamedTuple):
    """Items whose reference is preferred to all contrasts."""

    right: int
    items: int


def read_contrasts(lines: Sequence[str], name: str) -> list[list[str]]:
    """Returns the contrasts of each line: those between `|||`, none of a blank line.

    Raises:
      UserError: there is no contrast in any line, or one is blank; names the line, and the file
        by `name`.
    """
    contrasts = [line.split(SEPARATOR.strip()) if line.strip() else [] for line in lines]
    for number, several in enumerate(contrasts, start=1):
        if not all(contrast.strip() for contrast in several):
            raise UserError(f"{name}, line {number}: there is a blank contrast next to |||")
    if not any(contrasts):
        raise UserError(f"{name}: expected a contrast in some line, and all lines are blank")
    return [[contrast.strip() for contrast in several] for several in contrasts]


def contrast_scores(
    score: Score,
    pairs: Sequence[tuple[str, str]],
    contrasts: Sequence[Sequence[str]],
    documents: Sequence[int],
) -> list[list[float]]:
    """Scores each sentence's reference and contrasts, after the references before them.

    Args:
      score: scores translations, with the remembered ones before them in the same document as their
        history.
      pairs: source and reference of each sentence.
      contrasts: wrong translations of each sentence.
      documents: the number of each sentence's document.

    Returns:
      by sentence, the log-probability of the reference and of each contrast.
    """
    forced: list[tuple[str, str]] = []
    numbers: list[int] = []
    remembered: list[bool] = []
    for (source, reference), several, document in zip(pairs, contrasts, documents):
        forced += [(source, contrast) for contrast in (*several, reference)]
        numbers += [document] * (len(several) + 1)
        remembered += [False] * len(several) + [True]
    scores = iter(score(forced, numbers, remembered))
    by_sentence = [[next(scores) for _ in (*several, "the reference")] for several in contrasts]
    return [[*of_sentence[-1:], *of_sentence[:-1]] for of_sentence in by_sentence]


def accuracy(scores: Sequence[Sequence[float]]) -> Accuracy:
    """Counts the items and those whose reference, the first, has a greater score than the rest."""
    items = [(right, wrong) for right, *wrong in scores if wrong]
    return Accuracy(sum(right > max(wrong) for right, wrong in items), len(items))
