from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from tfmann.synthetic import PHENOMENA, documents, generate, lexicon, tables, tense_of


@pytest.fixture(scope="module")
def pairs():
    return generate(10_000, seed=1)


@pytest.fixture(scope="module")
def unmarked_pairs():
    return generate(4000, seed=1, document_tense=True)


def counterparts(pair, source_index):
    return [pair.target[j] for i, j in pair.alignment if i == source_index]


def occurrences(pair, entries):
    """Returns each entry in the source with its position; words of a longer match are left out."""
    index = 0
    while index < len(pair.source):
        for width in (2, 1):
            matches = [e for e in entries if e.source == pair.source[index : index + width]]
            if matches:
                yield matches, index
                break
        index += width


# The tables: what the grammar's promises rest on.


def test_no_verb_form_can_be_mistaken_for_another_tense_or_another_word():
    finite = Counter()
    for verb in {(verb.base, verb.third, verb.past) for verb in lexicon.VERBS}:
        finite.update(set(verb))
        assert len(set(verb)) == 3
    assert max(finite.values()) == 1
    other_words = {word for noun in lexicon.NOUNS for word in (*noun.singular, *noun.plural)}
    other_words |= {target for target, _ in lexicon.ADJECTIVES.values()}
    closed = (tables.COLOURS, tables.NUMERALS, tables.DETERMINERS, tables.POSTPOSITIONS)
    for table in (*closed, tables.CONNECTIVES, tables.MANNERS, *tables.TIMES.values()):
        other_words |= {word for target in table.values() for word in target.split()}
    other_words |= {word for verb in lexicon.VERBS for word in verb.rest} | {
        "the",
        "numbers",
        "not",
    }
    assert not other_words & set(finite)


def test_only_topics_and_frames_share_source_words():
    nouns = defaultdict(list)
    for noun in lexicon.NOUNS:
        nouns[noun.source].append(noun.topic)
    for topics in nouns.values():
        assert len(set(topics)) == len(topics)
        assert len(topics) == 1 or lexicon.ANY_TOPIC not in topics
    verbs = [{verb.source for verb in table} for table in (lexicon.TRANSITIVE, lexicon.STAYING)]
    assert not verbs[0] & verbs[1]
    assert len({verb.source for verb in lexicon.TRANSITIVE}) == len(lexicon.TRANSITIVE)
    # A noun of two words never begins like a person or animal, which may precede an object.
    agents = {noun.source[0] for noun in lexicon.NOUNS if noun.kind in ("person", "animal")}
    assert not any(noun.source[0] in agents for noun in lexicon.NOUNS if len(noun.source) > 1)


def test_names_keep_apart_in_both_languages():
    copied = [name for name in lexicon.NAMES if lexicon.transliterate(name) == name]
    assert len(copied) == 30
    assert len(set(lexicon.NAMES)) == len(set(map(lexicon.transliterate, lexicon.NAMES))) == 60
    assert lexicon.transliterate("Xajkow") == "Shaycov"


# The pairs.


def test_sizes_are_as_documented(pairs, unmarked_pairs):
    assert len(pairs) == 10_000
    for pair in (*pairs, *unmarked_pairs):
        assert 4 <= len(pair.source) <= 18
        assert 4 <= len(pair.target) <= 18
    assert 150 <= len({word for pair in pairs for word in pair.source}) <= 300


def test_same_seed_same_pairs_other_seed_other_pairs(pairs):
    assert generate(500, seed=1) == pairs[:500]
    assert generate(500, seed=2) != pairs[:500]


def test_documents_are_contiguous_and_short(pairs):
    numbers = [pair.document for pair in pairs]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(numbers[-1] + 1))
    counts = Counter(numbers)
    del counts[numbers[-1]]  # cut to the size
    assert set(counts.values()) == set(range(3, 9))
    for left, right in zip(pairs, pairs[1:]):
        assert left.document != right.document or left.tense == right.tense


