"""Cells against the oracles, over whole decodings of a padded batch."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cell_runs import decode, gradients
from helpers.parameter_counts import count_parameters
from oracles import (
    coverage,
    key_value,
    kvmematt,
    luong,
    memdec,
    ntm_attention,
    past_future,
    rnnsearch,
    transformer,
)

from tfmann.config import CELLS
from tfmann.layers.dropout import DropoutMasks
from tfmann.models.seq2seq import Seq2Seq

LENGTHS = [(5, 4), (1, 6), (3, 1), (0, 2), (7, 5)]


FAMILY = (
    "rnnsearch", "mematt", "kvmematt", "coverage", "memdec", "past_future", "transformer",
    "kvmematt_transformer",
)  # fmt: skip
WITH_ORACLE = (*FAMILY, "key_value", "luong", "ntm_attention")  # others have a test of their own
ROUNDS = ("read_weights", "write_weights", "erase_norm", "add_norm", "key_drift")
RECORDED = {
    "ntm_attention": (
        "read_weights", "content_weights", "interpolation_gate", "shift_kernel", "sharpening",
    ),
    "mematt": ROUNDS,
    "kvmematt": ROUNDS,
    "kvmematt_transformer": ROUNDS,
    "coverage": ("coverage",),
    "past_future": ("past_change", "future_change"),
    "memdec": (
        "read_weights", "write_weights", "content_weights", "interpolation_gate", "erase_norm",
        "add_norm",
    ),
}  # fmt: skip


def decode_to_readout(h, weights, annotations, words):
    """Runs the oracle of a cell whose oracle ends in the readout."""
    if h.cell == "rnnsearch":
        return rnnsearch.decode(weights, annotations, words)
    if h.cell == "coverage":
        model = h.coverage_model
        return coverage.decode(weights, model, annotations, words, h.max_fertility)
    if h.cell == "past_future":
        return past_future.decode(weights, h.future_layer, annotations, words)
    if h.cell == "memdec":
        return memdec.decode(weights, annotations, words)
    if h.is_transformer:
        window, rewrites = h.self_attention_window or 51, h.cell == "kvmematt_transformer"
        heads = h.transformer_heads
        return transformer.decode(weights, annotations, words, heads, window, rewrites)
    if h.cell == "key_value":
        system = {"key_value": "key-value", "modifying_iw": "modifying-IW"}
        name = system.get(h.key_value_system, "attn")
        return key_value.decode(weights, name, annotations, words, h.attention_score)
    single = h.cell == "mematt"
    expected = kvmematt.decode(weights, annotations, words, single_memory=single)
    names = {"read_weights": "round_alignments", "erase_norm": "forget_norms",
             "add_norm": "add_norms"}  # fmt: skip
    return {**expected, **{ours: expected[theirs] for ours, theirs in names.items()}}


def is_over_source(h, name):
    if name in ("alignments", "coverage", "fertility"):
        return True
    return name.endswith("_weights") and h.cell != "memdec"  # its memory has slots


@pytest.mark.parametrize(
    "variant,compiled",
    [
        *((name, True) for name, h in small_models.VARIANTS.items() if h["cell"] in WITH_ORACLE),
        ("luong", False),
        ("kvmematt-3", False),
    ],
)
def test_cell_equals_its_oracle(variant, compiled):
    model, batch = small_models.model(variant), small_models.batch(LENGTHS)
    h = model.hparams
    record = ("alignments",)
    record += RECORDED.get(h.cell, ())
    record += ("fertility",) if h.coverage_model == "fertility" and h.cell == "coverage" else ()
    prepared, outputs, embedded, readout, diagnostics = decode(model, batch, record, compiled)
    weights = small_models.oracle_weights(model)
    for row in range(len(LENGTHS)):
        source, steps = batch.source_length[row], batch.target_length[row]
        annotations = prepared.encoded.annotations[row, :source].numpy()
        words = embedded[:steps, row].numpy()
        if h.cell in FAMILY or h.cell == "key_value":
            expected = decode_to_readout(h, weights, annotations, words)
            values = {"outputs": readout, "states": outputs[..., : h.num_units], **diagnostics}
        else:
            states = [tuple(s) for s in small_models.row_of(prepared.state.layers, row)]
            states = [s[0] if len(s) == 1 else s for s in states]
            values = {"outputs": outputs, **diagnostics}
            if h.cell == "luong":
                expected = luong.decode(
                    weights, annotations, states, words, unit=h.unit_type,
                    scaled=h.attention == "scaled_luong", tanh=h.attention_tanh,
                    kind=h.attention if "bahdanau" in h.attention else h.attention_score,
                )  # fmt: skip
            else:
                expected = ntm_attention.decode(
                    weights, annotations, states, words,
                    num_heads=h.num_attention_heads, unit=h.unit_type, kind=h.attention_score,
                    scale=h.head_scale,
                )  # fmt: skip
        for name, value in values.items():
            actual = value[:steps, row].numpy()
            reference = np.asarray(expected[name])
            if name == "key_drift":  # the oracle gives the last round's
                actual = actual[:, -1]
            if is_over_source(h, name):
                assert np.all(actual[..., source:] == 0), f"{name} falls on padding"
                actual = actual[..., :source]
            if actual.ndim > reference.ndim:
                actual = actual[..., 0]
            np.testing.assert_allclose(
                actual, reference, rtol=1e-6, atol=1e-5, err_msg=f"{name}, row {row}"
            )


@pytest.mark.quick(*small_models.QUICK_VARIANTS)
@pytest.mark.parametrize("variant", list(small_models.VARIANTS))
def test_each_column_of_each_weight_gets_a_gradient(variant):
    model = small_models.model(variant)
    batch = small_models.batch([(6, 9)] * 12 + [(9, 5)] * 12)
    for name, gradient in gradients(model, batch).items():
        if "embedding" in name:
            used = np.abs(gradient).sum(axis=1) > 0
            assert used.sum() > 10, name
            continue
        columns = gradient.reshape(-1, gradient.shape[-1] if gradient.ndim else 1)
        assert np.all(np.abs(columns).max(axis=0) > 1e-8), name


@pytest.mark.quick("luong-cosine", "ntm-heads", "rnnsearch", "memdec", "past-future")
@pytest.mark.parametrize(
    "variant", ["luong", "luong-cosine", "luong-normed", "ntm-heads", "ntm-cosine", "rnnsearch",
                "coverage", "coverage-neural", "memdec", "past-future", "transformer",
                "transformer-window", "transformer-rewriting"],
)  # fmt: skip
def test_gradient_equals_finite_differences(variant):
    from tfmann.training.objective import sum_loss

    model, batch = small_models.model(variant, init_weight=0.5), small_models.batch(LENGTHS)
    slopes = gradients(model, batch)
    loss = tf.function(lambda: sum_loss(model, batch[:5], None, tf.float32).total, autograph=False)
    stream = np.random.default_rng(1)
    for variable in model.trainable_variables:
        direction = stream.normal(size=variable.shape).astype(np.float32)
        direction /= np.linalg.norm(direction) + 1e-9
        start, losses = variable.numpy(), []
        for sign in (1, -1):
            variable.assign(start + sign * 2e-2 * direction)
            losses.append(float(loss()))
        variable.assign(start)
        numeric = (losses[0] - losses[1]) / 4e-2
        analytic = float((slopes[variable.name] * direction).sum())
        tolerance = 0.02 * max(1.0, abs(analytic))
        if variant.startswith("transformer"):
            tolerance = max(tolerance, 0.05)  # the kinks of ReLU
        assert abs(numeric - analytic) < tolerance, variable.name


@pytest.mark.parametrize(
    "cell,rounds,millions",
    [("rnnsearch", 1, 53.98), ("mematt", 1, 55.03), ("kvmematt", 1, 55.03), ("kvmematt", 2, 58.18)],
)
def test_the_rnnsearch_family_has_the_papers_parameter_counts(cell, rounds, millions):
    from tfmann.config import HParams

    h = HParams(
        cell=cell, num_rounds=rounds, num_units=512, encoder_type="bi", unit_type="gru",
        annotation_merge="sum", projection_bias=True,
    )  # fmt: skip
    assert round(count_parameters(h, 30000, 30000) / 1e6, 2) == millions


@pytest.mark.quick(*small_models.QUICK_VARIANTS)
@pytest.mark.parametrize("variant", list(small_models.VARIANTS))
def test_keras_rnn_runs_the_cell(variant):
    """`tf.keras.layers.RNN` over the cell gives what our own decoding gives."""
    model, batch = small_models.model(variant), small_models.batch([(5, 4), (2, 4)])
    prepared, outputs, embedded, *_ = decode(model, batch, (), compiled=False)
    words = tf.transpose(tf.convert_to_tensor(embedded), [1, 0, 2])
    source = [tf.convert_to_tensor(part) for part in prepared.encoded[:3]]
    layer = tf.keras.layers.RNN(model.cell, return_sequences=True)
    result = layer(words, initial_state=prepared.state, constants=source)
    np.testing.assert_allclose(tf.transpose(result, [1, 0, 2]), outputs, atol=1e-5)
    assert tf.TensorShape([model.cell.output_size]) == result.shape[-1:]
    assert len(layer.trainable_weights) == len(model.cell.trainable_variables)


@pytest.mark.quick("kvmematt-3")
@pytest.mark.parametrize("variant", ["luong", "kvmematt-3", "transformer-rewriting"])
def test_keras_rnn_continues_a_sequence(variant):
    """In a compiled function, over sources of any length."""
    model, batch = small_models.model(variant), small_models.batch([(5, 4), (2, 4)])
    prepared, outputs, embedded, *_ = decode(model, batch, (), compiled=False)
    layer = tf.keras.layers.RNN(model.cell, return_sequences=True, return_state=True)

    annotations, mask, length = map(tf.convert_to_tensor, prepared.encoded[:3])
    words = tf.transpose(tf.convert_to_tensor(embedded), [1, 0, 2])

    @tf.function(input_signature=[tf.TensorSpec([None, None, annotations.shape[-1]])])
    def run(annotations):
        source = [annotations, mask, length]
        first, *state = layer(words[:, :2], initial_state=prepared.state, constants=source)
        second, *_ = layer(words[:, 2:], initial_state=state, constants=source)
        return tf.concat([first, second], axis=1)

    result = run(annotations)
    np.testing.assert_allclose(tf.transpose(result, [1, 0, 2]), outputs, atol=1e-5)


def test_dropout_changes_with_the_step_and_not_otherwise():
    model, batch = small_models.model("luong", dropout=0.5), small_models.batch(LENGTHS)
    first, repeated, later = (
        gradients(model, batch, DropoutMasks(tf.constant([1, step])))["model/cell/memory_kernel:0"]
        for step in (7, 7, 8)
    )
    assert np.array_equal(first, repeated)
    assert not np.allclose(first, later)


def test_dropout_mask_has_its_rate_and_scale():
    mask = DropoutMasks(tf.constant([1, 2])).mask("here", 0.3, [400, 100]).numpy()
    assert set(np.unique(mask)) == {0.0, np.float32(1 / 0.7)}
    assert abs((mask == 0).mean() - 0.3) < 0.01
    assert abs(mask.mean() - 1.0) < 0.02


SLOTS = {"num_memory_locations": 3, "memory_unit_size": 4}


@pytest.mark.parametrize("name", sorted(CELLS))
def test_the_registry_says_which_cells_have_alignments(name):
    model = small_models.model("rnnsearch", cell=name, **SLOTS)
    diagnostics = decode(model, small_models.batch(LENGTHS), ("*",), compiled=False)[-1]
    assert ("alignments" in diagnostics) == CELLS[name].has_alignments


def test_the_heads_of_ntm_attention_begin_at_their_biases():
    starts = {"gate_start": 2.0, "stay_start": 3.0, "sharpening_start": -3.0, "head_scale": 0.0}
    h = small_models.hparams("ntm-heads", **starts)
    bias = Seq2Seq(h, small_models.SOURCE_SIZE, small_models.TARGET_SIZE).cell.head_bias.numpy()
    by_head = bias.reshape(h.num_attention_heads, -1)
    assert not by_head[:, : h.num_units + 1].any()  # key and strength
    np.testing.assert_array_equal(by_head[:, h.num_units + 1 :], [[2, 0, 0, 3, 0, 0, -3]] * 3)
