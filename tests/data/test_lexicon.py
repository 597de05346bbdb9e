"""IBM Model 1 against loops and a published table; the lexicon's file; the command."""

import itertools
from collections import defaultdict

import numpy as np
import pytest
from helpers.command_line import command, fails, tree

from tfmann import nmt
from tfmann.config import HParams
from tfmann.data import ibm_model1, lexicon
from tfmann.data.text_files import write_lines
from tfmann.errors import UserError
from tfmann.synthetic import write_corpus
from tfmann.synthetic.lexicon import transliterate
from tfmann.synthetic.tables import COLOURS, NUMERALS


def oracle(pairs, iterations):
    """Brown et al.'s counts, one pair of positions after the other."""
    t = defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts, totals = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for word in target:
                norm = sum(t[word, source_word] for source_word in source)
                for source_word in source:
                    counts[word, source_word] += t[word, source_word] / norm
                    totals[source_word] += t[word, source_word] / norm
        t = defaultdict(float, {key: counts[key] / totals[key[1]] for key in counts})
    return dict(t)


def count_entries(pairs, iterations):
    return ibm_model1.expected_counts(
        *(list(map(np.array, side)) for side in zip(*pairs)), iterations
    )


def train_model1(pairs, iterations):
    table = count_entries(pairs, iterations)
    keys = zip(table.target.tolist(), table.source.tolist())
    return dict(zip(keys, table.probability.tolist()))


@pytest.mark.parametrize("block", [1, 30, 1 << 22])
@pytest.mark.parametrize("iterations", [1, 4])
def test_against_the_oracle(monkeypatch, block, iterations):
    monkeypatch.setattr(ibm_model1, "_BLOCK", block)
    stream = np.random.default_rng(1)
    pairs = [
        (stream.integers(0, 7, stream.integers(1, 6)), stream.integers(0, 9, stream.integers(1, 6)))
        for _ in range(30)
    ]
    actual, expected = train_model1(pairs, iterations), oracle(pairs, iterations)
    assert actual.keys() == expected.keys()
    for key, value in expected.items():
        assert actual[key] == pytest.approx(value, rel=1e-9), key


def test_dice_of_the_counts():
    """c(a|x) = 1.5, c(x) = 2, c(a) = 3, by one E step over "x y|a b", "x|a" and "z|a"."""
    table = count_entries([([0, 1], [0, 1]), ([0], [0]), ([2], [0])], 1)
    assert table.value[0] == 1.5
    assert table.dice[0] == pytest.approx(2 * 1.5 / (2 + 3))
    assert table.dice.max() <= 1.0


def test_a_published_course_of_the_probabilities():
    """The text-book's three sentences (Koehn 2010, figure 4.4): das Haus, das Buch, ein Buch."""
    das, house_, book_, ein = range(4)
    the, house, book, a = range(4)
    pairs = [([das, house_], [the, house]), ([das, book_], [the, book]), ([ein, book_], [a, book])]
    table = {
        (the, das): (0.5, 0.6364, 0.7479),
        (book, das): (0.25, 0.1818, 0.1208),
        (house, das): (0.25, 0.1818, 0.1313),
        (the, book_): (0.25, 0.1818, 0.1208),
        (book, book_): (0.5, 0.6364, 0.7479),
        (a, book_): (0.25, 0.1818, 0.1313),
        (book, ein): (0.5, 0.4286, 0.3466),
        (a, ein): (0.5, 0.5714, 0.6534),
        (the, house_): (0.5, 0.4286, 0.3466),
        (house, house_): (0.5, 0.5714, 0.6534),
    }
    for column in range(3):
        probabilities = train_model1(pairs, column + 1)
        assert probabilities.keys() == table.keys()
        for key, course in table.items():
            assert probabilities[key] == pytest.approx(course[column], abs=5e-5), (key, column)


def words(*lines):
    return [tuple(side.split() for side in line.split("|")) for line in lines]


