"""The choice of a length penalty: one search of a development set, reranked by each weight.

Beam search ranks translations by `log P / ((5 + len) / 6)^alpha` (Wu et al. 2016, section 7). Its n
best, divided by another weight's penalty, are nearly those that a search with that weight finds, so
one search is enough for all weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tfmann.config import SearchSettings, TranslationSettings
from tfmann.decoding.text_processor import Translation
from tfmann.evaluation import bleu

WEIGHTS = tuple(number / 5 for number in range(11))  # the default: 0, 0.2, ..., 2


class Point(NamedTuple):
    """The scores of a development set with one weight."""

    weight: float
    bleu: float
    brevity_penalty: float
    length_ratio: float


def search_settings(hparams: SearchSettings) -> dict[str, Any]:
    """Returns the settings of a search whose n-best lists `choose` needs."""
    return {"num_translations_per_input": hparams.beam_width}


def choose(
    n_best: Iterable[Sequence[Translation]],
    references: Sequence[Sequence[str]],
    hparams: TranslationSettings,
    weights: Sequence[float],
) -> tuple[Point, list[Point]]:
    """Returns the point with the greatest BLEU (the smallest weight of equals), and all points.

    Args:
      n_best: translations of each line, from a search with `hparams`.
      references: one list of lines per reference set.
      hparams: of the search.
      weights: to choose from.
    """
    lists = list(n_best)
    points = []
    for weight in weights:
        best = [_best(n_best, hparams.length_penalty_weight, weight).text for n_best in lists]
        score = bleu.evaluate(
            best, references, ("bleu",), hparams.bleu_tokenize, hparams.bleu_lowercase
        )[0]
        points.append(Point(weight, score.value, *bleu.lengths(score.details)))
    return max(points, key=lambda point: (point.bleu, -point.weight)), points


def _best(n_best: Sequence[Translation], searched_with: float, weight: float) -> Translation:
    """Returns the best of a list that was ranked by one weight, ranked by another."""
    exponent = searched_with - weight
    return max(n_best, key=lambda candidate: candidate.score * _penalty(candidate) ** exponent)


def _penalty(translation: Translation) -> float:
    """Returns `(5 + len) / 6`, where len includes `</s>`."""
    return (5.0 + len(translation.tokens)) / 6.0


def lines(chosen: Point, points: Sequence[Point]) -> list[str]:
    """Returns the lines of a log: all weights, the chosen one marked."""
    lines = [
        f"  {point.weight:<7g} BLEU {point.bleu:6.2f}  brevity penalty {point.brevity_penalty:.3f}"
        f"  length ratio {point.length_ratio:.3f}{'  *' if point == chosen else ''}"
        for point in points
    ]
    return ["length_penalty_weight on dev:", *lines]
