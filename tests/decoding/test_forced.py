"""Given translations: their probabilities, what the cell looked at, their alignments."""

import math

import numpy as np
import pytest
from helpers import small
from helpers.translations import BEAM, LINES, PAIRS, TARGET_WORDS, run, translator

from tfmann.api import Model, links
from tfmann.cells.diagnostics import EVERYTHING
from tfmann.errors import UserError


def test_forced_score_is_the_score_of_the_search():
    results = run(LINES)
    pairs, expected = [], []
    for line, n_best in zip(LINES, results):
        for one in n_best:
            if line.strip() and not {"<unk>", "<s>"} & set(one.tokens):
                pairs.append((line, one.text))
                expected.append(one.score)
    assert len(pairs) >= 5
    actual = Model(translator(**BEAM), "nowhere").score(pairs)
    np.testing.assert_allclose([f.log_prob for f in actual], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 2, 32])
def test_forced_log_probability_is_the_sum_of_its_words(size):
    one = translator(**BEAM)
    one.hparams = one.hparams.replace(infer_batch_size=size)
    forced = one.force(PAIRS)
    for (source, target), result in zip(PAIRS, forced):
        assert len(result.tokens) == len(target.split()) + 1 == len(result.word_log_probs)
        assert len(result.source_tokens) == len(source.split()) + 1
        assert result.log_prob == pytest.approx(result.word_log_probs.sum(), rel=1e-5)
        assert np.all(result.word_log_probs < 0)
        (alone,) = one.force([(source, target)])
        np.testing.assert_allclose(result.word_log_probs, alone.word_log_probs, rtol=1e-4)
    assert one.force([]) == []


def test_probabilities_of_all_one_word_translations_and_the_rest_sum_to_one():
    one = translator(**BEAM)
    pairs = [("a3 a9", word) for word in TARGET_WORDS]
    first = [f.word_log_probs[0] for f in one.force(pairs)]
    (empty,) = one.force([("a3 a9", "")])
    known = sum(map(math.exp, first)) + math.exp(empty.log_prob)
    (unknown,) = one.force([("a3 a9", "<unk>")])
    assert known + math.exp(unknown.word_log_probs[0]) <= 1.0 + 1e-5  # <s> has the rest


@pytest.mark.parametrize("variant", list(small.VARIANTS))
def test_trace_shows_distributions_for_every_step(untraced, variant):
    model = Model(translator(variant), "nowhere")
    h = model.hparams
    for source, target in (PAIRS[0], PAIRS[2], PAIRS[5]):
        seen = model.trace((source, target))
        source_tokens, tokens = model.tokens((source, target))
        steps, width = len(tokens), len(source_tokens)
        assert tokens[-1] == source_tokens[-1] == "</s>"
        assert seen["alignments"].shape == (steps, width)
        distributions = ["alignments"]
        if h.cell == "ntm_attention":
            heads, taps = h.num_attention_heads, 2 * h.shift_range + 1
            for name in ("read_weights", "content_weights"):
                assert seen[name].shape == (steps, heads, width)
            assert seen["shift_kernel"].shape == (steps, heads, taps)
            assert seen["interpolation_gate"].shape == (steps, heads, 1)
            assert np.all((seen["interpolation_gate"] > 0) & (seen["interpolation_gate"] < 1))
            assert seen["sharpening"].shape == (steps, heads, 1)
            assert np.all(seen["sharpening"] > 1)
            distributions += ["read_weights", "content_weights", "shift_kernel"]
        for name in distributions:
            assert np.all(seen[name] >= 0)
            np.testing.assert_allclose(seen[name].sum(axis=-1), 1.0, atol=1e-5)


def test_what_a_cell_shows_does_not_depend_on_the_pairs_beside_it(untraced):
    one = translator()
    pairs = [("a3", "b3 b4"), ("a5 a6", "b3 b4"), ("a5 a6 a7 a8", "b7")]  # 3 taps, 3 positions
    for pair, result in zip(pairs, one.force(pairs, EVERYTHING)):
        (alone,) = one.force([pair], EVERYTHING)
        assert set(result.diagnostics) == set(alone.diagnostics)
        for name, value in alone.diagnostics.items():
            np.testing.assert_allclose(result.diagnostics[name], value, atol=1e-5, err_msg=name)
    with pytest.raises(UserError, match="alignments"):
        one.force(pairs, ("no_such_thing",))


def test_links_leave_out_the_end_on_both_sides():
    attention = np.array([[0.1, 0.7, 0.2], [0.3, 0.1, 0.6], [0.9, 0.1, 0.0]])
    assert links(attention, ["x", "y", "</s>"], ["p", "q", "</s>"]) == [(1, 0), (0, 1)]
    assert links(attention, ["x", "y", "z"], ["p", "q", "</s>"]) == [(1, 0), (2, 1)]
    assert links(attention, ["x", "y", "z"], ["p", "q", "r"]) == [(1, 0), (2, 1), (0, 2)]
    assert links(attention[:, :1], ["</s>"], ["p", "q", "</s>"]) == []
    assert links(attention[:1], ["x", "y", "</s>"], ["</s>"]) == []


def test_align_links_every_target_word_once(untraced):
    model = Model(translator(**BEAM), "nowhere")
    for (source, target), found in zip(PAIRS, model.align(PAIRS)):
        words = target.split() if source else []
        assert [j for _, j in found] == list(range(len(words)))
        assert all(0 <= i < len(source.split()) for i, _ in found)
        attention = model.trace((source, target))["alignments"]
        for i, j in found:
            assert attention[j, i] == attention[j, :-1].max()
