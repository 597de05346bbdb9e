"""Additive attention against its equation, with keys of the sentence and of the hypothesis."""

import numpy as np
import pytest
import tensorflow as tf

from tfmann.config import HParams
from tfmann.layers.attention import AdditiveAttention
from tfmann.layers.initializers import VariableFactory

UNITS, WIDTH, DEPTH = 3, 4, 5
MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0]], np.float32)  # two sentences


@pytest.fixture(name="layer")
def fixture_layer():
    weights = VariableFactory(HParams(init_weight=0.8), "test")
    return AdditiveAttention(UNITS, WIDTH, DEPTH, weights)


def draw(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def expected(layer, query, annotations, mask):
    """One query `[U]` and the annotations `[S, D]` of its sentence."""
    scores = [
        layer.score_vector.numpy()
        @ np.tanh(query @ layer.query_kernel.numpy() + h @ layer.memory_kernel.numpy())
        for h in annotations
    ]
    exponentials = np.exp(scores) * mask
    return exponentials / exponentials.sum()


def test_hypotheses_share_the_keys_of_their_sentence(layer):
    query, annotations = draw(6, UNITS), draw(2, 4, WIDTH)
    weights = layer(tf.constant(query), layer.keys(tf.constant(annotations)), MASK[:, None])
    assert weights.shape == (2, 3, 4)
    for row in range(6):
        reference = expected(layer, query[row], annotations[row // 3], MASK[row // 3])
        np.testing.assert_allclose(weights[row // 3, row % 3], reference, atol=1e-6)


def test_a_hypothesis_has_keys_of_its_own(layer):
    query, annotations = draw(6, UNITS), draw(6, 4, WIDTH)
    keys = layer.keys(tf.constant(annotations))
    weights = layer.per_hypothesis(tf.constant(query), keys, tf.constant(MASK[:, None]))
    assert weights.shape == (2, 3, 4)
    for row in range(6):
        reference = expected(layer, query[row], annotations[row], MASK[row // 3])
        np.testing.assert_allclose(weights[row // 3, row % 3], reference, atol=1e-6)


def test_every_weight_gets_a_gradient(layer):
    query, annotations = tf.constant(draw(2, UNITS)), tf.constant(draw(2, 4, WIDTH))
    with tf.GradientTape() as tape:
        weights = layer(query, layer.keys(annotations), MASK[:, None])
        loss = tf.reduce_sum(weights[0, 0] * tf.constant([1.0, 2.0, 4.0, 8.0]))
    for gradient in tape.gradient(loss, layer.trainable_variables):
        assert np.all(gradient.numpy() != 0)
