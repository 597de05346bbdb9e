"""Shares of words, sentences and n-grams on the resamples of test that all runs share.

`output_scores.resample` does the same for BLEU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tfmann.evaluation import significance
from tfmann.papers import metrics, output_scores

Counts = Mapping[str, np.ndarray]


def _part_of(part: str, whole: str) -> Callable[[Counts], np.ndarray]:
    # A resample of few sentences may have no noun, no judged word, no bigram.
    return lambda counts: counts[part] / np.maximum(counts[whole], 1)


def _alignment_error(counts: Counts) -> np.ndarray:
    right = counts["in_sure"] + counts["in_possible"]
    return 1 - right / (counts["links"] + counts["sure"])


# By group of scores: its shares, from sums of its counts.
_SHARES: Mapping[str, Mapping[str, Callable[[Counts], np.ndarray]]] = {
    "alignment": {"aer": _alignment_error},
    "adequacy": {"under": _part_of("under", "judged"), "over": _part_of("over", "judged")},
    "repetition": {"repeated": _part_of("repeated", "ngrams")},
    "tense": {"right": _part_of("right", "sentences")},
    "senses": {"right": _part_of("right", "nouns")},
    "lexical_consistency": {"alike": _part_of("alike", "pairs")},
}


def take(scores: Mapping[str, Any], documents: Sequence[int] | None) -> dict[str, Any]:
    """Takes the counts by sentence out of scores, and returns their shares on each resample.

    Args:
      scores: groups of scores by name; those with resamples here lose `by_sentence`, the number
        of things in each sentence by the name of the count.
      documents: the number of each sentence's document; None if unknown.

    Returns:
      for each group that had counts, what `of_sentences` returns.
    """
    groups = {group: scores.get(group, {}).pop("by_sentence", None) for group in _SHARES}
    return {
        group: of_sentences(group, counts, documents) for group, counts in groups.items() if counts
    }


def of_sentences(
    group: str, counts: Mapping[str, Sequence[int] | np.ndarray], documents: Sequence[int] | None
) -> dict[str, Any]:
    """Returns the shares of a group on each resample.

    Args:
      group: a key of `_SHARES`.
      counts: the number of things in each sentence, by name.
      documents: the number of each sentence's document; None if unknown.

    Returns:
      as `output_scores.resample`: `sentences`, `documents` or `few_documents`, `seed`; the shares
      by name, in hundredths of a percent.
    """
    by_document, entry = output_scores.documents_entry([documents])
    table = np.array(list(counts.values())).T  # [sentences, counts]
    totals = significance.resampled_totals(table, documents=documents if by_document else None)
    return _entry(group, len(table), entry, dict(zip(counts, totals.T)))


def of_documents(
    group: str, tests: Sequence[Mapping[str, np.ndarray]], documents: Sequence[Sequence[int]]
) -> dict[str, Any]:
    """Returns the same for counts by document, summed over all tests.

    Args:
      group: a key of `_SHARES`.
      tests: for each test, the number of things in each document, by name.
      documents: for each test, the number of each sentence's document.

    Returns:
      as `of_sentences`; empty if a test has too few documents to resample them.
    """
    by_document, entry = output_scores.documents_entry(documents)
    if not by_document:
        return {}
    of_tests = [
        significance.resampled_totals(
            np.stack(list(counts.values()), axis=1), seed=significance.seed_of_test(number)
        )
        for number, counts in enumerate(tests)
    ]
    totals = dict(zip(tests[0], np.sum(of_tests, axis=0).T))
    return _entry(group, sum(map(len, documents)), entry, totals)


def _entry(
    group: str, sentences: int, documents: Mapping[str, int], totals: Counts
) -> dict[str, Any]:
    shares = {name: share(totals) for name, share in _SHARES[group].items()}
    return {
        "sentences": sentences,
        **documents,
        "seed": significance.RESAMPLES_SEED,
        **{
            name: [int(value) for value in np.rint(100 * metrics.RESAMPLED_UNITS * share)]
            for name, share in shares.items()
        },
    }
