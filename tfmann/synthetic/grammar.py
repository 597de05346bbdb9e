"""The rules of the synthetic corpus: each writes a phrase in both languages at once.

The source puts the verb last (subject, place, manner, recipient, object, verb), modifiers behind
their noun and has no articles; the target is English in the order subject, verb, object, recipient,
manner, place. A rule's docstring gives its two sides as <source ; target>.

A translation is a function of its source sentence: each rule can be undone from the surface words,
ambiguous nouns occur only next to a word that shows the topic, and tense is marked, unless the
style of the corpus leaves one of the two to sentences before in the document. In long sentences the
words before the verb stand in free order, and a particle marks the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tfmann.synthetic import lexicon, nominals, tables
from tfmann.synthetic.draws import Draws
from tfmann.synthetic.lexicon import Verb
from tfmann.synthetic.nominals import Setting, word
from tfmann.synthetic.phrases import Image, Phrase, copy, entry, join, mark

_REPEATED = 0.35  # how often a clause repeats a phrase of an earlier one


class Clause(NamedTuple):
    """<Argument* Verb ; Part*>: the target's parts are the verb and the arguments, reordered."""

    arguments: tuple[Phrase, ...]
    verb: Phrase
    target: tuple[Phrase, ...]
    objects: tuple[Phrase, ...] = ()  # the argument that is the object, if there is one


@dataclass
class Mentions:
    """Phrases of a sentence that its later clauses may repeat."""

    subjects: list[Phrase] = field(default_factory=list)
    places: list[Phrase] = field(default_factory=list)
    objects: list[tuple[str, Phrase]] = field(default_factory=list)  # each with its kind


def sentence(draws: Draws, scene: Setting, first: bool) -> Phrase:
    """<Opening Clause . ; Opening Clause .>: the first sentence opens with the time.

    Long sentences: <Opening Clause (Conjunction Clause)* . ; the same order>.

    Tense: every verb is followed by a tense particle, or the time adverb that opens the first
    sentence is all that a document says about it.
    """
    opening = Phrase()
    if first:
        opening = word(draws, tables.TIMES[scene.tense])
    elif draws.chance(0.25):
        opening = word(draws, tables.CONNECTIVES)
    mentions = Mentions()
    parts = [opening, _clause(draws, scene, mentions)]
    if scene.style.long_sentences:
        weights = scene.style.clauses
        for _ in range(draws.weighted(range(len(weights)), weights)):
            parts += [word(draws, tables.CONJUNCTIONS), _clause(draws, scene, mentions)]
    parts.append(entry((tables.STOP,), (tables.STOP,)))
    return join(parts, parts)


def _clause(draws: Draws, scene: Setting, mentions: Mentions) -> Phrase:
    """<Argument* Verb ; Part*>; in long sentences <(Argument | Object em)* Verb ; Part*>."""
    rule = draws.weighted((_acting, _giving, _staying, _numbering), (55, 15, 20, 10))
    clause = rule(draws, scene, mentions)
    arguments, target = clause.arguments, clause.target
    if scene.style.long_sentences:
        marked = {id(phrase): mark(phrase, tables.OBJECT) for phrase in clause.objects}
        arguments, target = (
            tuple(marked.get(id(phrase), phrase) for phrase in parts)
            for parts in (draws.some_of(arguments, len(arguments)), target)
        )
    return join((*arguments, clause.verb), target)


def _acting(draws: Draws, scene: Setting, mentions: Mentions) -> Clause:
    """<Subject Place Manner Object Verb ; Subject Verb Object Manner Place>."""
    verb = _verb(draws, lexicon.TRANSITIVE, scene)
    subject, place = _subject(draws, scene, mentions), _place(draws, scene, mentions, 0.25)
    manner = _manner(draws)
    direct_object = _object(draws, scene, mentions, verb)
    action = _verb_phrase(draws, verb, scene, subject.plural)
    return Clause(
        (subject, place, manner, direct_object),
        action,
        (subject, action, direct_object, manner, place),
        objects=(direct_object,),
    )


def _giving(draws: Draws, scene: Setting, mentions: Mentions) -> Clause:
    """<Subject Manner Recipient al Object Verb ; Subject Verb Object to Recipient Manner>."""
    verb = _verb(draws, lexicon.GIVING, scene)
    subject, manner = _subject(draws, scene, mentions), _manner(draws)
    recipient, to = nominals.person(draws, scene), entry((tables.TO,), ("to",))
    direct_object = _object(draws, scene, mentions, verb)
    action = _verb_phrase(draws, verb, scene, subject.plural)
    receiver = join((recipient, to), (to, recipient))
    return Clause(
        (subject, manner, receiver, direct_object),
        action,
        (subject, action, direct_object, receiver, manner),
        objects=(direct_object,),
    )


