"""A claim of a paper, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Union


class Claim(NamedTuple):
    """A statement of a paper about two rows of a table.

    Attributes:
      paper: whose it is.
      where: in the paper.
      text: what it says, in our words.
      expect: `higher` or `lower`: the row's measure is so. `no gain`: it is not higher by the
        margin or more. `alike`: the two differ by less than the margin. `between`: the difference
        lies between the two numbers of `between`.
      row: the system.
      rival: what it is compared with.
      tables: those of ours where it can be looked at, the paper's own first.
      measure: of `measures.MEASURES`.
      margin: of `alike` and `no gain`: what the paper's own figures differ by where it says so.
      sign_test: the paper has p values of the sign test.
      between: of what is counted, percent of the rival's.
    """

    paper: str
    where: str
    text: str
    expect: str
    row: str
    rival: str
    tables: tuple[str, ...]
    measure: str = "test BLEU"
    margin: float = 0.0
    sign_test: bool = False
    between: tuple[float, float] | None = None


class Speed(NamedTuple):
    """A statement of a paper about speed, judged by a benchmark that ran on a quiet machine.

    Attributes:
      paper: whose it is.
      where: in the paper.
      text: what it says, in our words.
      file: of results/.
      about: the record: these keys have these values.
      least: share of the other's speed that the paper's figures leave, and
      most: leave at most; a share that is off by no more than two timings differ agrees too.
    """

    paper: str
    where: str
    text: str
    file: str
    about: Mapping[str, str]
    least: float
    most: float


class Unjudged(NamedTuple):
    """A statement of a paper that no record can be asked yet.

    Attributes:
      paper: whose it is.
      where: in the paper.
      text: what it says, in our words.
      lacking: what would have to be measured.
    """

    paper: str
    where: str
    text: str
    lacking: str


AnyClaim = Union[Claim, Speed, Unjudged]
