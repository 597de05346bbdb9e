"""Compiled steps over a memory: the values and gradients of plain ones, and where they run."""

import io
import logging

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.memory_cells import VARIANTS, build

from tfmann.config import HParams
from tfmann.data.batching import make_batch
from tfmann.decoding.teacher_forcing import teacher_forced
from tfmann.ops import compiled_step
from tfmann.training.train_step import TrainStep

CASES = {
    "ntm": ("ntm", "memory", (1, 1), {}),
    "ntm-heads": ("ntm", "memory", (2, 3), {}),
    "dnc": ("dnc", "memory", (1, 1), {}),
    "dnc-heads": ("dnc", "memory", (3, 2), {}),
    "mad": ("mad", "bi", (2, 1), {}),
    **{name: (cell, "memory", (2, 2), changes) for name, (cell, changes) in VARIANTS.items()},
}


def outputs_and_gradients(model, batch, compiled):
    """Returns the outputs of forced decoding, and the gradients of a sum of them by name."""

    @tf.function(autograph=False)
    def run():
        with compiled_step.compiled_steps(compiled), tf.GradientTape() as tape:
            prepared = model.prepare(batch.source, batch.source_length)
            inputs = batch.target_in, batch.target_length
            outputs = teacher_forced(model, prepared, *inputs).outputs
            weights = tf.random.stateless_normal(tf.shape(outputs), [1, 2])
            loss = tf.reduce_sum(outputs * weights)
        zero = tf.UnconnectedGradients.ZERO
        variables = model.trainable_variables
        gradients = tape.gradient(loss, variables, unconnected_gradients=zero)
        by_name = {v.name: tf.convert_to_tensor(g) for v, g in zip(variables, gradients)}
        return outputs, by_name

    text = str(run.get_concrete_function().graph.as_graph_def())
    return (*run(), "_XlaMustCompile" in text)


@pytest.mark.quick("ntm-heads")
@pytest.mark.parametrize("name", CASES)
def test_a_compiled_step_has_the_values_and_gradients_of_a_plain_one(name, monkeypatch):
    monkeypatch.setattr(compiled_step, "SMALLEST", 1)
    cell, encoder_type, heads, changes = CASES[name]
    model = build(cell, heads, encoder_type, **changes)
    batch = small_models.batch([(4, 3), (0, 2)])
    outputs, gradients, is_compiled = outputs_and_gradients(model, batch, False)
    assert not is_compiled
    compiled_outputs, compiled_gradients, is_compiled = outputs_and_gradients(model, batch, True)
    assert is_compiled
    np.testing.assert_allclose(compiled_outputs, outputs, atol=1e-5)
    for weight, expected in gradients.items():
        # 7 steps, in each of which a gradient passes through a softmax of cosines
        bound = 1e-3 * np.abs(expected).max() + 1e-5
        np.testing.assert_allclose(
            compiled_gradients[weight], expected, atol=bound, rtol=0, err_msg=weight
        )


SETTINGS = {
    "cell": "ntm", "encoder_type": "memory", "num_units": 8, "embedding_size": 8,
    "num_memory_locations": 16, "memory_unit_size": 128, "dropout": 0.0,
}  # fmt: skip


def compiles_memory(learner):
    """Returns whether the update of a learner has a compiled part."""
    text = str(learner._compiled_update.get_concrete_function().graph.as_graph_def())
    return "_XlaMustCompile" in text


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_type": "tokens"},  # would compile for every size
        {"memory_unit_size": 64},  # too small to gain
    ],
)
def test_updates_compile_no_other_memories(changes):
    assert not compiles_memory(TrainStep(HParams(**{**SETTINGS, **changes}), 20, 20))


def test_a_compiled_update_is_that_of_a_plain_one():
    words = np.random.default_rng(0).integers(3, 20, [3, 4])
    batch = make_batch(words, words[:, ::-1], np.full(3, -1), np.arange(3), False)
    updates, weights = [], []
    for compile_memory in (False, True):
        learner = TrainStep(HParams(**SETTINGS, compile_memory=compile_memory), 20, 20)
        updates.append([learner.update(batch, step, 0.1) for step in range(2)][-1])
        weights.append(learner.weight_arrays())
        on_processor = not tf.config.list_physical_devices("GPU")
        assert compiles_memory(learner) == (compile_memory and on_processor)
    for name in ("cross_entropy", "gradient_norm"):
        plain, compiled = (float(getattr(update, name)) for update in updates)
        assert compiled == pytest.approx(plain, rel=1e-4)
    for name, value in weights[0].items():
        np.testing.assert_allclose(weights[1][name], value, atol=1e-4, err_msg=name)


def test_a_function_that_autograph_converts_runs_the_step_without_a_warning():
    step = compiled_step.MemoryStep(
        lambda memory, keys, dots, squares: dots / squares[:, tf.newaxis]
    )
    memory, keys = tf.ones([2, 3, 4]), 2 * tf.ones([2, 1, 4])
    messages = io.StringIO()
    handler = logging.StreamHandler(messages)
    tf.get_logger().addHandler(handler)
    try:
        result = tf.function(lambda m, k: step(m, k), autograph=True)(memory, keys)
    finally:
        tf.get_logger().removeHandler(handler)
    np.testing.assert_allclose(result, np.full([2, 1, 3], 2.0), atol=1e-6)
    assert messages.getvalue() == ""
