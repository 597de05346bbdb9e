"""The rules of the synthetic corpus: each writes a phrase in both languages at once.

The source puts the verb last (subject, place, manner, recipient, object, verb), modifiers behind
their noun and has no articles; the target is English in the order subject, verb, object, recipient,
manner, place. A rule's docstring gives its two sides as <source ; target>.

A translation is a function of its source sentence: each rule can be undone from the surface words,
ambiguous nouns occur only next to a word that shows the topic, and tense is marked, unless a
document says it only in its first sentence.
"""

from __future__ import annotations

from tfmann.synthetic import lexicon, nominals, tables
from tfmann.synthetic.draws import Draws
from tfmann.synthetic.lexicon import Verb
from tfmann.synthetic.nominals import Setting, word
from tfmann.synthetic.phrases import Image, Phrase, entry, join


def sentence(draws: Draws, scene: Setting, first: bool, marked: bool) -> Phrase:
    """<Opening Clause . ; Opening Clause .>: the first sentence opens with the time.

    Tense: with ``marked``, every verb is followed by a tense particle; otherwise the time adverb
    that opens the first sentence is all that a document says about it.
    """
    opening = Phrase()
    if first:
        opening = word(draws, tables.TIMES[scene.tense])
    elif draws.chance(0.25):
        opening = word(draws, tables.CONNECTIVES)
    rule = draws.weighted((_acting, _giving, _staying, _numbering), (55, 15, 20, 10))
    parts = (opening, rule(draws, scene, marked), entry((tables.STOP,), (tables.STOP,)))
    return join(parts, parts)


def _acting(draws: Draws, scene: Setting, marked: bool) -> Phrase:
    """<Subject Place Manner Object Verb ; Subject Verb Object Manner Place>."""
    verb = _verb(draws, lexicon.TRANSITIVE, scene)
    subject, place, manner = _subject(draws, scene), _place(draws, scene, 0.25), _manner(draws)
    direct_object = _object(draws, scene, verb)
    action = _verb_phrase(draws, verb, scene.tense, subject.plural, marked)
    return join(
        (subject, place, manner, direct_object, action),
        (subject, action, direct_object, manner, place),
    )


def _giving(draws: Draws, scene: Setting, marked: bool) -> Phrase:
    """<Subject Manner Recipient al Object Verb ; Subject Verb Object to Recipient Manner>."""
    verb = _verb(draws, lexicon.GIVING, scene)
    subject, manner = _subject(draws, scene), _manner(draws)
    recipient, to = nominals.person(draws, scene), entry((tables.TO,), ("to",))
    direct_object = _object(draws, scene, verb)
    action = _verb_phrase(draws, verb, scene.tense, subject.plural, marked)
    return join(
        (subject, manner, recipient, to, direct_object, action),
        (subject, action, direct_object, to, recipient, manner),
    )


def _staying(draws: Draws, scene: Setting, marked: bool) -> Phrase:
    """<Subject Place Manner Verb ; Subject Verb Manner Place>."""
    verb = _verb(draws, lexicon.STAYING, scene)
    if draws.one_of(verb.kinds) == "animal":
        subject = nominals.described(draws, nominals.pick_noun(draws, scene, "animal"))
    else:
        subject = _subject(draws, scene)
    place, manner = _place(draws, scene, 1.0), _manner(draws)
    action = _verb_phrase(draws, verb, scene.tense, subject.plural, marked)
    return join((subject, place, manner, action), (subject, action, manner, place))


def _numbering(draws: Draws, scene: Setting, marked: bool) -> Phrase:
    """<Subject Place nomra List Verb ; Subject Verb the numbers List Place>."""
    verb = _verb(draws, lexicon.NUMBERING, scene)
    subject, place = _subject(draws, scene), _place(draws, scene, 0.2)
    heading = entry((tables.NUMBERS,), ("the", "numbers"))
    numbers = nominals.listing(draws, tables.NUMERALS, different=draws.one_of((2, 3, 4)))
    action = _verb_phrase(draws, verb, scene.tense, subject.plural, marked)
    return join(
        (subject, place, heading, numbers, action), (subject, action, heading, numbers, place)
    )


def _verb_phrase(draws: Draws, verb: Verb, tense: str, plural: bool, marked: bool) -> Phrase:
    """<Verb ta ; bought>, <Verb ru ; will buy>, <nu Verb ta ; did not buy>.

    Fertility: the verb itself may be two words with one translation (``kiso far``: kiss) or one
    with several (``kurir``: take care of). The auxiliary comes from the particle if there is one.
    """
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


def _subject(draws: Draws, scene: Setting) -> Phrase:
    """<Person ; Person> or <Person ve Person ; Person and Person>."""
    if draws.chance(0.8):
        return nominals.person(draws, scene)
    pair = (
        nominals.person(draws, scene),
        entry((tables.AND,), ("and",)),
        nominals.person(draws, scene),
    )
    return join(pair, pair, plural=True)


def _object(draws: Draws, scene: Setting, verb: Verb) -> Phrase:
    """Returns a noun phrase that the verb can have as object."""
    kind = draws.one_of(verb.kinds)
    if kind == "person":
        return nominals.person(draws, scene)
    noun = nominals.pick_noun(draws, scene, kind)
    if noun.kind in nominals.COLOURED and draws.chance(0.25):
        return nominals.coloured(draws, noun)
    return nominals.described(draws, noun)


def _place(draws: Draws, scene: Setting, probability: float) -> Phrase:
    """<Noun-phrase dop ; behind Noun-phrase>, or nothing."""
    if not draws.chance(probability):
        return Phrase()
    place = nominals.described(draws, nominals.pick_noun(draws, scene, "place"))
    where = word(draws, tables.POSTPOSITIONS)
    return join((place, where), (where, place))


def _manner(draws: Draws) -> Phrase:
    """<lentem ; slowly>, or nothing."""
    return word(draws, tables.MANNERS) if draws.chance(0.12) else Phrase()


def _verb(draws: Draws, table: tuple[Verb, ...], scene: Setting) -> Verb:
    """Draws a verb of the table: half the time one of the document's topic, if it has one."""
    of_topic = lexicon.verbs(table, scene.topic)
    if of_topic and draws.chance(0.5):
        return draws.one_of(of_topic)
    return draws.one_of(lexicon.verbs(table, lexicon.ANY_TOPIC))
