"""The cells that attend to a source, as a layer of Keras models."""

import numpy as np
import pytest
import tensorflow as tf
from helpers.command_line import ROOT
from helpers.settings_reads import watch_reads

from tfmann.cells.base import EncoderOutput
from tfmann.config import CELLS, FIELDS
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.models import keras_decoder as keras_decoder_module
from tfmann.models.keras_decoder import KerasDecoder, readable_settings

B, S, T, E, U = 2, 5, 3, 4, 6
D = 2 * U  # as key_value needs it
LENGTHS = [5, 2]
ATTENDING = sorted(
    name for name, spec in CELLS.items() if spec.has_alignments and not spec.reads_documents
)
OTHERS = sorted(set(CELLS) - set(ATTENDING))
SIZES = {
    "mad": {"num_memory_locations": 4, "memory_unit_size": 3},
    "memdec": {"num_memory_locations": 4, "memory_unit_size": 3},
    "kvmematt": {"num_rounds": 2},
    "transformer": {"transformer_heads": 2, "self_attention_window": 4},
    "kvmematt_transformer": {"transformer_heads": 2, "self_attention_window": 4},
}


def settings_of(name):
    return {"num_units": U, **SIZES.get(name, {})}


@pytest.fixture
def source():
    """Words `[B, T, E]`, annotations `[B, S, D]` with something at padding, and their mask."""
    words = tf.random.stateless_normal([B, T, E], seed=[1, 2])
    annotations = tf.random.stateless_normal([B, S, D], seed=[3, 4])
    return words, annotations, tf.sequence_mask(LENGTHS, S)


@pytest.mark.parametrize("name", ATTENDING)
def test_the_layer_runs_the_cell_step_by_step(name, source):
    words, annotations, mask = source
    layer = KerasDecoder(name, **settings_of(name))
    outputs, scores = layer([words, annotations], mask=[None, mask], return_attention_scores=True)
    real = tf.cast(mask, tf.float32)
    encoded = EncoderOutput(annotations * real[..., None], real, tf.constant(LENGTHS), ())
    cell, none = layer.cell, DropoutMasks.none()
    state, prepared = cell.initial_state(encoded), cell.prepare(encoded)
    for time in range(T):
        result = cell.step(cell.prepare_inputs(words[:, time], none), state, prepared)
        expected = cell.readout(result.output, words[:, time], none)
        np.testing.assert_allclose(outputs[:, time], expected, atol=1e-5)
        np.testing.assert_allclose(scores[:, time], result.diagnostics["alignments"], atol=1e-5)
        state = result.state
    assert scores.shape == (B, T, S)
    assert np.abs(scores[1, :, 2:]).max() == 0  # no weight at padding
    np.testing.assert_allclose(tf.reduce_sum(scores, axis=-1), np.ones([B, T]), atol=1e-5)


@pytest.mark.parametrize("name", ATTENDING)
def test_words_one_by_one_are_as_all_together(name, source):
    words, annotations, _ = source
    mask = tf.constant([[True] * S, [False, True, True, False, False]])
    layer, state = KerasDecoder(name, **settings_of(name)), None
    wanted = {"mask": [None, mask], "return_attention_scores": True, "return_state": True}
    expected = layer([words, annotations], **wanted)
    for time in range(T):
        word = words[:, time : time + 1]
        outputs, scores, *state = layer([word, annotations], initial_state=state, **wanted)
        state = [each.numpy() for each in state]  # as a caller may keep it
        np.testing.assert_allclose(outputs[:, 0], expected[0][:, time], atol=1e-5)
        np.testing.assert_allclose(scores[:, 0], expected[1][:, time], atol=1e-5)
    assert len(state) == len(expected[2:]) > 0
    for ours, all_together in zip(state, expected[2:]):
        np.testing.assert_allclose(ours, all_together, atol=1e-5)


