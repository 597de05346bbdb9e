"""Gradients of matrices made after the loop, against those that are added up within it."""

import re
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.memory_cells import VARIANTS as MEMORY_VARIANTS

from tfmann.config import CELLS
from tfmann.layers.rnn import product
from tfmann.ops import loop_gradients
from tfmann.training.objective import sum_loss

SLOTS = {"num_memory_locations": 6, "memory_unit_size": 4, "read_heads": 2, "write_heads": 1}
# By variant: other settings, and the matrices whose gradients are made after the loop.
CASES = {
    "luong": ({}, 7),  # two recurrent kernels, between them, feed, attention's; keys, annotations
    "luong-bahdanau": ({}, 6),  # kernels and the annotations that are read
    "ntm-heads": ({"dropout": 0.3}, 8),
    "rnnsearch": ({"eos_attention_weight": 1.0}, 4),
    "coverage": ({}, 4),
    "coverage-neural": ({}, 5),
    "memdec": ({}, 7),
    "past-future": ({}, 13),
    "past-future-gru_o": ({}, 13),
    "mematt": ({}, 7),
    "kvmematt-3": ({}, 19),
    "transformer": ({}, 12),  # six kernels a layer
    "transformer-rewriting": ({"dropout": 0.3}, 15),
    "key-value": ({}, 5),
    "key-value-iw": ({}, 5),
    "mad": ({"cell": "mad", **SLOTS}, 7),
    # five in each of two loops, over the source and over the target, which share one
    "ntm": ({"cell": "ntm", "encoder_type": "memory", **SLOTS}, 2 * 5 - 1),
    "dnc": ({"cell": "dnc", "encoder_type": "memory", **SLOTS}, 2 * 5 - 1),
    **{
        name: (
            {"cell": cell, "encoder_type": "memory", **SLOTS, **changes},
            2 * (5 + 2 * ("hops" in name)) - 1,
        )
        for name, (cell, changes) in MEMORY_VARIANTS.items()  # hops have a GRU
    },
    "summary": ({"cell": "summary", "unit_type": "gru"}, 7),
    "previous": ({"cell": "previous", "unit_type": "gru"}, 6),
    "cache": ({"cell": "cache", "unit_type": "gru"}, 4),
}
LENGTHS = [(3, 5), (6, 1), (2, 8)]


def gradients(model, dtype=tf.float32):
    """Of the loss of a batch."""
    parts = tuple(tf.constant(part) for part in small_models.batch(LENGTHS)[:5])

    @tf.function(autograph=False)
    def run():
        with tf.GradientTape() as tape:
            total = sum_loss(model, parts, None, dtype).total
        result = tape.gradient(total, model.trainable_variables)
        return [tf.convert_to_tensor(gradient) for gradient in result if gradient is not None]

    return [gradient.numpy() for gradient in run()]


def model_of(case):
    changes, _ = CASES[case]
    return small_models.model(case if case in small_models.VARIANTS else "luong", **changes)


def float32_kernel(leaf):
    """As `is_kernel`, of kernels that are not cast; other matrices have a row a sentence."""
    is_array = isinstance(leaf, (tf.Tensor, tf.Variable))
    return is_array and leaf.shape.rank == 2 and leaf.shape[0] != len(LENGTHS)


@pytest.mark.quick("luong", "kvmematt-3", "mad", "cache")
@pytest.mark.parametrize("case", CASES)
def test_the_gradients_are_those_of_the_loop(case):
    model, deferred = model_of(case), set()
    multiply = loop_gradients.StepMatrix.__rmatmul__

    def spy(self, values):
        deferred.add(self.tensor.ref())
        return multiply(self, values)

    with mock.patch.object(loop_gradients.StepMatrix, "__rmatmul__", spy):
        with mock.patch.object(loop_gradients, "is_kernel", float32_kernel):
            result = gradients(model)
    assert len(deferred) == CASES[case][1]
    with mock.patch.object(loop_gradients.LoopGradients, "at", lambda self, time: self.source):
        expected = gradients(model)
    assert len(result) == len(expected) > 5
    for gradient, reference in zip(result, expected):
        np.testing.assert_allclose(
            gradient, reference, rtol=1e-4, atol=1e-5 * np.abs(reference).max()
        )


def test_every_cell_is_tried():
    assert {model_of(case).hparams.cell for case in CASES} == set(CELLS)


@pytest.mark.bfloat16
def test_bfloat16_sums_are_not_kept_in_bfloat16():
    model = small_models.model("rnnsearch")
    exact = gradients(model)
    deferred = gradients(model, tf.bfloat16)
    with mock.patch.object(loop_gradients.LoopGradients, "at", lambda self, time: self.source):
        summed = gradients(model, tf.bfloat16)

    def error(result):
        return [np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in zip(result, exact)]

    assert np.mean(error(deferred)) < np.mean(error(summed)) < 0.1


