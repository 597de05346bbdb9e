"""Scores by gold links on the resamples of the test sentences that all runs share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfmann.evaluation import significance
from tfmann.papers import metrics, output_scores


def take(scores: Mapping[str, Any], documents: Sequence[int] | None) -> dict[str, Any]:
    """Takes the counts by sentence out of scores, and returns their shares on each resample.

    Args:
      scores: `alignment` and `adequacy`, either or both, as `--mode=eval` makes them. They lose
        `by_sentence`.
      documents: the number of each sentence's document; None if unknown.

    Returns:
      for each, as `output_scores.resample`, shares in hundredths of a percent: `aer`, or `under`
      and `over`.
    """
    by_document, entry = output_scores.documents_entry([documents])
    resamples = {}
    for group, shares in (("alignment", _alignment_shares), ("adequacy", _adequacy_shares)):
        columns = scores.get(group, {}).pop("by_sentence", None)
        if columns is None:  # no such scores, or of before there were counts
            continue
        counts = np.array(list(columns.values())).T  # [sentences, columns]
        totals = significance.resampled_totals(counts, documents=documents if by_document else None)
        resamples[group] = {
            "sentences": len(counts),
            **entry,
            "seed": significance.RESAMPLES_SEED,
            **shares(dict(zip(columns, totals.T))),
        }
    return resamples


def _alignment_shares(totals: Mapping[str, np.ndarray]) -> dict[str, list[int]]:
    right = totals["in_sure"] + totals["in_possible"]
    return {"aer": _hundredths(1 - right / (totals["links"] + totals["sure"]))}


def _adequacy_shares(totals: Mapping[str, np.ndarray]) -> dict[str, list[int]]:
    judged = np.maximum(totals["judged"], 1)  # few sentences may have none in a resample
    return {name: _hundredths(totals[name] / judged) for name in ("under", "over")}


def _hundredths(shares: np.ndarray) -> list[int]:
    """Returns shares in hundredths of a percent."""
    return [int(value) for value in np.rint(100 * metrics.RESAMPLED_UNITS * shares)]
