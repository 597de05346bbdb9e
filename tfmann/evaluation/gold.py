"""A set with gold links: what a model's attention finds of them, what its translations leave out.

The set is three files, line by line: source, reference, and the links of their words (`read`). A
model is scored on it in two ways. Its alignments are those of a forced decoding of the references
(`alignment_scores`), as Meng et al. (2018), Table 2, have them. Over- and under-translated source
words are counted in its own translations (`adequacy_scores`), as in their Table 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tfmann.corpus.files import PathLike, iter_lines
from tfmann.corpus.subword import WordSegmenter
from tfmann.errors import UserError
from tfmann.evaluation.adequacy import adequacy
from tfmann.evaluation.alignment import (
    GoldAlignment,
    Link,
    quality,
    read_pharaoh,
    soft_aer,
)
from tfmann.evaluation.bleu import check_parallel


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
        """The possible ones, the sure ones among them."""
        return [sentence.possible for sentence in self.links]


def words_of(lines: Iterable[str]) -> list[list[str]]:
    """The words of each line, which are what links count."""
    segment = WordSegmenter().segment
    return [segment(line) for line in lines]


def read(gold: PathLike, source: PathLike, reference: PathLike) -> GoldSet:
    """Reads a set and checks that its three files belong together.

    Args:
      gold: links, one sentence a line: ``i-j`` is sure, ``ipj`` only possible, source word i and
        target word j counted from 0.
      source: the sentences, one a line.
      reference: their translations.

    Raises:
      UserError: a file cannot be read, the numbers of lines differ, something is not a link, or
        a link is of words that the sentence has not; names file and line.
    """
    links = read_pharaoh(gold)
    sources, references = (words_of(iter_lines(path)) for path in (source, reference))
    check_parallel([(str(gold), links), (str(source), sources), (str(reference), references)])
    for number, (sentence, *sides) in enumerate(zip(links, sources, references), start=1):
        sizes = tuple(map(len, sides))
        for i, j in sorted(sentence.possible):
            if i >= sizes[0] or j >= sizes[1]:
                raise UserError(
                    f"{gold}, line {number}: {i}-{j} is a link of words that are not there, with "
                    f"{sizes[0]} words in {source} and {sizes[1]} in {reference}: expected "
                    "source-target, counted from 0, of these files"
                )
    if not any(sentence.sure for sentence in links):
        raise UserError(f"{gold}: there is no sure link (i-j) in it, so nothing to be scored by")
    return GoldSet(sources, references, links)


def alignment_scores(
    gold: GoldSet, attention: Sequence[np.ndarray], links: Sequence[Sequence[Link]]
) -> dict[str, Any]:
    """Alignment error of a forced decoding of the references.

    Args:
      gold: the set.
      attention: weights of each sentence, [target words, source words]
        (`alignment.word_attention`).
      links: what is read off them (`alignment.hard_alignment`).

    Returns:
      `aer` and `soft_aer`, `precision` and `recall` of the hard links, each from 0 to 1, and the
      numbers of sentences and links.
    """
    found = quality(links, gold.sure, gold.possible)
    return {
        **found._asdict(),
        "soft_aer": soft_aer(attention, gold.sure, gold.possible),
        "sentences": len(links),
        "links": sum(map(len, links)),
        "sure": sum(map(len, gold.sure)),
        "possible": sum(map(len, gold.possible)),
    }


def adequacy_scores(
    gold: GoldSet, hypotheses: Sequence[str], links: Sequence[Iterable[Link]] | None
) -> dict[str, Any]:
    """Under- and over-translated source words of translations.

    Args:
      gold: the set.
      hypotheses: a line of translation each.
      links: those of source and translation, by the attention; None of a cell that has none. Then
        a reworded word cannot be told from one that is left out.

    Returns:
      `under`, `over` and `reworded` (None without links) as shares of the `judged` source words,
      from 0 to 1 (`tfmann.evaluation.adequacy`), and how many these are of all source words.
    """
    found = adequacy(gold.sources, gold.references, words_of(hypotheses), gold.sure, links)
    return {
        "under": found.under_share,
        "reworded": None if links is None else found.reworded_share,
        "over": found.over_share,
        "judged": found.judged,
        "source_words": found.source_words,
    }
