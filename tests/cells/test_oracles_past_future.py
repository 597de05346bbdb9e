"""The oracle of the Past and Future layers by hand; their losses; the cell against RNNSearch."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cell_runs import decode
from helpers.oracle_weights import zero_unit
from helpers.translations import PAIRS, translator
from oracles import past_future, rnnsearch
from oracles.addressing import softmax

from tfmann import config
from tfmann.api import Model
from tfmann.cells.diagnostics import SHAPES
from tfmann.errors import UsageError
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import named_variables
from tfmann.training.objective import sum_loss
from tfmann.visualization import sentence_figures

KINDS = ("gru", "gru_o", "gru_i")
LENGTHS = [(5, 4), (1, 6), (3, 1), (0, 2)]
SHUT, WIDE = -1e3, 1e3


def small_model(kind="gru_i", **changes):
    return small_models.model({"gru_i": "past-future"}.get(kind, f"past-future-{kind}"), **changes)


# --- the oracle --------------------------------------------------------------------------------


def subtraction(z, r):
    """A layer of gru_i one number wide with gates at z and r, that subtracts c from f."""
    ones = np.ones((1, 1))
    return {
        "future_state_kernel": ones, "future_context_kernel": ones, "future_candidate_kernel": ones,
        "future_candidate_bias": np.zeros(1), "future_gate_kernel": np.zeros((1, 2)),
        "future_gate_recurrent_kernel": np.zeros((1, 2)), "future_gate_bias": np.array([z, r]),
    }  # fmt: skip


@pytest.mark.parametrize(
    "z,r,expected",
    [
        (SHUT, WIDE, np.tanh(0.9 - 0.3)),  # all of the context is subtracted
        (SHUT, SHUT, np.tanh(0.9)),  # r gates what is subtracted, not what is left
        (SHUT, 0.0, np.tanh(0.9 - 0.15)),
        (WIDE, WIDE, 0.9),  # z keeps
    ],
)
def test_the_future_subtracts_what_its_reset_gate_lets_through(z, r, expected):
    future = past_future.future_step(subtraction(z, r), "gru_i", np.array([0.9]), np.array([0.3]))
    np.testing.assert_allclose(future, [expected])


def test_the_outside_subtraction_is_the_input_of_a_gru():
    # The update gate is shut, the candidate is tanh(2 x).
    gru = {**zero_unit(1, 1, 3), "kernel": np.array([[0.0, 0.0, 2.0]])}
    gru["bias"] = np.array([SHUT, 0.0, 0.0])
    weights = {**subtraction(0.0, 0.0), "future_gru": gru}
    future = past_future.future_step(weights, "gru_o", np.array([0.9]), np.array([0.3]))
    np.testing.assert_allclose(future, [np.tanh(2 * np.tanh(0.6))])


def test_the_past_gains_and_the_future_loses():
    weights = {
        "past_gain_kernel": 2 * np.eye(1), "past_loss_kernel": np.eye(1),
        "past_change_kernel": np.eye(1), "past_change_bias": np.array([0.1]),
    }  # fmt: skip
    change = past_future.change(weights, "past", np.array([0.4]), np.array([0.5]))
    np.testing.assert_allclose(change, [np.tanh(2 * 0.4 - 0.5 + 0.1)])
    rng = np.random.default_rng(0)
    weights = small_models.oracle_weights(small_model())
    result = past_future.decode(weights, "gru_i", rng.normal(size=(3, 16)), rng.normal(size=(4, 6)))
    expected = past_future.change(weights, "past", result["pasts"][2], result["pasts"][1])
    np.testing.assert_allclose(result["past_readouts"][2], expected)
    expected = past_future.change(weights, "future", result["futures"][1], result["futures"][2])
    np.testing.assert_allclose(result["future_readouts"][2], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_that_nothing_reads_leave_rnnsearch(kind):
    rng = np.random.default_rng(1)
    weights = small_models.oracle_weights(small_model(kind))
    width = len(weights["memory_kernel"])  # D
    arguments = rng.normal(size=(3, width)), rng.normal(size=(5, 6))
    plain = rnnsearch.decode(weights, *arguments)
    read = past_future.decode(weights, kind, *arguments)
    assert np.abs(read["outputs"] - plain["outputs"]).max() > 1e-2
    weights["merge_gru"] = zero_unit(16, 8, 3)
    weights["merge_gru"]["bias"][:8] = WIDE  # GRU_m keeps q_t
    weights["layers_readout_kernel"] = np.zeros_like(weights["layers_readout_kernel"])
    unread = past_future.decode(weights, kind, *arguments)
    for name, value in plain.items():
        np.testing.assert_allclose(unread[name], value)


# --- parameters --------------------------------------------------------------------------------


def test_the_counts_at_the_paper_s_size():
    parts = past_future.parameter_parts("gru_i", units=1024, annotation=2048, readout=512)
    softmaxes = 2 * (512 + 1) * 30_000
    millions = {name: round(count / 1e6, 2) for name, count in parts.items()}
    assert millions == {
        "past": 9.44, "future": 10.49, "merge": 9.44, "readout": 1.05, "changes": 5.24
    }  # fmt: skip
    assert round((parts["changes"] + softmaxes) / 1e6, 1) == 36.0


@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_cell_has_the_oracle_s_count(kind, weight):
    sizes = {"num_units": 8, "embedding_size": 6, "encoder_type": "bi", "unit_type": "gru",
             "readout_size": 11, "projection_bias": True}  # fmt: skip
    more = {"future_layer": kind, "auxiliary_loss_weight": weight}
    ours, baseline = (
        Seq2Seq(config.HParams(cell=cell, **sizes, **extra), 4, 5).count_parameters()
        for cell, extra in (("past_future", more), ("rnnsearch", {}))
    )
    parts = past_future.parameter_parts(kind, units=8, annotation=16, readout=11)
    softmaxes = 2 * (11 + 1) * 5
    if not weight:
        parts["changes"] = softmaxes = 0
    assert ours - baseline == sum(parts.values()) + softmaxes


# --- the losses --------------------------------------------------------------------------------


def losses(model, batch):
    """The sums of the three losses over a batch, from the oracle's readouts."""
    prepared, _, embedded, *_ = decode(model, batch, (), True)
    weights, arrays = small_models.oracle_weights(model), small_models.arrays(model)
    names = {"outputs": "", "past_readouts": "past_", "future_readouts": "future_"}
    sums = dict.fromkeys(names, 0.0)
    for row, (source, steps) in enumerate(zip(batch.source_length, batch.target_length)):
        annotations = prepared.encoded.annotations[row, :source].numpy()
        words = embedded[:steps, row].numpy()
        result = past_future.decode(weights, model.hparams.future_layer, annotations, words)
        for name, layer in names.items():
            kernel = arrays[f"{layer}projection_kernel"]
            bias = arrays.get(f"{layer}projection_bias", 0.0)
            for vector, word in zip(result[name], batch.target_out[row]):
                sums[name] -= np.log(softmax(vector @ kernel + bias)[word])
    return list(sums.values())


