"""Corpus scores through sacreBLEU (Post 2018), each with the signature that makes it comparable.

The papers score tokenised text as it stands: ``tokenize="none"``. Scores to be set beside other
people's need detokenised files and ``tokenize="13a"``. Two numbers may be compared only where
their signatures are equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfmann.corpus.files import PathLike, iter_lines
from tfmann.errors import UsageError, UserError

METRICS = ("bleu", "chrf", "ter")

# Those of sacreBLEU's tokenisers that need neither a download nor another package.
TOKENIZERS = ("none", "13a", "intl", "zh", "char")


@dataclass(frozen=True)
class Score:
    """One corpus score.

    Attributes:
      name: sacreBLEU's name of the metric: ``BLEU``, ``chrF2``, ``TER``.
      value: the score, on sacreBLEU's scale of 0 to 100 (TER may be above 100).
      signature: sacreBLEU's signature; it belongs beside every printed value.
      details: what sacreBLEU prints after the value: for BLEU the n-gram precisions, the brevity
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
      hypotheses: one translation per sentence; blank ones count as such.
      references: one list per reference set, each as long as ``hypotheses``.
      metrics: any of `METRICS`, in the order wanted.
      tokenize: one of `TOKENIZERS`; concerns BLEU only.
      lowercase: ignore case in BLEU and chrF. TER ignores it always, as tercom and sacreBLEU do.

    Returns:
      One score per metric, in the order of ``metrics``.

    Raises:
      UserError: nothing to score, or a reference set of another length than the translations.
      UsageError: an unknown metric or tokeniser.
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

    As `evaluate`; the messages name the files.

    Raises:
      UserError: also where a file cannot be read or is not UTF-8.
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
      UserError: there are no references, no lines, or two texts differ (both are named, with
        their counts).
    """
    for name, lines in texts:
        # A bare string would be taken for a corpus of one-letter sentences.
        if isinstance(lines, str):
            raise TypeError(f"{name}: a list of lines is wanted, not one string")
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
    """Names reference sets that did not come from files, for `check_parallel`."""
    return [(f"reference set {number}", lines) for number, lines in enumerate(references, start=1)]


def lengths(details: str) -> tuple[float, float]:
    """Brevity penalty and length ratio, to three decimals, of the details of a BLEU score.

    Raises:
      ValueError: they are of another score.
    """
    found = re.search(r"BP = ([0-9.]+) ratio = ([0-9.]+)", details)
    if found is None:
        raise ValueError(f"no brevity penalty in {details!r}")
    return float(found[1]), float(found[2])


def bleu_metric(tokenize: str, lowercase: bool = False) -> Any:
    """Returns sacreBLEU's BLEU as tfmann uses it everywhere.

    Raises:
      UsageError: an unknown tokeniser.
    """
    from sacrebleu.metrics import BLEU

    if tokenize not in TOKENIZERS:
        raise UsageError(
            f"unknown BLEU tokeniser {tokenize!r}: choose one of {', '.join(TOKENIZERS)}"
        )
    # force: tokenised text is what the papers score, so no warning that it looks tokenised.
    return BLEU(tokenize=tokenize, lowercase=lowercase, force=True)


def metric(name: str, tokenize: str = "none", lowercase: bool = False) -> Any:
    """One of sacreBLEU's metrics, of `METRICS`, as tfmann uses it everywhere."""
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
    made = metric(metric_name, tokenize, lowercase)
    result = made.corpus_score(hypotheses, references)
    # "BLEU = 12.34 56.7/... (BP = ...)": the details are all that follows the rounded value.
    details = result.format().partition(" = ")[2].partition(" ")[2]
    return Score(result.name, float(result.score), str(made.get_signature()), details)
