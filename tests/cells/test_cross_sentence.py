"""The two cross-sentence baselines against their oracles, with 0 to 3 sentences before."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cross_sentence_models import (
    LENGTHS,
    NEW_WEIGHTS,
    PARTS,
    SYSTEMS,
    decode,
    histories,
    model,
    variables_by_name,
)
from helpers.parameter_counts import count_parameters
from oracles import cross_sentence

from tfmann import config
from tfmann.cells.diagnostics import SHAPES
from tfmann.layers import initializers as weights_module
from tfmann.layers.dropout import DropoutMasks
from tfmann.models import seq2seq
from tfmann.models.history_encoder import History
from tfmann.training import named_variables

SIZES = {"num_units": 8, "embedding_size": 6, "encoder_type": "bi", "unit_type": "gru"}


def compiled(built):
    """`decode` in a graph that knows no size but those of the model."""

    def run(batch, history):
        return decode(built, small_models.batch(LENGTHS)._replace(**batch), history)

    ids, lengths = seq2seq.IDS, seq2seq.LENGTHS
    parts = {"source": ids, "source_length": lengths, "target_in": ids, "target_length": lengths}
    document = History(tf.TensorSpec([None, None, None], tf.int32), ids)
    function = tf.function(run, input_signature=[parts, document], autograph=False)
    return lambda batch, history: function(
        {name: tf.constant(getattr(batch, name)) for name in parts},
        History(*map(tf.constant, history)),
    )


def oracle_weights(built):
    arrays = small_models.arrays(built)
    folders = {
        "forward_gru": "encoder/layer_0/forward",
        "backward_gru": "encoder/layer_0/backward",
        "sentence_gru": "history/sentence/forward",
        "document_gru": "history/document/forward",
        "previous_forward_gru": "history/layer_0/forward",
        "previous_backward_gru": "history/layer_0/backward",
    }
    units = {
        name: {part: arrays[f"{folder}/{part}"] for part in PARTS}
        for name, folder in folders.items()
        if f"{folder}/kernel" in arrays
    }
    return {**small_models.oracle_weights(built), **units}, arrays["source_embedding"]


def expected(built, batch, history, row, words):
    weights, table = oracle_weights(built)
    source = table[batch.source[row, : batch.source_length[row]]]
    before = [table[ids[:n]] for ids, n in zip(history.ids[row], history.length[row]) if n]
    run = getattr(cross_sentence, f"decode_{built.hparams.cell}")
    return run(weights, source, before, words)


# --- against the oracle ------------------------------------------------------------------


@pytest.mark.parametrize("graph", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_cell_and_encoders_equal_the_oracle(system, graph):
    built = model(system, attention_size=7, readout_size=11)
    batch, history = small_models.batch(LENGTHS), histories()
    run = compiled(built) if graph else lambda *arguments: decode(built, *arguments)
    prepared, readout, states, embedded, diagnostics = run(batch, history)
    for row, (source, steps) in enumerate(zip(batch.source_length, batch.target_length)):
        reference = expected(built, batch, history, row, embedded[:steps, row].numpy())
        actual = {"outputs": readout, "states": states, "alignments": diagnostics["alignments"]}
        actual = {name: value[:steps, row].numpy() for name, value in actual.items()}
        assert np.all(actual["alignments"][:, source:] == 0)
        actual["alignments"] = actual["alignments"][:, :source]
        document = small_models.row_of(prepared.encoded.document, row)
        if system == "summary":
            actual["annotations"] = prepared.encoded.annotations[row, :source].numpy()
            actual["summary"] = document.vector
            gates = diagnostics["summary_gate"][:steps, row, 0]
            np.testing.assert_allclose(gates, reference["gates"].mean(axis=1), atol=1e-5)
        else:
            last = history.length[row, -1]
            back = diagnostics["previous_alignments"][:steps, row].numpy()
            assert np.all(back[:, last:] == 0), "on padding, or on what is not there"
            actual["previous_alignments"] = back[:, :last]
            assert document.mask.sum() == last and np.all(document.annotations[last:] == 0)
        for name, value in actual.items():
            np.testing.assert_allclose(value, reference[name], atol=1e-5, err_msg=f"{name} {row}")


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_shown_has_its_documented_shape(system):
    batch = small_models.batch(LENGTHS)
    *_, diagnostics = decode(model(system), batch, histories())
    sizes = {"S": batch.source.shape[1], "S'": 6, "1": 1}
    steps = batch.target_length.max()
    assert set(diagnostics) == {"alignments"} | {
        "summary": {"summary_gate"}, "previous": {"previous_alignments"}
    }[system]  # fmt: skip
    for name, value in diagnostics.items():
        assert value.shape == (steps, len(LENGTHS), *(sizes[letter] for letter in SHAPES[name]))


# --- what is the history, and what is not --------------------------------------------------


def outputs_of(built, batch, document):
    _, readout, states, _, diagnostics = decode(built, batch, document)
    real = np.arange(readout.shape[0])[:, None] < batch.target_length
    parts = [readout, states, diagnostics["alignments"]]
    return [np.where(real[..., None], part, 0.0) for part in parts]


def assert_same(actual_parts, expected_parts, atol=1e-6):
    for actual, desired in zip(actual_parts, expected_parts):
        np.testing.assert_allclose(actual, desired, atol=atol)


@pytest.mark.parametrize("system", SYSTEMS)
def test_padding_of_the_history_changes_nothing(system):
    built, batch, history = model(system), small_models.batch(LENGTHS), histories()
    unpadded = outputs_of(built, batch, history)
    stream = np.random.default_rng(8)
    for sentences, words in ((0, 4), (2, 0), (2, 5)):
        shape = np.array(history.ids.shape) + [0, sentences, words]
        ids = stream.integers(3, small_models.SOURCE_SIZE, shape, np.int32)
        for row, column in np.ndindex(*history.length.shape):
            real = history.length[row, column]
            ids[row, sentences + column, :real] = history.ids[row, column, :real]
        length = np.pad(history.length, [(0, 0), (sentences, 0)])
        assert_same(outputs_of(built, batch, History(ids, length)), unpadded)


def test_a_sentence_that_is_missing_between_others_is_skipped():
    built, batch, history = model("summary"), small_models.batch(LENGTHS), histories()
    history.length[2:] = [[2, 3, 0]] * 3
    moved = History(np.roll(history.ids, 1, axis=1), np.roll(history.length, 1, axis=1))
    outputs = outputs_of(built, batch, history)
    assert_same([part[:, 2:] for part in outputs_of(built, batch, moved)],
                [part[:, 2:] for part in outputs])  # fmt: skip
    history.ids[2:, [0, 1]] = history.ids[2:, [1, 0]]  # the other order is another history
    assert np.abs(outputs_of(built, batch, history)[0] - outputs[0])[:, 2:].max() > 1e-3


def test_previous_looks_at_the_last_sentence_alone():
    built, batch, history = model("previous"), small_models.batch(LENGTHS), histories()
    last = History(history.ids[:, -1:], history.length[:, -1:])
    outputs = outputs_of(built, batch, history)
    assert_same(outputs_of(built, batch, last), outputs)
    history.ids[:, -1] = history.ids[:, -1, ::-1]
    assert np.abs(outputs_of(built, batch, history)[0] - outputs[0]).max() > 1e-3


# --- RNNSearch ---------------------------------------------------------------------------


def start_from(built, baseline):
    arrays = {name: value.numpy() for name, value in variables_by_name(baseline).items()}
    return named_variables.assign_matching(built.trainable_variables, arrays, "there")


@pytest.mark.parametrize("variant", ["rnnsearch", "rnnsearch-sum"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_without_history_it_is_rnnsearch_to_the_last_bit(system, variant):
    baseline, batch = small_models.model(variant), small_models.batch(LENGTHS)
    built = small_models.model(variant, cell=system)
    start_from(built, baseline)
    decoded = decode(baseline, batch, ())
    none = History(histories().ids, np.zeros_like(histories().length))
    for document in ((), none):
        actual = decode(built, batch, document)
        for values, desired in zip(actual[1:3], decoded[1:3]):
            np.testing.assert_array_equal(values, desired)
        np.testing.assert_array_equal(actual[4]["alignments"], decoded[4]["alignments"])
        back = actual[4].get("previous_alignments", tf.zeros([1]))
        assert np.all(back.numpy() == 0)
    # a cell that is called without a model: as by tf.keras.layers.RNN
    prepared = built.prepare(batch.source, batch.source_length)
    bare = prepared.encoded._replace(document=())
    inputs = built.cell.prepare_inputs(
        built.embed_target(batch.target_in[:, 0]), DropoutMasks.none()
    )
    np.testing.assert_array_equal(built.cell.initial_state(bare).hidden, prepared.state.hidden)
    ours, theirs = (
        built.cell.step(inputs, prepared.state, built.cell.prepare(encoded)).output
        for encoded in (bare, prepared.encoded)
    )
    np.testing.assert_array_equal(ours, theirs)
    with_history = decode(built, batch, histories())[1] - decoded[1]
    rows = np.abs(with_history).max(axis=(0, 2))
    assert rows[0] == 0 and np.all(rows[1:] > 1e-3)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_weight_of_rnnsearch_is_there_by_its_name(system):
    built, baseline = model(system), small_models.model("rnnsearch", random_seed=6)
    matched, fresh = start_from(built, baseline)
    assert set(matched) == set(variables_by_name(baseline))
    assert {name.split("/", 1)[1] for name in fresh} == NEW_WEIGHTS[system]
    for name, variable in variables_by_name(baseline).items():
        np.testing.assert_array_equal(variables_by_name(built)[name], variable)


PAPER = {"num_units": 1000, "embedding_size": 620, "encoder_type": "bi", "unit_type": "gru"}


def count_additional_parameters(system, sizes):
    counts = [
        count_parameters(config.HParams(cell=cell, **sizes), 4, 4) for cell in (system, "rnnsearch")
    ]
    return counts[0] - counts[1]


@pytest.mark.parametrize("system,count", [("summary", 18_866_000), ("previous", 19_967_000)])
def test_parameters_are_those_of_table_5(system, count, monkeypatch):
    monkeypatch.setattr(weights_module, "draw", lambda op, weight, shape, stream: np.zeros(shape))
    assert count_additional_parameters(system, PAPER) == count
    sizes = (6, 8, 16) + ((8, 6) if system == "previous" else ())
    parts = getattr(cross_sentence, f"{system}_parameters")(*sizes)
    assert count_additional_parameters(system, SIZES) == sum(parts.values())


# --- settings ----------------------------------------------------------------------------


def test_the_registry_says_which_cells_read_earlier_sentences():
    cells = {name: spec for name, spec in config.CELLS.items() if spec.reads_documents}
    sizes = {name: spec.history_size for name, spec in cells.items()}
    assert sizes == {"summary": cross_sentence.HISTORY, "previous": 1, "cache": 0}
    assert cross_sentence.HISTORY == 3
    for name, spec in cells.items():
        assert spec.has_cache == (name == "cache") != bool(spec.history), name
