"""Corpus scores through sacreBLEU (Post 2018), each with the signature that makes it comparable.

Tokenised text is scored as it is, ``tokenize="none"``, as by multi-bleu.pl. To compare with other
published scores, use detokenised files and ``tokenize="13a"``. Two numbers are comparable only if
their signatures are equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfmann.data.text_files import iter_lines
from tfmann.errors import UsageError, UserError
from tfmann.utils.files import PathLike

METRICS = ("bleu", "chrf", "ter")

# sacreBLEU's tokenisers that need neither a download nor another package.
TOKENIZERS = ("none", "13a", "intl", "zh", "char")
BY_CHARACTER = ("zh", "char")  # those for text without spaces between words


@dataclass(frozen=True)
class Score:
    """One corpus score.

    Attributes:
      name: sacreBLEU's name of the metric: ``BLEU``, ``chrF2``, ``TER``.
      value: the score, on sacreBLEU's scale of 0 to 100 (TER may be above 100).
      signature: sacreBLEU's signature; print it with every value.
      details: sacreBLEU's text after the value: for BLEU the n-gram precisions, the brevity
        penalty and both lengths; empty for the others.
    """

    name: str
    value: float
    signature: str
    details: str


def evaluate(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Sequence[str] = ("bleu",),
    tokenize: str = "none",
    lowercase: bool = False,
) -> list[Score]:
    """Scores a corpus of translations.

    Args:
      hypotheses: one translation per sentence, which may be blank.
      references: one list per reference set, each as long as ``hypotheses``.
      metrics: any of `METRICS`, in the order of the result.
      tokenize: one of `TOKENIZERS`; concerns BLEU only.
      lowercase: ignore case in BLEU and chrF. TER always ignores it, as in tercom and sacreBLEU.

    Returns:
      One score per metric, in the order of ``metrics``.

    Raises:
      UserError: there is nothing to score, or a reference set has another length.
      UsageError: the metric or tokeniser is unknown.
    """
    check_parallel([("the translations", hypotheses), *number_references(references)])
    unknown = [name for name in metrics if name not in METRICS]
    if unknown:
        raise UsageError(f"unknown metric {unknown[0]!r}: choose from {', '.join(METRICS)}")
    return [_score(name, hypotheses, references, tokenize, lowercase) for name in metrics]


def evaluate_files(
    hypothesis_path: PathLike,
    reference_paths: Sequence[PathLike],
    metrics: Sequence[str] = ("bleu",),
    tokenize: str = "none",
    lowercase: bool = False,
) -> list[Score]:
    """Scores a file of translations, one per line, against files of references.

    The other arguments are those of `evaluate`; messages name the files.

    Raises:
      UserError: as in `evaluate`, or a file cannot be read or is not UTF-8.
    """
    files = [(str(path), list(iter_lines(path))) for path in (hypothesis_path, *reference_paths)]
    check_parallel(files)
    (_, hypotheses), *references = files
    return evaluate(
        hypotheses,
        [lines for _, lines in references],
        metrics=metrics,
        tokenize=tokenize,
        lowercase=lowercase,
    )


def check_parallel(texts: Sequence[tuple[str, Sequence[Any]]]) -> None:
    """Checks that texts match line by line.

    Args:
      texts: (name for the message, lines): translations first, references after them.

    Raises:
      UserError: there are no references, no lines, or two texts differ in length.
    """
    for name, lines in texts:
        # A string would pass for a corpus of one-letter sentences.
        if isinstance(lines, str):
            raise TypeError(f"{name}: expected a list of lines, not one string")
    if len(texts) < 2:
        raise UserError("no references to score against: at least one reference set is needed")
    first_name, first = texts[0]
    if not first:
        raise UserError(f"{first_name}: nothing to score: there is not a single line")
    for name, lines in texts[1:]:
        if len(lines) != len(first):
            raise UserError(
                f"{first_name} and {name} do not match: {len(first)} lines against {len(lines)}; "
                "line n of one must belong to line n of the other"
            )


def number_references(references: Sequence[Sequence[str]]) -> list[tuple[str, Sequence[str]]]:
    """Returns reference sets that did not come from files with names for `check_parallel`."""
    return [(f"reference set {number}", lines) for number, lines in enumerate(references, start=1)]


def lengths(details: str) -> tuple[float, float]:
    """Returns brevity penalty and length ratio, to three decimals, from `Score.details` of BLEU.

    Raises:
      ValueError: the details are not BLEU's.
    """
    match = re.search(r"BP = ([0-9.]+) ratio = ([0-9.]+)", details)
    if match is None:
        raise ValueError(f"no brevity penalty in {details!r}")
    return float(match[1]), float(match[2])


def bleu_metric(tokenize: str, lowercase: bool = False) -> Any:
    """Returns sacreBLEU's BLEU as tfmann uses it everywhere.

    Raises:
      UsageError: the tokeniser is unknown.
    """
    from sacrebleu.metrics import BLEU

    if tokenize not in TOKENIZERS:
        raise UsageError(
            f"unknown BLEU tokeniser {tokenize!r}: choose one of {', '.join(TOKENIZERS)}"
        )
    # force: no warning that the text looks tokenised, which it is meant to be.
    return BLEU(tokenize=tokenize, lowercase=lowercase, force=True)


def metric(name: str, tokenize: str = "none", lowercase: bool = False) -> Any:
    """Returns one of `METRICS` as tfmann uses it everywhere."""
    from sacrebleu.metrics import CHRF, TER

    if name == "bleu":
        return bleu_metric(tokenize, lowercase)
    return CHRF(lowercase=lowercase) if name == "chrf" else TER()


def _score(
    metric_name: str,
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    tokenize: str,
    lowercase: bool,
) -> Score:
    scorer = metric(metric_name, tokenize, lowercase)
    result = scorer.corpus_score(hypotheses, references)
    # "BLEU = 12.34 56.7/... (BP = ...)": the details are all that follows the rounded value.
    details = result.format().partition(" = ")[2].partition(" ")[2]
    return Score(result.name, float(result.score), str(scorer.get_signature()), details)