def test_a_state_of_symbolic_inputs_goes_from_one_layer_call_to_the_next(source):
    words, annotations, _ = source
    inputs = [tf.keras.Input([None, E]), tf.keras.Input([None, D])]
    layer = KerasDecoder("kvmematt", num_units=U)
    first, *state = layer(inputs, return_state=True)
    model = tf.keras.Model(inputs, [first, layer(inputs, initial_state=state)])
    twice = layer([tf.concat([words, words], axis=1), annotations])
    np.testing.assert_allclose(tf.concat(model([words, annotations]), axis=1), twice, atol=1e-5)


@pytest.mark.parametrize("name", ["luong", "kvmematt"])
def test_a_state_that_is_not_the_cell_s_is_refused(name, source):
    layer = KerasDecoder(name, num_units=U)
    *_, state = layer(source[:2], return_state=True)
    with pytest.raises(UsageError, match="that return_state=True returned after the outputs"):
        layer(source[:2], initial_state=[state] * 7)
    with pytest.raises(UsageError, match="expected initial_state with the"):
        layer(
            [words[:1] for words in source[:2]],
            initial_state=layer(source[:2], return_state=True)[1:],
        )


@pytest.mark.quick("mad")
@pytest.mark.parametrize("name", ATTENDING)
def test_a_model_of_symbolic_inputs_is_trained_saved_and_loaded(name, source, tmp_path):
    words, annotations, _ = source
    inputs = [tf.keras.Input([None, E]), tf.keras.Input([None, D])]
    layer = KerasDecoder(name, **settings_of(name))
    outputs = layer([inputs[0], tf.keras.layers.Masking()(inputs[1])])
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(2)(outputs))
    model.compile("adam", "mse")
    model.fit([words, annotations], tf.ones([B, T, 2]), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = tf.keras.models.load_model(tmp_path / "model.keras")
    assert loaded.count_params() == model.count_params() > 0
    expected = model([words, annotations])
    np.testing.assert_allclose(loaded([words, annotations]), expected, atol=1e-6)


@pytest.mark.parametrize("name", ATTENDING)
def test_every_weight_that_counts_is_trained(name, source):
    words, annotations, mask = source
    layer = KerasDecoder(name, **settings_of(name))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer([words, annotations], mask=[None, mask]) ** 2)
    weights = layer.trainable_weights
    assert len(weights) == len(layer.cell.trainable_variables) > 5
    without = [w.name for w, g in zip(weights, tape.gradient(loss, weights)) if g is None]
    # the auxiliary readouts of past_future are for a loss of their own
    assert all("future_readout" in name or "past_readout" in name for name in without)


def test_the_mask_of_an_embedding_reaches_the_attention():
    ids = tf.constant([[3, 1, 2, 0, 0]])
    embedding = tf.keras.layers.Embedding(5, D, mask_zero=True)
    layer = KerasDecoder("mematt", num_units=U)
    words = tf.ones([1, T, E])
    _, scores = layer([words, embedding(ids)], return_attention_scores=True)
    assert np.abs(scores[:, :, 3:]).max() == 0 and np.min(scores[:, :, :3]) > 0
    shorter, _ = layer([words, embedding(ids[:, :3])], return_attention_scores=True)
    longer, _ = layer([words, embedding(ids)], return_attention_scores=True)
    np.testing.assert_allclose(shorter, longer, atol=1e-5)


@pytest.mark.parametrize("name", ATTENDING)
def test_padding_may_be_anywhere(name, source):
    """As in front of a source, where Keras's `pad_sequences` puts it."""
    words, annotations, _ = source
    real = np.array([[False, False, True, True, True], [True, False, False, True, False]])
    layer = KerasDecoder(name, **settings_of(name))
    outputs, scores = layer([words, annotations], mask=[None, real], return_attention_scores=True)
    assert np.abs(np.where(real[:, None], 0, scores)).max() == 0
    for row, positions in enumerate(real):
        alone = [words[row : row + 1], annotations.numpy()[row : row + 1, positions]]
        expected, expected_scores = layer(alone, return_attention_scores=True)
        np.testing.assert_allclose(outputs[row], expected[0], atol=1e-5)
        np.testing.assert_allclose(scores.numpy()[row][:, positions], expected_scores[0], atol=1e-5)


