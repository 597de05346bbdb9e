"""NTM, DNC and MAD against the oracles over whole sentences, source phase included."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cell_runs import gradients
from helpers.memory_cells import VARIANTS, build, run_oracle
from helpers.searches import SIGNATURE
from oracles import mad

from tfmann.cells.base import EncoderOutput
from tfmann.cells.diagnostics import EVERYTHING
from tfmann.config import HParams
from tfmann.decoding import search
from tfmann.decoding.beam import BeamOptions
from tfmann.decoding.teacher_forcing import forced_log_probs, teacher_forced
from tfmann.errors import UsageError

LENGTHS = [(4, 3), (0, 5), (2, 1)]
# where the two differ
ORACLE_NAMES = {
    "allocation_weights": "allocation", "read_mask": "read_masks", "write_mask": "write_masks",
}  # fmt: skip
HEADS = [(1, 1), (2, 3), (3, 2)]
# From a zero state, unused slots differ only in the last bit of their usage: with several
# heads float32 and float64 may fill them in another order. What follows does not depend on it.
ANY_ORDER = (
    "outputs", "alignments", "allocation_gate", "write_gate", "free_gate", "read_modes",
    "read_mask", "write_mask", "forward_sharpness", "backward_sharpness",
)  # fmt: skip


def decode(model, batch):
    """Returns all diagnostics of a batch, in graph mode: by name `[S + T, B, ...]`."""

    @tf.function(autograph=False)
    def run():
        prepared = model.prepare(batch.source, batch.source_length, record=EVERYTHING)
        outputs, embedded, diagnostics, _ = teacher_forced(
            model, prepared, batch.target_in, batch.target_length, record=EVERYTHING
        )
        flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
        readout = model.readout(flat, tf.reshape(embedded, [-1, embedded.shape[-1]]))
        shape = [tf.shape(outputs)[0], -1, readout.shape[-1]]
        return prepared, tf.reshape(readout, shape), diagnostics

    prepared, readout, diagnostics = run()
    return prepared, {**diagnostics, "outputs": readout}  # causes before effects


def squeeze(value, expected):
    return value[..., 0] if value.ndim > expected.ndim else value


@pytest.mark.quick("ntm-gru-2-heads1", "dnc-lstm-1-heads0", "dnc-lstm-1-heads2")
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize(
    "cell,unit,taps", [("ntm", "lstm", 1), ("ntm", "gru", 2), ("dnc", "lstm", 1)]
)
def test_pure_mann_equals_its_oracle(cell, unit, taps, heads):
    changes = {"shift_range": taps} if cell == "ntm" else {}
    model = build(cell, heads, "memory", unit_type=unit, **changes)
    assert_equals_oracle(model)


@pytest.mark.quick("dnc-msd-heads0", "ntm-hops-heads2")
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_equals_its_oracle(variant, heads):
    cell, changes = VARIANTS[variant]
    assert_equals_oracle(build(cell, heads, "memory", **changes))


def assert_equals_oracle(model):
    """Compares all that a pure MANN shows, and its outputs, with the oracle's."""
    h, batch = model.hparams, small_models.batch(LENGTHS)
    only_if_ordered = h.cell == "dnc" and (h.read_heads, h.write_heads) != (1, 1)
    prepared, values = decode(model, batch)
    weights, actual = small_models.oracle_weights(model), small_models.arrays(model)
    for row in range(len(LENGTHS)):
        source, steps = batch.source_length[row], batch.target_length[row]
        words = np.concatenate(
            [
                actual["source_embedding"][batch.source[row, :source]],
                actual["target_embedding"][batch.target_in[row, :steps]],
            ]
        )
        expected = run_oracle(h, weights, words)
        for name, value in values.items():
            if name.endswith("_norm") or (only_if_ordered and name not in ANY_ORDER):
                continue
            phases = [value[:steps, row].numpy()]
            if name in prepared.diagnostics:
                phases.insert(0, prepared.diagnostics[name][:source, row].numpy())
            reference = expected[ORACLE_NAMES.get(name, name)][-sum(map(len, phases)) :]
            value = squeeze(np.concatenate(phases), reference)
            np.testing.assert_allclose(value, reference, atol=1e-5, err_msg=f"{name}, row {row}")
        if only_if_ordered:
            continue
        # padding never touched the memory: the state after the source is that of the real words
        memory = prepared.state.memory.memory[row].numpy()
        np.testing.assert_allclose(memory, expected["memory"][source - 1], atol=1e-5)


