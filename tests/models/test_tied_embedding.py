"""A projection that is the target embedding: the same numbers, one weight less, its gradient."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models

from tfmann.errors import UsageError
from tfmann.training.objective import sum_loss

SIZES = {"embedding_size": 8}  # num_units: what luong projects


def test_logits_are_products_with_the_embeddings_and_there_is_one_weight_less():
    tied = small_models.model("luong", tie_output_embedding=True, **SIZES)
    free = small_models.model("luong", **SIZES)
    names = {name for name in small_models.arrays(free)}
    assert names - set(small_models.arrays(tied)) == {"projection_kernel"}
    outputs, embedded = tf.random.normal([3, 8], seed=1), tf.zeros([3, 8])
    logits = tied.projection()(tied.readout(outputs, embedded))
    expected = outputs @ tf.transpose(tied.target_embedding)
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_the_gradient_of_the_embedding_is_the_sum_of_both_uses():
    batch = small_models.batch([(5, 4), (1, 6)])
    tied = small_models.model("luong", tie_output_embedding=True, **SIZES)
    free = small_models.model("luong", **SIZES)
    shared = small_models.arrays(tied)
    for variable in free.trainable_variables:
        name = variable.name.split(":")[0].split("/", 1)[1]
        variable.assign(shared.get(name, shared["target_embedding"].T))
    slope = gradient(tied, batch, [tied.target_embedding])[0]
    words, kernel = gradient(free, batch, [free.target_embedding, free.projection_kernel])
    np.testing.assert_allclose(slope, words + kernel.T, atol=1e-4)


def gradient(model, batch, weights):
    with tf.GradientTape() as tape:
        loss = sum_loss(model, batch[:5], None, tf.float32).total
    return [tf.convert_to_tensor(g).numpy() for g in tape.gradient(loss, weights)]


def test_a_readout_of_another_width_is_refused():
    with pytest.raises(UsageError, match="width 6 has to be that of the readout, which is 8"):
        small_models.model("luong", tie_output_embedding=True)
