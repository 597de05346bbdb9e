"""Which length penalty suits a model: one search of a development set, ranked anew by each weight.

Beam search ranks translations by `log P / ((5 + len) / 6)^alpha` (Wu et al. 2016, section 7). Its n
best, divided by another weight's penalty, are nearly those that a search with that weight finds:
so one search answers for all weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tfmann.decoding.lines import Translation
from tfmann.evaluation import bleu
from tfmann.hparams import HParams

WEIGHTS = tuple(number / 5 for number in range(11))  # where none are given: 0, 0.2, ..., 2


class Point(NamedTuple):
    """What one weight makes of a development set."""

    weight: float
    bleu: float
    brevity_penalty: float
    length_ratio: float


def search_settings(hparams: HParams) -> dict[str, Any]:
    """The settings of a search whose n-best lists `choose` reads."""
    return {"num_translations_per_input": hparams.beam_width}


def choose(
    n_best: Iterable[Sequence[Translation]],
    references: Sequence[Sequence[str]],
    hparams: HParams,
    weights: Sequence[float],
) -> tuple[Point, list[Point]]:
    """The weight with the greatest BLEU, the smallest of equals, and what each comes to.

    Args:
      n_best: translations of each line, as a search with `hparams` found them.
      references: one list of lines a reference set.
      hparams: those of the search.
      weights: to choose from.
    """
    lists = list(n_best)
    points = []
    for weight in weights:
        best = [_best(one, hparams.length_penalty_weight, weight).text for one in lists]
        score = bleu.evaluate(
            best, references, ("bleu",), hparams.bleu_tokenize, hparams.bleu_lowercase
        )[0]
        points.append(Point(weight, score.value, *bleu.lengths(score.details)))
    return max(points, key=lambda point: (point.bleu, -point.weight)), points


def _best(n_best: Sequence[Translation], searched_with: float, weight: float) -> Translation:
    """The first of a list that was ranked by one weight, ranked by another."""
    return max(n_best, key=lambda one: one.score * _penalty(one) ** (searched_with - weight))


def _penalty(translation: Translation) -> float:
    """`(5 + len) / 6`, `</s>` counted."""
    return (5.0 + len(translation.tokens)) / 6.0


def lines(chosen: Point, points: Sequence[Point]) -> list[str]:
    """What a log says: the weights, and which was taken."""
    shown = [
        f"  {point.weight:<7g} BLEU {point.bleu:6.2f}  brevity penalty {point.brevity_penalty:.3f}"
        f"  length ratio {point.length_ratio:.3f}{'  *' if point == chosen else ''}"
        for point in points
    ]
    return ["length_penalty_weight on dev:", *shown]
