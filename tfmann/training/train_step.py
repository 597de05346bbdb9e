"""One update of the weights, on one device or on all replicas of a strategy: one code path."""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.config import HParams
from tfmann.data.batching import Batch, shard_batch, without_words
from tfmann.errors import UsageError, UserError
from tfmann.layers.dropout import DropoutMasks
from tfmann.memory.continuous_cache import Cache
from tfmann.models.seq2seq import BATCH_SIGNATURE, Seq2Seq
from tfmann.ops.compiled_step import compiled_steps
from tfmann.training import strategy
from tfmann.training.checkpoint import Unreadable, read_arrays, read_state
from tfmann.training.document_inputs import document_context, document_inputs, signature
from tfmann.training.named_variables import assign, by_name
from tfmann.training.objective import Loss, sum_loss
from tfmann.training.optimizer import SLOTS, make_optimizer
from tfmann.training.worker_sync import Workers
from tfmann.utils import memory_limits


class Update(NamedTuple):
    """The statistics of an update, still on the device."""

    cross_entropy: tf.Tensor  # sum over the whole batch, without smoothing
    words: tf.Tensor  # of the whole batch
    gradient_norm: tf.Tensor  # before clipping


class TrainStep:
    """Model, optimizer and the compiled update.

    The loss of every replica is divided by the sentences or words of the whole batch, and the
    gradients are summed: the gradient is that of one device, whatever the number of replicas and
    workers.

    Attributes:
      workers: the processes that train together; usually this one alone.
      strategy: the workers' strategy.
      variables: all weights.
      trained: the weights that an update changes (`trainable_parameters`).
      caches: for each replica of this process, the cache of its rows' documents; empty for a model
        without a cache.
      bad_step: the first step whose loss or gradient was not finite, or -1. It stays on the
        device, so that checking costs no synchronisation.
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
        self.workers = workers or strategy.join(hparams)
        self.strategy = self.workers.strategy
        with self.strategy.scope():
            self.model = Seq2Seq(hparams, source_size, target_size)
            self.optimizer = make_optimizer(hparams)
            self.variables = self.model.trainable_variables
            by_name(self.variables)  # refuses a name that two have, before the first update
            self.trained = matching(self.variables, hparams.trainable_parameters)
            self._require_room_for_slots()
            self.optimizer._create_all_weights(self.trained)
            self.bad_step = tf.Variable(
                -1, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
            )
        self.caches: tuple[Any, ...] = ()
        self._accumulation = hparams.gradient_accumulation
        self._compiles_memory = (
            hparams.compile_memory
            and hparams.batch_type == "sentences"  # other batches have many sizes
            and not tf.config.list_physical_devices("GPU")
        )
        self._compiled_update = tf.function(
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
        """Raises UsageError if weights and slots do not fit into memory."""
        trained = sum(int(np.prod(variable.shape)) for variable in self.trained)
        memory_limits.require_memory(
            self.model.count_parameters() + SLOTS[self.hparams.optimizer] * trained,
            f"a model of {self.model.count_parameters() / 1e6:.0f}M parameters with the slots of "
            f"optimizer={self.hparams.optimizer!r}",
            "give smaller sizes (num_units, embedding_size, num_layers, those of the cell)",
        )

    @property
    def parts(self) -> int:
        """Number of parts into which replicas and accumulation cut a batch."""
        return self.workers.share.all_replicas * self._accumulation

    def require_room(self, words: int) -> None:
        """Raises UsageError if an update over `words` target words does not fit into memory."""
        h, parts = self.hparams, self.parts
        projected = h.num_sampled_softmax or self.model.target_size
        numbers = min(projected, self.model.target_size) + self.model.cell.memory_numbers
        memory_limits.require_without_gpu(
            words // parts * numbers,
            f"an update over {words} target words",
            "give a smaller batch_size or memory, or a greater gradient_accumulation",
        )

    def update(self, batch: Batch, step: int, rate: float) -> Update:
        """Makes one update; `step` seeds its dropout, `rate` is its learning rate."""
        shares = [self._parts(batch, share) for share in shard_batch(batch, self.workers.replicas)]
        caches = self.caches or [None] * len(shares)
        tensors = tuple(
            tuple((tuple(part[:5]), document_inputs(self.model, part, cache)) for part in parts)
            for parts, cache in zip(shares, caches)
        )
        update, self.caches = self._compiled_update(
            tensors, tf.constant(batch.totals), tf.constant(step), tf.constant(rate, tf.float32)
        )
        return update

    def _signature(self) -> tuple:
        """Returns the shapes and types of a replica's parts, with their document inputs."""
        return ((BATCH_SIGNATURE, signature(self.model)),) * self._accumulation

    def _parts(self, batch: Batch, share: Batch) -> list[Batch]:
        """Splits a replica's share into the parts of gradient accumulation; none is empty."""
        parts = shard_batch(share, self._accumulation)
        return [part if len(part.source) else without_words(batch) for part in parts]

    def _update(
        self, parts: tuple, totals: tf.Tensor, step: tf.Tensor, rate: tf.Tensor
    ) -> tuple[Update, tuple[Any, ...]]:
        self.optimizer.learning_rate.assign(rate)
        words, sentences = tf.unstack(totals)
        by_sentences = self.hparams.loss_normalization == "sentences"
        divisor = tf.cast(sentences if by_sentences else words, tf.float32)
        cross_entropy, norm, cache = self.strategy.run(self._replica, (parts, step, divisor))
        cross_entropy = self.strategy.reduce("SUM", cross_entropy, axis=None)
        results = self.strategy.experimental_local_results
        norm = results(norm)[0]
        finite = tf.math.is_finite(cross_entropy) & tf.math.is_finite(norm)
        bad_step = tf.where((self.bad_step < 0) & ~finite, step, self.bad_step)
        self.bad_step.assign(bad_step)
        caches = tuple(
            tf.nest.map_structure(lambda part: results(part)[replica], cache)  # noqa: B023
            for replica in range(len(parts))
        )
        return Update(cross_entropy, words, norm), caches if cache else ()

    def _replica(
        self, parts: tuple, step: tf.Tensor, divisor: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, Any]:
        """Computes a replica's gradient, sums it over replicas, clips it and applies it."""
        context = tf.distribute.get_replica_context()
        replica = int(tf.get_static_value(context.replica_id_in_sync_group))
        masks = DropoutMasks(tf.stack([self.hparams.random_seed, step])).scope(f"replica_{replica}")
        share = parts[replica - self.workers.share.first]
        gradients, losses = self._gradients(share, masks, divisor)
        gradients = context.all_reduce("SUM", gradients)
        norm = tf.linalg.global_norm(gradients)
        if self.hparams.max_gradient_norm:
            limit = self.hparams.max_gradient_norm
            gradients, _ = tf.clip_by_global_norm(gradients, limit, use_norm=norm)
        self.optimizer.apply_gradients(
            zip(gradients, self.trained), experimental_aggregate_gradients=False
        )
        return tf.add_n([loss.cross_entropy for loss in losses]), norm, losses[-1].cache

    def _gradients(
        self, parts: tuple, masks: DropoutMasks, divisor: tf.Tensor
    ) -> tuple[list[tf.Tensor], list[Loss]]:
        """Computes the gradient of a replica's rows, part by part, and the parts' losses."""
        total: list[tf.Tensor] = []
        losses = []
        for index, (batch, inputs) in enumerate(parts):
            part_masks = masks.scope(f"part_{index}") if index else masks
            with tf.control_dependencies(total):  # so that one part at a time is in memory
                batch, inputs = tf.nest.map_structure(tf.identity, (batch, inputs))
            with compiled_steps(self._compiles_memory), tf.GradientTape() as tape:
                dtype = self.model.compute_dtype
                loss = sum_loss(self.model, batch, part_masks, dtype, document_context(inputs))
                scaled = loss.total / divisor
            # A part without sentences has one step, at which not every weight is used.
            zero = tf.UnconnectedGradients.ZERO
            gradients = tape.gradient(scaled, self.trained, unconnected_gradients=zero)
            # dense, because the sum over sparse rows depends on their order
            gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]
            total = [a + b for a, b in zip(total, gradients)] if total else gradients
            losses.append(loss)
        return total, losses

    def has_finite_weights(self) -> bool:
        """Returns True if every weight is a finite number."""
        return all(bool(tf.reduce_all(tf.math.is_finite(value))) for value in self.variables)

    def optimizer_arrays(self) -> dict[str, np.ndarray]:
        """Returns the optimizer's slots by name."""
        named = by_name(self.optimizer.variables())
        return {name: variable.numpy() for name, variable in named.items()}

    def cache_arrays(self) -> dict[str, np.ndarray]:
        """Returns the caches of all rows by name, `[rows, ...]`; all workers must call it."""
        if not self.caches:
            return {}
        rows = int(self.workers.total([sum(len(cache.words) for cache in self.caches)])[0])
        first, _, count = self.workers.share
        arrays = {}
        for name, parts in zip(Cache._fields, zip(*self.caches)):
            merged = np.zeros([rows, *parts[0].shape[1:]], parts[0].dtype.as_numpy_dtype)
            for replica, part in enumerate(parts, first):
                merged[replica::count] = part.numpy()  # in the order of `shard_batch`
            arrays[name] = self.workers.merge(merged)
        return arrays

    def weight_arrays(self) -> dict[str, np.ndarray]:
        """Returns the weights by name."""
        return {name: v.numpy() for name, v in by_name(self.variables).items()}

    def restore(self, folder: str) -> None:
        """Sets weights and slots from a checkpoint.

        Raises:
          UserError: the checkpoint is another model's or another optimizer's.
        """
        assign(self.variables, read_arrays(folder), folder)
        self._restore_slots(folder)
        if "documents.npz" in read_state(folder)["sha256"]:
            arrays = read_arrays(folder, "documents")
            if set(arrays) != set(Cache._fields):
                raise Unreadable(
                    f"{folder}/documents.npz is no cache: expected {', '.join(Cache._fields)}"
                )
            first, replicas, count = self.workers.share
            self.caches = tuple(
                Cache(*(tf.constant(arrays[name][replica::count]) for name in Cache._fields))
                for replica in range(first, first + replicas)
            )

    def _restore_slots(self, folder: str) -> None:
        slots = read_arrays(folder, "optimizer")
        try:
            assign(self.optimizer.variables(), slots, folder)
        except UserError:  # the weights are those of this model
            h = self.hparams
            raise UserError(
                f"{folder} is of a run with another optimizer than optimizer={h.optimizer!r}, or "
                f"with other trainable_parameters than {h.trainable_parameters!r}: a run continues "
                "as it began. Leave both as they were, or start a new run from these weights: give "
                f"another out_dir and --init_checkpoint={folder}"
            ) from None


