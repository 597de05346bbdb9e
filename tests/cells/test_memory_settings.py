"""Settings of the memories of DNC and NTM: sizes, constructed steps, and what they leave alone."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.memory_cells import VARIANTS, build

from tfmann.config import HParams
from tfmann.errors import UsageError
from tfmann.layers.dnc_interface import part_shapes
from tfmann.layers.dropout import DropoutMasks
from tfmann.models.keras_cell import no_source

LARGE = 25.0  # opens a gate


def first_step(model, words=None, state=None):
    """The cell's first step on two rows: `StepOutput`."""
    cell, source = model.cell, no_source(2)
    words = np.zeros([2, model.hparams.embedding_width], np.float32) if words is None else words
    inputs = cell.prepare_inputs(tf.constant(words), DropoutMasks.none())
    state = cell.initial_state(source) if state is None else state
    return cell.step(inputs, state, cell.prepare(source))


# --- the interface ------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", [(1, 1), (2, 3)])
@pytest.mark.parametrize(
    "changes,count",
    [
        ({}, lambda r, h, w: 0),
        ({"dnc_masking": True, "dnc_mask_floor": 0.1}, lambda r, h, w: (r + h) * w),
        ({"dnc_deallocation": True}, lambda r, h, w: 0),
        ({"dnc_sharp_links": True}, lambda r, h, w: 2 * r),
        ({"dnc_content_only": True}, lambda r, h, w: -r * (1 + 2 * h)),
        ({"dnc_layer_norm": True}, lambda r, h, w: 0),
        ({"dnc_bypass_dropout": 0.1}, lambda r, h, w: 0),
    ],
)
def test_the_interface_has_the_numbers_that_its_settings_need(heads, changes, count):
    (r, h), w = heads, 4
    numbers = r * w + 3 * h * w + 2 * r + 3 * h + r * (1 + 2 * h) + count(r, h, w)
    model = build("dnc", heads, "memory", **changes)
    arrays = small_models.arrays(model)
    assert arrays["cell/memory/interface_kernel"].shape == (8, numbers)
    assert arrays["cell/memory/interface_bias"].shape == (numbers,)
    more = {name for name in arrays if "interface_norm" in name}
    assert len(more) == (2 if "dnc_layer_norm" in changes else 0)
    assert all(arrays[name].shape == (numbers,) for name in more)
    assert len(arrays) == len(small_models.arrays(build("dnc", heads, "memory"))) + len(more)


def test_a_memory_without_links_is_small():
    model, slim = (
        build("dnc", (2, 3), "memory"),
        build("dnc", (2, 3), "memory", dnc_content_only=True),
    )
    assert model.cell.memory_numbers == 6 * (4 + 3 * 6)
    assert slim.cell.memory_numbers == 6 * 4
    memory = slim.cell.initial_state(no_source(2)).memory
    assert memory.link == () and memory.precedence == ()
    assert len(tf.nest.flatten(memory)) == 5
    shown = first_step(slim).diagnostics
    assert not {"link", "precedence", "read_modes"} & set(shown)
    np.testing.assert_array_equal(shown["read_weights"], shown["content_weights"][:, :2])


def test_sharp_links_need_links():
    with pytest.raises(UsageError, match="dnc_sharp_links sharpens.*set one of them to false"):
        HParams(cell="dnc", encoder_type="memory", dnc_sharp_links=True, dnc_content_only=True)


@pytest.mark.parametrize("key,value", [("dnc_mask_floor", 1.0), ("dnc_bypass_dropout", 1.0),
                                       ("dnc_mask_floor", -0.1), ("memory_hops", 0)])  # fmt: skip
def test_values_out_of_range_are_refused(key, value):
    with pytest.raises(UsageError, match=f"{key}: {value} is "):
        HParams(cell="dnc", encoder_type="memory", **{key: value})


def test_masks_are_not_below_their_floor():
    for floor in (0.0, 0.3):
        model = build("dnc", (2, 1), "memory", dnc_masking=True, dnc_mask_floor=floor)
        bias, start = model.cell.memory.interface.bias.numpy(), -(2 + 1) * 4
        bias[start:] = -LARGE
        model.cell.memory.interface.bias.assign(bias)
        model.cell.memory.interface.kernel.assign(tf.zeros_like(model.cell.memory.interface.kernel))
        shown = first_step(model).diagnostics
        for name, heads in (("read_mask", 2), ("write_mask", 1)):
            np.testing.assert_allclose(shown[name], np.full([2, heads, 4], floor), atol=1e-6)


# --- dropout of what bypasses the memory --------------------------------------------------------


def test_bypass_dropout_drops_the_controllers_state_and_not_the_reads():
    model = build("dnc", (1, 1), "memory", dnc_bypass_dropout=0.5)
    cell, stream = model.cell, np.random.default_rng(0)
    outputs = tf.constant(stream.normal(size=[40, 12]), tf.float32)
    words = tf.zeros([40, 5])
    kernel, masks = cell.output_kernel.numpy(), DropoutMasks(tf.constant([1, 7]))
    of_reads, of_state = kernel.copy(), np.eye(12, 8, dtype=np.float32)
    of_reads[:8] = 0.0
    cell.output_kernel.assign(of_reads)
    expected = cell.readout(outputs, words, DropoutMasks.none())
    np.testing.assert_array_equal(cell.readout(outputs, words, masks), expected)
    cell.output_kernel.assign(of_state)
    dropped = (cell.readout(outputs, words, masks) - cell.output_bias).numpy()
    is_zero = np.abs(dropped) < 1e-6
    assert 0.35 < is_zero.mean() < 0.65
    np.testing.assert_allclose(dropped[~is_zero], 2 * outputs[:, :8].numpy()[~is_zero], atol=1e-5)