def _staying(draws: Draws, scene: Setting, mentions: Mentions) -> Clause:
    """<Subject Place Manner Verb ; Subject Verb Manner Place>."""
    verb = _verb(draws, lexicon.STAYING, scene)
    if draws.one_of(verb.kinds) == "animal":
        subject = nominals.described(draws, scene, nominals.pick_noun(draws, scene, "animal"))
    else:
        subject = _subject(draws, scene, mentions)
    place, manner = _place(draws, scene, mentions, 1.0), _manner(draws)
    action = _verb_phrase(draws, verb, scene, subject.plural)
    return Clause((subject, place, manner), action, (subject, action, manner, place))


def _numbering(draws: Draws, scene: Setting, mentions: Mentions) -> Clause:
    """<Subject Place nomra List Verb ; Subject Verb the numbers List Place>."""
    verb = _verb(draws, lexicon.NUMBERING, scene)
    subject, place = _subject(draws, scene, mentions), _place(draws, scene, mentions, 0.2)
    parts = (
        entry((tables.NUMBERS,), ("the", "numbers")),
        nominals.listing(draws, tables.NUMERALS, different=draws.one_of((2, 3, 4))),
    )
    numbers = join(parts, parts)
    action = _verb_phrase(draws, verb, scene, subject.plural)
    return Clause(
        (subject, place, numbers), action, (subject, action, numbers, place), objects=(numbers,)
    )


def _verb_phrase(draws: Draws, verb: Verb, scene: Setting, plural: bool) -> Phrase:
    """<Verb ta ; bought>, <Verb ru ; will buy>, <nu Verb ta ; did not buy>.

    Fertility: the verb itself may be two words with one translation (``kiso far``: kiss) or one
    with several (``kurir``: take care of). The auxiliary comes from the particle if there is one.
    """
    tense, marked = scene.tense, not scene.style.document_tense
    words = entry(verb.source, ())
    particle = entry((tables.TENSE_PARTICLES[tense],) if marked else (), ())
    refusal = entry((tables.NOT,), ("not",)) if draws.chance(0.1) else Phrase()
    present = verb.base if plural else verb.third
    helper: tuple[Image, ...] = ()
    if refusal.source or tense == "future":
        auxiliary = {"past": "did", "present": "do" if plural else "does", "future": "will"}[tense]
        form = Image(verb.base, words.source)
        helper = (Image(auxiliary, particle.source or words.source),)
    else:
        form = Image(verb.past if tense == "past" else present, words.source + particle.source)
    remaining = tuple(Image(text, words.source) for text in verb.rest)
    return Phrase(
        refusal.source + words.source + particle.source,
        (*helper, *refusal.target, form, *remaining),
    )


def _subject(draws: Draws, scene: Setting, mentions: Mentions) -> Phrase:
    """<Person ; Person> or <Person ve Person ; Person and Person>."""
    if repeated := _repeated(draws, mentions.subjects):
        return repeated
    if draws.chance(0.8):
        subject = nominals.person(draws, scene)
    else:
        pair = (
            nominals.person(draws, scene),
            entry((tables.AND,), ("and",)),
            nominals.person(draws, scene),
        )
        subject = join(pair, pair, plural=True)
    mentions.subjects.append(subject)
    return subject


def _object(draws: Draws, scene: Setting, mentions: Mentions, verb: Verb) -> Phrase:
    """Returns a noun phrase that the verb can have as object."""
    suitable = [phrase for kind, phrase in mentions.objects if kind in verb.kinds]
    if repeated := _repeated(draws, suitable):
        return repeated
    kind = draws.one_of(verb.kinds)
    if kind == "person":
        return nominals.person(draws, scene)
    noun = nominals.pick_noun(draws, scene, kind)
    if noun.kind in nominals.COLOURED and draws.chance(0.25):
        phrase = nominals.coloured(draws, noun)
    else:
        phrase = nominals.described(draws, scene, noun)
    mentions.objects.append((kind, phrase))
    return phrase


def _place(draws: Draws, scene: Setting, mentions: Mentions, probability: float) -> Phrase:
    """<Noun-phrase dop ; behind Noun-phrase>, or nothing."""
    if not draws.chance(probability):
        return Phrase()
    if repeated := _repeated(draws, mentions.places):
        return repeated
    place = nominals.described(draws, scene, nominals.pick_noun(draws, scene, "place"))
    where = word(draws, tables.POSTPOSITIONS)
    mentions.places.append(phrase := join((place, where), (where, place)))
    return phrase


def _repeated(draws: Draws, phrases: Sequence[Phrase]) -> Phrase | None:
    """Returns one of the phrases again, or None; nothing is drawn if there is none to repeat."""
    if not phrases or not draws.chance(_REPEATED):
        return None
    return copy(draws.one_of(phrases))


def _manner(draws: Draws) -> Phrase:
    """<lentem ; slowly>, or nothing."""
    return word(draws, tables.MANNERS) if draws.chance(0.12) else Phrase()


def _verb(draws: Draws, table: tuple[Verb, ...], scene: Setting) -> Verb:
    """Draws a verb of the table: half the time one of the document's topic, if it has one."""
    of_topic = lexicon.verbs(table, scene.topic)
    if of_topic and draws.chance(0.5):
        return draws.one_of(of_topic)
    return draws.one_of(lexicon.verbs(table, lexicon.ANY_TOPIC))