def gradients_through_a_source(model, dtype):
    """Of the state after a long source, by the kernels that every step multiplies by."""
    source = np.random.default_rng(0).integers(3, 20, [2, 150]).astype(np.int32)
    of_steps = re.compile("stack.*kernel|head_kernel")
    kernels = [v for v in model.cell.trainable_variables if of_steps.search(v.name)]

    @tf.function(autograph=False)
    def run():
        with tf.GradientTape() as tape:
            state = model.prepare(source, tf.fill([2], 150), dtype=dtype).state
            total = tf.reduce_sum(state.memory.memory) + tf.reduce_sum(state.layers[0][0])
        return tape.gradient(total, kernels)

    return [gradient.numpy() for gradient in run()]


@pytest.mark.bfloat16
def test_bfloat16_sums_over_a_source_are_not_kept_in_bfloat16():
    """A pure MANN reads it in a loop of its own; 2 % of these gradients were lost in the sums."""
    sizes = {"num_layers": 1, "init_weight": 0.2, "embedding_init_weight": 0.5}
    memory = {"cell": "ntm", "encoder_type": "memory", "unit_type": "gru", **SLOTS}
    model = small_models.model(**memory, **sizes)
    rounded, exact = (gradients_through_a_source(model, t) for t in (tf.bfloat16, tf.float32))
    assert len(exact) == 3
    for gradient, reference in zip(rounded, exact):
        assert np.linalg.norm(gradient - reference) < 0.01 * np.linalg.norm(reference)


def run_loop(source, fields, body, steps, limit):
    """`sum_t f(source at t)` and its gradient by the leaves of the source."""

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.int32)])
    def run(count):
        with tf.GradientTape() as tape:
            leaves = tf.nest.map_structure(tf.identity, source)
            tape.watch(leaves)
            loop = loop_gradients.LoopGradients(leaves, tf.constant(steps), fields)
            _, total = tf.while_loop(
                lambda time, _: time < count,
                lambda time, total: (time + 1, total + body(time, loop.at(time))),
                (0, 0.0),
            )
        return total, tape.gradient(total, leaves)

    return run(limit)


@pytest.mark.bfloat16
def test_kernels_in_float32_stay_in_the_loop():
    kernels = (tf.ones([2, 2]), tf.ones([2, 2], tf.bfloat16), tf.ones([2], tf.bfloat16))
    leaves = loop_gradients.LoopGradients(kernels, tf.constant(3), {}).at(tf.constant(0))
    assert [isinstance(leaf, loop_gradients.StepMatrix) for leaf in leaves] == [False, True, False]


@pytest.mark.bfloat16
def test_a_second_product_of_a_step_counts_too():
    kernel = tf.constant([[1.0, 2.0], [3.0, 4.0]], tf.bfloat16)
    x = tf.ones([1, 2])

    def body(time, source):
        return tf.reduce_sum(product(x, source[0])) + 10 * tf.reduce_sum(product(x, source[0]))

    total, (gradient,) = run_loop((kernel,), {}, body, 3, 3)
    assert total == 330.0
    np.testing.assert_array_equal(tf.cast(gradient, tf.float32), np.full([2, 2], 33.0))


@pytest.mark.bfloat16
def test_a_product_of_many_rows_stays_in_the_loop():
    matrix = loop_gradients.LoopGradients(tf.ones([2, 2], tf.bfloat16), tf.constant(1), {})
    step = matrix.at(tf.constant(0))
    assert product(tf.ones([3, 1, 2]), step).shape == [3, 1, 2]
    with mock.patch.object(loop_gradients, "list_with", side_effect=AssertionError):
        product(tf.ones([3, 1, 2]), step)


@pytest.mark.parametrize("limit", [0, 2, 4])
def test_steps_that_were_not_taken_have_no_gradient(limit):
    source = small_source()

    def body(time, source):
        return tf.reduce_sum(tf.cast(time + 1, tf.float32) * (tf.ones([2, 1, 3]) @ source.values))

    _, gradient = run_loop(source, {type(source): ("values",)}, body, 4, limit)
    expected = np.full([2, 3, 4], limit * (limit + 1) / 2)
    np.testing.assert_allclose(gradient.values, expected)


def test_rows_need_not_be_counted_when_the_loop_is_traced():
    """Of several heads on one sentence, whose number the graph does not know."""
    source, stream = small_source(), np.random.default_rng(1)
    inputs, errors = stream.normal(size=[2, 5, 3]), stream.normal(size=[2, 5, 4])
    rows = tf.Variable(tf.constant(inputs, tf.float32), shape=[2, None, 3])

    def body(time, source):
        del time
        return tf.reduce_sum(tf.constant(errors, tf.float32) * (rows @ source.values))

    _, gradient = run_loop(source, {type(source): ("values",)}, body, 4, 4)
    expected = 4 * np.einsum("bni,bno->bio", inputs, errors)
    np.testing.assert_allclose(gradient.values, expected, rtol=1e-5, atol=1e-5)


def small_source():
    from tfmann.layers.luong_attention import AttentionSource

    keys, mask = tf.zeros([2, 4, 3]), tf.ones([2, 1, 3])
    return AttentionSource(keys, values=tf.ones([2, 3, 4]), mask=mask)
