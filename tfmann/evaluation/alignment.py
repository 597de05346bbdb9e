"""Word alignments: read off the attention, written in Pharaoh format, scored by AER and SAER.

A link is a pair (i, j) of 0-based positions: source word i, target word j. ``</s>`` has no links.
Letters: S source length, T target length. In the scores: A the links found, S the sure links of
the reference, P its possible ones, which contain the sure ones (Och & Ney 2003, section 5).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tfmann.corpus.files import PathLike, iter_lines
from tfmann.errors import UserError

Link = tuple[int, int]  # (source position, target position)

_LINK = re.compile(r"([0-9]{1,9})([-p?])([0-9]{1,9})")


@dataclass(frozen=True)
class GoldAlignment:
    """A sentence's reference links.

    Attributes:
      sure: links that must be found.
      possible: links that may be found; contains ``sure``.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]


class Quality(NamedTuple):
    """How well the links of a set were found, each from 0 to 1.

    Attributes:
      aer: alignment error rate, 0 is perfect.
      precision: |A and P| / |A|, 1 where no link was found.
      recall: |A and S| / |S|, 1 where no link is sure.
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
    """Leaves out ``</s>`` on both sides: the attention of target words to source words.

    Args:
      attention: weights, [T, S] or larger (padding is ignored).
      source_length: source positions as the model counts them, a ``</s>`` included.
      target_length: target positions, the ``</s>`` included (a translation that was cut before
        its ``</s>`` is one longer by this count than it has words).
      append_source_eos: whether the source ends in a ``</s>`` position.

    Returns:
      [target words, source words]; rows sum to less than 1 by what fell on ``</s>``.
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

    ``</s>`` is left out on both sides: its row is dropped and its column is ignored, so that a
    word which attends to ``</s>`` first is linked to the word that comes second. The lowest
    position wins a tie; a word that puts no weight at all on any source word has no link.

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
    """Writes links as ``i-j i-j ...``, the source position first."""
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
      UserError: something in the line is not a link, or counts from before ``first``.
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
                f"{first}: in this file they count from 0"
            )
        link = (right, left) if reverse else (left, right)
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldAlignment(frozenset(sure), frozenset(possible))


def read_pharaoh(path: PathLike, first: int = 0, reverse: bool = False) -> list[GoldAlignment]:
    """Reads a file of alignments, one sentence per line; the arguments as in `parse_pharaoh`.

    Raises:
      UserError: the file cannot be read, or a line holds something else than links.
    """
    lines = enumerate(iter_lines(path), start=1)
    return [parse_pharaoh(line, number, path, first, reverse) for number, line in lines]


def aer(
    hypothesis: Sequence[Iterable[Link]],
    sure: Sequence[Iterable[Link]],
    possible: Sequence[Iterable[Link]],
) -> float:
    """Alignment error rate over all links of a set: 0 is perfect, 1 is the worst.

    The arguments are those of `quality`.
    """
    return quality(hypothesis, sure, possible).aer


def quality(
    hypothesis: Sequence[Iterable[Link]],
    sure: Sequence[Iterable[Link]],
    possible: Sequence[Iterable[Link]],
) -> Quality:
    """Alignment error rate, precision and recall over all links of a set.

    Och & Ney (2003), section 5: AER = 1 - (|A and S| + |A and P|) / (|A| + |S|).

    Args:
      hypothesis: the links found (A), sentence by sentence.
      sure: the sure reference links, sentence by sentence.
      possible: the possible ones; whether they repeat the sure ones makes no difference.

    Raises:
      UserError: the three differ in their number of sentences, or hold no link to compare.
    """
    _check_sentences(len(hypothesis), len(sure), len(possible))
    in_sure = in_possible = found = wanted = 0
    for links, must, may in zip(map(set, hypothesis), map(set, sure), map(set, possible)):
        in_sure += len(links & must)
        in_possible += len(links & (may | must))
        found += len(links)
        wanted += len(must)
    return _quality(in_sure, in_possible, found, wanted)


def soft_aer(
    attention: Sequence[np.ndarray],
    sure: Sequence[Iterable[Link]],
    possible: Sequence[Iterable[Link]],
) -> float:
    """Soft alignment error rate, SAER (Tu et al. 2016): the AER of the weights themselves.

    SAER = 1 - (|M_A * M_S| + |M_A * M_P|) / (|M_A| + |M_S|), where M_A are the attention weights,
    M_S and M_P have ones at the reference's links, * is elementwise and |M| sums all elements.
    Of weights that are all 0 or 1 it is the AER. As in the hard alignments, ``</s>`` is left out:
    what a word attends to ``</s>`` is linked to nothing.

    Args:
      attention: weights of each sentence, [target words, source words] (`word_attention`).
      sure: the sure reference links, sentence by sentence.
      possible: the possible ones; whether they repeat the sure ones makes no difference.

    Raises:
      UserError: as `quality`, or a link lies outside of its sentence.
    """
    _check_sentences(len(attention), len(sure), len(possible))
    in_sure = in_possible = found = wanted = 0.0
    sentences = zip(attention, map(set, sure), map(set, possible))
    for number, (weights, must, may) in enumerate(sentences, start=1):
        for i, j in must | may:
            if j >= weights.shape[0] or i >= weights.shape[1]:
                raise UserError(
                    f"sentence {number}: the reference links {i}-{j}, and there are "
                    f"{weights.shape[1]} source and {weights.shape[0]} target words: "
                    "are these the sentences it was made for?"
                )
        in_sure += sum(float(weights[j, i]) for i, j in must)
        in_possible += sum(float(weights[j, i]) for i, j in must | may)
        found += float(weights.sum())
        wanted += len(must)
    return _quality(in_sure, in_possible, found, wanted).aer


def _check_sentences(hypothesis: int, sure: int, possible: int) -> None:
    if not hypothesis == sure == possible:
        raise UserError(
            f"alignments of {hypothesis} sentences cannot be compared with references for "
            f"{sure} (sure) and {possible} (possible) sentences"
        )


def _quality(in_sure: float, in_possible: float, found: float, wanted: float) -> Quality:
    if found + wanted == 0:
        raise UserError("no alignment links to compare: neither side has any")
    return Quality(
        aer=1.0 - (in_sure + in_possible) / (found + wanted),
        precision=in_possible / found if found else 1.0,
        recall=in_sure / wanted if wanted else 1.0,
    )
