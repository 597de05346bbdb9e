"""Two paired tests of whether a difference in BLEU is more than chance on this test set.

The sign test is that of Collins, Koehn & Kucerova (2005), which Tu et al. 2018 report; Meng et al.
2018 report a sign test without naming one. The paired bootstrap (Koehn 2004) is sacreBLEU's, whose
p value is about one-sided: it subtracts the mean from absolute differences. Of two equally good
systems it is below 0.05 in 11% of the cases and at most 0.44; the sign test is two-sided.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tfmann.data.documents import document_starts
from tfmann.evaluation.bleu import bleu_metric, check_parallel, number_references

RESAMPLES = 1000  # the default of sacreBLEU's paired bootstrap
RESAMPLES_SEED = 12345
ENOUGH_DOCUMENTS = 20  # to resample them: of fewer, the spread is underestimated
ENOUGH_SENTENCES = 20  # likewise


@dataclass(frozen=True)
class Comparison:
    """A system compared with its baseline on one test set.

    Attributes:
      baseline_bleu: corpus BLEU of the baseline, 0 to 100.
      system_bleu: corpus BLEU of the system.
      signature: sacreBLEU's signature of both.
      better: sentences whose translation by the system raises corpus BLEU when it replaces the
        one in the baseline's output.
      worse: sentences whose translation lowers it.
      ties: the other sentences; the sign test ignores them.
      sign_test_p: two-sided p value of the sign test.
      bootstrap_p: p value of the paired bootstrap, about one-sided.
      bootstrap_signature: sacreBLEU's signature of the bootstrap (its resamples and its seed).
    """

    baseline_bleu: float
    system_bleu: float
    signature: str
    better: int
    worse: int
    ties: int
    sign_test_p: float
    bootstrap_p: float
    bootstrap_signature: str


def compare(
    baseline_lines: Sequence[str],
    system_lines: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenize: str = "none",
    lowercase: bool = False,
) -> Comparison:
    """Compares two systems' translations of the same sentences.

    Args:
      baseline_lines: translations by the system to beat.
      system_lines: translations by the system that should be better.
      references: one list per reference set.
      tokenize: sacreBLEU's tokeniser, as in `bleu.evaluate`.
      lowercase: ignore case.

    Raises:
      UserError: there is nothing to score, or line counts differ.
      UsageError: the tokeniser is unknown.
    """
    check_parallel(
        [("the baseline's translations", baseline_lines), *number_references(references)]
    )
    check_parallel(
        [
            ("the baseline's translations", baseline_lines),
            ("the system's translations", system_lines),
        ]
    )
    metric = bleu_metric(tokenize, lowercase)
    baseline = corpus_statistics(metric, baseline_lines, references)
    system = corpus_statistics(metric, system_lines, references)
    better, worse, ties = swaps(metric, baseline, system)
    ((_,), (tested,)) = bootstrap(
        [baseline_lines, system_lines], references, [bleu_metric(tokenize, lowercase)]
    )
    return Comparison(
        baseline_bleu=corpus_score(metric, baseline).score,
        system_bleu=corpus_score(metric, system).score,
        signature=str(metric.get_signature()),
        better=better,
        worse=worse,
        ties=ties,
        sign_test_p=sign_test_p(better, worse),
        bootstrap_p=tested.p,
        bootstrap_signature=tested.signature,
    )


def compare_over_tests(
    tests: Sequence[tuple[Sequence[str], Sequence[str], Sequence[Sequence[str]]]],
    tokenize: str = "none",
    lowercase: bool = False,
) -> Comparison:
    """Compares two systems by the mean of their BLEU over several test sets.

    For one test set this is `compare`. For several, sentences are resampled within each, by draws
    of its own, and the p value is that of the difference of the means, computed as in sacreBLEU.
    The sign test counts the sentences of all test sets, each swapped within its own.

    Args:
      tests: the baseline's translations, the system's, and the reference sets of each test.
      tokenize: as in `compare`.
      lowercase: as in `compare`.
    """
    comparisons = [compare(*test, tokenize, lowercase) for test in tests]
    if len(comparisons) == 1:
        return comparisons[0]
    better, worse, ties = (
        sum(getattr(comparison, kind) for comparison in comparisons)
        for kind in ("better", "worse", "ties")
    )
    baseline, system = (
        statistics.fmean(getattr(comparison, side) for comparison in comparisons)
        for side in ("baseline_bleu", "system_bleu")
    )
    scores = [
        [resampled_bleu(lines, refs, tokenize, lowercase, seed=seed_of_test(number))
         for lines in (a, b)]
        for number, (a, b, refs) in enumerate(tests)
    ]  # fmt: skip
    baseline_scores, system_scores = zip(*scores)
    differences = np.abs(np.mean(np.subtract(system_scores, baseline_scores), axis=0))
    beyond = np.sum(differences - differences.mean() > abs(system - baseline))
    return Comparison(
        baseline_bleu=baseline,
        system_bleu=system,
        signature=comparisons[0].signature,
        better=better,
        worse=worse,
        ties=ties,
        sign_test_p=sign_test_p(better, worse),
        bootstrap_p=(float((beyond + 1) / (len(differences) + 1)) if np.ptp(differences) else 1.0),
        bootstrap_signature=f"{comparisons[0].bootstrap_signature}, mean of {len(tests)} tests",
    )


def seed_of_test(number: int) -> int:
    """Returns the seed of the resamples of a test, so that equally long ones have other draws."""
    return RESAMPLES_SEED + number


def resampled_bleu(
    lines: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenize: str = "none",
    lowercase: bool = False,
    resamples: int = RESAMPLES,
    seed: int = RESAMPLES_SEED,
    documents: Sequence[int] | None = None,
) -> list[float]:
    """Scores resamples of the sentences, drawn with replacement, by corpus BLEU.

    The resamples depend only on the number of sentences and on the arguments, so that systems that
    were scored at different times can be compared resample by resample. With `documents`, the
    number of each sentence's document, whole documents are drawn instead of sentences.

    Raises:
      UserError: there is nothing to score, or line counts differ.
      UsageError: the tokeniser is unknown.
    """
    check_parallel([("the translations", lines), *number_references(references)])
    metric = bleu_metric(tokenize, lowercase)
    counts = np.array(corpus_statistics(metric, lines, references))
    totals = resampled_totals(counts, resamples, seed, documents)
    return [_score(metric, total).score for total in totals.tolist()]


def resampled_totals(
    counts: np.ndarray,
    resamples: int = RESAMPLES,
    seed: int = RESAMPLES_SEED,
    documents: Sequence[int] | None = None,
) -> np.ndarray:
    """Sums counts `[sentences, C]` over resamples as of `resampled_bleu`: `[resamples, C]`."""
    if documents is not None:
        counts = np.add.reduceat(counts, np.unique(document_starts(documents)))
    drawn = np.random.default_rng(seed).integers(0, len(counts), (resamples, len(counts)))
    return np.array([counts[rows].sum(axis=0) for rows in drawn])


def count_documents(documents: Sequence[int] | None) -> int:
    """Returns the number of documents, from that of each sentence; 0 if they are unknown."""
    return 0 if documents is None else len(np.unique(document_starts(documents)))


def sign_test_p(better: int, worse: int) -> float:
    """Returns the exact two-sided p value of ``better`` heads and ``worse`` tails of a fair coin.

    It is computed with integers, so it is exact for any count; without a throw it is 1.
    """
    throws = better + worse
    term, tail = 1, 0  # term: the binomial coefficient (throws over k)
    for k in range(min(better, worse) + 1):
        tail += term
        term = term * (throws - k) // (k + 1)
    return min(1.0, 2 * tail / 2**throws)


def corpus_statistics(
    metric: Any, lines: Sequence[str], references: Sequence[Sequence[str]]
) -> list[list[int]]:
    """Returns the counts that sacreBLEU's BLEU sums over sentences, one list for each sentence."""
    return metric._extract_corpus_statistics(lines, references)


