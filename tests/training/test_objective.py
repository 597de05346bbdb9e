"""The loss: hand-written cross-entropy against autodiff and the oracle, padding without effect."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from oracles import objective

from tfmann.decoding.teacher_forcing import forced_log_probs, teacher_forced
from tfmann.ops.projected_cross_entropy import projected_cross_entropy
from tfmann.training.objective import sum_loss

ROWS, WIDTH, WORDS = 9, 6, 13
SMOOTHINGS = [0.0, 0.1]
LENGTHS = [(5, 4), (1, 6), (3, 1), (0, 0), (7, 5)]
CELLS = ["luong", "ntm-heads", "rnnsearch"]


def problem(with_bias, scale=1.0):
    """readout, kernel, bias, labels; logits are `scale` times about 2."""
    stream = np.random.default_rng(4)
    readout = tf.constant(stream.normal(size=(ROWS, WIDTH)), tf.float32)
    kernel = tf.constant(stream.normal(scale=scale, size=(WIDTH, WORDS)), tf.float32)
    bias = tf.constant(stream.normal(scale=scale, size=WORDS), tf.float32) if with_bias else None
    labels = tf.constant(stream.integers(0, WORDS, ROWS), tf.int32)
    return readout, kernel, bias, labels


def plain_tensorflow(readout, kernel, bias, labels, smoothing, dtype=tf.float32):
    """The smoothed and the plain sum by TensorFlow's own operations."""
    del dtype
    logits = tf.matmul(readout, kernel)
    logits = logits if bias is None else logits + bias
    log_probs = tf.nn.log_softmax(logits)
    plain = -tf.reduce_sum(tf.gather(log_probs, labels, batch_dims=1))
    even = -tf.reduce_sum(tf.reduce_mean(log_probs, axis=-1))
    return (1 - smoothing) * plain + smoothing * even, plain


def sums_and_gradients(function, readout, kernel, bias, labels, smoothing, dtype=tf.float32):
    """Both sums, and the gradients of 3 times the first."""
    watched = [readout, kernel] + ([] if bias is None else [bias])
    with tf.GradientTape() as tape:
        tape.watch(watched)
        total, plain = function(readout, kernel, bias, labels, smoothing, dtype)
        scaled = 3.0 * total
    gradients = tape.gradient(scaled, watched)
    return float(total), float(plain), [g.numpy() for g in gradients]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_cross_entropy_and_gradients_equal_autodiff(smoothing, with_bias, compiled):
    values = problem(with_bias)
    ours = projected_cross_entropy
    if compiled:
        ours = tf.function(ours, autograph=False)
    total, plain, gradients = sums_and_gradients(ours, *values, smoothing)
    total_, plain_, gradients_ = sums_and_gradients(plain_tensorflow, *values, smoothing)
    assert total == pytest.approx(total_, rel=1e-5)
    assert plain == pytest.approx(plain_, rel=1e-5)
    assert len(gradients) == 2 + with_bias
    for actual, expected in zip(gradients, gradients_):
        assert np.abs(expected).max() > 0.1
        np.testing.assert_allclose(actual, expected, atol=2e-5)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_cross_entropy_equals_the_oracle(smoothing, with_bias):
    readout, kernel, bias, labels = problem(with_bias)
    total, plain = projected_cross_entropy(readout, kernel, bias, labels, smoothing, tf.float32)
    logits = readout.numpy().astype(np.float64) @ kernel.numpy()
    logits = logits if bias is None else logits + bias.numpy()
    pairs = list(zip(logits, labels.numpy()))
    expected = sum(objective.token_cross_entropy(row, word, smoothing) for row, word in pairs)
    assert float(total) == pytest.approx(expected, rel=1e-5)
    expected = sum(objective.token_cross_entropy(row, word) for row, word in pairs)
    assert float(plain) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "dtype", [tf.float32, pytest.param(tf.bfloat16, marks=pytest.mark.bfloat16)]
)
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_huge_logits_stay_finite(smoothing, dtype):
    """Logits of +-10,000: probabilities are 0 and 1, the loss is their difference."""
    readout, kernel = tf.eye(2), tf.constant([[1e4, -1e4, 0.0], [-1e4, 1e4, 1e4]])
    labels = tf.constant([1, 2])  # the worst word; one of two best
    total, plain, gradients = sums_and_gradients(
        projected_cross_entropy, readout, kernel, None, labels, smoothing, dtype
    )
    rounded = tf.cast(tf.cast(kernel, dtype), tf.float32).numpy()
    expected = [objective.token_cross_entropy(rounded[i], labels[i].numpy()) for i in (0, 1)]
    assert plain == pytest.approx(sum(expected), rel=1e-5)
    assert np.isfinite(total) and all(np.all(np.isfinite(g)) for g in gradients)
    if dtype == tf.float32:
        _, _, expected = sums_and_gradients(
            plain_tensorflow, readout, kernel, None, labels, smoothing
        )
        for actual, value in zip(gradients, expected):
            np.testing.assert_allclose(actual, value, rtol=1e-4, atol=1e-4)


