"""The rules for people and things; `grammar` has the notation and puts them into sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tfmann.synthetic import lexicon, tables
from tfmann.synthetic.draws import Draws
from tfmann.synthetic.lexicon import Noun
from tfmann.synthetic.phrases import Image, Phrase, entry, join
from tfmann.synthetic.style import Style

COLOURED = ("thing", "animal")
# Zipf-Mandelbrot: the shift keeps the rarest of the names within reach of a small training set.
_NAME_SHIFT = 25
_NAME_WEIGHTS = [10_000 // (rank + _NAME_SHIFT) for rank in range(1, len(lexicon.NAMES) + 1)]


@dataclass(frozen=True)
class Setting:
    """Properties that the sentences of a document share."""

    topic: str
    tense: str
    cast: tuple[str, ...]  # the names that occur in it
    style: Style


def setting(draws: Draws, style: Style) -> Setting:
    """Draws what a document is about, when it happens and who is in it."""
    topic, tense = draws.one_of(tables.TOPICS), draws.one_of(tables.TENSES)
    hero = other = draws.weighted(lexicon.NAMES, _NAME_WEIGHTS)
    while other == hero:
        other = draws.weighted(lexicon.NAMES, _NAME_WEIGHTS)
    return Setting(topic, tense, (hero, other), style)


def word(draws: Draws, table: Mapping[str, str]) -> Phrase:
    """Draws a word of a table, with its translation of one or more words."""
    source = draws.one_of(tuple(table))
    return entry((source,), table[source].split())


def person(draws: Draws, scene: Setting) -> Phrase:
    """Draws a name of the document's cast, or a noun phrase.

    Rare words: names follow a Zipf law and are copied but for their spelling (``Kadel``: Cadel).
    """
    if draws.chance(0.4):
        name = draws.one_of(scene.cast)
        return entry((name,), (lexicon.transliterate(name),))
    return described(draws, scene, pick_noun(draws, scene, "person"))


def pick_noun(draws: Draws, scene: Setting, kind: str) -> Noun:
    """Draws a noun of a kind: mostly of the document's topic, always if the kind has a star.

    Ambiguity: a noun that two topics share is translated by the document's topic. A sentence with
    such a noun is kept only if another of its words gives the topic away (`documents`); with
    `document_topic` this applies to the first sentence of a document.
    """
    of_topic = lexicon.nouns(kind.rstrip("*"), scene.topic)
    general = lexicon.nouns(kind.rstrip("*"), lexicon.ANY_TOPIC)
    if kind.endswith("*") or (of_topic and draws.chance(0.6)):
        return draws.one_of(of_topic)
    return draws.one_of(general)


def described(draws: Draws, scene: Setting, noun: Noun) -> Phrase:
    """<Noun Adjective* Closing ; Closing Adjective* Noun>: the one side mirrors the other.

    The closing is a numeral (the noun is plural then), a determiner, or nothing in the source and
    "the" in the target, which comes from the noun.
    """
    pool = {source: lexicon.ADJECTIVES[source][0] for source in lexicon.adjectives(noun.kind)}
    if noun.kind in COLOURED:
        pool.update(tables.COLOURS)
    weights = scene.style.modifiers
    count = draws.weighted(range(len(weights)), weights)
    adjectives = [entry((source,), (pool[source],)) for source in draws.some_of(tuple(pool), count)]
    closing = draws.weighted(("article", "determiner", "numeral"), (65, 15, 20))
    plural = closing == "numeral" and noun.kind != "place"
    head = entry(noun.source, noun.plural if plural else noun.singular)
    if plural:
        last = word(draws, tables.NUMERALS)
    elif closing == "determiner":
        last = word(draws, tables.DETERMINERS)
    else:
        last = Phrase(target=(Image("the", head.source[:1]),))
    return join((head, *adjectives, last), (last, *adjectives[::-1], head), plural)


def coloured(draws: Draws, noun: Noun) -> Phrase:
    """<Noun Colours ; Colours Noun>: "red red and blue hats", always in the plural."""
    head = entry(noun.source, noun.plural)
    colours = listing(draws, tables.COLOURS, different=draws.one_of((2, 3)))
    return join((head, colours), (colours, head), plural=True)


def listing(draws: Draws, table: Mapping[str, str], different: int) -> Phrase:
    """<X X ve Y ; X X and Y>, of so many different words of the table.

    Repetition: in two lists of three, one of the words occurs a second time, next to the first or
    further on, and has to be translated as often as it occurs. That is where a model without
    coverage stutters or stops early.
    """
    items = draws.some_of(tuple(table), different)
    if draws.chance(2 / 3):
        items.insert(draws.one_of(range(different + 1)), draws.one_of(items))
    words = [entry((source,), (table[source],)) for source in items]
    parts = (*words[:-1], entry((tables.AND,), ("and",)), words[-1])
    return join(parts, parts)
