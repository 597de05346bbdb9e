"""From lines to lines: order, blanks, batches, limits, attention."""

import logging
import math

import numpy as np
import pytest
from helpers.translations import BEAM, LINES, run, scores, texts, translator

from tfmann.api import Model
from tfmann.decoding.translator import Translator


def test_every_line_gets_its_own_translation_in_its_own_place():
    together = run(LINES)
    assert len(together) == len(LINES)
    for line, n_best in zip(LINES, together):
        ((*single,),) = run([line])
        assert texts([single]) == texts([n_best])
        np.testing.assert_allclose(scores([single]), scores([n_best]), rtol=1e-4, atol=1e-5)
    assert len({n_best[0].text for n_best in together}) >= 5, "all the same shows nothing"
    backward = run(LINES[::-1])
    assert texts(backward) == texts(together)[::-1]


@pytest.mark.parametrize("size", [1, 3, 32])
@pytest.mark.parametrize("chunk", [0, 1, 4])
def test_batches_and_chunks_change_nothing(size, chunk):
    actual, expected = run(LINES, size, chunk), run(LINES)
    assert texts(actual) == texts(expected)
    assert [t.tokens for n in actual for t in n] == [t.tokens for n in expected for t in n]
    np.testing.assert_allclose(scores(actual), scores(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.thorough
def test_a_model_that_is_searched_in_many_ways_is_no_warning(caplog):
    greedy = {"infer_mode": "greedy", "num_translations_per_input": 1}
    model = Model(translator("luong", **greedy), "")
    tensorflow = logging.getLogger("tensorflow")
    tensorflow.addHandler(caplog.handler)
    try:
        for length in (2, 3, 4, 5, 6):
            list(model.with_search(tgt_max_len_infer=length).translate(LINES[:1]))
    finally:
        tensorflow.removeHandler(caplog.handler)
    assert caplog.messages == []


def test_blank_lines_stay_blank_and_cost_nothing(monkeypatch):
    def fail(*_):
        raise AssertionError("a blank line was searched")

    system = translator(**BEAM)
    monkeypatch.setattr(system.searcher, "search", fail)
    for n_best in system.translate(["", " ", "\t \t", "\u00a0", "\u3000 \u2028"]):
        assert [(t.text, t.score, t.tokens) for t in n_best] == [("", 0.0, [])] * 3
    assert list(system.translate([])) == []


def test_n_best_are_different_and_stand_from_best_to_worst():
    for line, n_best in zip(LINES, run(LINES)):
        assert len(n_best) == 3
        if line.strip():
            assert len({tuple(t.tokens) for t in n_best}) == 3
            assert n_best[0].score >= n_best[1].score >= n_best[2].score
    first = [n_best[:1] for n_best in run(LINES)]
    only = run(LINES, num_translations_per_input=1)
    assert texts(only) == texts(first)
    np.testing.assert_allclose(scores(only), scores(first), rtol=1e-4, atol=1e-5)


def test_a_chunk_of_one_answers_before_the_next_line_is_read():
    read = []

    def lines():
        for line in LINES[:4]:
            read.append(line)
            yield line

    for answered, n_best in enumerate(translator(**BEAM).translate(lines(), chunk=1), start=1):
        assert len(n_best) == 3
        assert len(read) == answered
    assert len(read) == 4


def test_unknown_words_and_written_specials_are_unknown_words():
    (expected,) = run(["a3 nowhere a5"])
    assert expected[0].source_tokens == ["a3", "<unk>", "a5", "</s>"]
    for word in ("</s>", "<s>", "<unk>", "b3"):
        (actual,) = run([f"a3 {word} a5"])
        assert actual[0].source_tokens == expected[0].source_tokens
        assert texts([actual]) == texts([expected])
    (actual,) = run(["</s>"])
    assert actual[0].source_tokens == ["<unk>", "</s>"]
    forced, unknown = translator(**BEAM).force([("a3", "b3 </s> b4"), ("a3", "b3 what b4")])
    assert forced.tokens == unknown.tokens == ["b3", "<unk>", "b4", "</s>"]
    assert forced.log_prob == pytest.approx(unknown.log_prob, rel=1e-5)


def test_tokens_are_the_text_and_its_end():
    for n_best in run(LINES):
        for hypothesis in n_best:
            if hypothesis.tokens:
                assert hypothesis.tokens[-1] == "</s>" and "</s>" not in hypothesis.tokens[:-1]
                assert hypothesis.text == " ".join(hypothesis.tokens[:-1])


def test_longer_sources_are_cut():
    system = translator(**BEAM)
    short = Translator(system.model, system.languages, system.hparams.replace(src_max_len_infer=2))
    short._compiled = system._compiled  # traced once
    cut = list(short.translate(["a3 a9 a14 a5", "a3 a9", "a3"]))
    expected = list(system.translate(["a3 a9", "a3 a9", "a3"]))
    assert texts(cut) == texts(expected)
    assert cut[0][0].source_tokens == ["a3", "a9", "</s>"]
    assert texts(run(["a3 a9 a14 a5"])) != texts(expected[:1])


def test_attention_has_a_row_a_word_and_a_column_a_source_token():
    results = run(LINES, with_attention=True)
    assert texts(results) == texts(run(LINES))
    for line, hypothesis in (
        (line, hypothesis) for line, n_best in zip(LINES, results) for hypothesis in n_best
    ):
        if not line.strip():
            assert hypothesis.attention is None
            continue
        assert hypothesis.attention.shape == (len(hypothesis.tokens), len(line.split()) + 1)
        np.testing.assert_allclose(hypothesis.attention.sum(axis=1), 1.0, atol=1e-5)
    for n_best in results:
        for hypothesis in n_best:
            if hypothesis.tokens and not {"<unk>", "<s>"} & set(hypothesis.tokens):
                pair = (" ".join(hypothesis.source_tokens[:-1]), hypothesis.text)
                [forced] = translator(**BEAM).force([pair], ("alignments",))
                expected = forced.diagnostics["alignments"]
                np.testing.assert_allclose(hypothesis.attention, expected, atol=1e-4)
                return
    raise AssertionError("no translation can be given back")


@pytest.mark.quick("beam_search")
@pytest.mark.parametrize("infer_mode", ["greedy", "beam_search"])
def test_the_least_length_and_repeated_words_are_settings(infer_mode, untraced):
    mode = {"infer_mode": infer_mode, "num_translations_per_input": 1, "tgt_max_len_infer": 9}

    def search(**settings):
        return [n_best[0].tokens for n_best in run(LINES[:6], **mode, **settings) if n_best[0].text]

    def repeats(tokens):
        return len(set(tokens)) < len(tokens)

    free = search()
    assert min(map(len, free)) < 5 and any(map(repeats, free)), "the settings change nothing"
    longer = search(tgt_min_len_infer=5)
    assert min(map(len, longer)) >= 5 and any(map(repeats, longer))
    different = search(no_repeat_ngram_size=1)
    assert not any(map(repeats, different)) and min(map(len, different)) < 5


def test_an_n_best_list_ends_where_the_search_has_no_more(untraced):
    """Within a limit of one word there is one translation: the end."""
    for with_attention in (False, True):
        for line, n_best in zip(LINES, run(LINES, 32, 0, with_attention, tgt_max_len_infer=1)):
            if line.strip():
                ((only,),) = [n_best]
                assert only.tokens == ["</s>"] and math.isfinite(only.score)


@pytest.mark.quick("beam_search")
@pytest.mark.parametrize("mode", ["beam_search", "greedy", "sample"])
def test_longer_translations_are_ended(untraced, mode):
    count = 1 if mode == "greedy" else 3
    cut = run(LINES, infer_mode=mode, num_translations_per_input=count, tgt_max_len_infer=2)
    lengths = [len(t.tokens) for n_best in cut for t in n_best if t.tokens]
    assert max(lengths) == 2
    assert [len(n_best) for n_best in cut] == [count] * len(LINES)
    longer = run(LINES, infer_mode=mode, num_translations_per_input=count, tgt_max_len_infer=4)
    assert max(len(t.tokens) for n_best in longer for t in n_best) > 2


def test_samples_differ_and_come_again(untraced):
    limited = {"tgt_max_len_infer": 6}
    hot = {"infer_mode": "sample", "sampling_temperature": 5.0, **limited}
    first, repeated = run(LINES[:1], **hot), run(LINES[:1], **hot)
    assert texts(first) == texts(repeated)
    assert len(set(texts(first)[0])) > 1
    system = translator(**BEAM, **hot)
    full = system.hparams
    try:
        system.searcher.hparams = full.replace(random_seed=6)
        assert texts(system.translate(LINES[:1])) != texts(first)
    finally:
        system.searcher.hparams = full
    cold = run(LINES, infer_mode="sample", sampling_temperature=1e-4, **limited)
    greedy = run(LINES, infer_mode="greedy", num_translations_per_input=1, **limited)
    assert texts(cold) == [n_best * 3 for n_best in texts(greedy)]


def test_samples_stand_from_best_to_worst_with_what_is_theirs(untraced):
    settings = {"infer_mode": "sample", "sampling_temperature": 3.0, "tgt_max_len_infer": 8}
    system = translator(**BEAM, **settings)
    [samples] = system.translate(LINES[:1], with_attention=True)
    assert samples[0].score > samples[1].score > samples[2].score
    forced = system.force_translations(samples, record=("alignments",))
    np.testing.assert_allclose([f.log_prob for f in forced], scores([samples])[0], rtol=1e-4)
    for sample, alone in zip(samples, forced):
        np.testing.assert_allclose(sample.attention, alone.diagnostics["alignments"], atol=1e-4)