def test_every_word_has_its_best_translation():
    log = []
    pairs = words(
        "das haus|the house", "das buch|the book", "ein buch|a book", "|nothing", "nichts|",
        f"das{' x' * 100}|the",
    )  # fmt: skip
    entries = ibm_model1.best_translations(pairs, log.append)
    assert [(e.source, e.target) for e in entries] == [
        ("buch", "book"), ("das", "the"), ("ein", "a"), ("haus", "house"),
    ]  # fmt: skip
    assert all(0.3 < entry.weight <= 1.0 for entry in entries)
    assert log == ["skipped 3 pairs with a side that is empty or above 100 words"]


def test_words_that_come_from_no_word():
    """An article in every target sentence is the empty word's, not each noun's."""
    pairs = words("a|the x", "b|the y", "c|the z", "d|the w", "a b|the x the y")
    translations = {e.source: e.target for e in ibm_model1.best_translations(pairs)}
    assert translations == {"a": "x", "b": "y", "c": "z", "d": "w"}


def test_of_equally_good_words_the_one_that_looks_alike_or_the_first_of_the_text():
    assert [e.target for e in ibm_model1.best_translations(words("s|y x"))] == ["y"]
    pairs = words("Ada Bo dort|Bo Ada sleeps", "dort|sleeps")
    assert [e.target for e in ibm_model1.best_translations(pairs)] == ["Ada", "Bo", "sleeps"]


def test_what_looks_alike_need_not_be_the_best():
    pairs = words(*["gift|poison"] * 5, "gift mitgift|poison dowry gift")
    assert {e.source: e.target for e in ibm_model1.best_translations(pairs)}["gift"] == "poison"


def test_rare_words_do_not_explain_what_is_frequent():
    """Model 1 alone would say "," of the word that is seen once, which no other word explains."""
    pairs = words(*["a|x"] * 9, *["b|y , ,"] * 9, "n a|, , , , name x")
    translations = {e.source: e.target for e in ibm_model1.best_translations(pairs)}
    assert translations["n"] == "name"


def test_best_translations_against_the_oracle():
    """The empty word, five iterations and Dice's coefficient, word by word."""
    stream = np.random.default_rng(5)

    def sentence(side):
        return [f"{side}{i}" for i in stream.integers(0, 12, stream.integers(1, 7))]

    pairs = [(sentence("s"), sentence("t")) for _ in range(40)]
    t = oracle([(["", *source], target) for source, target in pairs], 4)
    links = defaultdict(float)
    for source, target in pairs:
        for word in target:
            norm = sum(t[word, source_word] for source_word in ["", *source])
            for source_word in ["", *source]:
                links[source_word, word] += t[word, source_word] / norm
    totals = defaultdict(float)
    for (source, target), value in links.items():
        totals["source", source] += value
        totals["target", target] += value
    expected = {}
    for (source, target), value in links.items():
        dice = 2 * value / (totals["source", source] + totals["target", target])
        expected[source] = max(expected.get(source, (0, "")), (dice, target))
    actual = ibm_model1.best_translations(pairs)
    assert [e.source for e in actual] == sorted(set(expected) - {""})
    for entry in actual:
        assert entry.target == expected[entry.source][1]
        assert entry.weight == pytest.approx(expected[entry.source][0])


def test_a_lexicon_is_learned_from_at_least_one_pair():
    with pytest.raises(UserError, match="no sentence pair"):
        ibm_model1.best_translations(words("|", "a|"))


def test_files_come_back(tmp_path):
    entries = [lexicon.Entry("größe", "size", 1 / 3), lexicon.Entry("a\u00a0b", "\u2028", 1.0)]
    lexicon.write(tmp_path / "l", entries)
    assert (tmp_path / "l").read_text("utf-8") == "größe\tsize\t0.333333\na\u00a0b\t\u2028\t1\n"
    assert lexicon.read(tmp_path / "l") == {"größe": "size", "a\u00a0b": "\u2028"}


def test_the_most_probable_line_counts(tmp_path):
    (tmp_path / "l").write_text("a x 0.2\na y 0.5\n b z 1e-3 \na z 0.5\na w 0.1\n")
    assert lexicon.read(tmp_path / "l") == {"a": "y", "b": "z"}
    (tmp_path / "empty").write_text("")
    assert lexicon.read(tmp_path / "empty") == {}