@pytest.mark.quick("ntm-dot-heads1", "ntm-cosine-heads0", "dnc-dot-heads2")
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize(
    "addressing,kind", [("ntm", "dot"), ("dnc", "dot"), ("ntm", "cosine"), ("dnc", "scaled_dot")]
)
def test_mad_equals_its_oracle(addressing, kind, heads):
    model = build("mad", heads, "bi", external_addressing=addressing, attention_score=kind)
    batch = small_models.batch(LENGTHS)
    prepared, values = decode(model, batch)
    weights = small_models.oracle_weights(model)
    words = small_models.arrays(model)["target_embedding"]
    for row in range(len(LENGTHS)):
        source, steps = batch.source_length[row], batch.target_length[row]
        expected = mad.decode(
            weights,
            prepared.encoded.annotations[row, :source].numpy(),
            [tuple(s) for s in small_models.row_of(prepared.state.layers, row)],
            words[batch.target_in[row, :steps]],
            *heads,
            addressing=addressing,
            num_slots=6,
            kind=kind,
        )
        for name, value in values.items():
            if name.endswith("_norm") or (
                addressing == "dnc" and heads != (1, 1) and name not in ANY_ORDER
            ):
                continue
            value = value[:steps, row].numpy()
            value = value[..., :source] if name == "alignments" else value
            reference = expected[ORACLE_NAMES.get(name, name)]
            np.testing.assert_allclose(
                squeeze(value, reference), reference, atol=1e-5, err_msg=f"{name}, row {row}"
            )


@pytest.mark.quick(
    "ntm-memory-changes0", "dnc-memory-changes1", "mad-bi-changes2", "mad-bi-changes3",
    "ntm-bi-changes4", "dnc-content-only", "mad-dnc-msd",
)  # fmt: skip
@pytest.mark.parametrize(
    "cell,encoder_type,changes",
    [
        ("ntm", "memory", {}),
        ("dnc", "memory", {}),
        ("mad", "bi", {}),
        ("mad", "bi", {"external_addressing": "dnc"}),
        ("ntm", "bi", {}),
        pytest.param("dnc", "memory", VARIANTS["dnc-msd"][1], id="dnc-msd"),
        pytest.param("dnc", "bi", VARIANTS["dnc-content-only"][1], id="dnc-content-only"),
        pytest.param("dnc", "bi", VARIANTS["dnc-hops"][1], id="dnc-hops"),
        pytest.param("ntm", "memory", VARIANTS["ntm-hops"][1], id="ntm-hops"),
        pytest.param(
            "mad", "bi", {"external_addressing": "dnc", **VARIANTS["dnc-msd"][1]}, id="mad-dnc-msd"
        ),
    ],
)
def test_each_column_of_each_weight_gets_a_gradient(cell, encoder_type, changes):
    model = build(cell, (2, 2), encoder_type, **changes)
    batch = small_models.batch([(6, 9)] * 10 + [(9, 5)] * 10)
    for name, gradient in gradients(model, batch).items():
        assert np.all(np.isfinite(gradient)), name
        if "embedding" in name:
            continue
        columns = gradient.reshape(-1, gradient.shape[-1] if gradient.ndim else 1)
        assert np.all(np.abs(columns).max(axis=0) > 1e-9), name


