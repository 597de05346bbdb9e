"""Predicates that recognise the phenomena of the synthetic corpus in finished text.

The predicates take an `Example` and need nothing but its words and alignment, so that scores can
be broken down by phenomenon; `tense_of` needs only a target sentence, a system's output too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tfmann.synthetic import lexicon, tables
from tfmann.synthetic.documents import Example

_AUXILIARIES = {"did": "past", "does": "present", "do": "present", "will": "future"}
_FORMS = {
    **{verb.past: "past" for verb in lexicon.VERBS},
    **{verb.third: "present" for verb in lexicon.VERBS},
    **{verb.base: "present" for verb in lexicon.VERBS},
}


def tense_of(target_tokens: Sequence[str]) -> str | None:
    """Returns the tense that a target sentence shows, or None if it shows none or several.

    An auxiliary decides ("did", "do", "does", "will"), and the bare form behind it or behind "not"
    says nothing more; any other finite form of a verb of the corpus counts by itself.
    """
    tenses = set()
    previous = ""
    for token in target_tokens:
        if token in _AUXILIARIES:
            tenses.add(_AUXILIARIES[token])
        elif token in _FORMS and previous != "not" and previous not in _AUXILIARIES:
            tenses.add(_FORMS[token])
        previous = token
    return tenses.pop() if len(tenses) == 1 else None


def has_reordering(example: Example) -> bool:
    """Returns whether two links cross, because of verb-final sentences or noun phrases."""
    links = example.alignment
    return any(i < k and j > m for i, j in links for k, m in links)


def has_fertility(example: Example) -> bool:
    """Returns whether a word other than an article, auxiliary or particle has several links."""
    links = [
        (i, j)
        for i, j in example.alignment
        if example.target[j] != "the"
        and example.target[j] not in _AUXILIARIES
        and example.source[i] not in tables.TENSE_PARTICLES.values()
    ]
    return any(max(Counter(side).values()) > 1 for side in zip(*links))


def has_repetition(example: Example) -> bool:
    """Returns whether a numeral or a colour occurs more than once in the source."""
    items = [word for word in example.source if word in tables.NUMERALS or word in tables.COLOURS]
    return len(set(items)) < len(items)


def has_ambiguity(example: Example) -> bool:
    """Returns whether the source has a noun of two topics; `lexicon.CUES` may name the one."""
    return not lexicon.AMBIGUOUS.keys().isdisjoint(example.source)


def has_rare_word(example: Example) -> bool:
    """Returns whether the source has a name."""
    return not set(lexicon.NAMES).isdisjoint(example.source)


def has_unmarked_tense(example: Example) -> bool:
    """Returns whether the source marks no tense, so that only an earlier sentence does."""
    return _TENSE_WORDS.isdisjoint(example.source)


_TENSE_WORDS = {
    *tables.TENSE_PARTICLES.values(),
    *(adverb for adverbs in tables.TIMES.values() for adverb in adverbs),
}
PHENOMENA = {
    "reordering": has_reordering,
    "fertility": has_fertility,
    "repetition": has_repetition,
    "ambiguity": has_ambiguity,
    "rare word": has_rare_word,
    "unmarked tense": has_unmarked_tense,
}
