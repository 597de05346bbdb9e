"""BLEU by the length of the source sentence: of a run, and as a table of systems.

No paper of ours prints BLEU by length. The classes are those of `tfmann compare`: up to 10, 20, 30,
40 and 50 words, and longer ones.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tfmann.evaluation import comparison
from tfmann.evaluation.gold_alignments import words_of
from tfmann.papers.markdown import mean_cell
from tfmann.papers.metrics import Record
from tfmann.papers.output_scores import Output
from tfmann.papers.table import Table

FEWEST = 20  # sentences of a class that is shown; BLEU of fewer says little
HEADING = f"BLEU by words of the source sentence; in brackets: sentences, if {FEWEST} or more"


class LengthTable(NamedTuple):
    """BLEU of each system in each class of lengths, as text."""

    heading: list[str]
    rows: list[list[str]]


class ClassScore(NamedTuple):
    """A class of lengths in a record.

    Attributes:
      shortest: words of its sentences, at least.
      longest: words of its sentences, at most; None is no limit.
      sentences: of all tests.
      bleu: mean over the tests that have such sentences.
    """

    shortest: int
    longest: int | None
    sentences: int
    bleu: float

    @property
    def words(self) -> str:
        """The range of its lengths, such as `11 to 20`."""
        return comparison.length_range(self.shortest, self.longest)


def measure(
    tests: Iterable[tuple[Sequence[str], Output]], tokenize: str, lowercase: bool
) -> list[dict[str, Any]]:
    """Scores a run's translations by the number of words in the source.

    Args:
      tests: sources and output of each; BLEU is the mean over those with sentences of a class.
      tokenize: sacreBLEU's tokeniser.
      lowercase: ignore case.

    Returns:
      the fields of `ClassScore` for every class that has sentences, from short to long.
    """
    by_shortest: dict[int, list[comparison.LengthClass]] = {}
    for sources, output in tests:
        lengths = list(map(len, words_of(sources)))
        system = comparison.System("the translations", output.translations)
        for scores in comparison.by_length(
            [system], output.references, lengths, tokenize=tokenize, lowercase=lowercase
        ):
            by_shortest.setdefault(scores.shortest, []).append(scores)
    return [
        ClassScore(
            shortest,
            group[0].longest,
            sum(scores.sentences for scores in group),
            statistics.fmean(scores.bleu[0] for scores in group),
        )._asdict()
        for shortest, group in sorted(by_shortest.items())
    ]


def class_scores(record: Record) -> list[ClassScore]:
    """Returns the classes of a record; older records have none."""
    return [ClassScore(**fields) for fields in record.get("by_length", ())]


def length_table(table: Table, records: Sequence[Record]) -> LengthTable | None:
    """Returns BLEU by length, the mean ± the sample standard deviation over the seeds.

    Rows without such scores are left out, and classes of few sentences; None if no record has any.
    """
    classes = {
        scores.shortest: scores
        for record in records
        for scores in class_scores(record)
        if scores.sentences >= FEWEST
    }
    if not classes:
        return None
    columns = sorted(classes)
    heading = [f"{classes[shortest].words} ({classes[shortest].sentences})" for shortest in columns]
    rows = []
    for row in table.rows:
        values = row_scores(row.name, records)
        if values:
            rows.append([row.title, *(mean_cell(values.get(shortest, [])) for shortest in columns)])
    return LengthTable(["system", *heading], rows)


def row_scores(row: str, records: Sequence[Record]) -> dict[int, list[float]]:
    """Returns BLEU of all runs of a row by the shortest length of a class."""
    values: dict[int, list[float]] = {}
    for record in records:
        if record["row"] == row:
            for scores in class_scores(record):
                values.setdefault(scores.shortest, []).append(scores.bleu)
    return values
