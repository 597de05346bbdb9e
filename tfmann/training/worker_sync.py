"""The synchronisation of the processes that train one model together.

Besides gradients they exchange only sums of whole numbers over the workers, on the CPU. A process
that trains alone uses the same code: its sums are its own values, and it never waits.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import tensorflow as tf

from tfmann.data.batching import Share
from tfmann.errors import UserError
from tfmann.training.tf_config import Task

_GROUP = 1 << 20  # a key that no group of TensorFlow's own has: these count from 1
# The errors of a collective operation when one of its members is lost.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
)
_REASON = re.compile(r"aborted by: (.+?)(?:\. |\n|$)")


class WorkerLost(UserError):
    """Another worker has ended, or cannot be reached; the same command continues the run."""

    exit_status = 75  # EX_TEMPFAIL of sysexits.h: try again


class Workers:
    """The workers of a strategy, from the point of view of one of them.

    Attributes:
      strategy: the strategy; its replicas belong to the workers in their order.
      rank: this worker's number; 0 is the chief, which alone writes, evaluates and prints.
      size: the number of workers.
      replicas: the number of this worker's replicas.
    """

    def __init__(self, strategy: tf.distribute.Strategy, task: Task = Task()):  # noqa: B008
        """Describes the worker of `task`; by default the process trains alone."""
        self.strategy = strategy
        self.rank, self.size = task.rank, task.size
        self.replicas = strategy.num_replicas_in_sync // task.size

    @property
    def chief(self) -> bool:
        """True for the worker that writes."""
        return self.rank == 0

    @property
    def share(self) -> Share:
        """This worker's rows of every batch."""
        return Share(self.rank * self.replicas, self.replicas, self.size * self.replicas)

    def total(self, values: Sequence[int] | np.ndarray) -> np.ndarray:
        """Sums whole numbers over the workers, all of which must call it with equally many."""
        numbers = np.asarray(values, np.int64)
        if self.size == 1:
            return numbers
        with tf.device("CPU:0"):
            summed = tf.raw_ops.CollectiveReduceV2(
                input=tf.constant(numbers),
                group_size=self.size,
                group_key=_GROUP,
                instance_key=len(numbers),  # all uses of an instance must have one shape
                ordering_token=[],
                merge_op="Add",
                final_op="Id",
                communication_hint="ring",
            )
        return summed.numpy()

    def reduce_any(self, flag: bool) -> bool:
        """Returns True on all workers if `flag` is true on any of them."""
        return bool(self.total([flag])[0])

    def wait(self) -> None:
        """Returns when all workers have called it."""
        self.total([0])

    def part(self) -> None:
        """Waits, before this worker ends, until the others no longer need it.

        In a sum, a worker may have the result while another still reads from it, and that one
        would fail if the first ended. A failure in this last wait no longer matters.
        """
        with suppress(*_LOST):
            self.wait()

    @contextmanager
    def chief_first(self) -> Iterator[None]:
        """Runs the block on the chief before the others."""
        if not self.chief:
            self.wait()
        yield
        if self.chief:
            self.wait()

    def merge(self, array: np.ndarray) -> np.ndarray:
        """Merges the workers' parts of an array, bit by bit; each passes 0 outside its own part."""
        if self.size == 1:
            return array
        padded = array.tobytes() + bytes(-array.nbytes % 8)  # disjoint bits have no carry
        total = self.total(np.frombuffer(padded, np.int64)).tobytes()
        return np.frombuffer(total[: array.nbytes], array.dtype).reshape(array.shape)

    def broadcast(self, value: float) -> float:
        """Returns the chief's number, exactly, on all workers."""
        return float(self.merge(np.array(value if self.chief else 0, np.float64)))

    def require_same(self, name: str, values: Any) -> None:
        """Requires that all workers have the chief's values.

        Args:
          name: the name of the values in the message.
          values: JSON types.

        Raises:
          UserError: on all workers, if one has other values.
        """
        text = json.dumps(values, sort_keys=True, default=str)
        digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.int64)
        chief_digest = self.merge(digest if self.chief else np.zeros_like(digest))
        different = int(self.total([not np.array_equal(digest, chief_digest)])[0])
        if different:
            self.part()
            raise UserError(
                f"{different} of {self.size} workers do not have the chief's {name}: start all of "
                "them by the same command, on the same files"
            )

    @contextmanager
    def report_lost_workers(self) -> Iterator[None]:
        """Turns the loss of another worker within the block into one clear message.

        Raises:
          WorkerLost: in place of TensorFlow's error.
        """
        try:
            yield
        except tf.errors.OpError as error:
            if self.size == 1 or not isinstance(error, _LOST):
                raise
            reason = _REASON.search(str(error))
            raise WorkerLost(
                f"worker {self.rank} of {self.size} has lost the others: one has ended, or "
                f"cannot be reached{f' ({reason[1]})' if reason else ''}. The checkpoints are "
                "unchanged; the same command on all machines continues from the last."
            ) from None
