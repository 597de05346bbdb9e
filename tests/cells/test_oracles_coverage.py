"""The oracle of the coverage by hand; the cell against RNNSearch; parameters, padding, figures."""

import math

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cell_runs import decode
from helpers.oracle_weights import random_unit, zero_unit
from helpers.translations import PAIRS, translator
from oracles import coverage, rnnsearch

from tfmann import config
from tfmann.api import Model
from tfmann.errors import UsageError
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import named_variables
from tfmann.visualization import sentence_figures

MODELS = ("linguistic", "fertility", "neural")


def random_weights(rng, model, size=1):
    """E = 2, U = 3, D = 4, A = 5, O = 6."""
    weights = {
        "query_gru": random_unit(rng, 2, 3, 3),
        "state_gru": random_unit(rng, 4, 3, 3),
        "query_kernel": rng.normal(size=(3, 5)),
        "memory_kernel": rng.normal(size=(4, 5)),
        "score_vector": rng.normal(size=5),
        "readout_kernel": rng.normal(size=(9, 6)),
        "initial_kernel": rng.normal(size=(4, 3)),
        "initial_bias": rng.normal(size=3),
        "coverage_kernel": rng.normal(size=(size, 5)),
    }
    if model == "fertility":
        weights["fertility_vector"] = rng.normal(size=4)
    if model == "neural":
        weights["coverage_recurrent_kernel"] = rng.normal(size=(size, 3 * size))
        weights["coverage_alignment_vector"] = rng.normal(size=3 * size)
        weights["coverage_memory_kernel"] = rng.normal(size=(4, 3 * size))
        weights["coverage_state_kernel"] = rng.normal(size=(3, 3 * size))
    return weights


def scalar_weights(penalty):
    """Everything one number wide; the energy of a position is `tanh(h + penalty C)` times 1000."""
    gru = zero_unit(1, 1, 3)
    return {
        "query_gru": gru, "state_gru": gru, "query_kernel": np.zeros((1, 1)),
        "memory_kernel": np.ones((1, 1)), "score_vector": np.array([1e3]),
        "readout_kernel": np.zeros((3, 1)), "initial_kernel": np.zeros((1, 1)),
        "initial_bias": np.zeros(1), "coverage_kernel": np.array([[penalty]]),
    }  # fmt: skip


# --- the oracle --------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_a_coverage_that_is_not_read_leaves_rnnsearch(model):
    rng = np.random.default_rng(1)
    weights = random_weights(rng, model, 2 if model == "neural" else 1)
    arguments = rng.normal(size=(3, 4)), rng.normal(size=(5, 2))
    plain = rnnsearch.decode(weights, *arguments)
    read = coverage.decode(weights, model, *arguments)
    assert np.abs(read["alignments"][1:] - plain["alignments"][1:]).max() > 1e-3
    np.testing.assert_allclose(read["alignments"][0], plain["alignments"][0])  # C_0 = 0
    weights["coverage_kernel"] = np.zeros_like(weights["coverage_kernel"])
    blind = coverage.decode(weights, model, *arguments)
    for name, value in plain.items():
        np.testing.assert_allclose(blind[name], value)


def test_what_is_covered_is_left_by_an_attention_that_minds():
    # From the greatest annotation down, each once: tanh(h - 2) is below every tanh(h) here.
    annotations, words = [[0.1], [0.9], [0.5]], np.zeros((3, 1))
    result = coverage.decode(scalar_weights(-2.0), "linguistic", annotations, words)
    np.testing.assert_allclose(result["alignments"], np.eye(3)[[1, 2, 0]], atol=1e-12)
    np.testing.assert_allclose(
        result["coverage"], np.cumsum(np.eye(3)[[1, 2, 0]], axis=0), atol=1e-12
    )
    blind = coverage.decode(scalar_weights(0.0), "linguistic", annotations, words)
    np.testing.assert_allclose(blind["alignments"], np.eye(3)[[1, 1, 1]], atol=1e-12)


