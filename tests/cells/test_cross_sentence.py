"""The two cross-sentence baselines against their oracles, with 0 to 3 sentences before."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small
from helpers.searches import as_arrays, assert_same_hypotheses, large_model
from oracles import cross_sentence

from tfmann import config
from tfmann.cells.diagnostics import SHAPES
from tfmann.decoding import search
from tfmann.decoding.beam_scoring import BeamOptions
from tfmann.decoding.teacher_forcing import forced_log_probs, teacher_forced
from tfmann.layers import initializers as weights_module
from tfmann.layers.dropout import DropoutMasks
from tfmann.models.history_encoder import History
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import named_variables

SYSTEMS = ("summary", "previous")
LENGTHS = [(5, 4), (1, 6), (3, 1), (0, 2), (7, 5)]
BEFORE = [[], [4], [2, 6], [3, 1, 5], [1, 1, 1]]  # lengths of the sentences before each
PARTS = ("kernel", "recurrent_kernel", "bias")
SIZES = {"num_units": 8, "embedding_size": 6, "encoder_type": "bi", "unit_type": "gru"}


def model(system, **changes):
    return small.model("rnnsearch", **{"cell": system, **changes})


def histories(before=BEFORE, sentences=3, seed=1):
    """Ids of `sentences` before each, right-aligned; what is not there is full of other words."""
    stream = np.random.default_rng(seed)
    length = np.zeros([len(before), sentences], np.int32)
    for row, lengths in enumerate(before):
        length[row, sentences - len(lengths) :] = lengths
    shape = [len(before), sentences, length.max()]
    return History(stream.integers(3, small.SOURCE_SIZE, shape, np.int32), length)


def rows_of(history, rows):
    return History(history.ids[rows], history.length[rows])


def variables_by_name(built):
    return named_variables.by_name(built.trainable_variables)


def decode(built, batch, document, dtype=tf.float32):
    """Returns the prepared source, readouts `[T, B, O]`, states `[T, B, U]`, diagnostics."""
    prepared = built.prepare(batch.source, batch.source_length, None, dtype, document=document)
    outputs, embedded, diagnostics = teacher_forced(
        built, prepared, batch.target_in, batch.target_length, dtype=dtype, record=("*",)
    )[:3]
    steps = tf.shape(outputs)[0]
    flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
    words = tf.reshape(embedded[:steps], [-1, embedded.shape[-1]])
    readout = built.readout(flat, words, dtype=dtype)
    readout = tf.reshape(readout, [steps, -1, readout.shape[-1]])
    return prepared, readout, outputs[..., : built.hparams.num_units], embedded, diagnostics


def compiled(built):
    """`decode` in a graph that knows no size but those of the model."""

    def run(batch, history):
        return decode(built, small.batch(LENGTHS)._replace(**batch), history)

    ids, lengths = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)
    parts = {"source": ids, "source_length": lengths, "target_in": ids, "target_length": lengths}
    document = History(tf.TensorSpec([None, None, None], tf.int32), ids)
    function = tf.function(run, input_signature=[parts, document], autograph=False)
    return lambda batch, history: function(
        {name: tf.constant(getattr(batch, name)) for name in parts},
        History(*map(tf.constant, history)),
    )


def oracle_weights(built):
    arrays = small.arrays(built)
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
    return {**small.oracle_weights(built), **units}, arrays["source_embedding"]


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
    batch, history = small.batch(LENGTHS), histories()
    run = compiled(built) if graph else lambda *arguments: decode(built, *arguments)
    prepared, readout, states, embedded, diagnostics = run(batch, history)
    for row, (source, steps) in enumerate(zip(batch.source_length, batch.target_length)):
        reference = expected(built, batch, history, row, embedded[:steps, row].numpy())
        actual = {"outputs": readout, "states": states, "alignments": diagnostics["alignments"]}
        actual = {name: value[:steps, row].numpy() for name, value in actual.items()}
        assert np.all(actual["alignments"][:, source:] == 0)
        actual["alignments"] = actual["alignments"][:, :source]
        document = small.row_of(prepared.encoded.document, row)
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
    batch = small.batch(LENGTHS)
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
    built, batch, history = model(system), small.batch(LENGTHS), histories()
    unpadded = outputs_of(built, batch, history)
    stream = np.random.default_rng(8)
    for sentences, words in ((0, 4), (2, 0), (2, 5)):
        shape = np.array(history.ids.shape) + [0, sentences, words]
        ids = stream.integers(3, small.SOURCE_SIZE, shape, np.int32)
        for row, column in np.ndindex(*history.length.shape):
            real = history.length[row, column]
            ids[row, sentences + column, :real] = history.ids[row, column, :real]
        length = np.pad(history.length, [(0, 0), (sentences, 0)])
        assert_same(outputs_of(built, batch, History(ids, length)), unpadded)


def test_a_sentence_that_is_missing_between_others_is_skipped():
    built, batch, history = model("summary"), small.batch(LENGTHS), histories()
    history.length[2:] = [[2, 3, 0]] * 3
    moved = History(np.roll(history.ids, 1, axis=1), np.roll(history.length, 1, axis=1))
    outputs = outputs_of(built, batch, history)
    assert_same([part[:, 2:] for part in outputs_of(built, batch, moved)],
                [part[:, 2:] for part in outputs])  # fmt: skip
    history.ids[2:, [0, 1]] = history.ids[2:, [1, 0]]  # the other order is another history
    assert np.abs(outputs_of(built, batch, history)[0] - outputs[0])[:, 2:].max() > 1e-3


def test_previous_looks_at_the_last_sentence_alone():
    built, batch, history = model("previous"), small.batch(LENGTHS), histories()
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
    baseline, batch = small.model(variant), small.batch(LENGTHS)
    built = small.model(variant, cell=system)
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


NEW = {
    "summary": {
        *(f"history/{gru}/forward/{part}" for gru in ("sentence", "document") for part in PARTS),
        "cell/summary_initial_kernel", "cell/summary_state_kernel", "cell/gate_query_kernel",
        "cell/gate_context_kernel", "cell/gate_summary_kernel",
    },
    "previous": {
        *(f"history/layer_0/{side}/{part}" for side in ("forward", "backward") for part in PARTS),
        "cell/previous_query_kernel", "cell/previous_memory_kernel", "cell/previous_score_vector",
        "cell/previous_state_kernel", "cell/previous_readout_kernel",
    },
}  # fmt: skip


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_weight_of_rnnsearch_is_there_by_its_name(system):
    built, baseline = model(system), small.model("rnnsearch", random_seed=6)
    matched, fresh = start_from(built, baseline)
    assert set(matched) == set(variables_by_name(baseline))
    assert {name.split("/", 1)[1] for name in fresh} == NEW[system]
    for name, variable in variables_by_name(baseline).items():
        np.testing.assert_array_equal(variables_by_name(built)[name], variable)


PAPER = {"num_units": 1000, "embedding_size": 620, "encoder_type": "bi", "unit_type": "gru"}


def count_additional_parameters(system, sizes):
    counts = [
        Seq2Seq(config.HParams(cell=cell, **sizes), 4, 4).count_parameters()
        for cell in (system, "rnnsearch")
    ]
    return counts[0] - counts[1]


@pytest.mark.parametrize("system,count", [("summary", 18_866_000), ("previous", 19_967_000)])
def test_parameters_are_those_of_table_5(system, count, monkeypatch):
    monkeypatch.setattr(weights_module, "draw", lambda op, weight, shape, stream: np.zeros(shape))
    assert count_additional_parameters(system, PAPER) == count
    sizes = (6, 8, 16) + ((8, 6) if system == "previous" else ())
    parts = getattr(cross_sentence, f"{system}_parameters")(*sizes)
    assert count_additional_parameters(system, SIZES) == sum(parts.values())


# --- gradients ---------------------------------------------------------------------------


def loss_of(built, batch, document):
    """A random linear function of all readouts."""
    _, readout, *_ = decode(built, batch, document)
    real = np.arange(batch.target_length.max())[:, None] < batch.target_length
    shape = [*real.shape, readout.shape[-1]]
    direction = np.random.default_rng(4).normal(size=shape) * real[..., None]
    return tf.reduce_sum(readout * tf.constant(direction, tf.float32))


def gradients(built, batch, document):
    with tf.GradientTape() as tape:
        loss = loss_of(built, batch, document)
    values = tape.gradient(loss, list(variables_by_name(built).values()))
    return dict(zip(variables_by_name(built), values))


@pytest.mark.parametrize("system", SYSTEMS)
def test_gradients_equal_finite_differences(system):
    built, batch, history = model(system, init_weight=0.5), small.batch(LENGTHS), histories()
    slopes = gradients(built, batch, history)
    loss = tf.function(lambda: loss_of(built, batch, history), autograph=False)
    stream = np.random.default_rng(1)
    for name, variable in variables_by_name(built).items():
        if "projection" in name:
            continue
        analytic = tf.convert_to_tensor(slopes[name]).numpy()
        if "embedding" not in name:
            columns = analytic.reshape(-1, analytic.shape[-1] if analytic.ndim > 1 else 1)
            assert np.all(np.abs(columns).max(axis=0) > 1e-8), name
        direction = stream.normal(size=variable.shape).astype(np.float32)
        direction /= np.linalg.norm(direction)
        start, losses = variable.numpy(), []
        for sign in (1, -1):
            variable.assign(start + sign * 1e-2 * direction)
            losses.append(float(loss()))
        variable.assign(start)
        numeric, slope = (losses[0] - losses[1]) / 2e-2, float((analytic * direction).sum())
        assert abs(numeric - slope) < 0.02 * max(1.0, abs(slope)), name


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_batch_of_first_sentences_has_gradients_too(system):
    """They are zero, not absent: an update of all weights must not fall over them."""
    slopes = gradients(model(system), small.batch(LENGTHS), ())
    for name in NEW[system]:
        assert np.all(slopes[f"model/{name}"].numpy() == 0), name


@pytest.mark.bfloat16
@pytest.mark.parametrize("system", SYSTEMS)
def test_bfloat16_is_close_to_float32(system):
    built, batch, history = model(system, init_weight=0.3), small.batch(LENGTHS), histories()
    exact, rounded = (
        decode(built, batch, history, dtype)[1].numpy() for dtype in (tf.float32, tf.bfloat16)
    )
    assert 0 < np.abs(rounded - exact).max() < 0.1


# --- search ------------------------------------------------------------------------------


def searchable(system):
    return large_model("rnnsearch", 3, cell=system)


def run_search(built, batch, document, width):
    prepared = built.prepare(batch.source, batch.source_length, document=document)
    if width == "greedy":
        return as_arrays(search.greedy(built, prepared, search.SearchOptions(6, True)))
    alpha, beta = (0.8, 0.3) if width > 1 else (0.0, 0.0)  # greedy search has no penalties
    beam = BeamOptions(width, alpha, beta, width)
    return as_arrays(search.beam_search(built, prepared, beam, search.SearchOptions(6, True)))


@pytest.mark.parametrize("system", SYSTEMS)
def test_beam_of_one_is_greedy(system):
    built, batch, history = searchable(system), small.batch(LENGTHS), histories()
    beam, greedy = (run_search(built, batch, history, width) for width in (1, "greedy"))
    np.testing.assert_array_equal(beam.lengths, greedy.lengths)
    for row, length in enumerate(beam.lengths[:, 0]):
        np.testing.assert_array_equal(beam.ids[row, 0, :length], greedy.ids[row, 0, :length])
    assert len(set(beam.lengths[:, 0])) > 1


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_translation_depends_on_the_rest_of_its_batch(system):
    built, batch, history = searchable(system), small.batch(LENGTHS), histories()
    together = run_search(built, batch, history, 3)
    for row, length in enumerate(batch.source_length):
        sentence = batch._replace(
            source=batch.source[[row], :length], source_length=batch.source_length[[row]]
        )
        result = run_search(built, sentence, rows_of(history, [row]), 3)
        assert_same_hypotheses(together, row, result, 0)
    without = run_search(built, batch, (), 3)
    assert_same_hypotheses(together, 0, without, 0)
    changed = np.abs(without.scores - together.scores).max(axis=1)
    assert np.all(changed[1:] > 1e-3), "the history of each hypothesis is its sentence's"


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_hypothesis_is_what_forced_decoding_of_it_says(system):
    built, batch, history = searchable(system), small.batch(LENGTHS), histories()
    prepared = built.prepare(batch.source, batch.source_length, document=history)
    beam = BeamOptions(3, num_best=3)
    result = as_arrays(search.beam_search(built, prepared, beam, search.SearchOptions(6)))
    for rank in range(3):
        ids = result.ids[:, rank]
        read = np.concatenate([np.full([len(ids), 1], 1), ids[:, :-1]], axis=1)
        log_probs, *_ = forced_log_probs(
            built, prepared, tf.constant(read, tf.int32), tf.constant(ids),
            tf.constant(result.lengths[:, rank], tf.int32),
        )  # fmt: skip
        np.testing.assert_allclose(result.scores[:, rank], log_probs.numpy().sum(1), rtol=1e-4)


# --- settings ----------------------------------------------------------------------------


def test_the_registry_says_which_cells_read_earlier_sentences():
    cells = {name: spec for name, spec in config.CELLS.items() if spec.reads_documents}
    sizes = {name: spec.history_size for name, spec in cells.items()}
    assert sizes == {"summary": cross_sentence.HISTORY, "previous": 1, "cache": 0}
    assert cross_sentence.HISTORY == 3
    for name, spec in cells.items():
        assert spec.has_cache == (name == "cache") != bool(spec.history), name
