"""Lines and translations, as translators take and return them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Union

import numpy as np

from tfmann.data.vocab import EOS
from tfmann.decoding.word_memory_entries import WordMemory


class EncodedPair(NamedTuple):
    """A pair that replaces a line in the history of the next lines of its document."""

    source: list[int]  # ids without `</s>`; empty: the history lacks the line
    target: list[int]


class Prefix(NamedTuple):
    """The words that a translation must begin with."""

    tokens: list[str]  # as they were given, of which the vocabulary may lack some
    ids: list[int]


class SourceLine(NamedTuple):
    """A source line and its ids."""

    text: str
    ids: list[int]  # without `</s>`; empty of a blank line
    document: int
    history: list[list[int] | None]  # ids of the P lines before it, the nearest last
    history_pair: EncodedPair | None = None  # None: the line itself and its translation
    prefix: Prefix = Prefix([], [])  # of its translation
    phrases: Sequence[list[int]] = ()  # ids that its translation contains


class Translation(NamedTuple):
    """One translation of one line."""

    text: str  # with unknown words replaced if the model has a lexicon
    score: float
    source_tokens: list[str]  # as the model read them, with </s> if the source ends in one
    tokens: list[str]  # as the model chose them, with </s>
    attention: np.ndarray | None  # [len(tokens), len(source_tokens)]


# A pair that replaces a line in the history of the next ones: as text, or as a translator returned
# it, token by token. None: the history lacks the line.
HistoryPair = Union[tuple[str, str], Translation, None]


# The first words of a line's translation, and the phrases that it contains: ("", ()) for none.
LineRequirements = tuple[str, Sequence[str]]


class Slots(NamedTuple):
    """The slots of a cache at the beginning of a sentence, in the order of `cache_match`."""

    words: list[str]  # [I], "" of an empty slot
    ages: np.ndarray  # [I] writes of the document after that of the slot: 0 is the latest; -1 empty


class Forced(NamedTuple):
    """The forced decoding of a given pair."""

    log_prob: float  # natural logarithm, </s> counted
    source_tokens: list[str]
    tokens: list[str]
    word_log_probs: np.ndarray  # [len(tokens)]
    diagnostics: dict[str, np.ndarray]  # by name, [source_steps + len(tokens), ...]
    source_steps: int  # len(source_tokens) if the cell reads the source itself, else 0
    slots: Slots | None = None  # of a cell with a cache
    word_memory: WordMemory | None = None  # of a search with one, where everything is recorded
    previous_tokens: Sequence[str] = ()  # the source sentence before, if the model reads it


def without_eos(tokens: Sequence[str]) -> Sequence[str]:
    """Returns the tokens without a final `</s>`."""
    return tokens[:-1] if tokens and tokens[-1] == EOS else tokens
