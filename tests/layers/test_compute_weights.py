"""A copy of a module that computes with other tensors than its variables."""

import tensorflow as tf
from helpers import small_models

from tfmann.layers.compute_weights import compute_weights, with_weights
from tfmann.layers.dropout import DropoutMasks


def test_kernels_are_cast_and_other_weights_are_not():
    cell = small_models.model("kvmematt-3").cell
    bound = with_weights(cell, compute_weights(cell, tf.bfloat16))
    last = bound.rounds[2]
    assert last.state_gru.kernel.dtype == last.forget_kernel.dtype == tf.bfloat16
    assert last.state_gru.bias.dtype == last.read_address.score_vector.dtype == tf.float32
    assert isinstance(cell.rounds[2].forget_kernel, tf.Variable), "the original keeps its variables"
    assert cell.rounds[2].forget_kernel.dtype == tf.float32


def test_every_variable_is_replaced():
    for variant in ("luong", "kvmematt-3", "key-value"):
        cell = small_models.model(variant).cell
        weights = compute_weights(cell, tf.float32)
        assert len(weights) == len(cell.trainable_variables)
        bound = with_weights(cell, weights)
        assert not any(isinstance(leaf, tf.Variable) for leaf in leaves(bound))


def leaves(part):
    if isinstance(part, tf.Module):
        for name, value in vars(part).items():
            if not name.startswith("_"):
                yield from leaves(value)
    elif isinstance(part, (list, tuple)):
        for item in part:
            yield from leaves(item)
    else:
        yield part


def test_gradients_reach_the_variables():
    cell = small_models.model("rnnsearch").cell
    words = tf.ones([2, cell.hparams.embedding_size])
    kernel = cell.decoder.query_gru.kernel
    with tf.GradientTape() as tape:
        bound = with_weights(cell, compute_weights(cell, tf.float32))
        loss = tf.reduce_sum(bound.prepare_inputs(words, DropoutMasks.none()))
    assert tf.reduce_all(tape.gradient(loss, kernel) == 2.0)
