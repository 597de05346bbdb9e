"""Scores by a product against their oracle: values, gradients, edges, and where a gain starts."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from oracles import scores as oracle

from tfmann.errors import UsageError
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.luong_attention import DotProductScore
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import named_variables

WIDTH = 5


def make(kind, gain=False):
    return DotProductScore(kind, WIDTH, VariableFactory(small_models.hparams(), "cell"), gain)


def draw_inputs(scale=1.0, seed=0):
    stream = np.random.default_rng(seed)
    query, keys = stream.normal(size=(2, 3, WIDTH)), stream.normal(size=(2, 4, WIDTH))
    return (scale * query).astype(np.float32), (scale * keys).astype(np.float32)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    "kind,gain", [("dot", False), ("dot", True), ("scaled_dot", False), ("cosine", False)]
)
def test_scores_equal_the_oracle(kind, gain, scale):
    score, (query, keys) = make(kind, gain), draw_inputs(scale)
    if score.gain is not None:
        score.gain.assign(1.7)
    actual = score.scores(tf.constant(query), score.prepare(tf.constant(keys)))
    factor = 1.0 if score.gain is None else 1.7
    expected = [[oracle.dot(q, keys[b], kind, factor) for q in query[b]] for b in range(2)]
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5 * min(1.0, scale**2))


@pytest.mark.parametrize("kind,start", [("scaled_dot", 1.0), ("cosine", 5.0)])
def test_a_gain_starts_where_the_documentation_says(kind, start):
    assert float(make(kind).gain) == start
    assert make("dot").gain is None and float(make("dot", gain=True).gain) == 1.0


@pytest.mark.parametrize(
    "settings",
    [
        {"cell": "luong"},
        {"cell": "luong", "attention_score": "scaled_dot", "attention": "luong"},
        {"cell": "ntm_attention", "attention_score": "cosine"},
        {"cell": "key_value", "attention_score": "cosine"},
        {"cell": "mad"},
    ],
)
def test_a_gain_starts_where_the_settings_say(settings):
    model = Seq2Seq(small_models.hparams(attention_gain_start=20.0, **settings), 9, 9)
    assert float(model.cell.attention.score.gain) == 20.0


@pytest.mark.parametrize(
    "settings",
    [
        {"cell": "luong", "attention": "luong"},
        {"cell": "luong", "attention": "normed_bahdanau"},
        {"cell": "ntm_attention"},
        {"cell": "key_value"},
    ],
)
def test_a_gain_that_is_not_there_does_not_start(settings):
    with pytest.raises(UsageError, match="attention_gain_start=20.0: the scores have no gain"):
        small_models.hparams(attention_gain_start=20.0, **settings)


def test_cosines_are_bounded_however_wide_query_and_keys_become():
    score, (query, keys) = make("cosine"), draw_inputs(1e4)
    cosines = score.scores(tf.constant(query), score.prepare(tf.constant(keys)))
    assert np.abs(cosines).max() <= 5.0 + 1e-4


def test_a_zero_key_has_score_zero_and_a_finite_gradient():
    """Padding has zero keys, and the first state of a cell may be a zero query."""
    score = make("cosine")
    query, keys = tf.zeros([1, 1, WIDTH]), tf.zeros([1, 2, WIDTH])
    with tf.GradientTape() as tape:
        tape.watch((query, keys))
        cosines = score.scores(query, score.prepare(keys))
        total = tf.reduce_sum(cosines)
    assert np.all(cosines.numpy() == 0)
    assert all(np.all(np.isfinite(g)) for g in tape.gradient(total, (query, keys)))


@pytest.mark.parametrize("attention", ["luong", "scaled_luong"])
def test_a_checkpoint_from_before_the_choice_still_fits(attention):
    """The weights of `dot` are those there were: `attention_scale` only of scaled_luong."""
    names = named_variables.by_name(
        small_models.model("luong", attention=attention).trainable_variables
    )
    scales = [name for name in names if "scale" in name]
    assert scales == (["model/cell/attention_scale"] if attention == "scaled_luong" else [])


@pytest.mark.parametrize("attention", ["bahdanau", "normed_bahdanau"])
def test_additive_attention_has_no_dot_product_to_scale(attention):
    with pytest.raises(UsageError, match="attention_score"):
        small_models.hparams("luong", attention=attention, attention_score="cosine")


def test_normed_bahdanau_starts_as_tensorflow_nmt_has_it():
    cell = Seq2Seq(
        small_models.hparams("luong-normed"), small_models.SOURCE_SIZE, small_models.TARGET_SIZE
    ).cell
    units = cell.hparams.num_units
    np.testing.assert_allclose(cell.attention.gain, np.sqrt(1.0 / units), rtol=1e-6)
    np.testing.assert_array_equal(cell.attention.bias, np.zeros(units))
