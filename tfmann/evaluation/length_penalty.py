"""The choice of a length penalty: searches of a development set near the best re-ranking.

Beam search ranks translations by `log P / ((5 + len) / 6)^alpha` (Wu et al. 2016, section 7). Its n
best, ranked again with another weight's penalty, show in one search where the best weight lies. But
a search with that weight also drops other hypotheses on its way, and finds longer translations than
the lists hold. So the weights near the best are searched for themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Callable, NamedTuple

from tfmann.config import SearchSettings, TranslationSettings
from tfmann.decoding.translation import Translation
from tfmann.evaluation import bleu

WEIGHTS = tuple(number / 5 for number in range(11))  # the default: 0, 0.2, ..., 2


class Point(NamedTuple):
    """The scores of a development set with one weight.

    Attributes:
      weight: the length penalty's exponent.
      bleu: of the best translations.
      brevity_penalty: of BLEU.
      length_ratio: words of the translations by words of the reference.
      searched: the translations come from a search with this weight, not from re-ranking.
    """

    weight: float
    bleu: float
    brevity_penalty: float
    length_ratio: float
    searched: bool


def search_settings(hparams: SearchSettings) -> dict[str, Any]:
    """Returns the settings of a search whose n-best lists `choose` needs."""
    return {"num_translations_per_input": hparams.beam_width}


def choose(
    n_best: Iterable[Sequence[Translation]],
    search: Callable[[float], Iterable[str]],
    references: Sequence[Sequence[str]],
    hparams: TranslationSettings,
    weights: Sequence[float],
) -> tuple[Point, list[Point]]:
    """Returns the searched point with the greatest BLEU, and all points in the order of `weights`.

    The best weight of the re-ranked lists and its neighbours are searched, and further neighbours
    as long as the best of what was searched lies at an edge. Ties go to the smallest weight.

    Args:
      n_best: translations of each line, from a search with `hparams`.
      search: returns the best translation of each line, from a search with the given weight.
      references: one list of lines per reference set.
      hparams: of the search that gave `n_best`.
      weights: to choose from.
    """

    def point(weight: float, best: Sequence[str], searched: bool) -> Point:
        score = bleu.evaluate(
            best, references, ("bleu",), hparams.bleu_tokenize, hparams.bleu_lowercase
        )[0]
        return Point(weight, score.value, *bleu.lengths(score.details), searched)

    lists, used = list(n_best), hparams.length_penalty_weight
    points = {
        weight: point(
            weight, [_best(n_best, used, weight).text for n_best in lists], weight == used
        )
        for weight in sorted(weights)
    }
    best = _highest(points.values())
    while True:
        missing = [weight for weight in _around(points, best) if not points[weight].searched]
        for weight in missing:
            points[weight] = point(weight, list(search(weight)), True)
        best = _highest(point for point in points.values() if point.searched)
        if not missing:
            return best, [points[weight] for weight in weights]


def _highest(points: Iterable[Point]) -> Point:
    """Returns the point with the greatest BLEU; ties go to the smallest weight."""
    return max(points, key=lambda point: (point.bleu, -point.weight))


def _around(weights: Iterable[float], best: Point) -> list[float]:
    """Returns the weight of a point and its neighbours, of weights in ascending order."""
    ascending = list(weights)
    index = ascending.index(best.weight)
    return ascending[max(index - 1, 0) : index + 2]


def _best(n_best: Sequence[Translation], searched_with: float, weight: float) -> Translation:
    """Returns the best of a list that was ranked by one weight, ranked by another."""
    exponent = searched_with - weight
    return max(n_best, key=lambda candidate: candidate.score * _penalty(candidate) ** exponent)


def _penalty(translation: Translation) -> float:
    """Returns `(5 + len) / 6`, where len includes `</s>`."""
    return (5.0 + len(translation.tokens)) / 6.0


def lines(chosen: Point, points: Sequence[Point]) -> list[str]:
    """Returns the lines of a log: all weights, the searched ones named, the chosen one marked."""
    lines = [
        f"  {point.weight:<7g} BLEU {point.bleu:6.2f}  brevity penalty {point.brevity_penalty:.3f}"
        f"  length ratio {point.length_ratio:.3f}  {'searched' if point.searched else 're-ranked'}"
        f"{'  *' if point == chosen else ''}"
        for point in points
    ]
    return ["length_penalty_weight on dev:", *lines]
