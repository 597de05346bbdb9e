"""The operations that benchmarks/flops.py counts: by hand, and against what TensorFlow executes."""

import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.memory_cells import VARIANTS as MEMORY_VARIANTS

from tfmann.config import CELLS, HParams
from tfmann.decoding.next_words import BLOCK

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the benchmarks are not installed

from benchmarks import flops  # noqa: E402
from benchmarks.speed import cells  # noqa: E402

# E = 3, U = 5, D = 10 (both directions), A = 11, a readout of 13, V = 17; two source words, three
# target words
GRU1 = 2 * (3 + 5) * 15  # 240: kernel and recurrent kernel, three gates
GRU2 = 2 * (10 + 5) * 15  # 450
ATTENTION = 2 * 5 * 11 + 2 * 2 * 11 + 2 * 2 * 10  # query, scores, context
KEYS = 2 * 2 * 10 * 11
ONCE = 2 * 2 * GRU1 + 2 * 10 * 5  # both directions of two words; s_0
STEP = GRU1 + 2 * (5 + 3 + 10) * 13 + 2 * 13 * 17  # GRU1, readout, projection
SIZES = {"num_units": 5, "embedding_size": 3, "attention_size": 11, "readout_size": 13}
TINY = {**SIZES, "unit_type": "gru", "encoder_type": "bi"}


def test_rnnsearch_by_hand():
    h, n = HParams(cell="rnnsearch", **TINY), flops.Lengths(2, 3)
    a_word = STEP + ATTENTION + GRU2
    assert flops.training(h, n, 17) == 3 * (ONCE + KEYS + 3 * a_word)
    assert flops.encoding(h, n) == ONCE + KEYS
    assert flops.decoding_step(h, n, 17) == a_word


@pytest.mark.parametrize("rounds", [1, 2])
def test_rewriting_by_hand(rounds):
    h = HParams(cell="kvmematt", num_rounds=rounds, **TINY)
    a_round = 2 * KEYS + ATTENTION + GRU2 + 2 * 5 * (11 + 2 * 10) + 2 * 2 * 11
    assert flops.training(h, flops.Lengths(2, 3), 17) == 3 * (ONCE + 3 * (STEP + rounds * a_round))


def test_every_cell_is_counted_and_measured():
    assert set(flops.CELLS) == set(CELLS)
    assert {row.settings["cell"] for row in cells.ROWS.values()} == set(flops.CELLS)


def test_other_choices_of_weights_are_refused():
    h = HParams(cell="rnnsearch", trainable_parameters="encoder/*", **TINY)
    with pytest.raises(ValueError, match="encoder"):
        flops.training(h, flops.Lengths(2, 3), 17)


# Against what is executed: matrix products exactly; elementwise work is in neither count.

