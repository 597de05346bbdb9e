"""One update of the weights, on one device or on all replicas of a strategy: one code path."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann import size
from tfmann.cells.noise import Noise
from tfmann.corpus.pipeline import Batch, no_words, shards
from tfmann.errors import UsageError
from tfmann.hparams import HParams
from tfmann.memory.cache import Cache
from tfmann.models.seq2seq import Seq2Seq
from tfmann.training import around, distribution
from tfmann.training.checkpoint import Unreadable, assign, by_name, read_arrays, read_state
from tfmann.training.objective import Loss, sum_loss
from tfmann.training.optimizer import SLOTS, make_optimizer
from tfmann.training.workers import Workers

_IDS, _LENGTHS = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)
BATCH_SIGNATURE = (_IDS, _LENGTHS, _IDS, _IDS, _LENGTHS)  # a Batch up to target_length


class Update(NamedTuple):
    """What an update tells, still on the device."""

    cross_entropy: tf.Tensor  # sum over the whole batch, without smoothing
    words: tf.Tensor  # of the whole batch
    gradient_norm: tf.Tensor  # before clipping


class Learner:
    """Model, optimizer and the compiled update.

    The loss of every replica is divided by the sentences or words of the whole batch, and the
    gradients are summed: any number of replicas, of any number of workers, has the gradient of one
    device.

    Attributes:
      workers: the processes that train together; mostly this one alone.
      strategy: theirs.
      variables: all weights.
      trained: those that an update changes (`trainable_parameters`).
      kept: per replica of this process, what its rows' documents have kept; of most cells nothing.
      bad_step: the first step whose loss or gradient was not finite, or -1. It stays on the
        device, so that watching costs no synchronisation.
    """

    def __init__(
        self,
        hparams: HParams,
        source_size: int,
        target_size: int,
        workers: Workers | None = None,
    ):
        """Creates the weights, and the optimizer's slots, on all replicas."""
        self.hparams = hparams
        self.workers = workers or distribution.join(hparams)
        self.strategy = self.workers.strategy
        with self.strategy.scope():
            self.model = Seq2Seq(hparams, source_size, target_size)
            self.optimizer = make_optimizer(hparams)
            self.variables = self.model.trainable_variables
            self.trained = matching(self.variables, hparams.trainable_parameters)
            self._require_room_for_slots()
            self.optimizer._create_all_weights(self.trained)
            self.bad_step = tf.Variable(
                -1, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
            )
        self.kept: tuple[Any, ...] = ()
        self._accumulation = hparams.gradient_accumulation
        self._compiled = tf.function(
            self._update,
            autograph=False,  # nothing here needs it, and it takes seconds
            input_signature=[
                (self._signature(),) * self.workers.replicas,
                tf.TensorSpec([2], tf.int32),
                tf.TensorSpec([], tf.int32),
                tf.TensorSpec([], tf.float32),
            ],
        )

    def _require_room_for_slots(self) -> None:
        """Raises UsageError where weights and slots, which a checkpoint has, are too many."""
        trained = sum(int(np.prod(variable.shape)) for variable in self.trained)
        size.require(
            self.model.count_parameters() + SLOTS[self.hparams.optimizer] * trained,
            f"a model of {self.model.count_parameters() / 1e6:.0f}M parameters with what "
            f"optimizer={self.hparams.optimizer!r} knows of each",
            "give smaller sizes (num_units, embedding_size, num_layers, those of the cell)",
        )

    def require_room(self, words: int) -> None:
        """Raises UsageError where an update over so many target words has no room in memory."""
        h, parts = self.hparams, self.workers.share.of * self._accumulation
        drawn = h.num_sampled_softmax or self.model.target_size
        numbers = min(drawn, self.model.target_size) + self.model.cell.memory_numbers
        size.require_on_device(
            words // parts * numbers,
            f"an update over {words} target words",
            "give a smaller batch_size or memory, or a greater gradient_accumulation",
        )

    def update(self, batch: Batch, step: int, rate: float) -> Update:
        """Makes one update; `step` seeds its dropout, `rate` is its learning rate."""
        shares = [self._parts(batch, share) for share in shards(batch, self.workers.replicas)]
        kept = self.kept or [None] * len(shares)
        tensors = tuple(
            tuple((tuple(part[:5]), around.of(self.model, part, one)) for part in parts)
            for parts, one in zip(shares, kept)
        )
        told, self.kept = self._compiled(
            tensors, tf.constant(batch.whole), tf.constant(step), tf.constant(rate, tf.float32)
        )
        return told

    def _signature(self) -> tuple:
        """What `_parts` makes of a replica's rows, with what goes with each."""
        return ((BATCH_SIGNATURE, around.signature(self.model)),) * self._accumulation

    def _parts(self, batch: Batch, share: Batch) -> list[Batch]:
        """A replica's share in as many parts as gradients are accumulated from; none is empty."""
        parts = shards(share, self._accumulation)
        return [part if len(part.source) else no_words(batch) for part in parts]

    def _update(
        self, parts: tuple, whole: tf.Tensor, step: tf.Tensor, rate: tf.Tensor
    ) -> tuple[Update, tuple[Any, ...]]:
        self.optimizer.learning_rate.assign(rate)
        words, sentences = tf.unstack(whole)
        by_sentences = self.hparams.loss_normalization == "sentences"
        divisor = tf.cast(sentences if by_sentences else words, tf.float32)
        cross_entropy, norm, kept = self.strategy.run(self._replica, (parts, step, divisor))
        cross_entropy = self.strategy.reduce("SUM", cross_entropy, axis=None)
        results = self.strategy.experimental_local_results
        norm = results(norm)[0]
        finite = tf.math.is_finite(cross_entropy) & tf.math.is_finite(norm)
        first = tf.where((self.bad_step < 0) & ~finite, step, self.bad_step)
        self.bad_step.assign(first)
        of_replicas = tuple(
            tf.nest.map_structure(lambda part: results(part)[replica], kept)  # noqa: B023
            for replica in range(len(parts))
        )
        return Update(cross_entropy, words, norm), of_replicas if kept else ()

    def _replica(
        self, parts: tuple, step: tf.Tensor, divisor: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """One replica's part: its gradient, the sum over replicas, the clipped update."""
        context = tf.distribute.get_replica_context()
        replica = int(tf.get_static_value(context.replica_id_in_sync_group))
        noise = Noise(tf.stack([self.hparams.random_seed, step])).scope(f"replica_{replica}")
        own = parts[replica - self.workers.share.first]
        gradients, losses = self._gradients(own, noise, divisor)
        gradients = context.all_reduce("SUM", gradients)
        norm = tf.linalg.global_norm(gradients)
        if self.hparams.max_gradient_norm:
            limit = self.hparams.max_gradient_norm
            gradients, _ = tf.clip_by_global_norm(gradients, limit, use_norm=norm)
        self.optimizer.apply_gradients(
            zip(gradients, self.trained), experimental_aggregate_gradients=False
        )
        return tf.add_n([loss.cross_entropy for loss in losses]), norm, losses[-1].kept

    def _gradients(
        self, parts: tuple, noise: Noise, divisor: tf.Tensor
    ) -> tuple[list[tf.Tensor], list[Loss]]:
        """The gradient of a replica's rows, one part after the other, and the parts' losses."""
        total: list[tf.Tensor] = []
        losses = []
        for index, (batch, beside) in enumerate(parts):
            drawn = noise.scope(f"part_{index}") if index else noise
            with tf.control_dependencies(total):  # so that one part at a time is in memory
                batch, beside = tf.nest.map_structure(tf.identity, (batch, beside))
            with tf.GradientTape() as tape:
                loss = sum_loss(
                    self.model, batch, drawn, self.model.compute_dtype, around.begin(beside)
                )
                scaled = loss.total / divisor
            # dense, because sums over sparse rows in another order are other numbers
            found = [tf.convert_to_tensor(g) for g in tape.gradient(scaled, self.trained)]
            total = [one + more for one, more in zip(total, found)] if total else found
            losses.append(loss)
        return total, losses

    def finite(self) -> bool:
        """Whether every weight is a finite number."""
        return all(bool(tf.reduce_all(tf.math.is_finite(value))) for value in self.variables)

    def optimizer_arrays(self) -> dict[str, np.ndarray]:
        """The optimizer's slots by name."""
        named = by_name(self.optimizer.variables())
        return {name: variable.numpy() for name, variable in named.items()}

    def kept_arrays(self) -> dict[str, np.ndarray]:
        """What the rows' documents have kept, by name, `[rows, ...]`; all workers must ask."""
        if not self.kept:
            return {}
        rows = int(self.workers.total([sum(len(one.words) for one in self.kept)])[0])
        first, _, count = self.workers.share
        arrays = {}
        for name, parts in zip(Cache._fields, zip(*self.kept)):
            whole = np.zeros([rows, *parts[0].shape[1:]], parts[0].dtype.as_numpy_dtype)
            for replica, part in enumerate(parts, first):
                whole[replica::count] = part.numpy()  # as `pipeline.shards` deals them
            arrays[name] = self.workers.merge(whole)
        return arrays

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
        if "documents.npz" in read_state(folder)["sha256"]:
            kept = read_arrays(folder, "documents")
            if set(kept) != set(Cache._fields):
                raise Unreadable(f"{folder}/documents.npz does not hold what documents keep")
            first, replicas, count = self.workers.share
            self.kept = tuple(
                Cache(*(tf.constant(kept[name][replica::count]) for name in Cache._fields))
                for replica in range(first, first + replicas)
            )


def matching(variables: Sequence[Any], patterns: str) -> list[Any]:
    """Those variables whose name below the model one of the patterns matches; all without any.

    Raises:
      UsageError: a pattern matches none.
    """
    if not patterns:
        return list(variables)
    named = {name.split("/", 1)[1]: variable for name, variable in by_name(variables).items()}
    found = set()
    for pattern in patterns.split(","):
        hits = fnmatch.filter(named, pattern.strip())
        if not hits:
            raise UsageError(
                f"trainable_parameters: {pattern.strip()!r} is no weight of this model, which has "
                f"{', '.join(named)}"
            )
        found.update(hits)
    return [variable for name, variable in named.items() if name in found]
