"""Scores of a model on a test set with gold alignments.

The set is three parallel files: source, reference, and the links between their words (`read`). A
model is scored in two ways, as in Meng et al. (2018): its alignments in a forced decoding of the
references (`alignment_scores`, their Table 2), and the over- and under-translated source words of
its own translations (`adequacy_scores`, their Table 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfmann.data.subword import WordSegmenter
from tfmann.data.text_files import iter_lines
from tfmann.errors import UserError
from tfmann.evaluation.adequacy import Judgement, adequacy
from tfmann.evaluation.alignment import (
    GoldAlignment,
    Link,
    LinkCounts,
    count_links,
    quality_of,
    read_pharaoh,
    soft_aer,
)
from tfmann.evaluation.bleu import check_parallel
from tfmann.utils.files import PathLike


class GoldSet(NamedTuple):
    """Sentence by sentence: the words of both sides and the links between them."""

    sources: list[list[str]]
    references: list[list[str]]
    links: list[GoldAlignment]

    @property
    def sure(self) -> list[frozenset[Link]]:
        """The sure links."""
        return [sentence.sure for sentence in self.links]

    @property
    def possible(self) -> list[frozenset[Link]]:
        """The possible links, which include the sure ones."""
        return [sentence.possible for sentence in self.links]


def words_of(lines: Iterable[str]) -> list[list[str]]:
    """Returns the words of each line, to which the positions of links refer."""
    segment = WordSegmenter().segment
    return [segment(line) for line in lines]


def units_of(lines: Iterable[str], by_character: bool) -> list[list[str]]:
    """Returns the words of each line, or its characters, the spaces between them too."""
    return [list(line.strip()) for line in lines] if by_character else words_of(lines)


def read(gold: PathLike, source: PathLike, reference: PathLike) -> GoldSet:
    """Reads a set and checks that its three files belong together.

    Args:
      gold: links, one line per sentence: ``i-j`` is sure, ``ipj`` only possible, for source word i
        and target word j, counted from 0.
      source: one sentence per line.
      reference: their translations.

    Raises:
      UserError: a file cannot be read, the numbers of lines differ, something is not a link, or
        a link refers to a word position outside the sentence; names file and line.
    """
    links = read_pharaoh(gold)
    sources, references = (words_of(iter_lines(path)) for path in (source, reference))
    check_parallel([(str(gold), links), (str(source), sources), (str(reference), references)])
    for number, (sentence, *sides) in enumerate(zip(links, sources, references), start=1):
        sizes = tuple(map(len, sides))
        for i, j in sorted(sentence.possible):
            if i >= sizes[0] or j >= sizes[1]:
                raise UserError(
                    f"{gold}, line {number}: {i}-{j} is a link outside the sentence, which has "
                    f"{sizes[0]} words in {source} and {sizes[1]} in {reference}: expected "
                    "source-target positions of these files, counted from 0"
                )
    if not any(sentence.sure for sentence in links):
        raise UserError(f"{gold}: expected at least one sure link (i-j), there is none to score by")
    return GoldSet(sources, references, links)


def alignment_scores(
    gold: GoldSet, attention: Sequence[np.ndarray], links: Sequence[Sequence[Link]]
) -> dict[str, Any]:
    """Returns the alignment error of a forced decoding of the references.

    Args:
      gold: the set.
      attention: weights of each sentence, [target words, source words]
        (`alignment.word_attention`).
      links: their hard alignments (`alignment.hard_alignment`).

    Returns:
      `aer` and `soft_aer`, `precision` and `recall` of the hard links, each from 0 to 1, and the
      numbers of sentences and links. `by_sentence` has the counts of each sentence
      (`alignment.LinkCounts`).
    """
    counts = count_links(links, gold.sure, gold.possible)
    return {
        **quality_of(counts)._asdict(),
        "soft_aer": soft_aer(attention, gold.sure, gold.possible),
        "sentences": len(links),
        "links": sum(map(len, links)),
        "sure": sum(map(len, gold.sure)),
        "possible": sum(map(len, gold.possible)),
        "by_sentence": _columns(LinkCounts._fields, counts),
    }


def adequacy_scores(
    gold: GoldSet, hypotheses: Sequence[str], links: Sequence[Iterable[Link]] | None
) -> dict[str, Any]:
    """Returns the shares of under- and over-translated source words.

    Args:
      gold: the set.
      hypotheses: one translation per sentence.
      links: of source and translation, by the attention; None for a cell without alignments, where
        reworded words cannot be distinguished from under-translated ones.

    Returns:
      `under`, `over` and `reworded` (None without links) as shares of the `judged` source words,
      from 0 to 1 (`tfmann.evaluation.adequacy`), and the number of all source words.
      `by_sentence` has the numbers of these words in each sentence.
    """
    counts = adequacy(gold.sources, gold.references, words_of(hypotheses), gold.sure, links)
    numbers = [tuple(map(len, sentence)) for sentence in counts.sentences]
    by_sentence = _columns(Judgement._fields, numbers)
    if links is None:
        del by_sentence["reworded"]
    return {
        "under": counts.under_share,
        "reworded": None if links is None else counts.reworded_share,
        "over": counts.over_share,
        "judged": counts.judged,
        "source_words": counts.source_words,
        "by_sentence": by_sentence,
    }


def _columns(names: Sequence[str], rows: Sequence[Sequence[int]]) -> dict[str, list[int]]:
    """Returns the numbers of all sentences by name."""
    return {name: list(column) for name, column in zip(names, zip(*rows))}