@pytest.mark.quick("gru-False", "gru_o-True", "gru_i-False")
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_three_losses_are_the_oracle_s(kind, bias):
    batch = small_models.batch(LENGTHS)
    for weight in (1.0, 0.3):
        model = small_model(kind, auxiliary_loss_weight=weight, projection_bias=bias)
        loss = sum_loss(model, batch[:5], None, tf.float32)
        of_words, of_past, of_future = losses(model, batch)
        np.testing.assert_allclose(loss.total, of_words + weight * (of_past + of_future), rtol=1e-5)
        np.testing.assert_allclose(loss.cross_entropy, of_words, rtol=1e-5)
        assert min(of_words, of_past, of_future) > 1.0


def test_without_the_losses_it_translates_the_same():
    batch, model = small_models.batch(LENGTHS), small_model()
    plain = small_model(auxiliary_loss_weight=0.0)
    arrays = {v.name.split(":")[0]: v.numpy() for v in model.trainable_variables}
    _, fresh = named_variables.assign_matching(plain.trainable_variables, arrays, "there")
    assert not fresh
    actual, expected = (decode(system, batch, (), True)[3] for system in (plain, model))
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    total = sum_loss(plain, batch[:5], None, tf.float32)
    np.testing.assert_allclose(total.total, total.cross_entropy, rtol=1e-6)


