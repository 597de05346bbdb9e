"""The encoder against its oracle: one stack or two; what its last layer's dropout touches."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.oracle_weights import random_unit
from oracles import key_value, recurrent

from tfmann import config
from tfmann.decoding.teacher_forcing import teacher_forced
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks

LENGTHS = [(5, 4), (1, 6), (3, 1), (0, 2), (7, 5)]
PARTS = ("kernel", "recurrent_kernel", "bias")


def stack(model, direction):
    """The layers of one direction as the oracles want them, from the bottom."""
    arrays = small_models.arrays(model)
    return [
        {part: arrays[f"encoder/layer_{layer}/{direction}/{part}"] for part in PARTS}
        for layer in range(len(model.encoder.layers))
    ]


def expected(model, words, length):
    """Annotations and final states of one sentence by the oracles."""
    unit, forward = model.hparams.unit_type, stack(model, "forward")
    if model.hparams.encoder_type == "bi":
        backward = stack(model, "backward")
        outputs, finals = recurrent.bidirectional_stacks(words, length, unit, forward, backward)
        if model.hparams.annotation_merge == "sum":
            outputs = sum(np.split(outputs, 2, axis=1))
        return outputs[:length], finals
    states, rows = [recurrent.zero_state(unit, layer) for layer in forward], []
    for x in words[:length]:
        top, states = recurrent.stack_step(unit, forward, x, states)
        rows.append(top)
    return np.array(rows), states


@pytest.mark.parametrize("unit", ["gru", "lstm"])
def test_the_oracle_of_two_stacks_is_the_other_oracles(unit):
    rng = np.random.default_rng(3)
    gates = {"gru": 3, "lstm": 4}[unit]
    forward, backward = ([random_unit(rng, 4, 4, gates) for _ in range(2)] for _ in range(2))
    xs = rng.normal(size=(5, 4))
    outputs, finals = recurrent.bidirectional_stacks(xs, 3, unit, forward[:1], backward[:1])
    layer, *last = recurrent.bidirectional_layer(xs, 3, unit, forward[0], backward[0])
    np.testing.assert_array_equal(outputs, layer)
    np.testing.assert_array_equal(finals, last)
    outputs, finals = recurrent.bidirectional_stacks(xs, 3, unit, forward, backward)
    assert np.all(outputs[3:] == 0) and len(finals) == 4
    tops = [final if unit == "gru" else final[0] for final in finals[2:]]
    np.testing.assert_array_equal(tops, [outputs[2, :4], outputs[0, 4:]])
    bottom = finals[0] if unit == "gru" else finals[0][0]
    np.testing.assert_array_equal(bottom, layer[2, :4])
    if unit == "lstm":
        weights = {"forward_layers": forward, "backward_layers": backward}
        np.testing.assert_array_equal(key_value.encode(weights, xs[:3]), outputs[:3])


@pytest.mark.parametrize("unit", ["gru", "lstm"])
@pytest.mark.parametrize(
    "kind,layers,merge",
    [("bi", 1, "concat"), ("bi", 4, "concat"), ("bi", 6, "sum"), ("uni", 2, "concat")],
)
def test_encoder_equals_its_oracle(unit, kind, layers, merge):
    model = small_models.model(
        "luong", unit_type=unit, encoder_type=kind, num_encoder_layers=layers, bridge="tanh",
        annotation_merge=merge,
    )  # fmt: skip
    batch = small_models.batch(LENGTHS)
    encoded = model.prepare(batch.source, batch.source_length).encoded
    assert encoded.annotations.shape[-1] == model.encoder.annotation_width
    assert len(encoded.final_state) == model.hparams.final_states
    table = small_models.arrays(model)["source_embedding"]
    for row, length in enumerate(batch.source_length):
        hidden, finals = expected(model, table[batch.source[row]], length)
        np.testing.assert_allclose(encoded.annotations[row, :length], hidden, atol=1e-5)
        assert np.all(encoded.annotations[row, length:].numpy() == 0)
        for state, final in zip(encoded.final_state, finals):
            final = final if isinstance(final, tuple) else (final,)
            for part, value in zip(state, final):
                np.testing.assert_allclose(part[row], value, atol=1e-5)


def test_a_layer_above_reads_its_own_direction_only():
    model = small_models.model("luong", num_encoder_layers=4, bridge="tanh")
    rows = {v.name: v.shape[0] for v in model.encoder.trainable_variables if "/kernel" in v.name}
    units, width = model.hparams.num_units, model.hparams.embedding_width
    for direction in ("forward", "backward"):
        assert rows[f"model/encoder/layer_0/{direction}/kernel:0"] == width
        assert rows[f"model/encoder/layer_1/{direction}/kernel:0"] == units
    batch = small_models.batch([(5, 4)])
    before = model.prepare(batch.source, batch.source_length).encoded.annotations
    weights = {v.name: v for v in model.encoder.trainable_variables}
    weights["model/encoder/layer_0/backward/kernel:0"].assign_add(tf.ones([width, 4 * units]))
    after = model.prepare(batch.source, batch.source_length).encoded.annotations
    np.testing.assert_array_equal(before[..., :units], after[..., :units])
    assert np.abs(before[..., units:] - after[..., units:]).max() > 1e-3


def noisy(seed=7):
    return DropoutMasks(tf.constant([1, seed]))


def test_top_dropout_of_the_encoder_is_of_what_leaves_it():
    """Annotations are the same without it, but for zeros; final states are the same."""
    batch = small_models.batch([(9, 3), (4, 3)])
    model = small_models.model("luong", num_encoder_layers=4, bridge="tanh", top_dropout=0.5)
    clean = model.prepare(batch.source, batch.source_length).encoded
    dropped = model.prepare(batch.source, batch.source_length, noisy()).encoded
    tf.nest.map_structure(np.testing.assert_array_equal, dropped.final_state, clean.final_state)
    mask = dropped.annotations.numpy() != 0
    assert 0.35 < mask[0].mean() < 0.65
    np.testing.assert_allclose(dropped.annotations, 2.0 * mask * clean.annotations, rtol=1e-6)


def run_key_value(model, batch, masks):
    prepared = model.prepare(batch.source, batch.source_length)  # the source without dropout
    outputs = teacher_forced(
        model, prepared, batch.target_in, batch.target_length, masks, record=("alignments",)
    )
    return prepared, outputs[0].numpy(), outputs[2]["alignments"].numpy()


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_top_dropout_of_the_decoder_is_of_d_where_it_asks_and_is_read(dropout):
    """The layers above read d without dropout; the next query is d with dropout."""
    settings = {"num_decoder_layers": 2, "dropout": dropout}
    model = small_models.model("key-value", top_dropout=0.5, **settings)
    plain = small_models.model("key-value", **settings)
    batch = small_models.batch([(6, 5), (3, 5)])
    units = model.hparams.num_units
    prepared, actual, alignments = run_key_value(model, batch, noisy())
    _, without_dropout, _ = run_key_value(plain, batch, noisy())
    d, mask = actual[..., :units], actual[..., :units] != 0
    assert 0.3 < mask.mean() < 0.7 and not np.array_equal(mask[0], mask[1])
    np.testing.assert_allclose(d, 2.0 * mask * without_dropout[..., :units], rtol=1e-5)
    keys = prepared.source.keys.numpy()  # [B, Q, S]
    for row, length in enumerate(batch.source_length):
        for step in range(1, len(d)):
            scores = d[step - 1, row, : units // 2] @ keys[row, :, :length]
            weights = np.exp(scores - scores.max())
            np.testing.assert_allclose(
                alignments[step, row, :length], weights / weights.sum(), atol=1e-5
            )


def test_the_rows_of_mino_drop_what_last_layers_put_out_and_nothing_else():
    files = sorted((Path(__file__).parents[2] / "hparams" / "mino2017").glob("*_*.json"))
    assert len(files) == 9
    for path in files:
        h = config.make({}, str(path))
        assert (h.dropout, h.top_dropout, h.readout_dropout) == (0.0, 0.5, 0.0), path
        assert (h.encoder_type, h.encoder_layers, h.decoder_layers) == ("bi", 4, 2)


def test_top_dropout_needs_an_encoder():
    with pytest.raises(UsageError, match="encoder_type='memory' has none"):
        config.HParams(cell="ntm", encoder_type="memory", top_dropout=0.1)
