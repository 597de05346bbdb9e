"""Phenomena of the synthetic corpus: order, fertility, repetition, ambiguity, tense."""

from __future__ import annotations

from collections import Counter

import pytest
from helpers.synthetic_pairs import counterparts

from tfmann.synthetic import PHENOMENA, Style, generate, lexicon, tables, tense_of


def test_reordering_the_verb_is_last_in_the_source_and_second_in_the_target(pairs):
    taking_objects = {verb.source[0] for verb in (*lexicon.TRANSITIVE, *lexicon.NUMBERING)}
    target_positions = {
        pair: dict(reversed(pair.alignment)) for pair in pairs
    }  # source -> first target
    assert all(PHENOMENA["reordering"](pair) for pair in pairs)
    checked = 0
    for pair in pairs:
        verb = len(pair.source) - 3 - (pair.source[-3] == "far")  # ... verb particle .
        if pair.source[verb] in taking_objects:
            object_position = verb - 1 - (pair.source[verb - 1] == tables.NOT)
            assert target_positions[pair][verb] < target_positions[pair][object_position]
            checked += 1
    assert checked > 4000


def test_reordering_modifiers_stand_mirrored(pairs):
    people = {noun.source[0] for noun in lexicon.NOUNS if noun.kind == "person"}
    checked = 0
    for pair in pairs:
        last = dict(pair.alignment)  # source -> last target
        for noun in range(len(pair.source) - 2):
            first, second = pair.source[noun + 1 : noun + 3]
            if pair.source[noun] in people and {first, second} <= set(lexicon.ADJECTIVES):
                assert last[noun] > last[noun + 1] > last[noun + 2]
                checked += 1
    assert checked > 100


@pytest.mark.parametrize(
    ("source", "targets"),
    [
        ("tesa", {"cup of tea", "cups of tea"}),
        ("kurir", {"took care of", "takes care of", "take care of"}),
        ("ant", {"in front of"}),
        ("doma liba", {"library"}),
        ("kiso far", {"kissed", "kisses", "kiss"}),
        ("luma", {"lamp", "lamps", "lighthouse"}),
    ],
)
def test_fertility_in_both_directions(pairs, source, targets):
    words = tuple(source.split())
    translations = set()
    for pair in pairs:
        for index in range(len(pair.source) - len(words) + 1):
            if pair.source[index : index + len(words)] == words:
                linked = [counterparts(pair, index + offset) for offset in range(len(words))]
                content_words = [
                    [w for w in target_words if w not in ("the", "will", "did")]
                    for target_words in linked
                ]
                assert all(target_words == content_words[0] for target_words in content_words)
                translations.add(" ".join(content_words[0]))
                assert PHENOMENA["fertility"](pair) or source == "luma"
    assert translations == targets


def test_repeated_words_are_translated_as_often_as_they_occur(pairs):
    chosen = [pair for pair in pairs if PHENOMENA["repetition"](pair)]
    assert len(chosen) > 500
    lists = {**tables.NUMERALS, **tables.COLOURS}
    adjacent = apart = 0
    for pair in chosen:
        expected = Counter(lists[word] for word in pair.source if word in lists)
        assert expected == Counter(word for word in pair.target if word in lists.values())
        repeated = [a == b for a, b in zip(pair.source, pair.source[1:]) if a in lists]
        adjacent += any(repeated)
        apart += not any(repeated)
    assert adjacent > 100
    assert apart > 100


def test_ambiguous_nouns_follow_the_topic_that_another_word_shows(pairs):
    counts = Counter()
    for pair in pairs:
        words = [word for word in pair.source if word in lexicon.AMBIGUOUS]
        assert bool(words) == PHENOMENA["ambiguity"](pair)
        topics = {lexicon.CUES[word] for word in pair.source if word in lexicon.CUES}
        assert len(topics) <= 1
        for word in words:
            (topic,) = topics
            noun = lexicon.AMBIGUOUS[word][topic]
            index = pair.source.index(word)
            (translation,) = set(counterparts(pair, index)) - {"the"}
            assert translation in (*noun.singular, *noun.plural)
            counts[word, topic] += 1
    assert len(lexicon.AMBIGUOUS) == 12
    assert set(counts) == {(word, t) for word, senses in lexicon.AMBIGUOUS.items() for t in senses}
    assert min(counts.values()) >= 20


def test_tense_is_shown_by_a_particle_or_by_the_first_sentence_alone(pairs, unmarked_pairs):
    adverbs = {adverb: tense for tense, table in tables.TIMES.items() for adverb in table}
    particles = {particle: tense for tense, particle in tables.TENSE_PARTICLES.items()}
    document = None
    for marked, unmarked in zip(pairs, unmarked_pairs):
        assert marked.target == unmarked.target
        assert tense_of(marked.target) == marked.tense == unmarked.tense
        assert [particles[w] for w in marked.source if w in particles] == [marked.tense]
        assert unmarked.source == tuple(w for w in marked.source if w not in particles)
        adverb_tenses = [adverbs[word] for word in unmarked.source if word in adverbs]
        first, document = marked.document != document, marked.document
        assert adverb_tenses == ([marked.tense] if first else [])
        assert PHENOMENA["unmarked tense"](unmarked) != first
        assert not PHENOMENA["unmarked tense"](marked)
    assert min(Counter(pair.tense for pair in pairs).values()) > 2000


def test_both_kinds_of_tense_keep_the_same_sentences_at_the_length_limit(monkeypatch):
    monkeypatch.setattr(Style, "sentence_lengths", (4, 9))
    marked, unmarked = (
        generate(1000, seed=1),
        generate(1000, seed=1, style=Style(document_tense=True)),
    )
    assert max(len(pair.source) for pair in marked) == 9
    assert [pair.target for pair in marked] == [pair.target for pair in unmarked]