def test_a_fertile_word_is_covered_by_more_attention():
    # sigmoid(+-log 3) is 3/4 and 1/4: of N = 2, 1.5 words and 0.5.
    weights = {**scalar_weights(0.0), "fertility_vector": np.array([math.log(3.0)])}
    result = coverage.decode(weights, "fertility", [[1.0], [-1.0]], np.zeros((2, 1)))
    np.testing.assert_allclose(result["fertility"], [[1.5, 0.5]] * 2)
    np.testing.assert_allclose(result["coverage"][:, 0], [1 / 1.5, 2 / 1.5])
    phi = coverage.fertility({"fertility_vector": np.array([1e3])}, np.array([[1.0], [-1.0]]), 3.0)
    np.testing.assert_allclose(phi, [3.0, coverage.LEAST_FERTILITY])


def test_the_update_gate_of_the_neural_model_opens_to_what_is_new():
    shut, wide = -1e3, 1e3
    for gate, expected in ((shut, 0.25), (wide, math.tanh(0.5))):
        weights = {
            "coverage_recurrent_kernel": np.zeros((1, 3)),
            "coverage_alignment_vector": np.array([gate, 0.0, 0.5]),
            "coverage_memory_kernel": np.zeros((1, 3)),
            "coverage_state_kernel": np.zeros((1, 3)),
        }
        actual = coverage.neural_step(weights, np.array([0.25]), 1.0, np.zeros(1), np.zeros(1))
        np.testing.assert_allclose(actual, [expected])


def test_the_reset_gate_comes_after_the_recurrent_product():
    # z is open, r = sigmoid(log 3) = 3/4, U C = 0.4 * 0.5: tanh(0.75 * 0.2)
    weights = {
        "coverage_recurrent_kernel": np.array([[0.0, 0.0, 0.4]]),
        "coverage_alignment_vector": np.array([1e3, math.log(3.0), 0.0]),
        "coverage_memory_kernel": np.zeros((1, 3)),
        "coverage_state_kernel": np.zeros((1, 3)),
    }
    actual = coverage.neural_step(weights, np.array([0.5]), 1.0, np.zeros(1), np.zeros(1))
    np.testing.assert_allclose(actual, [math.tanh(0.15)])


# --- parameters --------------------------------------------------------------------------------

PAPER = [  # model, d, numbers that it adds to RNNSearch: Tu et al. 2016, Table 1, rounded there
    ("linguistic", 1, 1_000), ("fertility", 1, 3_000), ("neural", 1, 10_006),
    ("neural", 10, 100_330),
]  # fmt: skip


@pytest.mark.parametrize("model,size,count", PAPER)
def test_the_counts_are_the_paper_s(model, size, count):
    assert coverage.parameters(model, size, units=1000, annotation=2000, attention=1000) == count


@pytest.mark.parametrize("model,size,count", PAPER)
def test_the_cell_has_the_oracle_s_count(model, size, count):
    sizes = {"num_units": 8, "embedding_size": 6, "encoder_type": "bi", "unit_type": "gru",
             "attention_size": 7}  # fmt: skip
    more = {"coverage_model": model, "coverage_size": size}
    with_coverage, without = (
        Seq2Seq(config.HParams(cell=cell, **sizes, **extra), 4, 4).count_parameters()
        for cell, extra in (("coverage", more), ("rnnsearch", {}))
    )
    assert with_coverage - without == coverage.parameters(model, size, 8, 16, 7)


# --- the cell ----------------------------------------------------------------------------------


def small_model(model, **changes):
    variant = "coverage" if model == "fertility" else f"coverage-{model}"
    return small_models.model(variant, annotation_merge="sum", attention_size=0, **changes)


