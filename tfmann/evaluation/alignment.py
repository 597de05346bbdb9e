"""Word alignments: read off the attention, written in Pharaoh format, scored by AER.

A link is a pair (i, j) of 0-based positions: source word i, target word j. ``</s>`` has no links.
Letters: S source length, T target length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tfmann.corpus.files import PathLike, iter_lines
from tfmann.errors import UserError

Link = tuple[int, int]  # (source position, target position)

_LINK = re.compile(r"([0-9]{1,9})([-p])([0-9]{1,9})")


@dataclass(frozen=True)
class GoldAlignment:
    """A sentence's reference links.

    Attributes:
      sure: links that must be found.
      possible: links that may be found; contains ``sure``.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]


def hard_alignment(
    attention: np.ndarray,
    source_length: int,
    target_length: int,
    append_source_eos: bool,
) -> list[Link]:
    """Links each target word to the source word that it attends to most.

    ``</s>`` is left out on both sides: its row is dropped and its column is ignored, so that a
    word which attends to ``</s>`` first is linked to the word that comes second. The lowest
    position wins a tie; a word that puts no weight at all on any source word has no link.

    Args:
      attention: weights, [T, S] or larger (padding is ignored).
      source_length: source positions as the model counts them, a ``</s>`` included.
      target_length: target positions, the ``</s>`` included (a translation that was cut before
        its ``</s>`` is one longer by this count than it has words).
      append_source_eos: whether the source ends in a ``</s>`` position.

    Returns:
      Links in the order of the target words.
    """
    source_words = source_length - 1 if append_source_eos else source_length
    words = np.asarray(attention)[: target_length - 1, :source_words]  # [T - 1, source words]
    if words.size == 0:
        return []
    best = words.argmax(axis=1)
    return [(int(i), j) for j, i in enumerate(best) if words[j, i] > 0]


def format_pharaoh(links: Iterable[Link]) -> str:
    """Writes links as ``i-j i-j ...``, the source position first."""
    return " ".join(f"{i}-{j}" for i, j in links)


def parse_pharaoh(line: str, line_number: int, path: PathLike = "alignments") -> GoldAlignment:
    """Reads a line of links: ``i-j`` is sure, ``ipj`` only possible; positions count from 0.

    Args:
      line: links separated by white space; a blank line has none.
      line_number: 1-based, for the message.
      path: where the line comes from, for the message.

    Raises:
      UserError: something in the line is not a link.
    """
    sure, possible = set(), set()
    for item in line.split():
        match = _LINK.fullmatch(item)
        if match is None:
            raise UserError(
                f"{path}, line {line_number}: {item!r} is not a link; expected SOURCE-TARGET "
                "(sure) or SOURCEpTARGET (possible), positions counted from 0, such as 0-1 or 2p3"
            )
        link = (int(match[1]), int(match[3]))
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldAlignment(frozenset(sure), frozenset(possible))


def read_pharaoh(path: PathLike) -> list[GoldAlignment]:
    """Reads a file of alignments, one sentence per line.

    Raises:
      UserError: the file cannot be read, or a line holds something else than links.
    """
    lines = enumerate(iter_lines(path), start=1)
    return [parse_pharaoh(line, line_number=number, path=path) for number, line in lines]


def aer(
    hypothesis: Sequence[Iterable[Link]],
    sure: Sequence[Iterable[Link]],
    possible: Sequence[Iterable[Link]],
) -> float:
    """Alignment error rate over all links of a set: 0 is perfect, 1 is the worst.

    Och & Ney (2003), section 3.2: AER = 1 - (|A and S| + |A and P|) / (|A| + |S|), where the
    possible links P contain the sure ones S.

    Args:
      hypothesis: the links found (A), sentence by sentence.
      sure: the sure reference links, sentence by sentence.
      possible: the possible ones; whether they repeat the sure ones makes no difference.

    Raises:
      UserError: the three differ in their number of sentences, or hold no link to compare.
    """
    if not len(hypothesis) == len(sure) == len(possible):
        raise UserError(
            f"alignments of {len(hypothesis)} sentences cannot be compared with references for "
            f"{len(sure)} (sure) and {len(possible)} (possible) sentences"
        )
    matches = size = 0
    for found, must, may in zip(map(set, hypothesis), map(set, sure), map(set, possible)):
        matches += len(found & must) + len(found & (may | must))
        size += len(found) + len(must)
    if size == 0:
        raise UserError("no alignment links to compare: neither side has any")
    return 1.0 - matches / size
