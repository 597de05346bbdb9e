"""Gradients of the two cross-sentence baselines, and their precision."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cross_sentence_models import (
    LENGTHS,
    NEW_WEIGHTS,
    SYSTEMS,
    decode,
    histories,
    model,
    variables_by_name,
)


def loss_of(built, batch, document):
    """A random linear function of all readouts."""
    _, readout, *_ = decode(built, batch, document)
    real = np.arange(batch.target_length.max())[:, None] < batch.target_length
    shape = [*real.shape, readout.shape[-1]]
    direction = np.random.default_rng(4).normal(size=shape) * real[..., None]
    return tf.reduce_sum(readout * tf.constant(direction, tf.float32))


def gradients(built, batch, document):
    with tf.GradientTape() as tape:
        loss = loss_of(built, batch, document)
    values = tape.gradient(loss, list(variables_by_name(built).values()))
    return dict(zip(variables_by_name(built), values))


@pytest.mark.parametrize("system", SYSTEMS)
def test_gradients_equal_finite_differences(system):
    built, batch, history = model(system, init_weight=0.5), small_models.batch(LENGTHS), histories()
    slopes = gradients(built, batch, history)
    loss = tf.function(lambda: loss_of(built, batch, history), autograph=False)
    stream = np.random.default_rng(1)
    for name, variable in variables_by_name(built).items():
        if "projection" in name:
            continue
        analytic = tf.convert_to_tensor(slopes[name]).numpy()
        if "embedding" not in name:
            columns = analytic.reshape(-1, analytic.shape[-1] if analytic.ndim > 1 else 1)
            assert np.all(np.abs(columns).max(axis=0) > 1e-8), name
        direction = stream.normal(size=variable.shape).astype(np.float32)
        direction /= np.linalg.norm(direction)
        start, losses = variable.numpy(), []
        for sign in (1, -1):
            variable.assign(start + sign * 1e-2 * direction)
            losses.append(float(loss()))
        variable.assign(start)
        numeric, slope = (losses[0] - losses[1]) / 2e-2, float((analytic * direction).sum())
        assert abs(numeric - slope) < 0.02 * max(1.0, abs(slope)), name


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_batch_of_first_sentences_has_gradients_too(system):
    """They are zero, not absent: an update of all weights must not fall over them."""
    slopes = gradients(model(system), small_models.batch(LENGTHS), ())
    for name in NEW_WEIGHTS[system]:
        assert np.all(slopes[f"model/{name}"].numpy() == 0), name


@pytest.mark.bfloat16
@pytest.mark.parametrize("system", SYSTEMS)
def test_bfloat16_is_close_to_float32(system):
    built, batch, history = model(system, init_weight=0.3), small_models.batch(LENGTHS), histories()
    exact, rounded = (
        decode(built, batch, history, dtype)[1].numpy() for dtype in (tf.float32, tf.bfloat16)
    )
    assert 0 < np.abs(rounded - exact).max() < 0.1
