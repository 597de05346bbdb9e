"""Models that translate together: their searches by the oracle, their words by the mean."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.searches import (
    LENGTHS,
    LIMIT,
    WITH_ALIGNMENTS,
    Stepper,
    as_arrays,
    check,
    large_model,
    prepare,
    run_beam,
)
from helpers.translations import BEAM, LINES, PAIRS, languages, scores, texts, translator
from oracles import beam as oracle

from tfmann.cells.diagnostics import EVERYTHING
from tfmann.decoding import search
from tfmann.decoding.ensemble import Ensemble
from tfmann.decoding.ensemble_translator import EnsembleTranslator
from tfmann.decoding.sampling import SamplingOptions
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UsageError

PENALTIES = [(0.0, 0.0), (0.8, 0.0), (0.8, 0.3)]  # (alpha, beta)
MIXTURES = [("kvmematt-3", "ntm-heads"), ("rnnsearch", "key-value", "luong-gru")]
PURE_MANN = {
    "variant": "luong-gru", "unit_type": "lstm", "cell": "ntm", "encoder_type": "memory",
    "bridge": "zero", "num_layers": 1, "num_memory_locations": 5, "memory_unit_size": 4,
}  # fmt: skip


class MixedStepper:
    """The steps of several models, whose probabilities and alignments are averaged in NumPy."""

    def __init__(self, members, batch, row):
        self._steppers = [Stepper(model, batch, row) for model in members]

    def __call__(self, token, prefix):
        results = [stepper(token, prefix) for stepper in self._steppers]
        probabilities = np.mean([np.exp(log_probs) for log_probs, _, _ in results], axis=0)
        alignments = np.mean([alignment for _, _, alignment in results], axis=0)
        return np.log(probabilities), (*prefix, token), alignments


def ensemble_translator(*members, **settings):
    """A translator by the models of other translators, with the settings of the first."""
    hparams = members[0].hparams.replace(**settings)
    return make_translator(Ensemble([m.model for m in members]), languages(), hparams, None)


@pytest.fixture(scope="module")
def mixture():
    """An ensemble of two cells, and its members."""
    members = translator("ntm", **BEAM), translator("rnnsearch", **BEAM)
    return ensemble_translator(*members), members


@pytest.mark.quick("variants1")
@pytest.mark.parametrize("variants", MIXTURES)
def test_searches_of_an_ensemble_equal_the_oracle(variants):
    members = [large_model(variant, seed) for seed, variant in enumerate(variants, start=3)]
    model, batch = Ensemble(members), small_models.batch(LENGTHS, 4)
    steppers = [MixedStepper(members, batch, row) for row in range(len(LENGTHS))]
    greedy = as_arrays(search.greedy(model, prepare(model, batch), WITH_ALIGNMENTS))
    for row, stepper in enumerate(steppers):
        check(greedy, row, [oracle.greedy(stepper, (), LIMIT)], 1, batch.source_length[row])
    for alpha, beta in PENALTIES:
        hypotheses = run_beam(model, batch, 3, alpha, beta, best=3)
        for row, stepper in enumerate(steppers):
            expected = oracle.beam_search(stepper, (), 3, LIMIT, alpha, beta)
            check(hypotheses, row, expected, 3, batch.source_length[row])


def test_an_ensemble_finds_what_none_of_its_models_finds_alone(mixture):
    together, members = mixture
    of_ensemble = texts(together.translate(LINES))
    assert all(of_ensemble != texts(member.translate(LINES)) for member in members)


@pytest.mark.quick("beam_search")
@pytest.mark.parametrize("mode", ["beam_search", "greedy", "sample"])
def test_a_model_with_itself_translates_and_scores_as_alone(mode, untraced):
    count = 1 if mode == "greedy" else 3
    settings = {"infer_mode": mode, "num_translations_per_input": count, "tgt_max_len_infer": 6}
    single = translator("ntm", beam_width=3, **settings)
    doubled = ensemble_translator(single, single)
    expected, actual = list(single.translate(LINES, True)), list(doubled.translate(LINES, True))
    assert texts(actual) == texts(expected)
    for actual_scores, expected_scores in zip(scores(actual), scores(expected)):
        np.testing.assert_allclose(actual_scores, expected_scores, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(actual[0][0].attention, expected[0][0].attention, atol=1e-5)
    for result, expected_pair in zip(doubled.force(PAIRS), single.force(PAIRS)):
        np.testing.assert_allclose(
            result.word_log_probs, expected_pair.word_log_probs, rtol=1e-4, atol=1e-5
        )


def test_samples_are_drawn_from_the_mean():
    members = [large_model("luong", 1), large_model("rnnsearch", 2)]
    model, batch = Ensemble(members), small_models.batch([(4, 1)] * 4000, 3)
    batch.source[:], batch.source_length[:] = batch.source[0], batch.source_length[0]
    sampled = search.sample(
        model, prepare(model, batch), SamplingOptions(1.0, 0, 1.0), tf.constant([7, 8]),
        search.SearchOptions(2),
    )  # fmt: skip
    counts = np.bincount(sampled.ids[:, 0, 0].numpy(), minlength=small_models.TARGET_SIZE) / 4000
    expected = np.exp(MixedStepper(members, batch, 0)(1, ())[0])
    expected[1] = 0.0  # <s> is never chosen
    np.testing.assert_allclose(counts, expected / expected.sum(), atol=0.03)
    assert expected.max() < 0.9, "one word is certain: it tests no mean"


def test_a_given_words_probability_is_the_mean(mixture):
    together, members = mixture
    forced = together.force(PAIRS, ("alignments",))
    by_member = [member.force(PAIRS, ("alignments",)) for member in members]
    for result, *parts in zip(forced, *by_member):
        probabilities = np.mean([np.exp(part.word_log_probs) for part in parts], axis=0)
        np.testing.assert_allclose(np.exp(result.word_log_probs), probabilities, rtol=1e-4)
        assert result.log_prob == pytest.approx(np.log(probabilities).sum(), rel=1e-4)
        alignments = np.mean([part.diagnostics["alignments"] for part in parts], axis=0)
        np.testing.assert_allclose(result.diagnostics["alignments"], alignments, atol=1e-5)


def test_forced_score_of_an_ensemble_is_the_score_of_its_search(mixture):
    together, _ = mixture
    for n_best in together.translate(LINES[:4]):
        best = [
            hypothesis
            for hypothesis in n_best
            if hypothesis.tokens and not {"<unk>", "<s>"} & set(hypothesis.tokens)
        ]
        forced = together.force_translations(best)
        np.testing.assert_allclose(
            [result.log_prob for result in forced],
            [hypothesis.score for hypothesis in best],
            rtol=1e-4,
        )


def test_alignments_are_those_of_the_models_that_have_them(untraced):
    mann = translator(**PURE_MANN, **BEAM, tgt_max_len_infer=4)
    attentive = translator("ntm", **BEAM)
    together = ensemble_translator(mann, attentive)
    forced = together.force(PAIRS, ("alignments",))
    for result, expected in zip(forced, attentive.force(PAIRS, ("alignments",))):
        np.testing.assert_allclose(
            result.diagnostics["alignments"], expected.diagnostics["alignments"], atol=1e-5
        )
    (n_best,) = together.translate(LINES[:1], with_attention=True)
    assert n_best[0].attention.shape == (len(n_best[0].tokens), len(n_best[0].source_tokens))


@pytest.mark.parametrize("size", [1, 2])
def test_no_translation_of_an_ensemble_depends_on_its_batch(mixture, size):
    together, members = mixture
    small_batches = ensemble_translator(*members, infer_batch_size=size)
    actual, expected = list(small_batches.translate(LINES)), list(together.translate(LINES))
    assert texts(actual) == texts(expected)
    for actual_scores, expected_scores in zip(scores(actual), scores(expected)):
        np.testing.assert_allclose(actual_scores, expected_scores, rtol=1e-4, atol=1e-4)


def test_an_ensemble_shows_no_cell_at_work(mixture):
    assert isinstance(mixture[0], EnsembleTranslator)
    with pytest.raises(UsageError, match="one by one"):
        mixture[0].force(PAIRS, EVERYTHING)
