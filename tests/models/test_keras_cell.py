"""The memory cells in `tf.keras.layers.RNN`, outside translation."""

import numpy as np
import pytest
import tensorflow as tf
from helpers.command_line import ROOT
from helpers.memory_cells import VARIANTS
from helpers.settings_reads import watch_reads

from tfmann.cells.ntm import NTMCell
from tfmann.config import CELLS, FIELDS
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.models import keras_cell as keras_cell_module
from tfmann.models.keras_cell import KerasCell, keras_cell, no_source

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
    readable = keras_cell_module.readable_settings(cell)
    settings = {key: settings[key] for key in settings if key in readable}  # no dropout
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


@pytest.mark.quick("ntm-lstm", "dnc-gru")
@pytest.mark.parametrize("unit_type", ["lstm", "gru"])
@pytest.mark.parametrize("name", ["ntm", "dnc"])
def test_a_keras_model_is_saved_and_loaded(name, unit_type, tmp_path):
    layer = tf.keras.layers.RNN(keras_cell(name, 3, **SIZES, num_layers=2, unit_type=unit_type))
    model = tf.keras.Sequential([tf.keras.layers.Bidirectional(layer)])
    inputs = tf.random.stateless_normal([2, 2, 3], seed=[1, 2])
    start = model(inputs)
    for weight in model.weights:
        weight.assign(weight * 1.5 + 0.1)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert np.abs(model(inputs) - start).max() > 1e-3
    np.testing.assert_allclose(loaded(inputs), model(inputs), atol=1e-6)


def test_the_copy_of_a_cell_has_its_start_weights_and_no_variable_of_it():
    cell = keras_cell("dnc", 3, **SIZES, random_seed=3, num_layers=2, dnc_masking=True)
    copy = type(cell).from_config(cell.get_config())
    assert len(copy.weights) == len(cell.weights) > 0
    for mine, other in zip(copy.weights, cell.weights):
        assert mine is not other and mine.name == other.name
        np.testing.assert_array_equal(mine, other)


def test_the_copy_of_a_cell_whose_weights_are_fixed_has_fixed_weights():
    cell = keras_cell("ntm", 3, **SIZES)
    cell.trainable = False
    copy = type(cell).from_config(cell.get_config())
    assert not copy.trainable_weights and len(copy.weights) == len(cell.weights)
    older = {key: value for key, value in cell.get_config().items() if key != "trainable"}
    assert type(cell).from_config(older).trainable


def test_a_subclass_is_not_saved_or_copied_as_its_base():
    class Changed(NTMCell):
        """An NTM with an equation of its own."""

    h = keras_cell("ntm", 3, **SIZES).cell.hparams
    cell = KerasCell(Changed(h, 0, VariableFactory(h, "cell")))
    layer = tf.keras.layers.RNN(cell)
    assert layer(tf.zeros([2, 6, 3])).shape == (2, SIZES["num_units"])
    with pytest.raises(UsageError, match="Changed cannot be saved or copied: .* built as NTMCell"):
        tf.keras.layers.Bidirectional(layer)


def test_a_stateful_layer_starts_again_from_the_initial_content():
    """As docs/keras.md says; Keras alone would start from zeros."""
    layer = tf.keras.layers.RNN(keras_cell("ntm", 3, **SIZES), stateful=True)
    inputs = tf.random.stateless_normal([2, 6, 3], seed=[1, 2])
    first, second = layer(inputs), layer(inputs)
    assert np.abs(first - second).max() > 1e-4
    layer.reset_states()
    assert np.abs(layer(inputs) - first).max() > 1e-4
    layer.reset_states(layer.cell.get_initial_state(batch_size=2))
    np.testing.assert_allclose(layer(inputs), first, atol=1e-6)


@pytest.mark.parametrize("name", sorted(CELLS))
def test_a_cell_that_needs_an_encoder_is_refused(name):
    if CELLS[name].has_alignments:
        with pytest.raises(UsageError, match=f"{name}.*annotations.*'dnc' or 'ntm'; for others"):
            keras_cell(name, input_width=3)
    else:
        assert keras_cell(name, input_width=3, **SIZES).output_size == 5


def test_a_wrong_setting_is_named():
    for width in ("8", 8.0, True):
        with pytest.raises(UsageError, match=f"input_width: expected int, got {width!r}"):
            keras_cell("ntm", width)
    with pytest.raises(UsageError, match="num_units"):
        keras_cell("ntm", input_width=3, num_units=0)
    with pytest.raises(UsageError, match="num_unitz.*num_units"):
        keras_cell("ntm", input_width=3, num_unitz=4)


@pytest.mark.parametrize(
    "name, settings, words",
    [
        ("ntm", {"dropout": 0.5}, "'ntm' does not read dropout here.*tf.keras.layers.Dropout"),
        ("dnc", {"dnc_bypass_dropout": 0.5}, "does not read dnc_bypass_dropout"),
        ("ntm", {"dnc_masking": True}, "does not read dnc_masking here, only num_units, .*head_st"),
        ("dnc", {"head_start": "tape"}, "does not read head_start"),
        ("ntm", {"beam_width": 3}, "does not read beam_width"),
        ("ntm", {"precision": "mixed_bfloat16"}, "does not read precision"),
        ("ntm", {"embedding_size": 3}, "does not read embedding_size"),
    ],
)
def test_a_setting_that_is_not_read_is_refused(name, settings, words):
    with pytest.raises(UsageError, match=words):
        keras_cell(name, input_width=3, **settings)


@pytest.mark.parametrize("width", [0, -1])
def test_an_input_has_a_width(width):
    with pytest.raises(UsageError, match=f"input_width={width} is below the least value 1"):
        keras_cell("ntm", width, **SIZES)


@pytest.mark.parametrize("name", ["ntm", "dnc"])
def test_a_setting_that_is_taken_is_read(name, monkeypatch):
    read = watch_reads(monkeypatch, keras_cell_module)
    defaults = {key: FIELDS[key].default for key in keras_cell_module.readable_settings(name)}
    # a recurrent layer of a kind that has the forget gate, and weights that are no Glorot's
    layer = tf.keras.layers.RNN(keras_cell(name, 3, **{**defaults, **SIZES}))
    assert layer(tf.zeros([1, 2, 3])).shape == (1, 5)
    assert set(defaults) <= read


def test_the_page_names_every_setting_that_is_taken():
    page = (ROOT / "docs" / "keras.md").read_text(encoding="utf-8")
    for name in ("ntm", "dnc"):
        for key in keras_cell_module.readable_settings(name):
            assert f"`{key}`" in page, key