def test_without_bypass_dropout_a_step_of_training_is_the_same():
    models = [build("dnc", (1, 1), "memory", dnc_bypass_dropout=rate) for rate in (0.0, 0.5)]
    masks, words = DropoutMasks(tf.constant([1, 7])), tf.zeros([2, 5])
    steps = [first_step(model).output for model in models]
    np.testing.assert_array_equal(*steps)
    plain, dropped = (m.cell.readout(steps[0], words, masks) for m in models)
    unchanged = models[0].cell.readout(steps[0], words, DropoutMasks.none())
    np.testing.assert_array_equal(plain, unchanged)
    assert np.abs(dropped - plain).max() > 1e-3


# --- hops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", ["ntm", "dnc"])
def test_hops_add_one_gru_that_begins_by_keeping_the_state(cell):
    encoder = {"cell": cell, "encoder_type": "memory", "num_memory_locations": 6, "read_heads": 2,
               "memory_unit_size": 4}  # fmt: skip
    base, hops = ({v.name: v.numpy() for v in _variables(encoder, memory_hops=n)} for n in (1, 3))
    more = {name: value for name, value in hops.items() if name not in base}
    assert all("/hop_gru/" in name for name in more)
    assert sum(value.size for value in more.values()) == 3 * 8 * (8 + 2 * 4 + 1)
    assert all(np.array_equal(base[name], hops[name]) for name in base)
    np.testing.assert_array_equal(more["model/cell/hop_gru/bias:0"], [2.0] * 8 + [0.0] * 16)


def _variables(settings, **changes):
    from tfmann.models.seq2seq import Seq2Seq

    h = HParams(num_units=8, embedding_size=5, **settings, **changes)
    return Seq2Seq(h, small_models.SOURCE_SIZE, small_models.TARGET_SIZE).trainable_variables


@pytest.mark.parametrize("cell", ["ntm", "dnc"])
def test_hops_that_keep_the_state_all_begin_at_the_controllers(cell):
    base, model = (build(cell, (1, 1), "memory", memory_hops=n) for n in (1, 3))
    bias = model.cell.hop_gru.bias.numpy()
    bias[:8] = LARGE
    model.cell.hop_gru.bias.assign(bias)
    words = np.random.default_rng(3).normal(size=[2, 5]).astype(np.float32)
    outputs = [first_step(m, words).output.numpy() for m in (base, model)]
    np.testing.assert_allclose(outputs[0][:, :8], outputs[1][:, :8], atol=1e-6)
    if cell == "ntm":  # three shifts lead elsewhere
        assert np.abs(outputs[0][:, 8:] - outputs[1][:, 8:]).max() > 1e-4


def test_an_ntms_reads_move_by_a_slot_in_every_hop_and_its_writes_by_one_in_a_step():
    model = build("ntm", (1, 1), "memory", memory_hops=3, address_start=LARGE, init_weight=0.01)
    memory = model.cell.memory
    bias = np.zeros([2, 4 + 3 + 3], np.float32)
    bias[:, 5], bias[:, 8], bias[:, 9] = -LARGE, LARGE, LARGE  # no content, one on, sharp
    memory.head_bias.assign(np.concatenate([bias.ravel(), np.zeros(8)]))
    state, reads, writes = None, [], []
    for _ in range(3):
        out = first_step(model, state=state)
        state = out.state
        reads.append(int(tf.argmax(out.diagnostics["read_weights"][0, 0])))
        writes.append(int(tf.argmax(out.diagnostics["write_weights"][0, 0])))
    assert reads == [3, 0, 3] and writes == [1, 2, 3]  # of six slots


@pytest.mark.parametrize("changes", [{}, {"dnc_sharp_links": True}])
def test_a_dnc_follows_a_chain_of_links_in_one_step(changes):
    model = build("dnc", (1, 1), "memory", memory_hops=3, **changes)
    memory = model.cell.memory
    h, bias = model.hparams, []
    opened = {"write_gates": -LARGE, "free_gates": -LARGE, "forward_sharpness": 3.0}
    for name, (heads, size) in part_shapes(h).items():
        values = np.full([heads, size], opened.get(name, 0.0))
        if name == "read_modes":
            values[:, -1] = LARGE  # forward
        bias += list(values.ravel())
    memory.interface.bias.assign(bias)
    memory.interface.kernel.assign(tf.zeros_like(memory.interface.kernel))
    state = model.cell.initial_state(no_source(2))
    slots = np.eye(6, dtype=np.float32)
    full = state.memory._replace(
        link=tf.constant(np.tile(np.roll(slots, 1, axis=0), [2, 1, 1, 1])),  # i after i - 1
        read_weights=tf.constant(np.tile(slots[1], [2, 1, 1])),
        memory=tf.constant(np.random.default_rng(0).normal(size=[2, 6, 4]), tf.float32),
    )
    out = first_step(model, state=state._replace(memory=full))
    expected = np.tile(slots[4], [2, 1, 1])
    np.testing.assert_allclose(out.state.memory.read_weights, expected, atol=1e-4)
    np.testing.assert_allclose(out.diagnostics["read_weights"], expected, atol=1e-4)
    np.testing.assert_allclose(out.output[:, 8:], full.memory[:, 4], atol=1e-3)
    np.testing.assert_allclose(out.state.memory.memory, full.memory, atol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_changes_the_result(variant):
    cell, changes = VARIANTS[variant]
    words = np.random.default_rng(3).normal(size=[2, 5]).astype(np.float32)
    outputs = []
    for settings in ({}, changes):
        model, state = build(cell, (1, 1), "memory", **settings), None
        for _ in range(2):
            out = first_step(model, words, state)
            state = out.state
        outputs.append(out.output.numpy())
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-3
