"""The RNNSearch family and its objective: what equals what, and what starts from what."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cell_runs import decode
from oracles import objective as oracle

from tfmann.config import HParams
from tfmann.errors import UsageError
from tfmann.memory import access
from tfmann.training import named_variables, objective

LENGTHS = [(5, 4), (1, 6), (3, 1), (0, 2)]


def variables_by_name(model):
    return named_variables.by_name(model.trainable_variables)


def start_from(model, baseline):
    arrays = {name: value.numpy() for name, value in variables_by_name(baseline).items()}
    ancestor = model.cell.ancestor
    return named_variables.assign_matching(model.trainable_variables, arrays, "there", ancestor)


@pytest.mark.parametrize("variant", ["mematt", "kvmematt-1"])
def test_with_forget_and_add_at_zero_one_round_is_rnnsearch(variant, monkeypatch):
    model = small_models.model(variant, annotation_merge="sum")
    baseline = small_models.model("rnnsearch-sum", projection_bias=False)
    start_from(model, baseline)
    batch = small_models.batch(LENGTHS)

    def readouts(of):
        _, outputs, _, readout, diagnostics = decode(of, batch, ("alignments",), True)
        return outputs.numpy(), readout.numpy(), diagnostics["alignments"].numpy()

    of_baseline = readouts(baseline)
    assert np.abs(readouts(model)[0] - of_baseline[0]).max() > 1e-3  # it does write
    write = access.erase_and_add
    monkeypatch.setattr(
        access,
        "erase_and_add",
        lambda keys, weights, erase, add: write(keys, weights, 0 * erase, 0 * add),
    )
    for actual, expected in zip(readouts(model), of_baseline):
        # two programs, which a processor may sum in two orders: float32, 8 wide, 7 steps at most
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("variant,rounds", [("mematt", 1), ("kvmematt-1", 1), ("kvmematt-3", 3)])
def test_every_round_starts_as_a_copy_of_rnnsearch(variant, rounds):
    settings = {"annotation_merge": "sum", "attention_size": 0}
    model = small_models.model(variant, **settings)
    baseline = small_models.model("rnnsearch-sum", projection_bias=False)
    matched, fresh = start_from(model, baseline)
    new, old = variables_by_name(model), variables_by_name(baseline)
    for number in range(1, rounds + 1):
        for name in ("query_kernel", "memory_kernel", "score_vector", "state_gru/recurrent_kernel"):
            ours, theirs = f"model/cell/round_{number}/{name}", f"model/cell/{name}"
            np.testing.assert_array_equal(new[ours], old[theirs])
            assert f"{ours} (a copy of {theirs})" in matched
    np.testing.assert_array_equal(new["model/source_embedding"], old["model/source_embedding"])
    assert {name.rsplit("/", 1)[1] for name in fresh} == {
        "write_query_kernel", "write_memory_kernel", "write_score_vector", "forget_kernel",
        "add_kernel",
    }  # fmt: skip


def test_w_d_of_modifying_iw_starts_with_zeros_for_the_key_half():
    kernel = small_models.model("key-value-iw").cell.readout_kernel.numpy()  # [2U, U], U = 8
    assert np.all(kernel[8:12] == 0) and np.all(kernel[:8] != 0) and np.all(kernel[12:] != 0)
    assert np.all(small_models.model("key-value-attn").cell.readout_kernel.numpy() != 0)


def test_modifying_iw_starts_as_a_key_value_attention():
    """Where W_e keeps keys and values apart and both have W_d's other rows, all steps are equal."""
    pairs, single = (
        small_models.model("key-value", projection_bias=False),
        small_models.model("key-value-iw"),
    )
    shared = variables_by_name(pairs)
    for name, variable in variables_by_name(single).items():
        if not name.endswith(("annotation_kernel", "readout_kernel")):
            variable.assign(shared[name])
    units = single.hparams.num_units
    half = units // 2
    annotation = np.zeros([2 * units, units])
    for direction in range(2):  # rows: k_fwd, v_fwd, k_bwd, v_bwd
        rows, begin = slice(direction * half, (direction + 1) * half), direction * units
        annotation[begin : begin + half, :half] = pairs.cell.key_kernel.numpy()[rows]
        annotation[begin + half : begin + units, half:] = pairs.cell.value_kernel.numpy()[rows]
    single.cell.annotation_kernel.assign(annotation)
    kernel = single.cell.readout_kernel.numpy()
    pairs.cell.readout_kernel.assign(np.delete(kernel, range(units, units + half), axis=0))
    batch = small_models.batch(LENGTHS)
    (*_, expected, pairs_diagnostics), (*_, actual, diagnostics) = (
        decode(model, batch, ("alignments",), False) for model in (pairs, single)
    )
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    np.testing.assert_allclose(
        diagnostics["alignments"], pairs_diagnostics["alignments"], atol=1e-6
    )


@pytest.mark.parametrize("changes", [{"num_units": 7}, {"annotation_merge": "sum"}])
def test_key_value_refuses_states_that_it_cannot_halve(changes):
    with pytest.raises(UsageError, match="even num_units"):
        small_models.model("key-value", **changes)


def test_eos_attention_equals_the_oracle_in_value_and_gradient():
    stream = np.random.default_rng(0)
    source, target = np.array([4, 1, 3]), np.array([5, 2, 1])
    weights = stream.uniform(size=[5, 3, 4]).astype(np.float32)  # [T, B, S]
    weights *= np.arange(4) < source[:, None]
    weights /= weights.sum(axis=-1, keepdims=True)
    by_sentence = [weights[: target[b], b, : source[b]] for b in range(3)]
    expected, slopes = oracle.eos_attention(by_sentence, source, target, "sentence", 1.0)
    alignments = tf.constant(weights)
    with tf.GradientTape() as tape:
        tape.watch(alignments)
        actual = objective.eos_attention(alignments, tf.constant(source), tf.constant(target))
    np.testing.assert_allclose(actual / 3, expected, rtol=1e-6)
    gradient = tape.gradient(actual, alignments).numpy() / 3
    for row, slope in enumerate(slopes):
        np.testing.assert_allclose(gradient[: target[row], row, : source[row]], slope, atol=1e-6)
        assert np.all(gradient[target[row] :, row] == 0)


@pytest.mark.parametrize("variant", ["luong", "rnnsearch", "kvmematt-3"])
def test_the_weighted_term_is_added_to_the_loss_and_to_nothing_else(variant):
    batch = small_models.batch(LENGTHS)
    plain = objective.sum_loss(small_models.model(variant), batch[:5], None, tf.float32)
    model = small_models.model(variant, eos_attention_weight=0.7)
    weighted = objective.sum_loss(model, batch[:5], None, tf.float32)
    *_, diagnostics = decode(model, batch, ("alignments",), False)
    term = objective.eos_attention(
        diagnostics["alignments"], batch.source_length, batch.target_length
    )
    assert float(term) > 0.1
    np.testing.assert_allclose(weighted.total, plain.total + 0.7 * term, rtol=1e-5)
    np.testing.assert_allclose(weighted.cross_entropy, plain.cross_entropy, rtol=1e-6)


@pytest.mark.parametrize(
    "changes,match",
    [
        ({"cell": "ntm", "encoder_type": "memory"}, "has no alignments"),
        ({"append_source_eos": False}, "append_source_eos=true"),
    ],
)
def test_eos_attention_needs_an_end_to_attend_to(changes, match):
    with pytest.raises(UsageError, match=match):
        HParams(eos_attention_weight=1.0, **changes)
