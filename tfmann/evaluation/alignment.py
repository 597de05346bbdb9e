"""Word alignments: derived from attention, written in Pharaoh format, scored by AER and SAER.

A link is a pair (i, j) of 0-based positions: source word i, target word j. ``</s>`` has no links.
Letters: S source length, T target length. In the scores: A the hypothesis links, S the sure links
of the reference, P its possible ones, which include the sure ones (Och & Ney 2003, section 5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tfmann.data.text_files import iter_lines
from tfmann.errors import UserError
from tfmann.utils.files import PathLike

Link = tuple[int, int]  # (source position, target position)

_LINK = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")


@dataclass(frozen=True)
class GoldAlignment:
    """A sentence's reference links.

    Attributes:
      sure: links that a hypothesis must have.
      possible: links that it may have; includes ``sure``.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]


class Quality(NamedTuple):
    """Scores of hypothesis links, each from 0 to 1.

    Attributes:
      aer: alignment error rate, 0 is perfect.
      precision: |A and P| / |A|, 1 without hypothesis links.
      recall: |A and S| / |S|, 1 without sure links.
    """

    aer: float
    precision: float
    recall: float


def word_attention(
    attention: np.ndarray,
    source_length: int,
    target_length: int,
    append_source_eos: bool,
) -> np.ndarray:
    """Returns the attention of target words to source words, without ``</s>`` on either side.

    Args:
      attention: weights, [T, S] or larger (padding is ignored).
      source_length: source positions as the model counts them, a ``</s>`` included.
      target_length: target positions, the ``</s>`` included (also counted for a translation that
        was cut before its ``</s>``).
      append_source_eos: whether the source ends in a ``</s>`` position.

    Returns:
      [target words, source words]; rows sum to 1 minus the weight of ``</s>``.
    """
    source_words = source_length - 1 if append_source_eos else source_length
    return np.asarray(attention)[: target_length - 1, :source_words]


def hard_alignment(
    attention: np.ndarray,
    source_length: int,
    target_length: int,
    append_source_eos: bool,
) -> list[Link]:
    """Links each target word to the source word that it attends to most.

    ``</s>`` is left out on both sides, so a word that attends most to ``</s>`` is linked to its
    second choice. The lowest position wins a tie; a word without weight on any source word has no
    link.

    The arguments are those of `word_attention`.

    Returns:
      Links in the order of the target words.
    """
    words = word_attention(attention, source_length, target_length, append_source_eos)
    if words.size == 0:
        return []
    best = words.argmax(axis=1)
    return [(int(i), j) for j, i in enumerate(best) if words[j, i] > 0]


def format_pharaoh(links: Iterable[Link]) -> str:
    """Formats links as ``i-j i-j ...``, the source position first."""
    return " ".join(f"{i}-{j}" for i, j in links)


def parse_pharaoh(
    line: str,
    line_number: int,
    path: PathLike = "alignments",
    first: int = 0,
    reverse: bool = False,
) -> GoldAlignment:
    """Reads a line of links: ``i-j`` is sure, ``ipj`` and ``i?j`` are only possible.

    Args:
      line: links separated by white space; a blank line has none.
      line_number: 1-based, for the message.
      path: where the line comes from, for the message.
      first: the number of the first word: 0, or 1 as in some gold files.
      reverse: the file has the target position first.

    Raises:
      UserError: an item of the line is not a link, or a position is below ``first``.
    """
    sure, possible = set(), set()
    for item in line.split():
        match = _LINK.fullmatch(item)
        if match is None:
            raise UserError(
                f"{path}, line {line_number}: {item!r} is not a link; expected SOURCE-TARGET "
                f"(sure) or SOURCEpTARGET (possible), positions counted from {first}, such as "
                "1-1 or 2p3"
            )
        left, right = int(match[1]) - first, int(match[3]) - first
        if left < 0 or right < 0:
            raise UserError(
                f"{path}, line {line_number}: {item!r} is not a link of positions counted from "
                f"{first}: this file counts from 0"
            )
        link = (right, left) if reverse else (left, right)
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldAlignment(frozenset(sure), frozenset(possible))


def read_pharaoh(path: PathLike, first: int = 0, reverse: bool = False) -> list[GoldAlignment]:
    """Reads a file of alignments, one sentence per line; the arguments as in `parse_pharaoh`.

    Raises:
      UserError: the file cannot be read, or a line has an item that is not a link.
    """
    lines = enumerate(iter_lines(path), start=1)
    return [parse_pharaoh(line, number, path, first, reverse) for number, line in lines]


