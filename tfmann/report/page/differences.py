"""What a translation has that another text has not, word by word."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

SAME, MORE, LESS = "same", "more", "less"


class Piece(NamedTuple):
    """Words that stand together: in both (SAME), in the translation alone (MORE), not in it."""

    kind: str
    words: str


def differences(text: str, other: str, lowercase: bool = False) -> list[Piece]:
    """The words of `text` in order, with those of `other` that it lacks where they would stand.

    Args:
      text: a translation.
      other: the reference, or a baseline's translation.
      lowercase: take words that differ in case for the same.
    """
    words, others = text.split(), other.split()
    matcher = SequenceMatcher(None, _keys(others, lowercase), _keys(words, lowercase), False)
    pieces = []
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            pieces.append(Piece(SAME, " ".join(words[k:m])))
            continue
        if i < j:
            pieces.append(Piece(LESS, " ".join(others[i:j])))
        if k < m:
            pieces.append(Piece(MORE, " ".join(words[k:m])))
    return pieces


def closest(text: str, others: Sequence[str], lowercase: bool = False) -> str:
    """That of several references which a translation has most in common with."""
    words = _keys(text.split(), lowercase)
    return max(
        others,
        key=lambda other: SequenceMatcher(
            None, _keys(other.split(), lowercase), words, False
        ).ratio(),
    )


def _keys(words: list[str], lowercase: bool) -> list[str]:
    return [word.lower() for word in words] if lowercase else words
