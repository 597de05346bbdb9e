"""Long sentences of the synthetic corpus: clauses, free order, repeated phrases."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from helpers.synthetic_pairs import counterparts

from tfmann.cli.synthetic import main
from tfmann.synthetic import Style, generate, lexicon, tables, write_corpus

HEADS = {noun.source[0] for noun in lexicon.NOUNS}


@pytest.fixture(scope="module")
def long_pairs():
    return generate(3000, seed=1, style=Style(long_sentences=True))


def clauses(source):
    """Returns the words of each clause, without what stands before its first argument."""
    parts = [[]]
    for word in source[:-1]:
        if word in tables.CONJUNCTIONS:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def test_lengths_are_as_documented(long_pairs):
    for pair in long_pairs:
        assert len(pair.source) <= 44 and 12 <= len(pair.target) <= 44
    mean = sum(len(pair.source) for pair in long_pairs) / len(long_pairs)
    assert 24 < mean < 30
    numbers = Counter(len(clauses(pair.source)) for pair in long_pairs)
    assert set(numbers) == {1, 2, 3, 4} and min(numbers.values()) > 50


def test_dev_and_test_have_longer_sentences_of_known_words(tmp_path):
    style = Style(long_sentences=True)
    write_corpus(tmp_path, train=3000, dev=50, test=300, seed=2, style=style)
    splits = {
        name: [line.split() for line in (tmp_path / f"{name}.src").read_text("utf-8").splitlines()]
        for name in ("train", "test")
    }
    words = {name: {word for line in lines for word in line} for name, lines in splits.items()}
    assert words["test"] <= words["train"]
    lengths = {name: sum(map(len, lines)) / len(lines) for name, lines in splits.items()}
    assert lengths["test"] > 1.4 * lengths["train"]
    assert max(map(len, splits["train"])) <= 44 < max(map(len, splits["test"])) <= 80
    assert {len(clauses(line)) for line in splits["test"]} == {3, 4, 5}


def test_each_clause_ends_with_its_verb_and_tense(long_pairs):
    particles = {particle: tense for tense, particle in tables.TENSE_PARTICLES.items()}
    for pair in long_pairs:
        for clause in clauses(pair.source):
            assert [particles.get(word) for word in clause].count(pair.tense) == 1
            assert particles[clause[-1]] == pair.tense


def test_the_translation_is_a_function_of_the_source(long_pairs):
    translations = defaultdict(set)
    for pair in long_pairs:
        translations[pair.source].add(pair.target)
    assert len(translations) > 2900 and set(map(len, translations.values())) == {1}


def test_a_particle_marks_the_object_wherever_it_stands(long_pairs):
    first, later = 0, 0
    for pair in long_pairs:
        for index, word in enumerate(pair.source):
            if word == tables.OBJECT:
                linked = [j for i, j in pair.alignment if i == index]
                assert len(linked) == 1  # the last word of the object's translation
                following = pair.source[index + 1]
                later += following in HEADS | set(lexicon.NAMES)
                first += following not in HEADS | set(lexicon.NAMES)
    assert first > 500 and later > 500  # before another argument, and last before the verb


def test_phrases_are_repeated_and_translated_each_time(long_pairs):
    repeated = 0
    for pair in long_pairs:
        counts = Counter(word for word in pair.source if word in lexicon.NAMES)
        for name, count in counts.items():
            assert pair.target.count(lexicon.transliterate(name)) == count
        described = [
            pair.source[i : i + 2]
            for i in range(len(pair.source) - 1)
            if pair.source[i] in HEADS and pair.source[i + 1] in lexicon.ADJECTIVES
        ]
        repeated += len(set(described)) < len(described)
    assert repeated > 300


def test_every_word_but_a_particle_is_translated_by_its_entry(long_pairs):
    for pair in long_pairs[:500]:
        for index, word in enumerate(pair.source):
            if word in tables.NUMERALS:
                assert counterparts(pair, index) == [tables.NUMERALS[word]]
            elif word in tables.CONJUNCTIONS:
                assert " ".join(counterparts(pair, index)) == tables.CONJUNCTIONS[word]


def test_the_command_writes_them_and_refuses_both_kinds(tmp_path, capsys):
    sizes = ["--train=300", "--dev=10", "--test=10"]
    folder = tmp_path / "long"
    assert main([f"--output_dir={folder}", "--long_sentences", *sizes]) == 0
    assert "--seed=1 --long_sentences" in (folder / "README").read_text(encoding="utf-8")
    first = (folder / "train.src").read_text(encoding="utf-8").splitlines()[0]
    style = Style(long_sentences=True)
    assert first == " ".join(generate(1, seed=1, style=style)[0].source)
    capsys.readouterr()
    both = ["--document_tense", "--long_sentences", *sizes]
    assert main([f"--output_dir={tmp_path / 'both'}", *both]) == 1
    assert "long_sentences does not go with" in capsys.readouterr().err
    assert not (tmp_path / "both").exists()