@pytest.mark.quick("neural")
@pytest.mark.parametrize("model", MODELS)
def test_it_starts_as_the_rnnsearch_that_it_starts_from(model):
    baseline = small_models.model("rnnsearch-sum")
    arrays = {v.name.split(":")[0]: v.numpy() for v in baseline.trainable_variables}
    batch = small_models.batch([(5, 4), (1, 6), (3, 1)])
    of_baseline = decode(baseline, batch, ("alignments",), True)
    distances = []
    for deviation in (config.FIELDS["coverage_init_weight"].default, 0.9):
        built = small_model(model, coverage_init_weight=deviation)
        matched, fresh = named_variables.assign_matching(built.trainable_variables, arrays, "there")
        assert len(matched) == len(arrays)
        assert all("coverage" in name or "fertility" in name for name in fresh)
        decoded = decode(built, batch, ("alignments",), True)
        distances.append(np.abs(decoded[3] - of_baseline[3]).max())
    assert distances[0] < 0.02 < distances[1]


@pytest.mark.quick("fertility")
@pytest.mark.parametrize("model", MODELS)
def test_padding_changes_nothing(model):
    built = small_model(model)
    batch = small_models.batch([(2, 6), (7, 6)])
    together = decode(built, batch, ("alignments", "coverage"), True)
    single = small_models.batch([(2, 6)])._replace(
        source=batch.source[:1, :3], source_length=batch.source_length[:1],
        target_in=batch.target_in[:1], target_length=batch.target_length[:1],
    )  # fmt: skip
    unpadded = decode(built, single, ("alignments", "coverage"), True)
    np.testing.assert_allclose(together[3][:, 0], unpadded[3][:, 0], atol=1e-5)
    for name in ("alignments", "coverage"):
        np.testing.assert_allclose(together[4][name][:, 0, :3], unpadded[4][name][:, 0], atol=1e-5)
        assert np.all(together[4][name][:, 0, 3:] == 0)


def test_fertility_stays_above_its_floor_with_a_finite_gradient():
    built = small_model("fertility")
    vector = built.cell.coverage.fertility_vector
    vector.assign(1e6 * np.ones_like(vector))
    batch = small_models.batch([(5, 4), (6, 3)])
    with tf.GradientTape() as tape:
        *_, readout, diagnostics = decode(built, batch, ("fertility",), False)
        loss = tf.reduce_sum(readout)
    real = diagnostics["fertility"].numpy()[0, 1]
    assert np.isclose(real, 0.05).any() and np.isclose(real, 2.0).any()
    assert np.all(np.isfinite(tape.gradient(loss, vector)))


@pytest.mark.parametrize("model", MODELS)
def test_the_figure_shows_coverage_and_attention(untraced, model):
    variant = "coverage" if model == "fertility" else f"coverage-{model}"
    trace = Model(translator(variant), "nowhere").trace(PAIRS[0])
    assert trace["coverage"].shape == trace["alignments"].shape
    if model == "linguistic":
        np.testing.assert_allclose(trace["coverage"], trace["alignments"].cumsum(axis=0), atol=1e-5)
    figures = dict(sentence_figures.sentence_figures(trace, "title"))
    assert {"attention", "coverage"} <= set(figures)
    attention, covered, *_ = figures["coverage"].axes
    np.testing.assert_array_equal(attention.images[0].get_array(), trace["alignments"])
    np.testing.assert_array_equal(covered.images[0].get_array(), trace["coverage"])
    assert attention.get_title(loc="left") == "title\nattention"


@pytest.mark.parametrize(
    "changes,match",
    [
        ({"coverage_model": "gru"}, "coverage_model: 'gru' is not one of 'linguistic'"),
        ({"coverage_size": 0}, "coverage_size: 0 is below the least value 1"),
        ({"max_fertility": 0.0}, "max_fertility: 0.0 is below"),
        ({"coverage_init_weight": -1.0}, "coverage_init_weight: -1.0 is below"),
    ],
)
def test_bad_settings_are_named(changes, match):
    with pytest.raises(UsageError, match=match):
        config.HParams(cell="coverage", **changes)