@pytest.mark.parametrize("name", ATTENDING)
def test_a_source_of_padding_alone_gives_numbers(name, source):
    words, annotations, _ = source
    layer, mask = KerasDecoder(name, **settings_of(name)), tf.sequence_mask([S, 0], S)
    with tf.GradientTape() as tape:
        tape.watch(annotations)
        outputs = layer([words, annotations], mask=[None, mask])
    gradient = tape.gradient(outputs, annotations)
    assert np.isfinite(outputs).all() and np.isfinite(gradient).all()
    np.testing.assert_allclose(outputs[:1], layer([words[:1], annotations[:1]]), atol=1e-5)


def test_a_call_without_words_is_refused(source):
    words, annotations, _ = source
    with pytest.raises(UsageError, match="at least one word"):
        KerasDecoder("luong", num_units=U)([words[:, :0], annotations])


def test_without_a_mask_every_position_is_real(source):
    words, annotations, _ = source
    layer = KerasDecoder("rnnsearch", num_units=U)
    _, scores = layer([words, annotations], return_attention_scores=True)
    assert np.min(scores) > 0


def test_a_copy_has_the_start_weights_and_a_name_of_its_own(source):
    words, annotations, _ = source
    layer = KerasDecoder("kvmematt", num_units=U, num_rounds=2, random_seed=3, name="decoder")
    copy = KerasDecoder.from_config(layer.get_config())
    np.testing.assert_allclose(copy([words, annotations]), layer([words, annotations]), atol=1e-6)
    assert copy.name == "decoder" and copy.cell.hparams == layer.cell.hparams
    layer.trainable = False
    assert not KerasDecoder.from_config(layer.get_config()).trainable


@pytest.mark.parametrize("name", OTHERS)
def test_a_cell_that_attends_to_no_source_or_reads_more_is_refused(name):
    with pytest.raises(UsageError, match=f"{name!r}.*expected one of coverage, key_value"):
        KerasDecoder(name)


@pytest.mark.parametrize(
    "name, settings, words",
    [
        ("luong", {"dropout": 0.5}, "'luong' does not read dropout here.*tf.keras.layers.Dropout"),
        ("rnnsearch", {"unit_type": "gru"}, "'rnnsearch' does not read unit_type here, only num_u"),
        ("mad", {"embedding_size": 3}, "does not read embedding_size"),
        ("kvmematt", {"num_unitz": 3}, "num_unitz.*num_units"),
        ("kvmematt", {"num_units": 0}, "num_units"),
    ],
)
def test_a_wrong_setting_is_named(name, settings, words):
    with pytest.raises(UsageError, match=words):
        KerasDecoder(name, **settings)


@pytest.mark.parametrize("inputs", [[[B, T, E]], [[B, T, E], [B, D]], [[B, T, E], [B, S, None]]])
def test_inputs_of_the_wrong_shapes_are_refused(inputs):
    with pytest.raises(UsageError, match=r"words \[B, T, E\] and annotations \[B, S, D\]"):
        KerasDecoder("rnnsearch", num_units=U).build([tf.TensorShape(shape) for shape in inputs])


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda words, annotations: words, "expects 2 input.*received 1 input"),
        (lambda words, annotations: [words, annotations, words], "expects 2 input.*received 3"),
        (lambda words, annotations: [words[:, 0], annotations], "Input 0 .*expected ndim=3"),
        (lambda words, annotations: [words, annotations[..., 1:]], f"Input 1 .*value {D}, but"),
        (
            lambda words, annotations: [words, tf.RaggedTensor.from_tensor(annotations)],
            r"expected dense .*to_tensor\(\)",
        ),
    ],
)
def test_inputs_that_do_not_fit_the_layer_are_named(change, words, source):
    layer = KerasDecoder("luong", num_units=U)
    layer(source[:2])
    with pytest.raises((UsageError, ValueError), match=words):
        layer(change(*source[:2]))


