"""Vocabularies: specials in any order, what is refused, and a deterministic order when built."""

import dataclasses
import itertools
import logging
import random

import pytest

from tfmann.data.vocab import EOS, SOS, SPECIALS, UNK, Vocabulary
from tfmann.errors import UserError


def file_of(tmp_path, content):
    path = tmp_path / "vocab"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


@pytest.mark.parametrize("order", itertools.permutations([UNK, SOS, EOS]))
@pytest.mark.parametrize("positions", [(0, 1, 2), (3, 3, 3), (0, 2, 4)])
def test_the_specials_may_stand_anywhere(tmp_path, order, positions):
    lines = ["the", "a", "cat"]
    for position, special in zip(positions, order):
        lines.insert(position, special)
    vocabulary = Vocabulary.load(file_of(tmp_path, "\n".join(lines) + "\n"))
    assert vocabulary.tokens == (*SPECIALS, "the", "a", "cat")
    assert vocabulary.encode(["<unk>", "<s>", "</s>", "cat", "dog"]) == [0, 1, 2, 5, 0]


@pytest.mark.parametrize(
    "content",
    [
        "<unk>\r\n<s>\r\n</s>\r\nx\r\n",
        "\ufeff<unk>\n<s>\n</s>\nx\n",
        "x\n</s>\n<s>\n<unk>",
    ],
)
def test_forms_of_one_vocabulary_have_one_fingerprint(tmp_path, content):
    plain = Vocabulary.load(file_of(tmp_path, "<unk>\n<s>\n</s>\nx\n"))
    vocabulary = Vocabulary.load(file_of(tmp_path, content))
    assert vocabulary == plain
    assert vocabulary.fingerprint == plain.fingerprint
    assert Vocabulary.from_tokens(["y"]).fingerprint != plain.fingerprint


def test_repeated_tokens_are_dropped_with_a_warning_that_names_lines(tmp_path, caplog):
    lines = ["<unk>", "<s>", "</s>", "b", "a", "b", "<s>", "a"] + ["b"] * 9
    with caplog.at_level(logging.WARNING):
        vocabulary = Vocabulary.load(file_of(tmp_path, "\n".join(lines) + "\n"))
    assert vocabulary.tokens[3:] == ("b", "a")
    (record,) = caplog.records
    assert "dropped 12 tokens" in record.getMessage()
    assert "(lines 6, 7, 8, 9, 10, ...)" in record.getMessage()


def test_a_clean_vocabulary_warns_of_nothing(tmp_path, caplog):
    Vocabulary.load(file_of(tmp_path, "<unk>\n<s>\n</s>\na\n"))
    assert not caplog.records


@pytest.mark.parametrize(
    "content, words",
    [
        ("", "is empty"),
        ("\ufeff", "is empty"),
        ("<unk>\n<s>\n</s>\n\nx\n", "line 4: blank"),
        ("<unk>\n<s>\n</s>\n \t\nx\n", "line 4: blank"),
        ("<unk>\n<s>\n</s>\nx y\n", "line 4: white space"),
        ("<unk>\n<s>\n</s>\nx\t17\n", "line 4: white space.*no counts"),
        ("<unk>\n<s>\n</s>\nx \n", "line 4: white space"),
        (b"<unk>\n<s>\n</s>\nx\n\xe9t\xe9\n", "line 5: not UTF-8"),
        ("<unk>\nx\n", "lacks <s>, </s>: add each on a line of its own"),
        ("<unk>\n<s>\nx\n", "lacks </s>: add it on a line of its own"),
        ("x\n", "lacks <unk>, <s>, </s>"),
    ],
)
def test_what_is_no_vocabulary_is_refused_by_name(tmp_path, content, words):
    path = file_of(tmp_path, content)
    with pytest.raises(UserError, match=words) as error:
        Vocabulary.load(path)
    assert str(path) in str(error.value)


def test_unicode_separators_may_be_part_of_a_token(tmp_path):
    tokens = ["a\u2028b", "\u00a0", "\x85", "\ufeff", "\x1c"]
    path = tmp_path / "vocab"
    Vocabulary.from_tokens(tokens).save(path)
    assert Vocabulary.load(path).tokens[3:] == tuple(tokens)


def test_building_orders_by_frequency_then_code_point():
    lines = [["b", "a", "é"], ["b", "Z", "a"], ["c", "<unk>", "</s>"]]
    assert Vocabulary.build(lines).tokens == (*SPECIALS, "a", "b", "Z", "c", "é")
    assert Vocabulary.build(reversed(lines)) == Vocabulary.build(lines)


def test_building_obeys_both_limits():
    lines = [["a"] * 3 + ["b"] * 2 + ["c"] * 2 + ["d"]]
    assert Vocabulary.build(lines, max_size=5).tokens == (*SPECIALS, "a", "b")
    assert Vocabulary.build(lines, min_frequency=2).tokens == (*SPECIALS, "a", "b", "c")
    assert len(Vocabulary.build(lines, max_size=100)) == 7
    spelled = [["<unk>"] * 9 + ["</s>"] * 9, *lines]  # specials in the text take no place
    assert Vocabulary.build(spelled, max_size=5).tokens == (*SPECIALS, "a", "b")
    for limits in [{"max_size": 3}, {"max_size": 1}, {"min_frequency": 4}]:
        with pytest.raises(UserError, match="no token is left"):
            Vocabulary.build(lines, **limits)
    with pytest.raises(UserError, match="the text is blank"):
        Vocabulary.build([[], []])


def test_saved_vocabularies_come_back(tmp_path):
    path = tmp_path / "vocab"
    vocabulary = Vocabulary.build([["x", "y@@", "▁z"]])
    vocabulary.save(path)
    loaded = Vocabulary.load(path)
    assert loaded == vocabulary and loaded.fingerprint == vocabulary.fingerprint


def test_encoding_and_decoding():
    vocabulary = Vocabulary.from_tokens(["a", "b"])
    assert vocabulary.decode(vocabulary.encode(["b", "a", "<s>"])) == ["b", "a", "<s>"]
    assert vocabulary.decode(vocabulary.encode(["zzz"])) == ["<unk>"]
    assert "a" in vocabulary and "zzz" not in vocabulary and len(vocabulary) == 5
    for bad in (-1, 5):
        with pytest.raises(IndexError):
            vocabulary.decode([bad])


def test_a_vocabulary_does_not_change():
    vocabulary = Vocabulary.from_tokens(["a"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        vocabulary.tokens = ()


@pytest.mark.parametrize(
    "tokens", [("a",), (*SPECIALS, "a", "a"), (*SPECIALS, ""), (*SPECIALS, "a b")]
)
def test_tokens_that_a_file_could_not_hold_are_refused(tokens):
    with pytest.raises(ValueError):
        Vocabulary(tokens)


def test_random_files_give_a_vocabulary_or_a_user_error(tmp_path):
    draw = random.Random(2)
    parts = [b"<unk>\n", b"<s>\n", b"</s>\n", b"a\n", b"b", b"\r\n", b"\n", b" ", b"\xff", b"\0"]
    loaded = 0
    for trial in range(1000):
        if trial % 3:  # mostly well-formed, so that all of the loader is reached
            content = b"".join(draw.sample(parts[:4], 4))
            content += b"".join(draw.choices(parts, k=draw.randrange(3)))
        else:
            content = bytes(draw.randrange(256) for _ in range(draw.randrange(40)))
        try:
            vocabulary = Vocabulary.load(file_of(tmp_path, content))
        except UserError:
            continue
        loaded += 1
        assert vocabulary.tokens[:3] == SPECIALS
    assert 100 < loaded < 900
