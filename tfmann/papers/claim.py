"""The kinds of claims that a paper makes, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, Union


class Claim(NamedTuple):
    """A statement about two rows of a table.

    Attributes:
      paper: authors and year.
      section: the section, table or figure that makes the statement.
      text: the statement in our words.
      expect: the claimed relation. `higher` or `lower`: the row's measure is so. `no gain`: the
        row is not better by the margin or more. `alike`: the two differ by less than the margin.
        `between`: the difference lies between the two numbers of `between`.
      row: name of the system.
      rival: name of the system that it is compared with.
      tables: our tables that can test the claim, the paper's own first.
      measure: a key of `metrics.MEASURES`.
      margin: for `alike` and `no gain`, a difference that the paper itself calls so, or our choice.
      sign_test: whether the paper reports p values of the sign test.
      between: limits of the difference, in percent of the rival's value if the measure is counted.
    """

    paper: str
    section: str
    text: str
    expect: str
    row: str
    rival: str
    tables: tuple[str, ...]
    measure: str = "test BLEU"
    margin: float = 0.0
    sign_test: bool = False
    between: tuple[float, float] | None = None


class SpeedClaim(NamedTuple):
    """A statement about speed, tested by a benchmark on a quiet machine.

    Attributes:
      paper: authors and year.
      section: the section, table or figure that makes the statement.
      text: the statement in our words.
      file: the benchmark's records in results/.
      record: keys and values that identify the benchmark's records.
      least: smallest share of the baseline's speed according to the paper.
      most: greatest share; infinite if the paper says no more than that the program is faster, or
        not slower. `speeds.limits` allows for what two timings of the same program differ by.
      rival: those values that differ in the records of a rival. Then the limits are of the share of
        the rival's speed, where both were timed against the same baseline.
      not_slower: whether it need not be faster than `least`, whose limit is then widened too.
      models: how large the benchmark's models are, and the paper's; empty if they are alike.
    """

    paper: str
    section: str
    text: str
    file: str
    record: Mapping[str, str]
    least: float
    most: float
    rival: Mapping[str, str] = {}
    not_slower: bool = False
    models: str = ""


class MemoryClaim(NamedTuple):
    """A statement about what the attention, a head or the cache of a system does.

    Attributes:
      paper: authors and year.
      section: the section, table or figure that makes the statement.
      text: the statement in our words.
      row: name of the system.
      tables: our tables that can test the claim, the paper's own first.
      head: as in `evaluation.head_statistics.Key`.
      phase: as there.
      statistic: as there; a key of `evaluation.inspection.DESCRIPTIONS`, or `latest_slots`
        (`memory_statistics.LATEST`).
      above: the true mean is above it according to the claim.
      below: the true mean is below it. One of the two limits is finite: 0.5 where the paper says
        what the system mostly does, 0 for a difference from chance.
      base: row whose attention the system's is compared with, of a statistic of their agreement.
      nulls: statistics of the same head that show what chance gives; the true mean is beyond theirs
        too according to the claim.
      control: row whose value of the statistic has another cause than the claim's; the true mean is
        beyond that of its runs too, which have to be there.
    """

    paper: str
    section: str
    text: str
    row: str
    tables: tuple[str, ...]
    head: str
    phase: str
    statistic: str
    above: float = -math.inf
    below: float = math.inf
    base: str = ""
    nulls: tuple[str, ...] = ()
    control: str = ""


class UntestedClaim(NamedTuple):
    """A statement that none of our records can test.

    Attributes:
      paper: authors and year.
      section: the section, table or figure that makes the statement.
      text: the statement in our words.
      missing: the measurement that would test it.
    """

    paper: str
    section: str
    text: str
    missing: str


AnyClaim = Union[Claim, SpeedClaim, MemoryClaim, UntestedClaim]