@pytest.mark.parametrize("document_tense", [False, True])
def test_alignment_covers_every_word_and_stays_in_range(document_tense):
    for pair in generate(2000, seed=4, document_tense=document_tense):
        assert list(pair.alignment) == sorted(set(pair.alignment))
        assert {i for i, _ in pair.alignment} == set(range(len(pair.source)))
        assert {j for _, j in pair.alignment} == set(range(len(pair.target)))


def test_alignment_links_dictionary_entries_to_their_translations(pairs):
    particles = set(tables.TENSE_PARTICLES.values())
    for pair in pairs:
        for index, word in enumerate(pair.source):
            translation = counterparts(pair, index)
            if word in tables.COLOURS:
                assert translation == [tables.COLOURS[word]]
            elif word in tables.NUMERALS:
                assert translation == [tables.NUMERALS[word]]
            elif word in lexicon.ADJECTIVES:
                assert translation == [lexicon.ADJECTIVES[word][0]]
            elif word in lexicon.NAMES:
                assert translation == [lexicon.transliterate(word)]
            elif word in particles:
                assert tense_of(pair.target[: pair.target.index(translation[0]) + 1]) == pair.tense


def test_translation_is_a_function_of_the_source_only_if_tense_is_marked(pairs, unmarked_pairs):
    def most_translations(examples):
        translations = defaultdict(set)
        for pair in examples:
            translations[pair.source].add(pair.target)
        return max(map(len, translations.values()))

    assert most_translations([*pairs, *generate(4000, seed=2)]) == 1
    of_unmarked_tense = [*unmarked_pairs, *generate(4000, seed=2, document_tense=True)]
    assert most_translations(of_unmarked_tense) > 1


# The phenomena: each is there, and in the right form.


def test_nouns_and_verbs_are_translated_by_their_entries(pairs):
    helpers = {"the", "did", "do", "does", "will", "not"}
    checked = set()
    for pair in pairs[:3000]:
        for matches, index in occurrences(pair, [*lexicon.NOUNS, *lexicon.VERBS]):
            allowed = []
            for entry in matches:
                if isinstance(entry, lexicon.Noun):
                    allowed += [entry.singular, entry.plural]
                else:
                    forms = (entry.base, entry.third, entry.past)
                    allowed += [(form, *entry.rest) for form in forms]
            for position in range(index, index + len(matches[0].source)):
                translation = tuple(
                    word for word in counterparts(pair, position) if word not in helpers
                )
                assert translation in allowed
            checked.add((matches[0].source, len(translation)))
    assert len({source for source, _ in checked}) > 120


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
    monkeypatch.setattr(documents, "SENTENCE_LENGTHS", (4, 9))
    marked, unmarked = generate(1000, seed=1), generate(1000, seed=1, document_tense=True)
    assert max(len(pair.source) for pair in marked) == 9
    assert [pair.target for pair in marked] == [pair.target for pair in unmarked]


@pytest.mark.parametrize(
    ("sentence", "tense"),
    [
        ("the boy waited for the dog .", "past"),
        ("the boy waits for the dog .", "present"),
        ("two boys wait for the dog .", "present"),
        ("the boy will wait for the dog .", "future"),
        ("the boy did not wait for the dog .", "past"),
        ("two boys do not wait for the dog .", "present"),
        ("the boy will not wait for the dog .", "future"),
        ("the dog .", None),
        ("", None),
        ("the boy waited and the girl waits .", None),
        ("the boy will waited for the dog .", "future"),
    ],
)
def test_tense_of(sentence, tense):
    assert tense_of(sentence.split()) == tense


def test_names_are_a_zipf_tail_of_modest_mass(pairs):
    counts = Counter(word for pair in pairs for word in pair.source)
    names = sorted((counts[name] for name in lexicon.NAMES), reverse=True)
    assert names[-1] >= 20
    assert names[0] > 3 * names[-1]
    assert sum(names) < 0.08 * sum(counts.values())
    assert all(
        PHENOMENA["rare word"](pair) == any(word in lexicon.NAMES for word in pair.source)
        for pair in pairs
    )
