"""Small models of the cell cache, with random caches."""

import numpy as np
import tensorflow as tf
from helpers import small_models

from tfmann.memory import continuous_cache
from tfmann.training.objective import sum_loss

FUSIONS = ("deep", "shallow")
LENGTHS = [(5, 4), (1, 6), (3, 1), (0, 2)]
D, U = 16, 8


def settings(fusion="deep", **changes):
    return {"cell": "cache", "cache_fusion": fusion, "cache_size": 3, **changes}


def model_of(fusion="deep", **changes):
    return small_models.model("rnnsearch", **settings(fusion, **changes))


def random_caches(model, batch, seed=0):
    """Every cache with something in it but the second."""
    stream = np.random.default_rng(seed)
    return continuous_cache.write(
        continuous_cache.empty(batch, model.hparams.cache_size, D, U),
        tf.constant(stream.normal(scale=0.5, size=[batch, 5, D]), tf.float32),
        tf.constant(stream.normal(size=[batch, 5, U]), tf.float32),
        tf.constant(stream.integers(0, small_models.TARGET_SIZE, [batch, 5]), tf.int32),
        tf.constant([5, 0, 2, 4, 3][:batch]),
        model.hparams.cache_overwrite,
    )


def prepare(model, batch, document=()):
    source, length = tf.constant(batch.source), tf.constant(batch.source_length)
    return model.prepare(source, length, document=document)


def weights_of(model):
    """The weights as the oracle of documents wants them."""
    arrays = small_models.arrays(model)
    projection = {name: arrays[name] for name in ("projection_kernel", "projection_bias")}
    learned = [arrays[name] for name in arrays if name.startswith("cell/matching/")]
    matching = {"matching": learned[0] if learned else 1.0}
    return {**small_models.oracle_weights(model), **projection, **matching}


def loss_of(model, batch, caches=None):
    """The loss of sentences with these caches, or with empty ones."""
    nothing = continuous_cache.empty(len(batch.source), model.hparams.cache_size, D, U)
    tensors = tuple(map(tf.constant, batch[:5]))
    return sum_loss(model, tensors, None, tf.float32, caches or nothing).total
