"""The oracle of the Transformer by hand; encoder, causality, window, dropout and rewriting."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cell_runs import decode
from helpers.translations import PAIRS, translator
from oracles import transformer

from tfmann.api import Model
from tfmann.cells.diagnostics import SHAPES
from tfmann.config import HParams
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.memory import access
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import named_variables
from tfmann.visualization import sentence_figures

LENGTHS = [(5, 4), (1, 6), (3, 1), (0, 2), (7, 5)]
VARIANTS = ("transformer", "transformer-window", "transformer-rewriting")


def copy_weights(model, baseline):
    """Starts a model from another one; returns the names of the weights that it has alone."""
    arrays = {v.name.split(":")[0]: v.numpy() for v in baseline.trainable_variables}
    return named_variables.assign_matching(model.trainable_variables, arrays, "there")[1]


# --- the oracle --------------------------------------------------------------------------------


def test_positions_by_hand():
    np.testing.assert_array_equal(transformer.position(0, 4), [0, 1, 0, 1])
    expected = [np.sin(3), np.cos(3), np.sin(0.03), np.cos(0.03)]  # 10000^(2/4) = 100
    np.testing.assert_allclose(transformer.position(3, 4), expected)


def test_heads_read_their_own_columns():
    keys, values = np.array([[9.0, 0.0], [0.0, 9.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    weights, context = transformer.attend(np.array([9.0, 9.0]), keys, values, heads=2)
    np.testing.assert_allclose(weights, [[1, 0], [0, 1]], atol=1e-12)
    np.testing.assert_allclose(context, [1, 4], atol=1e-12)
    weights, _ = transformer.attend(np.array([1.0, 0.0]), np.eye(2), values, heads=1)
    np.testing.assert_allclose(weights[0, 0] / weights[0, 1], np.exp(1 / np.sqrt(2)))


def test_normalisation_by_hand():
    weights = {"self_norm_gain": np.array([1.0, 2.0]), "self_norm_bias": np.array([0.5, 0.0])}
    result = transformer.normalize(weights, "self", np.array([3.0, 7.0]))
    np.testing.assert_allclose(result, [-0.5, 2.0], atol=1e-6)


def test_rewriting_by_hand():
    layer = {
        "write_query_kernel": 99.0 * np.eye(2), "forget_kernel": np.zeros([2, 2]),
        "forget_bias": np.zeros(2), "add_kernel": np.eye(2),
    }  # fmt: skip
    written = transformer.rewrite(layer, np.array([1.0, 0.0]), np.array([[4.0, 6.0], [0.0, 1.0]]))
    np.testing.assert_allclose(written["where"], [1, 0], atol=1e-12)
    np.testing.assert_allclose(written["keys"], [[2 + np.tanh(1), 3], [0, 1]], atol=1e-12)


def test_the_paper_s_base_model_has_its_parameters():
    # Vaswani et al. 2017, Table 3: 65M with one matrix of 37,000 words for both sides and output
    layers = 6 * (
        transformer.layer_parameters(512, 2048) + transformer.layer_parameters(512, 2048, 512)
    )
    assert round((layers + 37_000 * 512) / 1e6) == 63


# --- parameters, encoder -----------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["transformer", "kvmematt_transformer"])
def test_the_model_has_the_oracle_s_count(cell):
    h = HParams(
        cell=cell, encoder_type="transformer", num_units=8, feed_forward_size=11, num_layers=3,
        num_encoder_layers=2, share_vocab=True, tie_output_embedding=True,
    )  # fmt: skip
    encoder = 2 * transformer.layer_parameters(8, 11) + 2 * 8
    decoder = 3 * transformer.layer_parameters(8, 11, 8) + 2 * 8
    rewriting = transformer.rewriting_parameters(8) if cell == "kvmematt_transformer" else 0
    count = Seq2Seq(h, 20, 20).count_parameters()
    assert count == encoder + decoder + rewriting + 20 * 8


@pytest.mark.parametrize("variant", ["transformer", "transformer-rewriting"])
def test_encoder_equals_its_oracle(variant):
    model, batch = small_models.model(variant), small_models.batch(LENGTHS)
    encoded = model.prepare(batch.source, batch.source_length).encoded
    assert encoded.final_state == () and model.hparams.final_states == 0
    weights, table = small_models.encoder_weights(model), model.source_embedding.numpy()
    heads = model.hparams.transformer_heads
    for row, length in enumerate(batch.source_length):
        words = table[batch.source[row, :length]].astype(np.float64)
        expected = transformer.encode(weights, words, heads)
        np.testing.assert_allclose(encoded.annotations[row, :length], expected, atol=1e-5)
        assert np.all(encoded.annotations[row, length:].numpy() == 0)


@pytest.mark.quick("luong", "kvmematt-1")
@pytest.mark.parametrize("variant", ["rnnsearch", "luong", "ntm-gru", "kvmematt-1", "coverage"])
def test_recurrent_decoders_attend_to_a_transformer_s_annotations(variant):
    model = small_models.model(variant, encoder_type="transformer", transformer_heads=2)
    assert model.encoder.annotation_width == 8
    together, alone = small_models.batch([(2, 5), (7, 5)]), small_models.batch([(2, 5)])
    alone = alone._replace(source=together.source[:1, :3], target_in=together.target_in[:1])
    _, _, _, readout, diagnostics = decode(model, together, ("alignments",), True)
    _, _, _, expected, _ = decode(model, alone, ("alignments",), True)
    np.testing.assert_allclose(readout[:, 0], expected[:, 0], atol=1e-5)
    np.testing.assert_allclose(np.sum(diagnostics["alignments"], axis=-1), 1.0, atol=1e-5)


def test_settings_that_a_transformer_cannot_have():
    with pytest.raises(UsageError, match="transformer_heads=3 share the num_units=8"):
        small_models.hparams("transformer", transformer_heads=3)
    small_models.hparams("rnnsearch", transformer_heads=3)  # which has no heads
    with pytest.raises(UsageError, match="'summary' begins the encoder's states"):
        small_models.hparams("rnnsearch", cell="summary", encoder_type="transformer")


# --- the decoder -------------------------------------------------------------------------------


@pytest.mark.quick("transformer-window", "transformer-rewriting")
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_later_word_changes_no_earlier_output(variant):
    model, batch = small_models.model(variant), small_models.batch([(6, 7), (3, 7)])
    changed = batch.target_in.copy()
    changed[:, 4] = 3 + (changed[:, 4] - 2) % (small_models.TARGET_SIZE - 3)
    assert np.all(changed[:, 4] != batch.target_in[:, 4])
    before, after = (
        decode(model, batch._replace(target_in=words), (), True)[3].numpy()
        for words in (batch.target_in, changed)
    )
    np.testing.assert_array_equal(before[:4], after[:4])
    # every later one, in the window's reach
    assert np.all(np.abs(before[4:7] - after[4:7]).max(axis=-1) > 1e-4)


def test_a_word_outside_the_window_is_not_seen():
    model = small_models.model("transformer-window")
    batch = small_models.batch([(6, 7)])
    changed = batch.target_in.copy()
    changed[:, 1] = 3 + (changed[:, 1] - 2) % (small_models.TARGET_SIZE - 3)
    before, after = (
        decode(model, batch._replace(target_in=words), (), True)[3].numpy()
        for words in (batch.target_in, changed)
    )
    differences = np.abs(before - after).max(axis=(1, 2))
    assert np.all(differences[1:4] > 1e-4)  # three words, itself among them; one layer
    np.testing.assert_allclose(before[4:], after[4:], atol=1e-6)


def test_a_window_that_no_word_leaves_is_as_any_wider_one():
    batch, results = small_models.batch(LENGTHS), []
    for window in (7, 0, 20):  # T is 7 with `</s>`; 0 is 51
        model = small_models.model("transformer-window", self_attention_window=window)
        results.append(decode(model, batch, (), True)[3])
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], atol=1e-5)


@pytest.mark.quick("transformer-rewriting")
@pytest.mark.parametrize("variant", VARIANTS)
def test_padding_changes_nothing(variant):
    model, batch = small_models.model(variant), small_models.batch([(2, 6), (7, 6)])
    single = batch._replace(
        source=batch.source[:1, :3], source_length=batch.source_length[:1],
        target_in=batch.target_in[:1], target_length=batch.target_length[:1],
    )  # fmt: skip
    readouts = (decode(model, b, (), True)[3][:, 0] for b in (batch, single))
    np.testing.assert_allclose(*readouts, atol=1e-5)


@pytest.mark.parametrize("variant", ["transformer", "transformer-rewriting"])
def test_dropout_is_of_the_input_and_of_what_each_part_adds(variant):
    """Where all parts are dropped, the output is LN of the input alone, by its own mask."""
    model = small_models.model(variant, dropout=0.5)
    cell, units = model.cell, 8
    batch = small_models.batch([(4, 3)])
    prepared = model.prepare(batch.source, batch.source_length)
    embedded = model.embed_target(tf.constant([5]))
    words = cell.prepare_inputs(embedded, DropoutMasks.none())
    of_dropout = DropoutMasks(tf.constant([1, 2]))
    masked = cell.prepare_inputs(embedded, of_dropout)
    assert masked.shape[-1] == units * (2 + 3 * len(cell.layers)) and words.shape[-1] == units
    np.testing.assert_array_equal(masked[:, :units], words)
    assert set(np.unique(masked[:, units:])) == {0.0, 2.0}

    def output(first, parts):
        masks = tf.concat([first, tf.concat(parts, axis=-1)], axis=-1)
        return cell.step(tf.concat([words, masks], axis=-1), prepared.state, prepared.source).output

    ones, zeros = tf.ones([1, units]), tf.zeros([1, units])
    first = tf.constant([[2.0, 0.0] * (units // 2)])
    of_word = (words + transformer.position(0, units).astype(np.float32)) * first
    expected = cell.output_norm(of_word)
    np.testing.assert_allclose(output(first, [zeros] * 6), expected, atol=1e-5)
    plain = cell.step(words, prepared.state, prepared.source).output
    np.testing.assert_allclose(output(ones, [ones] * 6), plain, atol=1e-5)
    for part in range(6):  # each mask belongs to a part of its own
        only = [ones if number == part else zeros for number in range(6)]
        assert np.abs(output(ones, only) - output(ones, [zeros] * 6)).max() > 1e-3, part


def test_encoder_dropout_depends_on_the_update():
    model, batch = small_models.model("transformer", dropout=0.5), small_models.batch([(6, 3)])
    first, repeated, later = (
        model.prepare(
            batch.source, batch.source_length, DropoutMasks(tf.constant([1, step]))
        ).encoded.annotations.numpy()
        for step in (7, 7, 8)
    )
    np.testing.assert_array_equal(first, repeated)
    assert np.abs(first - later).max() > 1e-3


# --- rewriting ---------------------------------------------------------------------------------


def rewriting_and_plain():
    model = small_models.model("transformer-rewriting")
    plain = small_models.model("transformer-rewriting", cell="transformer", random_seed=9)
    return model, plain


def test_without_forget_and_add_it_is_the_plain_transformer(monkeypatch):
    model, plain = rewriting_and_plain()
    copy_weights(plain, model)
    batch = small_models.batch(LENGTHS)

    def results(of):
        _, _, _, readout, diagnostics = decode(of, batch, ("alignments",), True)
        return readout.numpy(), diagnostics["alignments"].numpy()

    expected = results(plain)
    assert np.abs(results(model)[0] - expected[0]).max() > 1e-3  # it does write
    write = access.erase_and_add
    monkeypatch.setattr(
        access, "erase_and_add", lambda keys, weights, f, a: write(keys, weights, 0 * f, 0 * a)
    )
    for actual, reference in zip(results(model), expected):
        np.testing.assert_allclose(actual, reference, rtol=0, atol=1e-5)


def test_it_starts_almost_as_the_plain_transformer():
    _, plain = rewriting_and_plain()
    h = plain.hparams.replace(cell="kvmematt_transformer")
    model = Seq2Seq(h, small_models.SOURCE_SIZE, small_models.TARGET_SIZE)
    fresh = copy_weights(model, plain)
    names = {name.split("cell/")[1] for name in fresh}
    assert names == {
        f"layer_1/{name}"
        for name in ("write_query_kernel", "forget_kernel", "forget_bias", "add_kernel")
    }
    assert not np.any(model.cell.layers[1].rewriting.add_kernel)
    model.cell.layers[1].rewriting.forget_kernel.assign(tf.zeros([8, 8]))
    batch = small_models.batch(LENGTHS)
    _, _, _, readout, diagnostics = decode(model, batch, ("erase_norm", "key_drift"), True)
    forget = diagnostics["erase_norm"][0].numpy() / np.sqrt(8)  # of equal numbers
    np.testing.assert_allclose(forget, 1 / (1 + np.exp(4.0)), rtol=1e-5)
    difference = readout - decode(plain, batch, (), True)[3]
    assert 0 < np.abs(difference).max() < 0.2 * np.abs(readout).max()


def test_the_trace_has_its_round_and_the_figure_draws_it(untraced):
    trace = Model(translator("transformer-rewriting"), "nowhere").trace(PAIRS[0])
    assert set(trace) == {
        "alignments", "read_weights", "write_weights", "erase_norm", "add_norm", "key_drift",
    }  # fmt: skip
    sizes = {"S": len(trace.source_tokens), "N": len(trace.source_tokens), "R": 1, "H": 1, "1": 1}
    for name, value in trace.items():
        shape = tuple(sizes[letter] for letter in SHAPES[name])
        assert value.shape == (len(trace.tokens), *shape), name
    assert trace.rounds == 1
    figures = dict(sentence_figures.sentence_figures(trace))
    assert "rounds" in figures
    np.testing.assert_allclose(trace["write_weights"].sum(axis=-1), 1.0, atol=1e-5)
