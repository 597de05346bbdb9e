"""Given translations: their probabilities, what the cell looked at, their alignments."""

import math

import numpy as np
import pytest
from helpers import small_models
from helpers.translations import BEAM, LINES, PAIRS, TARGET_WORDS, run, translator

from tfmann.api import Model, links
from tfmann.cells.diagnostics import EVERYTHING
from tfmann.errors import UserError


def test_forced_score_is_the_score_of_the_search():
    results = run(LINES)
    pairs, expected = [], []
    for line, n_best in zip(LINES, results):
        for hypothesis in n_best:
            if line.strip() and not {"<unk>", "<s>"} & set(hypothesis.tokens):
                pairs.append((line, hypothesis.text))
                expected.append(hypothesis.score)
    assert len(pairs) >= 5
    actual = Model(translator(**BEAM), "nowhere").score(pairs)
    np.testing.assert_allclose([f.log_prob for f in actual], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 32])
def test_forced_log_probability_is_the_sum_of_its_words(size):
    system = translator(**BEAM)
    system.hparams = system.hparams.replace(infer_batch_size=size)
    forced = system.force(PAIRS)
    for (source, target), result in zip(PAIRS, forced):
        assert len(result.tokens) == len(target.split()) + 1 == len(result.word_log_probs)
        assert len(result.source_tokens) == len(source.split()) + 1
        assert result.log_prob == pytest.approx(result.word_log_probs.sum(), rel=1e-5)
        assert np.all(result.word_log_probs < 0)
        (single,) = system.force([(source, target)])
        np.testing.assert_allclose(result.word_log_probs, single.word_log_probs, rtol=1e-4)
    assert system.force([]) == []


def test_probabilities_of_all_one_word_translations_and_the_rest_sum_to_one():
    system = translator(**BEAM)
    pairs = [("a3 a9", word) for word in TARGET_WORDS]
    first = [f.word_log_probs[0] for f in system.force(pairs)]
    (empty,) = system.force([("a3 a9", "")])
    total = sum(map(math.exp, first)) + math.exp(empty.log_prob)
    (unknown,) = system.force([("a3 a9", "<unk>")])
    assert total + math.exp(unknown.word_log_probs[0]) <= 1.0 + 1e-5  # <s> has the rest


@pytest.mark.quick("luong", "ntm-heads", "memdec", "transformer-rewriting")
@pytest.mark.parametrize("variant", list(small_models.VARIANTS))
def test_trace_shows_distributions_for_every_step(untraced, variant):
    model = Model(translator(variant), "nowhere")
    h = model.hparams
    for source, target in (PAIRS[2], PAIRS[5]):
        trace = model.trace((source, target))
        source_tokens, tokens = model.tokens((source, target))
        steps, width = len(tokens), len(source_tokens)
        assert tokens[-1] == source_tokens[-1] == "</s>"
        assert trace["alignments"].shape == (steps, width)
        distributions = ["alignments"]
        if h.cell == "ntm_attention":
            heads, taps = h.num_attention_heads, 2 * h.shift_range + 1
            for name in ("read_weights", "content_weights"):
                assert trace[name].shape == (steps, heads, width)
            assert trace["shift_kernel"].shape == (steps, heads, taps)
            assert trace["interpolation_gate"].shape == (steps, heads, 1)
            assert np.all((trace["interpolation_gate"] > 0) & (trace["interpolation_gate"] < 1))
            assert trace["sharpening"].shape == (steps, heads, 1)
            assert np.all(trace["sharpening"] > 1)
            distributions += ["read_weights", "content_weights", "shift_kernel"]
        for name in distributions:
            assert np.all(trace[name] >= 0)
            np.testing.assert_allclose(trace[name].sum(axis=-1), 1.0, atol=1e-5)


def test_diagnostics_do_not_depend_on_the_rest_of_the_batch(untraced):
    system = translator()
    pairs = [("a3", "b3 b4"), ("a5 a6", "b3 b4"), ("a5 a6 a7 a8", "b7")]  # 3 taps, 3 positions
    for pair, result in zip(pairs, system.force(pairs, EVERYTHING)):
        (single,) = system.force([pair], EVERYTHING)
        assert set(result.diagnostics) == set(single.diagnostics)
        for name, value in single.diagnostics.items():
            np.testing.assert_allclose(result.diagnostics[name], value, atol=1e-5, err_msg=name)
    with pytest.raises(UserError, match="alignments"):
        system.force(pairs, ("no_such_thing",))


def test_links_leave_out_the_end_on_both_sides():
    attention = np.array([[0.1, 0.7, 0.2], [0.3, 0.1, 0.6], [0.9, 0.1, 0.0]])
    assert links(attention, ["x", "y", "</s>"], ["p", "q", "</s>"]) == [(1, 0), (0, 1)]
    assert links(attention, ["x", "y", "z"], ["p", "q", "</s>"]) == [(1, 0), (2, 1)]
    assert links(attention, ["x", "y", "z"], ["p", "q", "r"]) == [(1, 0), (2, 1), (0, 2)]
    assert links(attention[:, :1], ["</s>"], ["p", "q", "</s>"]) == []
    assert links(attention[:1], ["x", "y", "</s>"], ["</s>"]) == []


def test_align_links_every_target_word_once(untraced):
    model = Model(translator(**BEAM), "nowhere")
    for (source, target), word_links in zip(PAIRS, model.align(PAIRS)):
        words = target.split() if source else []
        assert [j for _, j in word_links] == list(range(len(words)))
        assert all(0 <= i < len(source.split()) for i, _ in word_links)
        attention = model.trace((source, target))["alignments"]
        for i, j in word_links:
            assert attention[j, i] == attention[j, :-1].max()
