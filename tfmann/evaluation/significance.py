"""Is one system better than another, or lucky on this test set? Two paired tests on BLEU.

The sign test is that of Collins, Koehn & Kucerova (2005), section 5.2, which the papers report;
the paired bootstrap (Koehn 2004) is sacreBLEU's.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tfmann.evaluation.bleu import bleu_metric, check_parallel, number_references

RESAMPLES = 1000  # as many as sacreBLEU's paired bootstrap has
RESAMPLES_SEED = 12345


@dataclass(frozen=True)
class Comparison:
    """A system beside its baseline on one test set.

    Attributes:
      baseline_bleu: corpus BLEU of the baseline, 0 to 100.
      system_bleu: corpus BLEU of the system.
      signature: sacreBLEU's signature of both.
      better: sentences whose translation by the system, put into the baseline's output in place
        of the baseline's own, raises corpus BLEU.
      worse: sentences for which it lowers it.
      ties: the others; the sign test leaves them out.
      sign_test_p: two-sided p value of the sign test.
      bootstrap_p: p value of the paired bootstrap.
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
      tokenize: sacreBLEU's tokeniser, as in `tfmann.evaluation.bleu.evaluate`.
      lowercase: ignore case.

    Raises:
      UserError: nothing to score, or line counts that differ.
      UsageError: an unknown tokeniser.
    """
    # The baseline against each reference set, then the system against the baseline.
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
    baseline = metric._extract_corpus_statistics(baseline_lines, references)
    system = metric._extract_corpus_statistics(system_lines, references)
    better, worse, ties = _swaps(metric, baseline, system)
    ((_,), (tested,)) = bootstrap(
        [baseline_lines, system_lines], references, [bleu_metric(tokenize, lowercase)]
    )
    return Comparison(
        baseline_bleu=_bleu(metric, _total(baseline)),
        system_bleu=_bleu(metric, _total(system)),
        signature=str(metric.get_signature()),
        better=better,
        worse=worse,
        ties=ties,
        sign_test_p=sign_test_p(better, worse),
        # Others than the same lines may have the same counts too.
        bootstrap_p=1.0 if baseline == system else tested.p,
        bootstrap_signature=tested.signature,
    )


def compare_over_tests(
    tests: Sequence[tuple[Sequence[str], Sequence[str], Sequence[Sequence[str]]]],
    tokenize: str = "none",
    lowercase: bool = False,
) -> Comparison:
    """Compares two systems by the mean of their BLEU over several test sets.

    Of one test this is `compare`. Of more, sentences are resampled within each test, and the p
    value is of the difference of the means, computed as sacreBLEU does; the sign test counts the
    sentences of all tests, each of which is put into the output of its own.

    Args:
      tests: of each the baseline's translations, the system's, and the lists of references.
      tokenize: as in `compare`.
      lowercase: as in `compare`.
    """
    each = [compare(*one, tokenize, lowercase) for one in tests]
    if len(each) == 1:
        return each[0]
    better, worse, ties = (
        sum(getattr(one, kind) for one in each) for kind in ("better", "worse", "ties")
    )
    baseline, system = (
        statistics.fmean(getattr(one, kind) for one in each)
        for kind in ("baseline_bleu", "system_bleu")
    )
    first = [resampled_bleu(one, of, tokenize, lowercase) for one, _, of in tests]
    second = [resampled_bleu(one, of, tokenize, lowercase) for _, one, of in tests]
    moved = np.abs(np.mean(np.subtract(second, first), axis=0))
    beyond = np.sum(moved - moved.mean() > abs(system - baseline))
    return Comparison(
        baseline_bleu=baseline,
        system_bleu=system,
        signature=each[0].signature,
        better=better,
        worse=worse,
        ties=ties,
        sign_test_p=sign_test_p(better, worse),
        bootstrap_p=1.0 if first == second else float((beyond + 1) / (len(moved) + 1)),
        bootstrap_signature=f"{each[0].bootstrap_signature}, mean of {len(tests)} tests",
    )


def resampled_bleu(
    lines: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenize: str = "none",
    lowercase: bool = False,
    resamples: int = RESAMPLES,
    seed: int = RESAMPLES_SEED,
) -> list[float]:
    """Corpus BLEU on resamples of the sentences, drawn with repetition.

    Of equally many sentences and with equal arguments the resamples are the same, so that systems
    can be compared resample by resample, whenever each of them was scored.

    Raises:
      UserError: nothing to score, or line counts that differ.
      UsageError: an unknown tokeniser.
    """
    check_parallel([("the translations", lines), *number_references(references)])
    metric = bleu_metric(tokenize, lowercase)
    sums = np.array(metric._extract_corpus_statistics(lines, references))
    drawn = np.random.default_rng(seed).integers(0, len(sums), (resamples, len(sums)))
    return [_bleu(metric, sums[sentences].sum(axis=0).tolist()) for sentences in drawn]


def sign_test_p(better: int, worse: int) -> float:
    """Exact two-sided p value of ``better`` heads and ``worse`` tails of a fair coin.

    Computed in whole numbers, so that it is right for any count; 1 where there is no throw.
    """
    throws = better + worse
    term, tail = 1, 0  # term: the binomial coefficient (throws over k)
    for k in range(min(better, worse) + 1):
        tail += term
        term = term * (throws - k) // (k + 1)
    return min(1.0, 2 * tail / 2**throws)


def swaps(
    baseline_lines: Sequence[str],
    system_lines: Sequence[str],
    references: Sequence[Sequence[str]],
    metric: Any,
) -> tuple[int, int, int]:
    """Counts the sentences whose swap raises, lowers and leaves corpus BLEU, as in `compare`."""
    baseline, system = (
        metric._extract_corpus_statistics(lines, references)
        for lines in (baseline_lines, system_lines)
    )
    return _swaps(metric, baseline, system)


def _swaps(
    metric: Any, baseline: Sequence[Sequence[int]], system: Sequence[Sequence[int]]
) -> tuple[int, int, int]:
    """Counts the sentences whose swap raises, lowers and leaves corpus BLEU.

    BLEU is a function of sums over sentences (matches, n-grams, lengths), so a swap costs one
    subtraction and one addition, not another pass over the corpus.
    """
    total = _total(baseline)
    score = _bleu(metric, total)
    better = worse = 0
    for old, new in zip(baseline, system):
        swapped = _bleu(metric, [t - o + n for t, o, n in zip(total, old, new)])
        better += swapped > score
        worse += swapped < score
    return better, worse, len(baseline) - better - worse


def _total(statistics: Sequence[Sequence[int]]) -> list[int]:
    return [sum(column) for column in zip(*statistics)]


def _bleu(metric: Any, statistics: list[int]) -> float:
    return metric._compute_score_from_stats(statistics).score


class Tested(NamedTuple):
    """A score of a system, and the p value of its difference to the baseline's."""

    name: str
    value: float
    p: float  # 1 of the baseline itself
    signature: str


def bootstrap(
    systems: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    metrics: Sequence[Any],
) -> list[list[Tested]]:
    """SacreBLEU's paired bootstrap of systems against the first of them, by several metrics.

    Args:
      systems: translations by each, the baseline first.
      references: one list per reference set.
      metrics: of sacreBLEU.

    Returns:
      for each system its scores in the order of the metrics.
    """
    from sacrebleu.significance import PairedTest

    signatures, results = PairedTest(
        [(str(number), lines) for number, lines in enumerate(systems)],
        {type(metric).__name__: metric for metric in metrics},
        references,
        test_type="bs",
    )()
    names = [name for name in results if name != "System"]
    baseline = list(systems[0])
    found = []
    for number, lines in enumerate(systems):
        scores: list[Any] = [results[name][number] for name in names]
        # Of two outputs that always score the same sacreBLEU has 1 / (resamples + 1), as if a
        # difference that is never there were the surest of all.
        same = list(lines) == baseline
        found.append([
            Tested(name, float(one.score), 1.0 if same else float(one.p_value),
                   str(signatures[name]))
            for name, one in zip(names, scores)
        ])  # fmt: skip
    return found
