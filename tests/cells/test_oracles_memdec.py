"""The oracle of MemDec by hand; the cell's parameters, padding, noise and figures."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cell_runs import decode
from helpers.translations import PAIRS, translator
from oracles import memdec
from oracles.kvmematt import gru_parameters

from tfmann import config
from tfmann.api import Model
from tfmann.cells.diagnostics import EVERYTHING, SHAPES
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import named_variables
from tfmann.visualization import sentence_figures


def address_weights(gate):
    """One unit, slots one number wide; the content's address is where tanh(m + s) is greatest."""
    return {
        "address_query_kernel": np.ones((1, 1)), "address_memory_kernel": np.ones((1, 1)),
        "address_score_vector": np.array([1e3]), "gate_vector": np.array([gate]),
    }  # fmt: skip


# --- the oracle --------------------------------------------------------------------------------


def test_the_gate_decides_between_the_content_and_the_last_address():
    slots, before = np.array([[0.1], [0.9], [0.5]]), np.array([0.5, 0.25, 0.25])
    for gate, expected in ((1e3, [0, 1, 0]), (-1e3, before), (0.0, (before + [0, 1, 0]) / 2)):
        address, content, g = memdec.address(address_weights(gate), np.ones(1), slots, before)
        np.testing.assert_allclose(address, expected, atol=1e-12)
        np.testing.assert_allclose(content, [0, 1, 0], atol=1e-12)
        np.testing.assert_allclose(g, {1e3: 1.0, -1e3: 0.0, 0.0: 0.5}[gate], atol=1e-12)


def test_the_state_moves_the_address_because_of_the_tanh():
    # tanh(m + s): where s is large all slots have the same score, and the softmax is even.
    weights = {**address_weights(0.0), "address_score_vector": np.array([2.0])}
    slots, before = np.array([[-1.0], [1.0]]), np.ones(2) / 2
    _, near, _ = memdec.address(weights, np.zeros(1), slots, before)
    _, far, _ = memdec.address(weights, np.array([50.0]), slots, before)
    np.testing.assert_allclose(near, np.exp([0, 4 * np.tanh(1)]) / (1 + np.exp(4 * np.tanh(1))))
    np.testing.assert_allclose(far, [0.5, 0.5])


def test_a_write_erases_and_adds_in_proportion_to_the_address():
    # 4 (1 - 0.5 * 0.25) + 0.5 * 0.75 and 8 (1 - 0.25 * 0.25) + 0.25 * 0.75
    memory = memdec.write(np.array([[4.0], [8.0]]), [0.5, 0.25], np.array([0.25]), np.array([0.75]))
    np.testing.assert_allclose(memory, [[3.875], [7.6875]])


def test_what_is_read_is_what_was_there_before_the_write():
    rng = np.random.default_rng(2)
    model = small_models.model("memdec")
    weights = small_models.oracle_weights(model)
    annotations, words = rng.normal(size=(3, 16)), rng.normal(size=(4, 6))
    result = memdec.decode(weights, annotations, words)
    before = [memdec.initial_memory(weights, annotations), *result["memory"][:-1]]
    for where, memory, read in zip(result["read_weights"], before, result["reads"]):
        np.testing.assert_allclose(where @ memory, [read])
    np.testing.assert_allclose(result["read_weights"].sum(axis=-1), 1.0)
    np.testing.assert_array_equal(result["read_weights"], result["write_weights"])


def test_slots_that_start_alike_stay_alike():
    rng = np.random.default_rng(3)
    weights = small_models.oracle_weights(small_models.model("memdec"))
    weights["initial_memory"] = np.zeros_like(weights["initial_memory"])
    result = memdec.decode(weights, rng.normal(size=(3, 16)), rng.normal(size=(4, 6)))
    np.testing.assert_allclose(result["read_weights"], 1 / 3)
    np.testing.assert_allclose(np.ptp(result["memory"], axis=1), 0.0, atol=1e-12)


# --- parameters --------------------------------------------------------------------------------


def test_at_the_paper_s_size_the_memory_has_11_million_parameters():
    parts = memdec.memory_parameters(512, 1024, 2048, 1024, slots=8, width=1024)
    assert sum(parts.values()) - parts["noise"] == 11_013_120
    assert parts["noise"] == 8 * 1024