@pytest.mark.parametrize("changes", [{"label_smoothing": 0.1}, {"tie_output_embedding": True,
                                                               "readout_size": 6}])  # fmt: skip
def test_the_losses_take_the_settings_of_the_first(changes):
    batch = small_models.batch(LENGTHS)
    model = small_model(**changes)
    plain = small_model(auxiliary_loss_weight=0.0, **changes)
    arrays = {v.name.split(":")[0]: v.numpy() for v in model.trainable_variables}
    named_variables.assign_matching(plain.trainable_variables, arrays, "there")
    of_words = float(sum_loss(plain, batch[:5], None, tf.float32).total)
    for name in ("past", "future"):  # the same softmax of both layers
        assert model.auxiliary_projections[name].kernel.shape == (model.readout_width, 19)
    assert float(sum_loss(model, batch[:5], None, tf.float32).total) > of_words + 2.0


# --- the cell ----------------------------------------------------------------------------------


def test_it_starts_from_rnnsearch_with_both_softmaxes_as_copies():
    model = small_model(projection_bias=True)
    baseline = small_models.model("rnnsearch")
    arrays = {v.name.split(":")[0]: v.numpy() for v in baseline.trainable_variables}
    matched, fresh = named_variables.assign_matching(
        model.trainable_variables, arrays, "there", model.cell.ancestor
    )
    variables = named_variables.by_name(model.trainable_variables)
    for layer in ("past", "future"):
        for part in ("kernel", "bias"):
            name = f"model/{layer}_projection_{part}"
            assert f"{name} (a copy of model/projection_{part})" in matched
            np.testing.assert_array_equal(variables[name], arrays[f"model/projection_{part}"])
    assert set(arrays) <= set(matched)
    assert all(
        name.split("/")[2].startswith(("merge", "past", "future", "layers")) for name in fresh
    )


@pytest.mark.quick("gru_o")
@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind):
    model, batch = small_model(kind), small_models.batch([(2, 6), (7, 6)])
    single = batch._replace(
        source=batch.source[:1, :3], source_length=batch.source_length[:1],
        target_in=batch.target_in[:1], target_length=batch.target_length[:1],
    )  # fmt: skip
    together, unpadded = (
        decode(model, sentences, ("past_change",), True) for sentences in (batch, single)
    )
    np.testing.assert_allclose(together[3][:, 0], unpadded[3][:, 0], atol=1e-5)
    changes = (diagnostics["past_change"][:, 0] for diagnostics in (together[4], unpadded[4]))
    np.testing.assert_allclose(*changes, atol=1e-5)


def test_the_trace_shows_how_much_each_layer_changes(untraced):
    trace = Model(translator("past-future"), "nowhere").trace(PAIRS[0])
    assert set(trace) == {"alignments", "past_change", "future_change"}
    for name in ("past_change", "future_change"):
        assert SHAPES[name] == ("1",) and trace[name].shape == (len(trace.tokens), 1)
        assert np.all(trace[name] > 0)
    figures = dict(sentence_figures.sentence_figures(trace))
    assert set(figures) == {"attention", "steps"}
    labels = [axes.get_ylabel() for axes in figures["steps"].axes]
    assert labels == ["past change", "future change"]


@pytest.mark.parametrize(
    "changes,match",
    [
        ({"future_layer": "gru-i"}, "future_layer: 'gru-i' is not one of 'gru', 'gru_o', 'gru_i'"),
        ({"auxiliary_loss_weight": -1.0}, "auxiliary_loss_weight: -1.0 is below"),
    ],
)
def test_bad_settings_are_named(changes, match):
    with pytest.raises(UsageError, match=match):
        config.HParams(cell="past_future", **changes)
