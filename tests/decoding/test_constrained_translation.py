"""Lines whose translations contain given phrases: batches, documents, subwords, messages."""

import numpy as np
import pytest
from helpers import small_models
from helpers.translations import (
    LINES,
    SOURCE_WORDS,
    assert_same,
    languages,
    scores,
    texts,
    translator,
)

from tfmann.api import Model
from tfmann.data.shortlist_lexicon import TranslationLists
from tfmann.data.subword import BpeSegmenter, WordSegmenter
from tfmann.data.text_encoder import LanguagePair, TextEncoder
from tfmann.data.vocab import Vocabulary
from tfmann.decoding.ensemble import Ensemble
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UsageError, UserError

BEAM = {"beam_width": 6, "num_translations_per_input": 2}
PHRASES = [["b5 b6", "b12"], ["b4"], ["b12"], [], [], ["b3", "b3 b3"], ["", "b9"], ["b7"], []]
LARGE = {"init_weight": 1.0, "embedding_init_weight": 3.0}


def has(text, phrase):
    return not phrase or f" {phrase} " in f" {text} "


@pytest.mark.quick("alone", "cache")
@pytest.mark.parametrize("kind", ["alone", "cache", "ensemble"])
def test_translations_contain_the_phrases_whatever_their_batch(kind):
    system = translator("rnnsearch", **BEAM)
    if kind == "ensemble":
        models = [system.model, translator("ntm", **BEAM).model]
        system = make_translator(Ensemble(models), languages(), system.hparams, None)
    elif kind == "cache":
        model = small_models.model(
            "rnnsearch", cell="cache", cache_size=4, unit_type="gru", **LARGE, **BEAM
        )
        system = make_translator(model, languages(), model.hparams, None)
    ids = np.arange(len(LINES))
    free = list(system.translate(LINES, documents=ids))
    constrained = list(system.translate(LINES, documents=ids, constraints=PHRASES))
    changed = 0
    for line, phrases, n_best, free_n_best in zip(LINES, PHRASES, constrained, free):
        for translation in n_best:
            assert all(has(translation.text, phrase) for phrase in phrases if line.strip())
        if phrases and line.strip():
            changed += n_best[0].text != free_n_best[0].text
        else:
            assert_same([n_best], [free_n_best])
    assert changed >= 3, "the phrases are in the free translations"
    for number in (0, 5, 7):
        line, phrases = [LINES[number]], [PHRASES[number]]
        [single] = system.translate(line, constraints=phrases)
        assert texts([single]) == texts([constrained[number]])
        np.testing.assert_allclose(scores([single]), scores([constrained[number]]), atol=3e-5)


@pytest.mark.quick("alone", "cache")
@pytest.mark.parametrize("kind", ["alone", "cache", "shortlist"])
def test_greedy_translations_contain_the_phrases_whatever_their_batch(kind):
    changes = {"cell": "cache", "cache_size": 4, "unit_type": "gru"} if kind == "cache" else {}
    model = small_models.model("rnnsearch", **{**LARGE, "infer_mode": "greedy", **changes})
    system = make_translator(model, languages(), model.hparams, None)
    if kind == "shortlist":
        starts = np.zeros([small_models.SOURCE_SIZE + 1], np.int32)
        system.lists = TranslationLists(np.arange(9, dtype=np.int32), starts, starts[:0])
    ids = np.arange(len(LINES))
    free = list(system.translate(LINES, documents=ids))
    constrained = list(system.translate(LINES, documents=ids, constraints=PHRASES))
    changed = 0
    for number, (line, phrases) in enumerate(zip(LINES, PHRASES)):
        [translation], [free_translation] = constrained[number], free[number]
        assert all(has(translation.text, phrase) for phrase in phrases if line.strip())
        if not phrases or not line.strip():
            assert_same([[translation]], [[free_translation]])
            continue
        changed += translation.text != free_translation.text
        [[single]] = system.translate([line], constraints=[phrases])
        assert single.text == translation.text
        if kind != "shortlist":  # its scores are those of the listed words alone
            [forced] = system.force_translations([translation])
            assert forced.log_prob == pytest.approx(translation.score, abs=1e-4)
    assert changed >= 3, "the phrases are in the free translations"


def test_greedy_search_has_room_for_the_tokens_of_the_phrases():
    searcher = translator("rnnsearch", infer_mode="greedy").searcher
    widths = [searcher.hypotheses(tokens) for tokens in range(80)]
    assert widths[0] == 1 and len(set(widths)) == 5
    assert all(width > tokens for tokens, width in enumerate(widths))