def test_a_single_tensor_is_counted_before_the_layer_is_built(source):
    with pytest.raises(ValueError, match="expects 2 input.*received 1 input"):
        KerasDecoder("luong", num_units=U)(source[0])


def test_the_mask_of_the_annotations_is_not_taken_alone(source):
    words, annotations, mask = source
    with pytest.raises(UsageError, match=r"expected mask=\[None, .* a tensor of shape \(2, 5\)"):
        KerasDecoder("luong", num_units=U)([words, annotations], mask=mask)


@pytest.mark.parametrize(
    "mask, message",
    [
        ([None], "mask=.mask of the words, mask of the annotations., .* there are 1"),
        ([None, np.ones([B, S - 1], bool)], r"a mask of the annotations of shape \(2, 5\)"),
        ([np.ones([B, T, 1], bool), None], r"a mask of the words of shape .* has \(2, 3, 1\)"),
    ],
)
def test_a_mask_of_another_shape_is_refused(source, mask, message):
    words, annotations, _ = source
    with pytest.raises(UsageError, match=message):
        KerasDecoder("luong", num_units=U)([words, annotations], mask=mask)


@pytest.mark.quick("rnnsearch", "luong", "transformer")
@pytest.mark.parametrize("name", ATTENDING)
def test_the_state_is_that_after_the_last_real_word(name, source):
    words, annotations, mask = source
    layer = KerasDecoder(name, **settings_of(name))
    real = tf.sequence_mask([2, T], T)
    outputs, *state = layer([words, annotations], mask=[real, mask], return_state=True)
    alone, *expected = layer(
        [words[:1, :2], annotations[:1]], mask=[None, mask[:1]], return_state=True
    )
    np.testing.assert_allclose(outputs[:1, :2], alone, atol=1e-5)
    for ours, of_row in zip(state, expected, strict=True):
        np.testing.assert_allclose(ours[:1], of_row, atol=1e-5)


@pytest.mark.parametrize("name", ["kvmematt", "rnnsearch"])
def test_the_cell_runs_in_a_keras_rnn_from_its_initial_state(name, source):
    """As docs/keras.md says; Keras alone would start from zeros."""
    words, annotations, _ = source
    layer = KerasDecoder(name, **settings_of(name))
    expected = layer([words, annotations])
    encoded = EncoderOutput(annotations, tf.ones([B, S]), tf.constant([S] * B), ())
    outputs = tf.keras.layers.RNN(layer.cell, return_sequences=True)(
        words, initial_state=layer.cell.initial_state(encoded), constants=list(encoded[:3])
    )
    rows = [tf.reshape(each, [B * T, -1]) for each in (outputs, words)]
    readout = layer.cell.readout(*rows, DropoutMasks.none())
    np.testing.assert_allclose(tf.reshape(expected, [B * T, -1]), readout, atol=1e-5)


@pytest.mark.parametrize("name", ATTENDING)
def test_a_setting_that_is_taken_is_read(name, source, monkeypatch):
    read = watch_reads(monkeypatch, keras_decoder_module)
    words, annotations, _ = source
    defaults = {key: FIELDS[key].default for key in readable_settings(name)}
    variants = {
        "mad": [{}, {"external_addressing": "dnc"}],
        "coverage": [{"coverage_model": model} for model in ("fertility", "neural")],
        "transformer": [{}, {"self_attention_window": 0}],
        "kvmematt_transformer": [{}, {"self_attention_window": 0}],
    }
    for variant in variants.get(name, [{}]):
        layer = KerasDecoder(name, **{**defaults, **settings_of(name), **variant})
        layer([words, annotations])
    assert set(defaults) <= read


def test_the_page_names_every_setting_that_is_taken():
    page = (ROOT / "docs" / "keras.md").read_text(encoding="utf-8")
    for name in ATTENDING:
        assert f"`{name}`" in page
        for key in readable_settings(name):
            assert f"`{key}`" in page, key
