"""The synthetic corpus: its sizes, dictionary, documents and alignments."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from helpers.synthetic_pairs import counterparts

from tfmann.synthetic import PHENOMENA, Style, generate, lexicon, tables, tense_of


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


STYLES = [Style(), Style(document_tense=True), Style(long_sentences=True)]


@pytest.mark.parametrize("style", STYLES, ids=str)
def test_alignment_covers_every_word_and_stays_in_range(style):
    for pair in generate(2000, seed=4, style=style):
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
    of_unmarked_tense = [*unmarked_pairs, *generate(4000, seed=2, style=Style(document_tense=True))]
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
