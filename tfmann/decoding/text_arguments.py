"""Checks of the text that a caller of the Python interface gives; a mistake is a TypeError."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tfmann.decoding.translation import HistoryPair, Translation


def sentences(lines: Iterable[str], kind: str = "sentence") -> Iterator[str]:
    """Checks the lines; a single string would be translated letter by letter."""
    if isinstance(lines, (str, bytes)):
        raise TypeError("expected a list of sentences, ['ein mann schläft .'], not one string")
    return (_checked(line, f"{kind} {i}") for i, line in enumerate(lines))


def phrase_lists(constraints: Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Checks the phrases of each line."""
    for number, phrases in enumerate(constraints):
        where = f"constraints of sentence {number}"
        if isinstance(phrases, (str, bytes)) or not isinstance(phrases, Sequence):
            raise TypeError(f"{where}: expected a list of strings, not {repr(phrases)[:60]}")
        yield [_checked(phrase, where) for phrase in phrases]


def pairs_of_text(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Checks pairs of a source and a translation."""
    if isinstance(pairs, (str, bytes)):
        raise TypeError("expected pairs of sentences, not one string")
    return (_checked_pair(pair, f"pair {i}") for i, pair in enumerate(pairs))


def _checked_pair(pair: Any, where: str) -> tuple[str, str]:
    if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise TypeError(f"{where}: expected (source, target), two strings, not {repr(pair)[:60]}")
    return _checked(pair[0], f"{where}, source"), _checked(pair[1], f"{where}, target")


def histories(history: Iterable[HistoryPair]) -> Iterator[HistoryPair]:
    """Checks the pairs that replace lines in a history."""
    for i, pair in enumerate(history):
        if pair is None or isinstance(pair, Translation):
            yield pair
        else:
            yield _checked_pair(pair, f"history {i}")


def own_translations(translations: Iterable[Translation]) -> list[Translation]:
    """Checks what a model has returned."""
    given = list(translations)
    for i, translation in enumerate(given):
        if not isinstance(translation, Translation):
            raise TypeError(
                f"translation {i}: expected a Translation, as in [n_best[0] for n_best in "
                f"model.translate(lines)], not {repr(translation)[:60]}"
            )
    return given


def _checked(line: Any, where: str) -> str:
    if not isinstance(line, str):
        raise TypeError(
            f"{where}: expected a string, words separated by spaces, not {repr(line)[:60]}"
        )
    return line
