"""Where words begin and end in a sequence of subwords."""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import numpy as np

from tfmann.data.moses import MosesSegmenter
from tfmann.data.subword import SEPARATOR, BpeSegmenter, SentencePieceSegmenter
from tfmann.data.text_encoder import TextEncoder

_SPACE = "\u2581"  # begins a piece of SentencePiece that follows a space


class WordBoundaries(NamedTuple):
    """Marks of the V tokens that are parts of words; None where none is."""

    is_open: np.ndarray | None  # [V] bool: the next token belongs to the same word, as of `low@@`
    joins: np.ndarray | None  # [V] bool: it belongs to the word before it, as a piece without space

    def are_words(self, ids: list[int]) -> bool:
        """Returns whether ids begin and end with whole words."""
        begins = self.joins is None or not self.joins[ids[0]]
        return begins and (self.is_open is None or not self.is_open[ids[-1]])


def word_boundaries(encoder: TextEncoder) -> WordBoundaries:
    """Returns the boundaries of the words that the tokens of a vocabulary spell.

    A piece of SentencePiece without a space that begins with punctuation is a word.
    """
    tokens, segmenter = encoder.vocabulary.tokens, encoder.segmenter
    if isinstance(segmenter, MosesSegmenter):
        segmenter = segmenter.inner
    if isinstance(segmenter, BpeSegmenter):
        return WordBoundaries(np.array([token.endswith(SEPARATOR) for token in tokens]), None)
    if isinstance(segmenter, SentencePieceSegmenter):
        return WordBoundaries(None, np.array([_continues_word(token) for token in tokens]))
    return WordBoundaries(None, None)


def _continues_word(piece: str) -> bool:
    first = piece[0]
    return first != _SPACE and (first.isalnum() or unicodedata.category(first).startswith("M"))