def require_trainable(hparams: HParams) -> None:
    """Checks settings of training before the vocabularies are known.

    A run that has been trained with such values can still be used.

    Raises:
      UsageError: a pattern of `trainable_parameters` matches no weight of the model, or a setting
        has a value with which it does nothing, or something else.
    """
    h, by_sentences = hparams, hparams.batch_type == "sentences"
    for is_useless, message in (
        (
            by_sentences and h.gradient_accumulation > h.batch_size,
            f"gradient_accumulation={h.gradient_accumulation} cuts a batch into more parts than "
            f"its batch_size={h.batch_size} sentences: expected at most as many",
        ),
        (
            h.avg_ckpts and h.num_keep_ckpts == 1,
            "avg_ckpts needs several checkpoints: set num_keep_ckpts to 2 or more",
        ),
        (h.label_smoothing == 1, "label_smoothing=1 leaves nothing to the words of the reference"),
        (h.adadelta_rho == 1, "adadelta_rho=1 forgets nothing and takes nothing in"),
        (h.adadelta_epsilon == 0, "adadelta_epsilon=0: Keras would take 1e-7 in its place"),
    ):
        if is_useless:
            raise UsageError(message)
    if hparams.trainable_parameters:
        specials = 4  # any vocabulary will do: names do not depend on it
        variables = Seq2Seq(hparams, specials, specials).trainable_variables
        matching(variables, hparams.trainable_parameters)


def matching(variables: Sequence[Any], patterns: str) -> list[Any]:
    """Selects the variables whose name, without `model/`, one of the patterns matches, or all.

    Args:
      variables: of a model.
      patterns: separated by commas; "" selects all.

    Raises:
      UsageError: a pattern matches no variable.
    """
    if not patterns:
        return list(variables)
    named = {name.split("/", 1)[1]: variable for name, variable in by_name(variables).items()}
    selected: set[str] = set()
    for pattern in patterns.split(","):
        matches = fnmatch.filter(named, pattern.strip())
        if not matches:
            nearest = difflib.get_close_matches(pattern.strip(), named, n=3, cutoff=0)
            raise UsageError(
                f"trainable_parameters: {pattern.strip()!r} is no weight of this model: the "
                f"nearest of its {len(named)} are {', '.join(nearest)}"
            )
        selected.update(matches)
    return [variable for name, variable in named.items() if name in selected]