def corpus_score(metric: Any, statistics: Sequence[Sequence[int]]) -> Any:
    """Returns sacreBLEU's score of the sentences with these `corpus_statistics`."""
    return _score(metric, _total(statistics))


def swaps(
    metric: Any, baseline: Sequence[Sequence[int]], system: Sequence[Sequence[int]]
) -> tuple[int, int, int]:
    """Counts the sentences whose swap raises, lowers and leaves corpus BLEU, as in `Comparison`.

    BLEU is a function of sums over sentences (matches, n-grams, lengths), so a swap costs one
    subtraction and one addition, not another pass over the corpus.

    Args:
      metric: sacreBLEU's BLEU.
      baseline: `corpus_statistics` of the baseline.
      system: `corpus_statistics` of the system.
    """
    total = _total(baseline)
    score = _score(metric, total).score
    better = worse = 0
    for old, new in zip(baseline, system):
        swapped = _score(metric, [t - o + n for t, o, n in zip(total, old, new)]).score
        better += swapped > score
        worse += swapped < score
    return better, worse, len(baseline) - better - worse


def _total(statistics: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*statistics)]


def _score(metric: Any, total: list[int]) -> Any:
    return metric._compute_score_from_stats(total)


class TestedScore(NamedTuple):
    """A system's score, and the p value of its difference from the baseline's."""

    name: str
    value: float
    p: float  # 1 for the baseline itself
    signature: str


def bootstrap(
    systems: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    metrics: Sequence[Any],
) -> list[list[TestedScore]]:
    """Compares systems with the first of them by sacreBLEU's paired bootstrap.

    Args:
      systems: translations by each system, the baseline first.
      references: one list per reference set.
      metrics: sacreBLEU's metrics.

    Returns:
      the scores of each system, in the order of the metrics.
    """
    from sacrebleu.significance import PairedTest

    signatures, results = PairedTest(
        [(str(number), lines) for number, lines in enumerate(systems)],
        {type(metric).__name__: metric for metric in metrics},
        references,
        test_type="bs",
    )()
    names = [name for name in results if name != "System"]
    tested = []
    for number in range(len(systems)):
        scores: list[Any] = [results[name][number] for name in names]
        tested.append([
            TestedScore(
                name,
                float(score.score),
                _p_value(score, results[name][0], len(systems[0])),
                str(signatures[name]),
            )
            for name, score in zip(names, scores)
        ])  # fmt: skip
    return tested


def _p_value(score: Any, baseline: Any, sentences: int) -> float:
    """Returns sacreBLEU's p value; 1 for equal scores and for a single sentence.

    sacreBLEU has p = 1 / (resamples + 1) if the difference is the same in every resample, as if
    what never varies were the most certain.
    """
    return 1.0 if score.score == baseline.score or sentences == 1 else score.p_value