@pytest.mark.quick("ntm-memory-changes0", "mad-bi-changes2")
@pytest.mark.parametrize(
    "cell,encoder_type,changes",
    [
        ("ntm", "memory", {}),
        ("dnc", "memory", {}),
        ("mad", "bi", {}),
        *(
            pytest.param(cell, "memory", changes, id=name)
            for name, (cell, changes) in VARIANTS.items()
        ),
    ],
)
def test_a_sentence_does_not_depend_on_its_batch(cell, encoder_type, changes):
    model = build(cell, (2, 2), encoder_type, **changes)
    batch = small_models.batch(LENGTHS)
    beam = BeamOptions(4, num_best=4)

    @tf.function(input_signature=SIGNATURE, autograph=False)
    def run(source, length):
        return search.beam_search(
            model, model.prepare(source, length), beam, search.SearchOptions(6)
        )

    together = run(batch.source, batch.source_length)
    for row, length in enumerate(batch.source_length):
        single = run(batch.source[row : row + 1, :length], batch.source_length[row : row + 1])
        shorter = min(single.ids.shape[2], together.ids.shape[2])
        is_same = single.ids[0, :, :shorter].numpy() == together.ids[row, :, :shorter].numpy()
        assert is_same.all()
        np.testing.assert_allclose(single.scores[0], together.scores[row], atol=1e-4)
        prepared = model.prepare(batch.source[row : row + 1, :length], tf.constant([length]))
        ids = together.ids[row, :1]
        end = together.lengths[row, :1]
        fed = tf.concat([[[1]], ids[:, :-1]], axis=1)
        log_probs, *_ = forced_log_probs(model, prepared, fed, ids, tf.cast(end, tf.int32))
        np.testing.assert_allclose(
            tf.reduce_sum(log_probs[0, : int(end[0])]), together.scores[row, 0], atol=1e-4
        )


def test_a_cell_that_needs_an_encoder_is_refused_without_one():
    with pytest.raises(UsageError, match="rnnsearch"):
        small_models.model("rnnsearch", encoder_type="memory")


def test_what_only_looks_like_a_class_is_no_cell(monkeypatch):
    """On Python 3.9 and 3.10 an alias such as tuple[int] does; a cell's file may import one."""

    class Alias:
        __class__ = type

    alias = Alias()
    assert isinstance(alias, type)
    monkeypatch.setattr("tfmann.cells.luong.State", alias)
    assert type(small_models.model("luong").cell).__name__ == "LuongCell"


def test_addresses_begin_at_the_set_slot():
    starts = {}
    for start in (0.0, 10.0):
        model = build("ntm", (2, 1), "memory", address_start=start)
        starts[start] = small_models.arrays(model)["cell/memory/initial_weights"]
        cell, length = model.cell, tf.constant([2])
        encoded = EncoderOutput(tf.zeros([1, 1, 0]), tf.zeros([1, 1]), length, ())
        first = cell.initial_state(encoded).memory.weights.numpy()
        assert (first[..., 0].min() > 0.99) == (start > 0), first
    moved = starts[10.0] - starts[0.0]
    assert np.all(moved[:, 1:] == 0) and np.allclose(moved[:, 0], 10.0, atol=1e-5)


@pytest.mark.parametrize("cell", ["ntm", "mad"])
@pytest.mark.parametrize("heads", [(1, 1), (2, 2)])
def test_heads_begin_as_on_a_tape_where_set(cell, heads):
    settings = {
        "cell": cell, "read_heads": heads[0], "write_heads": heads[1], "num_memory_locations": 12,
        "memory_unit_size": 6, "init_weight": 0.05, "head_start": "tape",
    }  # fmt: skip
    model = small_models.model("luong", **settings)
    batch = small_models.batch([(3, 6)])
    prepared = model.prepare(tf.constant(batch.source), tf.constant(batch.source_length))
    target = tf.constant(batch.target_in), tf.constant(batch.target_length)
    record = ("write_weights", "read_weights", "content_weights", "interpolation_gate")
    diagnostics = teacher_forced(model, prepared, *target, record=record).diagnostics
    written = diagnostics["write_weights"].numpy()[:, 0]  # [T, H, N]
    steps = np.arange(len(written))
    assert np.all(written.argmax(axis=2) == 1 + steps[:, None]), "a slot further every step"
    assert written.max(axis=2).min() > 0.6
    gates = diagnostics["interpolation_gate"].numpy()[:, 0, : heads[0]]
    assert gates.min() > 0.7, "a read looks by content"
    without = small_models.model("luong", **{**settings, "head_start": "zero"})
    prepared = without.prepare(tf.constant(batch.source), tf.constant(batch.source_length))
    diagnostics = teacher_forced(without, prepared, *target, record=record).diagnostics
    assert diagnostics["write_weights"].numpy().max() < 0.2, "spread over all slots"


def test_a_tape_needs_a_tap_to_move_by():
    with pytest.raises(UsageError, match="needs a shift_range of at least 1"):
        HParams(cell="ntm", encoder_type="memory", head_start="tape", shift_range=0)