class LinkCounts(NamedTuple):
    """Numbers of links of a sentence, or of a set."""

    in_sure: int  # hypothesis links that are sure links of the reference
    in_possible: int  # hypothesis links that are possible links
    links: int  # of the hypothesis
    sure: int  # of the reference


def count_links(
    hypothesis: Sequence[Iterable[Link]],
    sure: Sequence[Iterable[Link]],
    possible: Sequence[Iterable[Link]],
) -> list[LinkCounts]:
    """Counts the links of each sentence; arguments and errors as of `quality`."""
    _check_sentences(len(hypothesis), len(sure), len(possible))
    return [
        LinkCounts(len(links & must), len(links & (may | must)), len(links), len(must))
        for links, must, may in zip(map(set, hypothesis), map(set, sure), map(set, possible))
    ]


def quality(
    hypothesis: Sequence[Iterable[Link]],
    sure: Sequence[Iterable[Link]],
    possible: Sequence[Iterable[Link]],
) -> Quality:
    """Returns alignment error rate, precision and recall over all links of a set.

    Och & Ney (2003), section 5: AER = 1 - (|A and S| + |A and P|) / (|A| + |S|).

    Args:
      hypothesis: the hypothesis links (A), sentence by sentence.
      sure: the sure reference links, sentence by sentence.
      possible: the possible links; they may or may not repeat the sure ones.

    Raises:
      UserError: the numbers of sentences differ, or there is no link to compare.
    """
    return quality_of(count_links(hypothesis, sure, possible))


def quality_of(sentences: Iterable[LinkCounts]) -> Quality:
    """Returns what `quality` does, from the counts of its sentences."""
    counts = [LinkCounts(0, 0, 0, 0), *sentences]
    return _quality(*map(sum, zip(*counts)))


def soft_aer(
    attention: Sequence[np.ndarray],
    sure: Sequence[Iterable[Link]],
    possible: Sequence[Iterable[Link]],
) -> float:
    """Returns the soft alignment error rate, SAER (Tu et al. 2016): the AER of the weights.

    SAER = 1 - (|M_A * M_S| + |M_A * M_P|) / (|M_A| + |M_S|), where M_A are the attention weights,
    M_S and M_P have ones at the reference's links, * is elementwise and |M| sums all elements.
    For weights of 0 and 1 it is the AER. As in hard alignments, ``</s>`` is left out: the weight on
    ``</s>`` is linked to nothing.

    Args:
      attention: weights of each sentence, [target words, source words] (`word_attention`).
      sure: the sure reference links, sentence by sentence.
      possible: the possible links; they may or may not repeat the sure ones.

    Raises:
      UserError: as in `quality`, or a link is outside its sentence.
    """
    _check_sentences(len(attention), len(sure), len(possible))
    in_sure = in_possible = weight_found = 0.0
    links_sure = 0
    sentences = zip(attention, map(set, sure), map(set, possible))
    for number, (weights, must, may) in enumerate(sentences, start=1):
        for i, j in must | may:
            if j >= weights.shape[0] or i >= weights.shape[1]:
                raise UserError(
                    f"sentence {number}: the reference links {i}-{j}, but there are "
                    f"{weights.shape[1]} source and {weights.shape[0]} target words: "
                    "are these the sentences of the reference?"
                )
        in_sure += sum(float(weights[j, i]) for i, j in must)
        in_possible += sum(float(weights[j, i]) for i, j in must | may)
        weight_found += float(weights.sum())
        links_sure += len(must)
    return _quality(in_sure, in_possible, weight_found, links_sure).aer


def _check_sentences(hypothesis: int, sure: int, possible: int) -> None:
    if not hypothesis == sure == possible:
        raise UserError(
            f"alignments of {hypothesis} sentences cannot be compared with references for "
            f"{sure} (sure) and {possible} (possible) sentences"
        )


def _quality(in_sure: float, in_possible: float, links: float, sure: float) -> Quality:
    if links + sure == 0:
        raise UserError("no alignment links to compare: neither side has any")
    return Quality(
        aer=1.0 - (in_sure + in_possible) / (links + sure),
        precision=in_possible / links if links else 1.0,
        recall=in_sure / sure if sure else 1.0,
    )
