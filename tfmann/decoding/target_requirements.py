"""Requirements of the translations of a batch: given first words, phrases, and shortlists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.data.shortlist_lexicon import TranslationLists
from tfmann.data.word_boundaries import WordBoundaries
from tfmann.decoding import lexical_constraints, shortlist, target_prefix
from tfmann.decoding.lexical_constraints import Phrases
from tfmann.decoding.translation import SourceLine


class Requirements(NamedTuple):
    """Ids that translations of B sentences must or may have; `()` where a search is without them.

    A search with them is another graph than one without.
    """

    prefix: Any = ()  # [B, P] first words (`target_prefix`)
    phrases: Any = ()  # [B, P, L] (`lexical_constraints`)
    shortlist: Any = ()  # a `Shortlist`

    def search_arguments(self, boundaries: WordBoundaries) -> dict[str, Any]:
        """Returns the arguments `prefix`, `phrases` and `shortlist` of `Searcher.search`."""
        arguments: dict[str, Any] = {}
        if _is_present(self.prefix):
            arguments["prefix"] = tf.convert_to_tensor(self.prefix)
        if _is_present(self.phrases):
            arguments["phrases"] = Phrases(tf.convert_to_tensor(self.phrases), *boundaries)
        if _is_present(self.shortlist):
            arguments["shortlist"] = self.shortlist
        return arguments


def _is_present(part: Any) -> bool:
    """Returns whether a part is there: a tensor, an array where nothing is compiled, or a tuple."""
    return not isinstance(part, tuple) or len(part) > 0


def kinds(lines: Sequence[SourceLine]) -> tuple[bool, bool]:
    """Returns whether a line has a prefix, and whether one has phrases."""
    return any(line.prefix.ids for line in lines), any(line.phrases for line in lines)


def most_phrase_tokens(lines: Sequence[SourceLine]) -> int:
    """Returns how many tokens the phrases of a line have at most."""
    return max((sum(map(len, line.phrases)) for line in lines), default=0)


def requirements(
    batch: Sequence[SourceLine],
    lines: Sequence[SourceLine],
    lists: TranslationLists | None,
    hypotheses: int,
) -> Requirements:
    """Returns the requirements of a batch of `lines`, with what `signature` has for all of them.

    Args:
      batch: some of the lines.
      lines: all.
      lists: what a shortlist is made of; None: translations may have any word.
      hypotheses: of a sentence.
    """
    has_prefix, has_phrases = kinds(lines)
    return Requirements(
        target_prefix.pad_prefixes([line.prefix.ids for line in batch]) if has_prefix else (),
        lexical_constraints.pad_phrases([line.phrases for line in batch]) if has_phrases else (),
        () if lists is None else shortlist.of_batch(lists, batch, hypotheses),
    )


def signature(lines: Sequence[SourceLine], lists: TranslationLists | None) -> Requirements:
    """Returns the TensorSpecs of the `requirements` of `lines`."""
    has_prefix, has_phrases = kinds(lines)
    return Requirements(
        target_prefix.SIGNATURE if has_prefix else (),
        lexical_constraints.SIGNATURE if has_phrases else (),
        () if lists is None else shortlist.SIGNATURE,
    )
