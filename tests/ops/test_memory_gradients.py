"""Memory cells over time: gradients against the oracles' slopes, long unrolls, extreme sizes."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.memory_cells import VARIANTS, build, run_oracle
from oracles import mad

from tfmann.decoding.teacher_forcing import teacher_forced
from tfmann.ops import compiled_step
from tfmann.training import checkpoint, named_variables

CASES = [
    ("ntm", "memory", {}),
    ("dnc", "memory", {}),
    ("mad", "bi", {"external_addressing": "ntm"}),
    ("mad", "bi", {"external_addressing": "dnc"}),
    *(pytest.param(cell, "memory", changes, id=name) for name, (cell, changes) in VARIANTS.items()),
]
# of them, those that the quick tests try
BASES = [
    "ntm-memory-changes0", "dnc-memory-changes1", "mad-bi-changes2", "mad-bi-changes3",
]  # fmt: skip


def readouts(model, batch):
    """Returns the outputs of forced decoding before projection, `[T, B, U]`."""
    prepared = model.prepare(batch.source, batch.source_length)
    outputs, embedded, *_ = teacher_forced(model, prepared, batch.target_in, batch.target_length)
    flat = tf.reshape(outputs, [-1, outputs.shape[-1]])
    readout = model.readout(flat, tf.reshape(embedded, [-1, embedded.shape[-1]]))
    return tf.reshape(readout, [tf.shape(outputs)[0], -1, readout.shape[-1]])


def oracle_readouts(model, batch, heads, addressing):
    """The same of a batch of one sentence, in float64."""
    weights, arrays = small_models.oracle_weights(model), small_models.arrays(model)
    target = arrays["target_embedding"][batch.target_in[0]]
    if addressing is None:
        words = np.concatenate([arrays["source_embedding"][batch.source[0]], target])
        return run_oracle(model.hparams, weights, words)["outputs"][-len(target) :]
    prepared = model.prepare(batch.source, batch.source_length)
    states = [tuple(s) for s in small_models.row_of(prepared.state.layers, 0)]
    annotations = prepared.encoded.annotations[0].numpy()
    return mad.decode(
        weights, annotations, states, target, *heads, addressing=addressing, num_slots=6
    )["outputs"]


def assert_slopes_of_the_oracle(cell, encoder_type, changes):
    # One head each: equal slots of several heads change places in the last bit (see
    # test_memory_cells), and a slope across such a change means nothing.
    heads = (1, 1)
    model = build(cell, heads, encoder_type, **changes)
    batch = small_models.batch([(4, 5)])
    stream = np.random.default_rng(0)
    expected = stream.normal(size=[6, 1, 8])
    variables = [
        v for v in model.trainable_variables if "/cell/" in v.name and "bridge" not in v.name
    ]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(readouts(model, batch) * expected.astype(np.float32))
    gradients = tape.gradient(loss, variables)
    starts = [v.numpy() for v in variables]
    step = 1e-3
    for variable, start, gradient in zip(variables, starts, gradients):
        direction = stream.normal(size=start.shape).astype(np.float32)
        direction /= np.linalg.norm(direction)
        losses = []
        for sign in (1, -1):
            variable.assign(start + sign * step * direction)
            outputs = oracle_readouts(model, batch, heads, changes.get("external_addressing"))
            losses.append(np.sum(outputs * expected[:, 0]))
        variable.assign(start)
        slope = (losses[0] - losses[1]) / (2 * step)
        actual = float(np.sum(gradient.numpy() * direction))
        assert actual == pytest.approx(slope, rel=5e-3, abs=3e-4), variable.name


@pytest.mark.quick(*BASES, "dnc-msd", "ntm-hops")
@pytest.mark.parametrize("cell,encoder_type,changes", CASES)
def test_gradients_are_the_slopes_of_the_oracle(cell, encoder_type, changes):
    assert_slopes_of_the_oracle(cell, encoder_type, changes)


@pytest.mark.quick(*BASES[:2])
@pytest.mark.parametrize("cell,encoder_type,changes", CASES)
def test_gradients_of_compiled_steps_are_the_slopes_of_the_oracle(
    cell, encoder_type, changes, monkeypatch
):
    monkeypatch.setattr(compiled_step, "SMALLEST", 1)
    with compiled_step.compiled_steps(True):
        assert_slopes_of_the_oracle(cell, encoder_type, changes)


@pytest.mark.quick("ntm-memory-changes0")
@pytest.mark.parametrize(
    "cell,encoder_type,changes",
    [
        ("ntm", "memory", {"num_memory_locations": 512}),
        ("dnc", "memory", {"num_memory_locations": 32}),
        ("mad", "bi", {"num_memory_locations": 512}),
    ],
)
def test_two_hundred_steps_with_sharp_addresses_have_finite_gradients(cell, encoder_type, changes):
    model = build(cell, (1, 1), encoder_type, **changes)
    if hasattr(model.cell.memory, "head_bias"):  # gamma = 1 + softplus(20) = 21
        width, heads = model.cell.memory.width, 2
        bias = model.cell.memory.head_bias.numpy()
        per_head = bias[: heads * (width + 6)].reshape(heads, width + 6)
        per_head[:, -1] = 20.0
        model.cell.memory.head_bias.assign(bias)
    batch = small_models.batch([(99, 99), (1, 1)])

    @tf.function(autograph=False)
    def loss_and_gradients():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(readouts(model, batch)))
        return loss, tape.gradient(loss, model.trainable_variables)

    loss, gradients = loss_and_gradients()
    assert np.isfinite(float(loss))
    for variable, gradient in zip(model.trainable_variables, gradients):
        if gradient is not None:
            assert np.all(np.isfinite(tf.convert_to_tensor(gradient))), variable.name


@pytest.mark.quick(*BASES, "dnc-content-only")
@pytest.mark.parametrize("cell,encoder_type,changes", CASES)
def test_one_sentence_one_slot_one_number(cell, encoder_type, changes):
    model = build(cell, (1, 1), encoder_type, num_memory_locations=1, memory_unit_size=1, **changes)
    batch = small_models.batch([(3, 2)])
    with tf.GradientTape() as tape:
        outputs = readouts(model, batch)
        loss = tf.reduce_sum(tf.square(outputs))
    assert outputs.shape == [3, 1, 8]
    gradient = tape.gradient(loss, model.cell.output_kernel)
    assert np.all(np.isfinite(gradient)) and np.any(gradient != 0)


@pytest.mark.quick(*BASES, "dnc-hops")
@pytest.mark.parametrize("cell,encoder_type,changes", CASES)
def test_a_model_restored_from_a_checkpoint_says_the_same(cell, encoder_type, changes, tmp_path):
    batch = small_models.batch([(4, 3), (2, 5)])
    model = build(cell, (2, 2), encoder_type, **changes)
    arrays = {k: v.numpy() for k, v in named_variables.by_name(model.trainable_variables).items()}
    checkpoint.write(str(tmp_path / "ckpt"), arrays, {}, {})
    restored = build(cell, (2, 2), encoder_type, random_seed=9, **changes)
    assert np.abs(readouts(restored, batch) - readouts(model, batch)).max() > 1e-3
    where = str(tmp_path / "ckpt")
    named_variables.assign(restored.trainable_variables, checkpoint.read_arrays(where), where)
    np.testing.assert_array_equal(readouts(restored, batch), readouts(model, batch))
