"""Pairs of word sequences that translate each other: what a synchronous grammar builds.

A `Phrase` holds the two sides; every target word points at the source words it comes from, by
identity, so that phrases can be put together in different orders on the two sides and the word
alignment needs no bookkeeping. Notation in the rules: <source order ; target order>.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Word:
    """One occurrence of a source word: two occurrences of a spelling are two different words."""

    text: str


@dataclass(frozen=True)
class Image:
    """A target word and the source words it comes from."""

    text: str
    sources: tuple[Word, ...]


@dataclass(frozen=True)
class Phrase:
    """The two sides of a piece of a sentence, and whether it counts as plural for its verb."""

    source: tuple[Word, ...] = ()
    target: tuple[Image, ...] = ()
    plural: bool = False

    def alignment(self) -> tuple[tuple[int, int], ...]:
        """Returns the word alignment: sorted pairs of a source index and a target index, from 0."""
        position = {word: index for index, word in enumerate(self.source)}
        return tuple(
            sorted(
                (position[word], index)
                for index, image in enumerate(self.target)
                for word in image.sources
            )
        )


def copy(phrase: Phrase) -> Phrase:
    """Returns a second occurrence of a phrase: the same spellings, other words."""
    words = {word: Word(word.text) for word in phrase.source}
    target = (Image(i.text, tuple(words[word] for word in i.sources)) for i in phrase.target)
    return Phrase(tuple(words.values()), tuple(target), phrase.plural)


def mark(phrase: Phrase, marker: str) -> Phrase:
    """Adds a source word behind a phrase; it belongs to the last word of the translation."""
    word, (*images, last) = Word(marker), phrase.target
    last = Image(last.text, (*last.sources, word))
    return Phrase((*phrase.source, word), (*images, last), phrase.plural)


def entry(source: Iterable[str], target: Iterable[str]) -> Phrase:
    """Makes a dictionary entry: every target word comes from every source word."""
    words = tuple(Word(text) for text in source)
    return Phrase(words, tuple(Image(text, words) for text in target))


def join(source: Iterable[Phrase], target: Iterable[Phrase], plural: bool = False) -> Phrase:
    """Joins phrases into one, in a separate order on each side."""
    return Phrase(
        tuple(word for phrase in source for word in phrase.source),
        tuple(image for phrase in target for image in phrase.target),
        plural,
    )