VOCABULARY = 19
SMALL = {
    "num_units": 8, "embedding_size": 6, "encoder_type": "bi", "dropout": 0.0,
    "projection_bias": True,
}  # fmt: skip
GRU = {**SMALL, "unit_type": "gru", "num_layers": 1}
OWN = {
    **SMALL, "num_memory_locations": 7, "memory_unit_size": 5, "read_heads": 2, "write_heads": 2,
}  # fmt: skip
CACHE = {**GRU, "cell": "cache", "cache_size": 4}
CASES = {
    "luong": {**SMALL, "cell": "luong"},
    "luong-tanh": {**SMALL, "cell": "luong", "bridge": "tanh", "num_layers": 4},
    "ntm_attention": {**SMALL, "cell": "ntm_attention", "num_attention_heads": 3},
    "mad": {**OWN, "cell": "mad", "write_heads": 1},
    "mad-dnc": {**OWN, "cell": "mad", "external_addressing": "dnc", "encoder_type": "uni"},
    "ntm": {**OWN, "cell": "ntm", "encoder_type": "memory"},
    "dnc": {**OWN, "cell": "dnc", "encoder_type": "memory"},
    **{
        name: {**OWN, "cell": cell, "encoder_type": "memory", **changes}
        for name, (cell, changes) in MEMORY_VARIANTS.items()
    },
    "rnnsearch": {**GRU, "cell": "rnnsearch", "attention_size": 7, "readout_size": 11},
    "rnnsearch-eos": {**GRU, "cell": "rnnsearch", "eos_attention_weight": 1.0},
    "coverage": {**GRU, "cell": "coverage", "attention_size": 7},
    "coverage-neural": {**GRU, "cell": "coverage", "coverage_model": "neural"},
    "memdec": {**GRU, "cell": "memdec", "num_memory_locations": 7, "memory_unit_size": 5},
    "past_future": {**GRU, "cell": "past_future"},
    "past_future-gru": {**GRU, "cell": "past_future", "future_layer": "gru"},
    "past_future-gru_o": {
        **GRU,
        "cell": "past_future",
        "future_layer": "gru_o",
        "auxiliary_loss_weight": 0.0,
    },
    "mematt": {**GRU, "cell": "mematt"},
    "kvmematt": {**GRU, "cell": "kvmematt", "num_rounds": 2, "annotation_merge": "sum"},
    "cache": CACHE,
    "cache-gate": {**CACHE, "trainable_parameters": flops.GATE_ALONE},
    "cache-shallow": {**CACHE, "cache_fusion": "shallow", "cache_overwrite": False},
    "summary": {**GRU, "cell": "summary"},
    "previous": {**GRU, "cell": "previous"},
    "transformer": {**SMALL, "cell": "transformer", "encoder_type": "transformer"},
    "transformer-bi": {
        **SMALL,
        "cell": "transformer",
        "embedding_size": 8,
        "feed_forward_size": 11,
        "self_attention_window": 3,
    },
    "kvmematt_transformer": {
        **SMALL,
        "cell": "kvmematt_transformer",
        "encoder_type": "transformer",
    },
    "key_value": {**SMALL, "cell": "key_value", "key_value_system": "key_value"},
    "attn": {**SMALL, "cell": "key_value", "key_value_system": "attn"},
    "modifying_iw": {**SMALL, "cell": "key_value", "key_value_system": "modifying_iw"},
}
FAST = ("rnnsearch", "cache-gate")
EACH = [pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in CASES]
ROWS, SOURCE, TARGET = 2, 5, 3


def batch_of(h):
    """Sentences of full length; with all of the history, where one is read."""
    from benchmarks.speed import batches

    batch = batches.of_length(h.replace(batch_size=ROWS), SOURCE, TARGET, VOCABULARY)
    complete = np.full_like(batch.history_length, batch.history.shape[-1])
    return batch._replace(history_length=complete)


def operations_before_the_loop(h, recorded, vocabulary=VOCABULARY):
    """Counts the products of a step that runs once before the loop, for the shapes of its records.

    In a search, the source is also prepared for that step.
    """
    from benchmarks.speed import batches

    if not recorded:
        return 0
    return sum(
        flops.encoding(h, n) + flops.decoding_step(h, n, vocabulary)
        for n in batches.lengths(batch_of(h))
    )


def count_bias_products(h):
    """The projection's bias gets its gradient by a product with ones: a sum, which is not counted.

    Not where the bias is not trained or where the distribution is more than a projection.
    """
    summed = not h.trainable_parameters and h.cache_fusion != "shallow"
    projections = 3 if h.cell == "past_future" and h.auxiliary_loss_weight else 1
    return 2 * ROWS * TARGET * VOCABULARY * summed * projections


@pytest.mark.parametrize("name", EACH)
@pytest.mark.usefixtures("rewritten_graphs")
def test_training_executes_the_products_that_are_counted(name):
    from helpers import executed_products

    from benchmarks.speed import runs

    h = HParams(**CASES[name])
    with executed_products.products() as done:
        updates = runs.Updates(h, [batch_of(h)], VOCABULARY)
        updates.run()
    more = sum(done) - updates.operations - count_bias_products(h)
    assert 0 <= more <= operations_before_the_loop(h, h.eos_attention_weight)


@pytest.mark.parametrize("name", EACH)
@pytest.mark.usefixtures("rewritten_graphs")
def test_a_search_executes_the_products_that_are_counted(name, monkeypatch):
    from helpers import executed_products

    from benchmarks.speed import runs

    h = HParams(**{**CASES[name], "trainable_parameters": ""})
    # a search fills the last block of words up
    size = cells.SIZES["tiny"]._replace(vocabulary=BLOCK, words=TARGET, decoded=ROWS)
    monkeypatch.setattr(runs, "_sources", lambda hparams, size: batch_of(hparams))
    with executed_products.products() as done:
        decoding = runs.Decoding(h, size, beam=True)
        decoding.run()
    assert (
        0
        <= sum(done) - decoding.operations
        <= operations_before_the_loop(h, h.cell == "cache", BLOCK)
    )