def test_the_cell_has_the_oracle_s_count():
    sizes = {"num_units": 8, "embedding_size": 6, "encoder_type": "bi", "unit_type": "gru",
             "attention_size": 7}  # fmt: skip
    more = {"num_memory_locations": 3, "memory_unit_size": 5}
    ours, rnnsearch = (
        Seq2Seq(config.HParams(cell=cell, **sizes, **extra), 4, 4).count_parameters()
        for cell, extra in (("memdec", more), ("rnnsearch", {}))
    )
    one_gru = rnnsearch - gru_parameters(6, 8) + 6 * 3 * 8  # of [c_t; y_{t-1}]
    assert ours - one_gru == sum(memdec.memory_parameters(6, 8, 16, 7, 3, 5).values())


# --- the cell ----------------------------------------------------------------------------------


def test_padding_changes_nothing():
    model, batch = small_models.model("memdec"), small_models.batch([(2, 6), (7, 6)])
    together = decode(model, batch, EVERYTHING, True)
    single = batch._replace(
        source=batch.source[:1, :3], source_length=batch.source_length[:1],
        target_in=batch.target_in[:1], target_length=batch.target_length[:1],
    )  # fmt: skip
    unpadded = decode(model, single, EVERYTHING, True)
    np.testing.assert_allclose(together[3][:, 0], unpadded[3][:, 0], atol=1e-5)
    np.testing.assert_allclose(together[0].state.memory[0], unpadded[0].state.memory[0], atol=1e-6)
    addresses = (diagnostics["write_weights"][:, 0] for diagnostics in (together[4], unpadded[4]))
    np.testing.assert_allclose(*addresses, atol=1e-5)


def test_the_noise_is_a_weight_that_is_saved_and_depends_on_the_seed():
    noise = [
        small_models.arrays(small_models.model("memdec", random_seed=seed))["cell/initial_memory"]
        for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(noise[0], noise[1])
    assert np.abs(noise[0] - noise[2]).max() > 1e-3
    wide = small_models.model("memdec", num_memory_locations=100, memory_unit_size=50)
    assert 0.09 < small_models.arrays(wide)["cell/initial_memory"].std() < 0.11


def test_what_it_takes_from_rnnsearch_is_all_but_the_grus():
    model, baseline = (
        small_models.model("memdec", attention_size=0),
        small_models.model("rnnsearch"),
    )
    arrays = {v.name.split(":")[0]: v.numpy() for v in baseline.trainable_variables}
    matched, fresh = named_variables.assign_matching(model.trainable_variables, arrays, "there")
    unmatched = {name for name in arrays if name not in matched}
    assert {name.split("/")[2] for name in unmatched if "cell" in name} == {
        "query_gru",
        "state_gru",
    }
    assert "model/cell/decoder_gru/kernel" in fresh and "model/cell/query_kernel" in matched


def test_the_trace_has_its_heads_and_the_figures_draw_them(untraced):
    trace = Model(translator("memdec"), "nowhere").trace(PAIRS[0])
    sizes = {"S": len(trace.source_tokens), "R": 1, "H": 1, "R+H": 2, "N": 3, "1": 1}
    for name, value in trace.items():
        shape = tuple(sizes[letter] for letter in SHAPES[name])
        assert value.shape == (len(trace.tokens), *shape), name
    np.testing.assert_allclose(trace["write_weights"].sum(axis=-1), 1.0, atol=1e-5)
    assert set(trace.heads) == {"read_head_0", "write_head_0"}
    figures = dict(sentence_figures.sentence_figures(trace))
    assert set(figures) == {"attention", "read_head_0", "write_head_0"}
    pixels = figures["write_head_0"].axes[0].images[0].get_array()
    np.testing.assert_array_equal(pixels, trace["write_weights"][:, 0].T)


@pytest.mark.parametrize("slots,width", [(1, 1), (5, 2)])
def test_memories_of_any_size_have_finite_gradients(slots, width):
    model = small_models.model("memdec", num_memory_locations=slots, memory_unit_size=width)
    assert model.cell.memory_numbers == slots * width
    batch = small_models.batch([(3, 4), (0, 1)])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(decode(model, batch, (), True)[3] ** 2)
    weights = [v for v in model.trainable_variables if "/cell/" in v.name]
    for variable, gradient in zip(weights, tape.gradient(loss, weights)):
        assert np.all(np.isfinite(tf.convert_to_tensor(gradient))), variable.name
