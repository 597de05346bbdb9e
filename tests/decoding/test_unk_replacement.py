"""Unknown words of translations: which are replaced, by what, and what stays as it was."""

import numpy as np
import pytest
from helpers import small_models
from helpers.translations import BEAM, LINES, texts, translator

from tfmann.decoding.translator import Translator
from tfmann.decoding.unk_replacement import replace_unknown
from tfmann.errors import UsageError

LEXICON = {"hund": "dog", "katze": "cat"}
WORDS = ["hund", "Xaver", "katze"]
ROWS = {"hund": [0.7, 0.1, 0.1, 0.1], "Xaver": [0.1, 0.6, 0.2, 0.1], "end": [0.0, 0.1, 0.2, 0.7]}


def replace_in_text(text, *rows):
    tokens = text.split()
    attention = np.array([ROWS[row] for row in rows] + [[0, 0, 0, 1.0]])  # the last is of </s>
    return " ".join(replace_unknown(tokens, attention, WORDS, LEXICON))


def test_what_the_lexicon_has_is_translated_and_the_rest_copied():
    assert (
        replace_in_text("the <unk> and <unk>", "end", "hund", "end", "Xaver") == "the dog and Xaver"
    )
    assert replace_in_text("<unk> barks", "hund", "end") == "dog barks"
    assert replace_in_text("<unk> <unk> <unk>", "Xaver", "hund", "Xaver") == "Xaver dog Xaver"


def test_known_words_stay():
    assert replace_in_text("the hund", "hund", "hund") == "the hund"
    assert replace_in_text("", *[]) == ""


def test_the_end_cannot_be_copied():
    """The second best is meant, which is a word."""
    assert replace_in_text("<unk>", "end") == "cat"
    without_end = np.array([[0.1, 0.2, 0.7]])
    assert replace_unknown(["<unk>"], without_end, WORDS, LEXICON) == ["cat"]


@pytest.mark.parametrize("row", [[0.0, 0.0, 0.0, 1.0], [np.nan] * 4])
def test_no_weight_no_word(row):
    assert replace_unknown(["<unk>", "a"], np.array([row, row]), WORDS, LEXICON) == ["<unk>", "a"]


def test_the_first_wins_a_tie_and_there_may_be_no_word():
    assert replace_unknown(["<unk>"], np.full([1, 4], 0.25), WORDS, LEXICON) == ["dog"]
    assert replace_unknown(["<unk>"], np.ones([1, 1]), [], LEXICON) == ["<unk>"]


@pytest.fixture(scope="module")
def before_and_after():
    """Translations by the same model without and with a lexicon, attention at hand."""
    plain = translator("luong", **BEAM)
    lexicon = {"a3": "three", "nowhere": "absent", "a12": "<unk>", "a4": "b5"}
    replacing = Translator(plain.model, plain.languages, plain.hparams, lexicon)
    replacing._compiled = plain._compiled  # traced once
    return list(plain.translate(LINES, True)), list(replacing.translate(LINES, True)), lexicon


def test_only_the_text_changes(before_and_after):
    before, after, _ = before_and_after
    for old, new in zip(sum(before, []), sum(after, [])):
        assert (old.score, old.source_tokens, old.tokens) == (
            new.score, new.source_tokens, new.tokens
        )  # fmt: skip
        np.testing.assert_array_equal(old.attention, new.attention)
    assert texts(before) != texts(after)


def test_every_unknown_word_comes_from_where_its_attention_is(before_and_after):
    """Of the line as it is written: the model knows `nowhere` as <unk> alone."""
    before, after, lexicon = before_and_after
    from_lexicon = set()
    for line, old_best, new_best in zip(LINES, before, after):
        words = line.split()
        for old, new in zip(old_best, new_best):
            expected = old.text.split()
            for j, word in enumerate(expected):
                if word == "<unk>":
                    position = int(np.argmax(old.attention[j, : len(words)]))
                    expected[j] = lexicon.get(words[position], words[position])
                    from_lexicon.add(words[position] in lexicon)
            assert new.text == " ".join(expected)
    assert from_lexicon == {True, False}


def test_attention_is_only_returned_on_request(before_and_after):
    _, after, lexicon = before_and_after
    plain = translator("luong", **BEAM)
    replacing = Translator(plain.model, plain.languages, plain.hparams, lexicon)
    replacing._compiled = plain._compiled
    translated = list(replacing.translate(LINES))
    assert texts(translated) == texts(after)
    assert all(hypothesis.attention is None for n_best in translated for hypothesis in n_best)


def test_cut_sources_are_not_copied_from_beyond_the_cut(before_and_after):
    _, _, lexicon = before_and_after
    plain = translator("luong", **BEAM)
    short = plain.hparams.replace(src_max_len_infer=2)
    cut = Translator(plain.model, plain.languages, short, lexicon)
    uncut = Translator(plain.model, plain.languages, plain.hparams, lexicon)
    cut._compiled = uncut._compiled = plain._compiled
    lines = [line for line in LINES if line.strip()]
    heads = [" ".join(line.split()[:2]) for line in lines]
    assert texts(cut.translate(lines)) == texts(uncut.translate(heads))


def test_force_translations_takes_the_model_s_own_words(before_and_after):
    before, after, _ = before_and_after
    plain = translator("luong", **BEAM)
    first = [n_best[0] for n_best in after if n_best[0].tokens]
    forced = plain.force_translations(first)
    assert [f.tokens for f in forced] == [translation.tokens for translation in first]
    assert len(before) == len(after)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"cell": "dnc", "encoder_type": "memory"}, "replace_unk=True needs alignments"),
        ({"subword_option": "bpe"}, "replace_unk is about words, and subword_option='bpe'"),
    ],
)
def test_where_nothing_can_be_replaced(settings, words):
    with pytest.raises(UsageError, match=words):
        small_models.hparams(replace_unk=True, **settings)


def test_what_a_prefix_gives_stays():
    plain = translator("luong", infer_mode="greedy")
    lexicon = dict.fromkeys(plain.languages.source.vocabulary.tokens, "REPLACED")
    replacing = Translator(plain.model, plain.languages, plain.hparams, lexicon)
    prefix = "<unk> unheard-of b5 <unk>"
    [[translation]] = replacing.translate(["a3 a9 a14"], prefixes=[prefix])
    assert translation.text.startswith(prefix)