def test_no_word_at_all_costs_nothing():
    """A replica without rows."""
    readout, kernel, bias, labels = problem(with_bias=True)
    total, plain, gradients = sums_and_gradients(
        projected_cross_entropy, readout[:0], kernel, bias, labels[:0], 0.1
    )
    assert total == 0 and plain == 0
    assert all(np.all(g == 0) for g in gradients)


@pytest.mark.bfloat16
@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_bfloat16_is_close_to_float32(smoothing):
    values = problem(with_bias=True)
    total, plain, gradients = sums_and_gradients(
        projected_cross_entropy, *values, smoothing, tf.bfloat16
    )
    exact_total, exact_plain, exact = sums_and_gradients(
        projected_cross_entropy, *values, smoothing, tf.float32
    )
    assert total == pytest.approx(exact_total, rel=0.01) and total != exact_total
    assert plain == pytest.approx(exact_plain, rel=0.01)
    for actual, expected in zip(gradients, exact):
        assert actual.dtype == np.float32
        assert np.linalg.norm(actual - expected) < 0.02 * np.linalg.norm(expected)


def loss_of(model, batch, dtype=tf.float32):
    return sum_loss(model, batch[:5], None, dtype)


def logits_alone(model, batch, row):
    """Logits `[T, V]` of one row of a batch, decoded by itself and without any padding."""
    source = batch.source[row : row + 1, : batch.source_length[row]]
    length = batch.source_length[row : row + 1]
    words = batch.target_in[row : row + 1, : batch.target_length[row]]
    prepared = model.prepare(source, length)
    outputs, embedded, *_ = teacher_forced(
        model, prepared, words, batch.target_length[row : row + 1]
    )
    return model.projection()(model.readout(outputs[:, 0], embedded[:, 0])).numpy()


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("variant", CELLS)
def test_padding_changes_nothing(variant, smoothing):
    """The loss of a padded batch is the sum of the oracle's over each sentence alone."""
    model = small_models.model(variant, label_smoothing=smoothing)
    batch = small_models.batch(LENGTHS)
    loss = loss_of(model, batch)
    assert int(loss.words) == sum(target + 1 for _, target in LENGTHS)
    logits = [logits_alone(model, batch, row) for row in range(len(LENGTHS))]
    targets = [ids[:n] for ids, n in zip(batch.target_out, batch.target_length)]
    for actual, mass in ((loss.total, smoothing), (loss.cross_entropy, 0.0)):
        expected = objective.cross_entropy(logits, targets, "sentence", mass) * len(LENGTHS)
        assert float(actual) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("variant", CELLS)
def test_more_padding_changes_neither_loss_nor_gradient(variant):
    model, batch = small_models.model(variant), small_models.batch(LENGTHS)
    fields = ("source", "target_in", "target_out")
    wider = batch._replace(
        **{
            name: np.pad(getattr(batch, name), [(0, 0), (0, 3)], constant_values=11)
            for name in fields
        }
    )
    results = []
    for padded in (batch, wider):
        with tf.GradientTape() as tape:
            total = loss_of(model, padded).total
        gradients = tape.gradient(total, model.trainable_variables)
        results.append((float(total), [tf.convert_to_tensor(g).numpy() for g in gradients]))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-6)
    for actual, expected in zip(results[1][1], results[0][1]):
        np.testing.assert_allclose(actual, expected, atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("variant", CELLS)
def test_loss_is_minus_the_forced_log_probability(variant):
    model, batch = small_models.model(variant), small_models.batch(LENGTHS)
    prepared = model.prepare(batch.source, batch.source_length)
    log_probs, *_ = forced_log_probs(
        model, prepared, batch.target_in, batch.target_out, batch.target_length
    )
    assert float(loss_of(model, batch).cross_entropy) == pytest.approx(
        -float(tf.reduce_sum(log_probs)), rel=1e-5
    )


@pytest.mark.bfloat16
@pytest.mark.parametrize("variant", CELLS)
def test_loss_in_bfloat16_is_close(variant):
    model, batch = small_models.model(variant, init_weight=0.4), small_models.batch(LENGTHS)
    exact, rounded = loss_of(model, batch), loss_of(model, batch, tf.bfloat16)
    assert rounded.total.dtype == tf.float32
    assert float(rounded.total) == pytest.approx(float(exact.total), rel=0.02)
    assert float(rounded.total) != float(exact.total)