@pytest.mark.parametrize("line", ["a b", "a b c", "a b 0.1 d", "", "a b nan", "a b 1.5", "a b -1"])
def test_lines_that_are_none(tmp_path, line):
    (tmp_path / "l").write_text(f"a x 1\n{line}\n")
    with pytest.raises(UserError, match="l, line 2: .* is no line of a lexicon"):
        lexicon.read(tmp_path / "l")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, 1500, 10, 10, seed=3)
    return folder


def test_the_command_learns_from_the_training_text(corpus, tmp_path, capsys):
    """The words of the invented language that have one translation each; before any training."""
    out = tmp_path / "run"
    argv = command(out, mode="lexicon", src="src", tgt="tgt", train_prefix=corpus / "train")
    assert nmt.main(argv) == 0
    path = out / "lexicon.txt"
    assert capsys.readouterr().out.startswith(f"{path}: ")
    entries = lexicon.read(path)
    read = (corpus / "train.src").read_text().split()
    assert set(entries) == set(read)
    certain = {**COLOURS, **NUMERALS, "ve": "and", "nu": "not"}
    names = {word: transliterate(word) for word in read if word[0].isupper()}
    frequent = {s: t for s, t in {**certain, **names}.items() if read.count(s) > 5}
    assert len(frequent) > 40
    assert {s: entries[s] for s in frequent} == frequent
    second_path = tmp_path / "other"
    assert nmt.main([*argv, f"--lexicon_file={second_path}"]) == 0
    assert second_path.read_bytes() == path.read_bytes()


def test_the_command_learns_the_words_of_the_tokenizer(tmp_path):
    pytest.importorskip("sacremoses", reason="the extra `moses` is not installed")
    write_lines(tmp_path / "a.de", ["Das Haus ist alt.", "Das Haus ist rot.", "Ist das alt?"])
    write_lines(tmp_path / "a.en", ["The house is old.", "The house is red.", "Is that old?"])
    settings = {"src": "de", "tgt": "en", "train_prefix": tmp_path / "a", "tokenizer": "moses"}
    assert nmt.main(command(tmp_path, mode="lexicon", **settings)) == 0
    entries = lexicon.read(tmp_path / "lexicon.txt")
    assert entries["alt"] == "old" and {"rot", ".", "?"} < set(entries)
    assert not {"alt.", "rot.", "alt?"} & set(entries)


@pytest.mark.parametrize(
    "changes, status, words",
    [
        ({"train_prefix": "absent"}, 1, "no such file: .*absent.src"),
        ({"train_prefix": None}, 2, "train_prefix is not given"),
        ({"tgt": None}, 2, "tgt is not given"),
        ({"subword_option": "bpe"}, 2, "about words: subword_option='bpe'"),
        ({"lexicon_file": "absent/lexicon"}, 1, "there is no folder .*absent"),
        ({"inference_input_file": "x"}, 2, "--mode=lexicon does not use --inference_input_file"),
    ],
)
def test_what_the_command_refuses(corpus, tmp_path, capsys, monkeypatch, changes, status, words):
    monkeypatch.chdir(tmp_path)
    usual = {"src": "src", "tgt": "tgt", "train_prefix": corpus / "train"}
    settings = {k: v for k, v in {**usual, **changes}.items() if v is not None}
    fails(command(tmp_path, mode="lexicon", **settings), capsys, status, words)
    assert tree(tmp_path) == {}


def test_only_replacement_requires_a_lexicon(tmp_path):
    lexicon.require(HParams(), str(tmp_path))
    with pytest.raises(UserError, match="no file .*lexicon.txt: learn it with `tfmann lexicon`"):
        lexicon.require(HParams(replace_unk=True), str(tmp_path))
    with pytest.raises(UserError, match="no file mine"):
        lexicon.require(HParams(replace_unk=True, lexicon_file="mine"), str(tmp_path))
    (tmp_path / "lexicon.txt").touch()
    lexicon.require(HParams(replace_unk=True), str(tmp_path))


def test_pairs_beyond_the_ids_of_an_int32():
    """V_s * V_t may be more than 2^31."""
    many = 70_000
    pairs = [([i], [i]) for i in (0, 1, many - 1)] + [([many - 1, 0], [0, many - 1])]
    actual = train_model1(pairs, 3)
    expected = oracle(pairs, 3)
    for key in itertools.product((0, many - 1), repeat=2):
        assert actual[key] == pytest.approx(expected[key])