def test_greedy_lines_without_phrases_take_the_plain_search(untraced):
    system = translator("rnnsearch", infer_mode="greedy")
    phrases = [["b5"] if number == 0 else [] for number in range(len(LINES))]
    list(system.translate(LINES, constraints=phrases))
    searches = {(kinds, width) for _, _, kinds, width in system._compiled}
    assert searches == {((False, False), 1), ((False, True), 4)}


def test_a_score_is_that_of_the_forced_decoding():
    system = translator("rnnsearch", **BEAM)
    [n_best] = system.translate(["a3 a9"], prefixes=["b8"], constraints=[["b5 b6", "b12"]])
    assert n_best[0].text.startswith("b8") and has(n_best[0].text, "b5 b6")
    for translation in n_best:
        [forced] = system.force_translations([translation])
        assert forced.log_prob == pytest.approx(translation.score, abs=1e-4)


def test_lines_without_phrases_use_the_search_without_them():
    system = translator("rnnsearch", beam_width=5)
    free = list(system.translate(LINES))
    searches = dict(system._compiled)
    blank = list(system.translate(LINES, constraints=[["", " ", "\u00a0"]] * len(LINES)))
    assert system._compiled == searches
    assert texts(blank) == texts(free)


def subword_languages():
    tokens = [f"b{i}{'@@' if i % 2 else ''}" for i in range(3, small_models.TARGET_SIZE)]
    target = TextEncoder(Vocabulary.from_tokens(tokens), BpeSegmenter())
    source = TextEncoder(Vocabulary.from_tokens(SOURCE_WORDS), WordSegmenter())
    return LanguagePair(source, target)


def test_phrases_of_subwords_are_whole_words():
    model = small_models.model("luong", **LARGE, **BEAM)
    system = make_translator(model, subword_languages(), model.hparams, None)
    phrases = [["b5@@ b6", "b4"], ["b4"], ["b8 b3@@ b10"]]
    n_best_lists = list(system.translate(LINES[2:4] + LINES[7:8], constraints=phrases))
    for n_best, words in zip(n_best_lists, (["b5b6", "b4"], ["b4"], ["b8 b3b10"])):
        for translation in n_best:
            assert all(has(translation.text, word) for word in words), translation.text
    with pytest.raises(UserError, match="line 1: the phrase 'b4 b5@@' does not consist of whole"):
        list(system.translate(LINES[:1], constraints=[["b4 b5@@"]]))


def test_there_is_room_for_phrases_after_a_part_of_a_word():
    """Which takes a token more to end; a line without phrases keeps its limit."""
    model = small_models.model("luong", **LARGE, **BEAM, tgt_max_len_infer=3)
    system = make_translator(model, subword_languages(), model.hparams, None)
    phrases, prefixes = [["b4", "b8 b3@@ b10"], ["b4"], []], ["b5@@", "b5@@ b6", "b6 b5@@"]
    n_best_lists = list(system.translate(["a3 a9"] * 3, prefixes=prefixes, constraints=phrases))
    for n_best, words in zip(n_best_lists, (["b4", "b8 b3b10"], ["b4"], [])):
        for translation in n_best:
            assert all(has(translation.text, word) for word in words), translation.text
            assert np.isfinite(translation.score)
    assert [max(len(t.tokens) for t in n_best) for n_best in n_best_lists] == [7, 4, 3]


def test_wrong_constraints_are_refused_in_one_message():
    system = translator("rnnsearch", **BEAM)
    for phrases, message in (
        (PHRASES[:2], "line 3 has no constraints: expected an entry for each line, empty for none"),
        ([*PHRASES[:3], []], "there are more constraints than lines: expected 3"),
        ([[], [], ["b4", "b3 c"]], "line 3: no translation can contain 'b3 c', .* lacks 'c'"),
    ):
        with pytest.raises(UserError, match=message):
            list(system.translate(LINES[:3], constraints=phrases))
    with pytest.raises(UsageError, match="samples cannot be drawn with constraints: set infer_mo"):
        list(translator("rnnsearch", infer_mode="sample").translate(["a3"], constraints=[["b3"]]))
    model = Model(system, "here")
    for phrases, message in (
        ("b3", "constraints of sentence 0: expected a list"),
        ([[], "b3"], "constraints of sentence 1: expected a list of strings, not 'b3'"),
        ([[3]], "constraints of sentence 0: expected a string"),
    ):
        with pytest.raises(TypeError, match=message):
            list(model.translate(LINES[:2], constraints=phrases))
