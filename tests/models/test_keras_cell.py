"""The memory cells in `tf.keras.layers.RNN`, outside translation."""

import numpy as np
import pytest
import tensorflow as tf
from helpers.memory_cells import VARIANTS

from tfmann.config import CELLS
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.models.keras_cell import keras_cell, no_source

SIZES = {"num_units": 5, "num_memory_locations": 4, "memory_unit_size": 3, "read_heads": 2}


def layer_and_inputs(name, **settings):
    cell = keras_cell(name, input_width=3, **{**SIZES, **settings})
    inputs = tf.random.stateless_normal([2, 6, 3], seed=[1, 2])
    return tf.keras.layers.RNN(cell, return_sequences=True, return_state=True), inputs


@pytest.mark.parametrize("name", ["ntm", "dnc"])
@pytest.mark.parametrize("unit_type", ["lstm", "gru"])
def test_the_layer_runs_the_cell_step_by_step(name, unit_type):
    layer, inputs = layer_and_inputs(name, unit_type=unit_type, num_layers=2)
    outputs = layer(inputs)[0]
    cell, source = layer.cell.cell, no_source(2)
    state = cell.initial_state(source)
    for time in range(6):
        prepared = cell.prepare_inputs(inputs[:, time], DropoutMasks.none())
        result = cell.step(prepared, state, cell.prepare(source))
        expected = cell.readout(result.output, inputs[:, time], DropoutMasks.none())
        np.testing.assert_allclose(outputs[:, time], expected, atol=1e-5)
        state = result.state


@pytest.mark.parametrize("name", ["ntm", "dnc", *VARIANTS])
def test_a_sequence_can_be_continued_from_the_state_that_is_returned(name):
    cell, settings = VARIANTS.get(name, (name, {}))
    layer, inputs = layer_and_inputs(cell, **settings)
    uninterrupted = layer(inputs)[0]
    first, *state = layer(inputs[:, :2])
    second = layer(inputs[:, 2:], initial_state=state)[0]
    np.testing.assert_allclose(tf.concat([first, second], axis=1), uninterrupted, atol=1e-5)


@pytest.mark.parametrize("name", ["ntm", "dnc"])
def test_every_weight_is_trained(name):
    layer, inputs = layer_and_inputs(name)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(inputs)[0] ** 2)
    weights = layer.trainable_weights
    assert len(weights) == len(layer.cell.cell.trainable_variables) > 5
    assert all(gradient is not None for gradient in tape.gradient(loss, weights))


@pytest.mark.parametrize("name", sorted(CELLS))
def test_a_cell_that_needs_an_encoder_is_refused(name):
    if CELLS[name].has_alignments:
        with pytest.raises(UsageError, match=f"{name}.*annotations.*'ntm' or 'dnc'"):
            keras_cell(name, input_width=3)
    else:
        assert keras_cell(name, input_width=3, **SIZES).output_size == 5


def test_a_wrong_setting_is_named():
    with pytest.raises(UsageError, match="num_units"):
        keras_cell("ntm", input_width=3, num_units=0)
    with pytest.raises(UsageError, match="num_unitz.*num_units"):
        keras_cell("ntm", input_width=3, num_unitz=4)
