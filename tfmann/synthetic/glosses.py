"""What the words of the synthetic source language mean, word by word."""

from __future__ import annotations

from tfmann.synthetic import lexicon, tables


def glosses() -> dict[str, str]:
    """Returns the English of each source word; an ambiguous word has all of its senses.

    Words of an entry of several words, such as `doma liba` (library), have their own glosses, here
    "house" and "book".
    """
    found = {
        **tables.COLOURS, **tables.NUMERALS, **tables.DETERMINERS, **tables.POSTPOSITIONS,
        **tables.CONNECTIVES, **tables.CONJUNCTIONS, **tables.MANNERS,
        **{word: text for words in tables.TIMES.values() for word, text in words.items()},
        **{word: f"({tense})" for tense, word in tables.TENSE_PARTICLES.items()},
        **{source: target for source, (target, _) in lexicon.ADJECTIVES.items()},
        **{name: lexicon.transliterate(name) for name in lexicon.NAMES},
        tables.AND: "and", tables.NOT: "not", tables.TO: "to", tables.NUMBERS: "numbers",
        tables.OBJECT: "(object)",
    }  # fmt: skip
    senses: dict[str, list[str]] = {}
    for noun in lexicon.NOUNS:
        if len(noun.source) == 1:
            senses.setdefault(noun.source[0], []).append(" ".join(noun.singular))
    for verb in lexicon.VERBS:
        senses.setdefault(verb.source[0], []).append(" ".join((verb.base, *verb.rest)))
        for light in verb.source[1:]:
            senses[light] = ["(verb)"]
    found.update({word: " / ".join(dict.fromkeys(texts)) for word, texts in senses.items()})
    return found
