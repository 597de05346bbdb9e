"""Kernels' gradients made after the loop, against those that are added up within it."""

from unittest import mock

import numpy as np
import pytest
import small
import tensorflow as tf

from tfmann.cells.recurrent import product
from tfmann.decoding import adapter
from tfmann.hparams import declared_cells
from tfmann.memory import deferred
from tfmann.training.objective import sum_loss

SLOTS = {"num_memory_locations": 6, "memory_unit_size": 4, "read_heads": 2, "write_heads": 1}
# By variant: what is set besides, and the products of a step with what stands still.
CASES = {
    "luong": ({}, 7),  # two recurrent kernels, between them, feed, attention's; keys, annotations
    "ntm-heads": ({"dropout": 0.3}, 8),
    "rnnsearch": ({"eos_attention_weight": 1.0}, 5),
    "mematt": ({}, 5),
    "kvmematt-3": ({}, 16),
    "key-value": ({}, 5),
    "key-value-iw": ({}, 5),
    "mad": ({"cell": "mad", **SLOTS}, 7),
    "ntm": ({"cell": "ntm", "encoder_type": "memory", **SLOTS}, 5),
    "dnc": ({"cell": "dnc", "encoder_type": "memory", **SLOTS}, 5),
    "summary": ({"cell": "summary", "unit_type": "gru"}, 8),
    "previous": ({"cell": "previous", "unit_type": "gru"}, 8),
    "cache": ({"cell": "cache", "unit_type": "gru"}, 5),
}


FLOAT32 = mock.patch.object(deferred.Deferred, "types", (tf.float32,))


class Nothing(deferred.Deferred):
    """Defers no product."""

    def __init__(self, step, constant):
        del constant
        super().__init__(step, ())


def gradients(model, dtype=tf.float32):
    """Of the loss of a batch, by name."""
    lengths = [(3, 5), (6, 1), (2, 8)]
    parts = tuple(tf.constant(part) for part in small.batch(lengths)[:5])

    @tf.function(autograph=False)
    def run():
        with tf.GradientTape() as tape:
            total = sum_loss(model, parts, None, dtype).total
        found = tape.gradient(total, model.trainable_variables)
        return [tf.convert_to_tensor(one) for one in found if one is not None]

    return [one.numpy() for one in run()]


def model_of(case):
    changes, _ = CASES[case]
    return small.model(case if case in small.VARIANTS else "luong", **changes)


@pytest.mark.parametrize("case", CASES)
def test_the_gradients_are_those_of_the_loop(case):
    model, seen = model_of(case), []
    sinks = deferred.Deferred.sinks

    def spy(self, shape):
        seen.append(sinks(self, shape))
        return seen[-1]

    with mock.patch.object(deferred.Deferred, "sinks", spy), FLOAT32:
        ours = gradients(model)
    assert [len(one) for one in seen] == [CASES[case][1]]
    with mock.patch.object(adapter, "Deferred", Nothing):
        wanted = gradients(model)
    assert len(ours) == len(wanted) > 5
    for one, other in zip(ours, wanted):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5 * np.abs(other).max())


def test_every_cell_is_tried():
    assert {model_of(case).hparams.cell for case in CASES} == set(declared_cells())


@pytest.mark.bfloat16
def test_bfloat16_sums_are_not_kept_in_bfloat16():
    model = small.model("rnnsearch")
    exact = gradients(model)
    ours = gradients(model, tf.bfloat16)
    with mock.patch.object(adapter, "Deferred", Nothing):
        plain = gradients(model, tf.bfloat16)

    def error(found):
        return [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(found, exact)]

    assert np.mean(error(ours)) < np.mean(error(plain)) < 0.1


@pytest.mark.bfloat16
def test_float32_products_stay_in_the_loop():
    step = lambda: product(tf.ones([1, 2]), kernel)  # noqa: E731
    kernel = tf.ones([2, 2])
    assert deferred.Deferred(step, (kernel,)).input_shapes == ()
    kernel = tf.ones([2, 2], tf.bfloat16)
    assert deferred.Deferred(step, (kernel, tf.ones([2]))).input_shapes == ([2],)


def test_a_kernel_that_a_step_makes_is_left_where_it_is():
    still, changing = tf.ones([2, 2]), tf.constant([[2.0, 0.0], [0.0, 2.0]])
    with FLOAT32:
        step = lambda: product(tf.ones([1, 2]), changing * 1.0)  # noqa: E731
        found = deferred.Deferred(step, (still, changing))
    assert found.input_shapes == ()
    assert deferred.product(tf.ones([1, 2]), still) is None  # outside of any loop
    with found.step([]) as multiplied:
        assert product(tf.ones([3, 1, 2]), still).shape == [3, 1, 2]  # not a row a sentence
    assert multiplied == []


@pytest.mark.parametrize("transposed", [False, True])
def test_sentences_matrices_are_multiplied_alike_within_a_loop_and_outside(transposed):
    rng = np.random.default_rng(1)
    values, matrices = rng.normal(size=(2, 1, 3)), rng.normal(size=(2, 3, 4))
    given = tf.constant(matrices.transpose(0, 2, 1) if transposed else matrices, tf.float32)
    values = tf.constant(values, tf.float32)

    def step():
        return deferred.by_sentence(values, given, transposed)

    found = deferred.Deferred(step, (given,))
    sink = found.sinks(tf.constant([5, 2]))[0].read(0)
    with found.step([sink]) as multiplied:
        inside = step()
    assert sink.shape == [2, 1, 4] and multiplied[0].shape == [2, 1, 3]
    np.testing.assert_allclose(inside, np.matmul(values, matrices), rtol=1e-5)
    np.testing.assert_array_equal(inside, step())


def test_rows_that_nobody_has_counted_are_not_deferred():
    given = tf.ones([2, 3, 4])

    @tf.function(input_signature=[tf.TensorSpec([2, None, 3])])
    def shapes(values):
        found = deferred.Deferred(lambda: deferred.by_sentence(values, given), (given,))
        return len(found.input_shapes)

    assert shapes(tf.ones([2, 1, 3])) == 0


def test_a_step_that_fails_leaves_nothing_behind():
    still = tf.ones([2, 2])
    with FLOAT32, pytest.raises(ZeroDivisionError):
        deferred.Deferred(lambda: 1 // 0, still)
    assert deferred.product(tf.ones([1, 2]), still) is None
