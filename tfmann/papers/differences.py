"""The differences of each row of a table from the rows that it is compared with, with intervals.

A 95% confidence interval is computed from the same error as a verdict, which is due to other seeds
and other test sentences (`tfmann.evaluation.verdicts`). With one seed it covers other sentences
alone, and another seed may lie outside. Intervals are not adjusted for their number; verdicts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from tfmann.evaluation import verdicts
from tfmann.papers import conditions, update_counts
from tfmann.papers.metrics import Record
from tfmann.papers.seed_pairs import SeedPairs, pair_seeds
from tfmann.papers.table import Row, Table

OVERVIEW_SEEDS = 3  # with two, an interval is too wide to say anything
_REACH = NormalDist().inv_cdf(1 - verdicts.LEVEL / 2)  # errors of the sentences of one seed


class Difference(NamedTuple):
    """A row's test BLEU minus its rival's.

    Attributes:
      row: its name.
      title: of the row.
      by_seed: one difference for each seed that both have.
      mean: of these.
      low: lower limit of the interval; the mean itself if no error is known.
      high: upper limit of the interval.
      is_evidence: whether there are several seeds that are not all equal, and all runs have
        converged.
      paper: the difference that the paper prints, or None.
      has_equal_updates: whether both rows made as many updates, from the same start.
    """

    row: str
    title: str
    by_seed: Sequence[float]
    mean: float
    low: float
    high: float
    is_evidence: bool
    paper: float | None
    has_equal_updates: bool


class Comparison(NamedTuple):
    """The rows that are compared with one row."""

    rival: Row
    differences: Sequence[Difference]


def figure_name(table: str, scale: str, comparison: Comparison) -> str:
    """Returns the name of a comparison's figure, without folder and suffix."""
    return f"{table}-{scale}-{comparison.rival.name}"


def comparisons(table: Table, records: Sequence[Record]) -> list[Comparison]:
    """Compares the measured rows of a table with its baselines and with those of their weights.

    A baseline that itself starts from another row is compared with the rows that made as many
    updates as it did from there. One without any such row is left out.
    """
    rows = {row.name: row for row in table.rows}
    compared = [
        Comparison(
            rows[rival],
            [
                difference
                for row in table.rows
                if rival in table.shown_rivals(row.name)
                and (difference := _difference(row, rows[rival], records)) is not None
            ],
        )
        for rival in table.shown_baselines
        if rival in rows
    ]
    return [comparison for comparison in compared if comparison.differences]


def overview(table: Table, records: Sequence[Record]) -> list[Comparison]:
    """Compares each row with its closest baseline, where that is evidence of several seeds.

    The closest is the one that the row names, or the last of the table that the row is compared
    with, such as its gate alone for a cache. Baselines themselves are left out, and rows whose
    closest made fewer updates.
    """
    compared = comparisons(table, records)
    closest = {d.row: c.rival.name for c in compared for d in c.differences}
    closest.update({row.name: row.closest for row in table.rows if row.closest})
    parts = [
        Comparison(
            rival,
            [
                difference
                for difference in differences
                if difference.is_evidence
                and len(difference.by_seed) >= OVERVIEW_SEEDS
                and difference.row not in table.baselines
                and closest[difference.row] == rival.name
                and difference.has_equal_updates
            ],
        )
        for rival, differences in compared
    ]
    return [part for part in parts if part.differences]


def _difference(row: Row, rival: Row, records: Sequence[Record]) -> Difference | None:
    """Compares two rows; None without common seeds, or without equal updates from the same row."""
    pairs = pair_seeds("test BLEU", records, row.name, rival.name)
    if not pairs.seeds:
        return None
    equal_updates = all(update_counts.are_equal(*pair) for pair in pairs.records)
    if rival.start and not equal_updates:
        return None
    estimate = pairs.estimate()
    low, high = verdicts.interval(estimate) if estimate.freedom else _of_sentences(pairs)
    paper = None
    if row.paper_test is not None and rival.paper_test is not None:
        paper = row.paper_test - rival.paper_test
    is_evidence = estimate.is_testable and conditions.are_comparable(pairs, records)
    return Difference(
        row.name, row.title, pairs.differences(), estimate.mean, low, high, is_evidence, paper,
        equal_updates,
    )  # fmt: skip


def _of_sentences(pairs: SeedPairs) -> tuple[float, float]:
    """Returns the interval of the difference of one seed, over other test sentences."""
    (mean,), (error,) = pairs.differences(), pairs.sentence_errors()
    return mean - _REACH * error, mean + _REACH * error
