"""Two or more systems on one test set: scores, how sure their differences are, BLEU by length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tfmann.evaluation import bleu, significance
from tfmann.evaluation.bleu import check_parallel, number_references

LIMITS = (10, 20, 30, 40, 50)  # words; what is longer is a class of its own
_SURE = 0.01


class System(NamedTuple):
    """Translations of the test by one system; the first system is the baseline of the others."""

    name: str
    lines: Sequence[str]


class Compared(NamedTuple):
    """A system's scores, and how they compare with the baseline's.

    Attributes:
      name: of the system.
      scores: BLEU, chrF and TER, with p of sacreBLEU's paired bootstrap.
      brevity: penalty, and
      ratio: of lengths.
      better: sentences that raise the baseline's BLEU when put into its output,
      worse: that lower it, and
      sign_p: what the sign test makes of them; of the baseline there are none.
    """

    name: str
    scores: Sequence[significance.Tested]
    brevity: float
    ratio: float
    better: int
    worse: int
    sign_p: float


class Class(NamedTuple):
    """Sentences of some lengths: how many there are, and each system's BLEU of them."""

    shortest: int
    longest: int | None
    sentences: int
    bleu: Sequence[float]


def compare(
    systems: Sequence[System],
    references: Sequence[Sequence[str]],
    tokenize: str = "none",
    lowercase: bool = False,
) -> list[Compared]:
    """Scores the systems, and tests each against the first.

    Args:
      systems: two or more, with as many lines as the references.
      references: one list per reference set.
      tokenize: sacreBLEU's tokeniser; concerns BLEU only.
      lowercase: ignore case in BLEU and chrF; TER ignores it always.

    Raises:
      UserError: nothing to score, or line counts that differ.
      UsageError: an unknown tokeniser.
    """
    baseline = systems[0]
    check_parallel([(baseline.name, baseline.lines), *number_references(references)])
    check_parallel([(system.name, system.lines) for system in systems])
    metrics = [bleu.metric(name, tokenize, lowercase) for name in bleu.METRICS]
    tested = significance.bootstrap([system.lines for system in systems], references, metrics)
    found = []
    for system, scores in zip(systems, tested):
        (score,) = bleu.evaluate(system.lines, references, ("bleu",), tokenize, lowercase)
        better, worse, _ = significance.swaps(
            baseline.lines, system.lines, references, bleu.bleu_metric(tokenize, lowercase)
        )
        sign_p = significance.sign_test_p(better, worse)
        brevity, ratio = bleu.lengths(score.details)
        found.append(Compared(system.name, scores, brevity, ratio, better, worse, sign_p))
    return found


def by_length(
    systems: Sequence[System],
    references: Sequence[Sequence[str]],
    lengths: Sequence[int],
    limits: Sequence[int] = LIMITS,
    tokenize: str = "none",
    lowercase: bool = False,
) -> list[Class]:
    """BLEU of sentences up to each of the limits, and of those beyond the last.

    Args:
      systems: as in `compare`.
      references: one list per reference set.
      lengths: of every sentence, in words.
      limits: the greatest length of each class, ascending.
      tokenize: as in `compare`.
      lowercase: as in `compare`.

    Returns:
      the classes that have sentences.
    """
    check_parallel([("the lengths", lengths), *number_references(references)])
    found, shortest = [], 0
    for longest in (*limits, None):
        chosen = [number for number, length in enumerate(lengths)
                  if shortest <= length and (longest is None or length <= longest)]  # fmt: skip
        if chosen:
            here = [[lines[number] for number in chosen] for lines in references]
            scores = [
                bleu.evaluate(
                    [system.lines[number] for number in chosen], here, ("bleu",), tokenize,
                    lowercase,
                )[0].value
                for system in systems
            ]  # fmt: skip
            found.append(Class(shortest, longest, len(chosen), scores))
        shortest = shortest if longest is None else longest + 1
    return found


def report(found: Sequence[Compared], classes: Sequence[Class], of: str) -> str:
    """Both as Markdown tables, with signatures and what the marks mean.

    Args:
      found: of `compare`.
      classes: of `by_length`.
      of: whose words the lengths count.
    """
    names = [score.name for score in found[0].scores]
    rows = [["system", *names, "brevity penalty", "length ratio", "better / worse",
             "sign test p"]]  # fmt: skip
    rows += [_row(one, found[0]) for one in found]
    by = [[f"words of the {of}", "sentences", *(one.name for one in found)]]
    by += [
        [_range(one), str(one.sentences), f"{one.bleu[0]:.2f}",
         *(f"{value:.2f} ({value - one.bleu[0]:+.2f})" for value in one.bleu[1:])]
        for one in classes
    ]  # fmt: skip
    facts = [
        f"in brackets: difference to {found[0].name}, p of the paired bootstrap; †: below {_SURE}",
        "better / worse: sentences that raise / lower the baseline's BLEU in its output",
        "all of it is of these translations: another training of a system may do otherwise",
        *(f"{score.name}: {score.signature}" for score in found[0].scores),
    ]
    return "\n".join([*_table(rows), "", *facts, "", "BLEU by length:", "", *_table(by)])


def _row(one: Compared, baseline: Compared) -> list[str]:
    cells = [f"{score.value:.2f}" for score in one.scores]
    tested = ["-", "-"]
    if one is not baseline:
        cells = [
            f"{score.value:.2f} ({score.value - before.value:+.2f}, p {score.p:.3f})"
            f"{'†' if score.p < _SURE else ''}"
            for score, before in zip(one.scores, baseline.scores)
        ]
        tested = [f"{one.better} / {one.worse}", f"{one.sign_p:.3f}"]
    return [one.name, *cells, f"{one.brevity:.3f}", f"{one.ratio:.3f}", *tested]


def _range(one: Class) -> str:
    if one.longest is None:
        return f"{one.shortest} and more"
    return f"{one.shortest} to {one.longest}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Markdown, in columns that stand below each other as plain text too."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    heading, *others = (
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |"
        for row in rows
    )
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [heading, rule, *others]
