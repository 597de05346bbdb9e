"""The words of the synthetic corpus as records, and look-ups for its grammar."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tfmann.synthetic import tables

ANY_TOPIC = "-"


@dataclass(frozen=True)
class Noun:
    """A noun: its source words, and its target words in both numbers."""

    source: tuple[str, ...]
    singular: tuple[str, ...]
    plural: tuple[str, ...]
    kind: str
    topic: str


@dataclass(frozen=True)
class Verb:
    """A verb: its source words, the target's finite forms, and the target words after the form.

    ``kinds`` are the kinds of noun it takes: as its object, or as its subject if it stands alone;
    of a kind with a star it takes the nouns of its own topic only.
    """

    source: tuple[str, ...]
    base: str
    third: str
    past: str
    rest: tuple[str, ...]
    kinds: tuple[str, ...]
    topic: str


def transliterate(name: str) -> str:
    """Returns the target spelling of a name: x, j, k, w become sh, y, c, v; the rest is copied."""
    return name.translate(_SPELLING)


def nouns(kind: str, topic: str) -> list[Noun]:
    """Returns the nouns of a kind that belong to exactly this topic (``ANY_TOPIC``: to none)."""
    return [noun for noun in NOUNS if noun.kind == kind and noun.topic == topic]


def verbs(table: tuple[Verb, ...], topic: str) -> list[Verb]:
    """Returns the verbs of a table that belong to exactly this topic (``ANY_TOPIC``: to none)."""
    return [verb for verb in table if verb.topic == topic]


def adjectives(kind: str) -> list[str]:
    """Returns the source adjectives for a noun of this kind, without the colours."""
    return [source for source, (_, kinds) in ADJECTIVES.items() if kind in kinds]


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def _read_nouns() -> tuple[Noun, ...]:
    records = []
    for heading, table in tables.NOUNS.items():
        kind, topic = heading.split()
        for source, forms in _rows(table):
            singular, plural = (tuple(form.split()) for form in forms.split("/"))
            records.append(Noun(tuple(source.split()), singular, plural, kind, topic))
    return tuple(records)


def _read_verbs(by_topic: dict[str, str]) -> tuple[Verb, ...]:
    records = []
    for topic, table in by_topic.items():
        for source, forms, kinds in _rows(table):
            base, third, past, *further_forms = forms.split()
            words, takes = tuple(source.split()), tuple(kinds.split())
            records.append(Verb(words, base, third, past, tuple(further_forms), takes, topic))
    return tuple(records)


def _topics_of_words() -> dict[str, set[str]]:
    topics: dict[str, set[str]] = {}
    entries: tuple[Noun | Verb, ...] = (*NOUNS, *VERBS)
    for entry in entries:
        for word in entry.source:
            topics.setdefault(word, set()).add(entry.topic)
    return topics


def _senses() -> dict[str, dict[str, Noun]]:
    senses: dict[str, dict[str, Noun]] = {}
    for noun in NOUNS:
        senses.setdefault(" ".join(noun.source), {})[noun.topic] = noun
    return senses


_SPELLING = str.maketrans(
    {"x": "sh", "X": "Sh", "j": "y", "J": "Y", "k": "c", "K": "C", "w": "v", "W": "V"}
)
NAMES = tuple(tables.NAMES.split())
NOUNS = _read_nouns()
TRANSITIVE = _read_verbs(tables.TRANSITIVE)
GIVING = _read_verbs(tables.GIVING)
STAYING = _read_verbs(tables.STAYING)
NUMBERING = _read_verbs(tables.NUMBERING)
VERBS = (*TRANSITIVE, *GIVING, *STAYING, *NUMBERING)
ADJECTIVES = {source: (target, kinds.split()) for source, target, kinds in _rows(tables.ADJECTIVES)}
PEOPLE = frozenset(NAMES + tuple(noun.source[0] for noun in NOUNS if noun.kind == "person"))
# The topics of each source word that not every topic has.
TOPICS = {word: topics for word, topics in _topics_of_words().items() if ANY_TOPIC not in topics}
# A cue is a word that only one topic has: it gives the topic of its sentence away.
CUES = {word: min(topics) for word, topics in TOPICS.items() if len(topics) == 1}
# The senses, by topic, of each source noun that several topics share.
AMBIGUOUS = {word: senses for word, senses in _senses().items() if len(senses) > 1}


def shows_topic(words: Iterable[str]) -> bool:
    """Returns whether only one topic has all of these source words.

    That is so if one of them is a cue, and if two ambiguous nouns share a single topic.
    """
    topics = [TOPICS[word] for word in words if word in TOPICS]
    return bool(topics) and len(set.intersection(*topics)) == 1
