"""One update of the weights, on one device or on the replicas of a strategy: one code path."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.noise import Noise
from tfmann.corpus.pipeline import Batch, shards
from tfmann.hparams import HParams
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training.checkpoint import assign, by_name, read_arrays
from tfmann.training.objective import sum_loss
from tfmann.training.optimizer import make_optimizer

_IDS, _LENGTHS = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)
BATCH_SIGNATURE = (_IDS, _LENGTHS, _IDS, _IDS, _LENGTHS)  # a Batch up to target_length


class Update(NamedTuple):
    """What an update tells, still on the device."""

    cross_entropy: tf.Tensor  # sum over the batch, without smoothing
    words: tf.Tensor
    gradient_norm: tf.Tensor  # before clipping


def make_strategy(hparams: HParams) -> tf.distribute.Strategy:
    """`none`: the default device. `mirrored`: all GPUs, or all logical CPU devices without one."""
    if hparams.distribution == "none":
        return tf.distribute.get_strategy()
    return _mirrored()


@functools.cache
def _mirrored() -> tf.distribute.Strategy:
    """One for the whole process: two would number their sums alike, and TensorFlow mix them up."""
    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    devices = [device.name for device in tf.config.list_logical_devices(kind)]
    return tf.distribute.MirroredStrategy(devices)


class Learner:
    """Model, optimizer and the compiled update.

    The loss of every replica is divided by the sentences or words of the whole batch, and the
    gradients are summed: any number of replicas has the gradient of one device.

    Attributes:
      bad_step: the first step whose loss or gradient was not finite, or -1. It stays on the
        device, so that watching costs no synchronisation.
    """

    def __init__(self, hparams: HParams, source_size: int, target_size: int):
        """Creates the weights, and the optimizer's slots, on all replicas."""
        self.hparams = hparams
        self.strategy = make_strategy(hparams)
        with self.strategy.scope():
            self.model = Seq2Seq(hparams, source_size, target_size)
            self.optimizer = make_optimizer(hparams)
            self.variables = self.model.trainable_variables
            self.optimizer._create_all_weights(self.variables)
            self.bad_step = tf.Variable(
                -1, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
            )
        replicas = self.strategy.num_replicas_in_sync
        self._compiled = tf.function(
            self._update,
            autograph=False,  # nothing here needs it, and it takes seconds
            input_signature=[
                (BATCH_SIGNATURE,) * replicas,
                tf.TensorSpec([], tf.int32),
                tf.TensorSpec([], tf.float32),
            ],
        )

    def update(self, batch: Batch, step: int, rate: float) -> Update:
        """Makes one update; `step` seeds its dropout, `rate` is its learning rate."""
        parts = shards(batch, self.strategy.num_replicas_in_sync)
        parts = [part if len(part.source) else _no_words(batch) for part in parts]
        tensors = tuple(tuple(part[:5]) for part in parts)
        return self._compiled(tensors, tf.constant(step), tf.constant(rate, tf.float32))

    def _update(self, parts: tuple, step: tf.Tensor, rate: tf.Tensor) -> Update:
        self.optimizer.learning_rate.assign(rate)
        words = tf.add_n([tf.reduce_sum(lengths) for *_, lengths in parts])
        divisor = words
        if self.hparams.loss_normalization == "sentences":
            counts = [tf.math.count_nonzero(lengths, dtype=tf.int32) for *_, lengths in parts]
            divisor = tf.add_n(counts)
        divisor = tf.cast(divisor, tf.float32)
        cross_entropy, norm = self.strategy.run(self._replica, (parts, step, divisor))
        cross_entropy = self.strategy.reduce("SUM", cross_entropy, axis=None)
        norm = self.strategy.experimental_local_results(norm)[0]
        finite = tf.math.is_finite(cross_entropy) & tf.math.is_finite(norm)
        first = tf.where((self.bad_step < 0) & ~finite, step, self.bad_step)
        self.bad_step.assign(first)
        return Update(cross_entropy, words, norm)

    def _replica(
        self, parts: tuple, step: tf.Tensor, divisor: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """One replica's part: its gradient, the sum over replicas, the clipped update."""
        context = tf.distribute.get_replica_context()
        replica = int(tf.get_static_value(context.replica_id_in_sync_group))
        noise = Noise(tf.stack([self.hparams.random_seed, step])).scope(f"replica_{replica}")
        with tf.GradientTape() as tape:
            loss = sum_loss(self.model, parts[replica], noise, self.model.compute_dtype)
            scaled = loss.total / divisor
        # dense, because sums over sparse rows in another order are other numbers
        gradients = [tf.convert_to_tensor(g) for g in tape.gradient(scaled, self.variables)]
        gradients = context.all_reduce("SUM", gradients)
        norm = tf.linalg.global_norm(gradients)
        if self.hparams.max_gradient_norm:
            limit = self.hparams.max_gradient_norm
            gradients, _ = tf.clip_by_global_norm(gradients, limit, use_norm=norm)
        self.optimizer.apply_gradients(
            zip(gradients, self.variables), experimental_aggregate_gradients=False
        )
        return loss.cross_entropy, norm

    def optimizer_arrays(self) -> dict[str, np.ndarray]:
        """The optimizer's slots by name."""
        named = by_name(self.optimizer.variables())
        return {name: variable.numpy() for name, variable in named.items()}

    def weight_arrays(self) -> dict[str, np.ndarray]:
        """The weights by name."""
        return {name: v.numpy() for name, v in by_name(self.variables).items()}

    def restore(self, folder: str) -> None:
        """Sets weights and slots from a checkpoint.

        Raises:
          UserError: it is another model's or another optimizer's.
        """
        assign(self.variables, read_arrays(folder), folder)
        slots = read_arrays(folder, "optimizer")
        assign(self.optimizer.variables(), slots, f"the optimizer of {folder}")


def _no_words(batch: Batch) -> Batch:
    """One row of a batch without any word to predict, for a replica that got no row."""
    empty = Batch(*(part[:1] for part in batch))
    return empty._replace(target_length=np.zeros_like(empty.target_length))
