"""Two or more systems on one test set: scores, significance, BLEU by sentence length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tfmann.evaluation import bleu, significance
from tfmann.evaluation.bleu import check_parallel, number_references
from tfmann.utils.numbers import format_difference

LIMITS = (10, 20, 30, 40, 50)  # words; longer sentences are a class of their own
_LEVEL = 0.01


class System(NamedTuple):
    """Translations of the test by one system; the first system is the baseline of the others."""

    name: str
    lines: Sequence[str]


class SystemScores(NamedTuple):
    """A system's scores, and their comparison with the baseline's.

    Attributes:
      name: of the system.
      scores: BLEU, chrF and TER, with p of sacreBLEU's paired bootstrap.
      brevity: BLEU's brevity penalty.
      ratio: words of the translations per word of the references.
      better: sentences that raise the baseline's BLEU in its output; 0 for the baseline.
      worse: sentences that lower it; 0 for the baseline.
      sign_p: p value of the sign test; 1 for the baseline.
    """

    name: str
    scores: Sequence[significance.TestedScore]
    brevity: float
    ratio: float
    better: int
    worse: int
    sign_p: float


class LengthClass(NamedTuple):
    """Sentences in a range of lengths: their number, and each system's BLEU on them."""

    shortest: int
    longest: int | None
    sentences: int
    bleu: Sequence[float]


def compare(
    systems: Sequence[System],
    references: Sequence[Sequence[str]],
    tokenize: str = "none",
    lowercase: bool = False,
) -> list[SystemScores]:
    """Scores the systems, and tests each against the first.

    Args:
      systems: two or more, with as many lines as the references.
      references: one list per reference set.
      tokenize: sacreBLEU's tokeniser; concerns BLEU only.
      lowercase: ignore case in BLEU and chrF; TER always ignores it.

    Raises:
      UserError: there is nothing to score, or line counts differ.
      UsageError: the tokeniser is unknown.
    """
    check_parallel([(systems[0].name, systems[0].lines), *number_references(references)])
    check_parallel([(system.name, system.lines) for system in systems])
    metrics = [bleu.metric(name, tokenize, lowercase) for name in bleu.METRICS]
    tested = significance.bootstrap([system.lines for system in systems], references, metrics)
    metric = bleu.bleu_metric(tokenize, lowercase)
    counts = [
        significance.corpus_statistics(metric, system.lines, references) for system in systems
    ]
    results = []
    for system, scores, system_counts in zip(systems, tested, counts):
        score = significance.corpus_score(metric, system_counts)
        better, worse, _ = significance.swaps(metric, counts[0], system_counts)
        sign_p = significance.sign_test_p(better, worse)
        results.append(
            SystemScores(system.name, scores, score.bp, score.ratio, better, worse, sign_p)
        )
    return results


def by_length(
    systems: Sequence[System],
    references: Sequence[Sequence[str]],
    lengths: Sequence[int],
    limits: Sequence[int] = LIMITS,
    tokenize: str = "none",
    lowercase: bool = False,
) -> list[LengthClass]:
    """Scores sentences up to each of the limits, and those beyond the last, by BLEU.

    Args:
      systems: as in `compare`.
      references: one list per reference set.
      lengths: of every sentence, in words or characters.
      limits: the greatest length of each class, ascending.
      tokenize: as in `compare`.
      lowercase: as in `compare`.

    Returns:
      the classes that have sentences.
    """
    check_parallel([("the lengths", lengths), *number_references(references)])
    classes = []
    for shortest, longest in ranges(limits):
        chosen = [
            number
            for number, length in enumerate(lengths)
            if shortest <= length and (longest is None or length <= longest)
        ]
        if chosen:
            chosen_references = [[lines[number] for number in chosen] for lines in references]
            scores = [
                bleu.evaluate(
                    [system.lines[number] for number in chosen], chosen_references, ("bleu",),
                    tokenize, lowercase,
                )[0].value
                for system in systems
            ]  # fmt: skip
            classes.append(LengthClass(shortest, longest, len(chosen), scores))
    return classes


def ranges(limits: Sequence[int]) -> list[tuple[int, int | None]]:
    """Returns the ranges of whole numbers from 0 that end at the limits, and that beyond them."""
    return list(zip([0, *(limit + 1 for limit in limits)], [*limits, None]))


def length_range(shortest: int, longest: int | None) -> str:
    """Returns a range as text: `11 to 20`, or `51 and more` without a longest."""
    return f"{shortest} and more" if longest is None else f"{shortest} to {longest}"


def report(systems: Sequence[SystemScores], classes: Sequence[LengthClass], text: str) -> str:
    """Returns both as Markdown tables, with signatures and the meaning of the marks.

    Args:
      systems: from `compare`.
      classes: from `by_length`.
      text: what the lengths count, such as `words of the source`.
    """
    baseline = systems[0]
    names = [score.name for score in baseline.scores]
    heading = ["system", *names, "brevity penalty", "length ratio", "better / worse", "sign test p"]
    rows = [heading, *(_system_row(system, baseline) for system in systems)]
    length_rows = [[text, "sentences", *(system.name for system in systems)]]
    length_rows += [_length_row(length_class) for length_class in classes]
    notes = [
        f"in brackets: difference from {baseline.name}, p of the paired bootstrap (about "
        f"one-sided); †: below {_LEVEL}",
        "better / worse: sentences that raise / lower the baseline's BLEU in its output",
        "all of this is about these translations: another training run can give other results",
        *(f"{score.name}: {score.signature}" for score in baseline.scores),
    ]
    sentences = sum(length_class.sentences for length_class in classes)
    if sentences < significance.ENOUGH_SENTENCES:
        some = "a single sentence" if sentences == 1 else f"{sentences} sentences"
        notes.insert(0, f"p of the paired bootstrap says little about {some}: too few to resample")
    return "\n".join([*table(rows), "", *notes, "", "BLEU by length:", "", *table(length_rows)])


def _system_row(system: SystemScores, baseline: SystemScores) -> list[str]:
    cells = [f"{score.value:.2f}" for score in system.scores]
    sign_test = ["-", "-"]
    if system is not baseline:
        cells = [
            f"{score.value:.2f} ({format_difference(score.value - before.value)}, p {score.p:.3f})"
            f"{'†' if score.p < _LEVEL else ''}"
            for score, before in zip(system.scores, baseline.scores)
        ]
        sign_test = [f"{system.better} / {system.worse}", f"{system.sign_p:.3f}"]
    return [system.name, *cells, f"{system.brevity:.3f}", f"{system.ratio:.3f}", *sign_test]


def _length_row(length_class: LengthClass) -> list[str]:
    baseline, *further_scores = length_class.bleu
    words = length_range(length_class.shortest, length_class.longest)
    cells = [f"{value:.2f} ({format_difference(value - baseline)})" for value in further_scores]
    return [words, str(length_class.sentences), f"{baseline:.2f}", *cells]


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a Markdown table whose columns are aligned as plain text too."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    heading, *lines = (
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
        for row in rows
    )
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [heading, rule, *lines]
