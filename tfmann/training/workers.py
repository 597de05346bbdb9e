"""The processes that train one model together: whose turn it is, and how they agree.

All that passes between them beside gradients are sums of whole numbers over the workers, on the
CPU. A process that is alone sums up what it has, and waits for nobody: one code path.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

from tfmann.corpus.pipeline import Share
from tfmann.errors import UserError
from tfmann.training.tf_config import Place

_GROUP = 1 << 20  # a number of our own among TensorFlow's groups of devices, which count from 1


class WorkerLost(UserError):
    """Another worker has ended, or cannot be reached; the same command goes on."""

    exit_status = 75  # EX_TEMPFAIL of sysexits.h: try again


class Workers:
    """The workers of a strategy, as one of them sees them.

    Attributes:
      strategy: whose replicas are dealt to the workers in their order.
      rank: this worker's number; 0 is the chief, which alone writes, evaluates and prints.
      size: the number of workers.
      replicas: of this worker.
    """

    def __init__(self, strategy: tf.distribute.Strategy, place: Place = Place()):  # noqa: B008
        """Of a process that is alone, if `place` does not say otherwise."""
        self.strategy = strategy
        self.rank, self.size = place.rank, place.size
        self.replicas = strategy.num_replicas_in_sync // place.size

    @property
    def chief(self) -> bool:
        """Whether this is the one that writes."""
        return self.rank == 0

    @property
    def share(self) -> Share:
        """Its rows of every batch."""
        return Share(self.rank * self.replicas, self.replicas, self.size * self.replicas)

    def total(self, values: Sequence[int] | np.ndarray) -> np.ndarray:
        """Sums whole numbers over the workers; all must ask for as many, at the same point."""
        numbers = np.asarray(values, np.int64)
        if self.size == 1:
            return numbers
        with tf.device("CPU:0"):
            summed = tf.raw_ops.CollectiveReduceV2(
                input=tf.constant(numbers),
                group_size=self.size,
                group_key=_GROUP,
                instance_key=len(numbers),  # an instance has one shape for ever
                ordering_token=[],
                merge_op="Add",
                final_op="Id",
                communication_hint="ring",
            )
        return summed.numpy()

    def any(self, flag: bool) -> bool:
        """Whether one of the workers says so; all get the same answer."""
        return bool(self.total([flag])[0])

    def wait(self) -> None:
        """Returns when all workers are here."""
        self.total([0])

    @contextmanager
    def chief_first(self) -> Iterator[None]:
        """Lets the chief through the block before the others."""
        if not self.chief:
            self.wait()
        yield
        if self.chief:
            self.wait()

    def merge(self, array: np.ndarray) -> np.ndarray:
        """Every worker's part of an array, bit by bit; where it has no part, its array is 0."""
        if self.size == 1:
            return array
        padded = array.tobytes() + bytes(-array.nbytes % 8)  # bits that nobody shares do not carry
        whole = self.total(np.frombuffer(padded, np.int64)).tobytes()
        return np.frombuffer(whole[: array.nbytes], array.dtype).reshape(array.shape)

    def of_chief(self, value: float) -> float:
        """The chief's number, exactly."""
        return float(self.merge(np.array(value if self.chief else 0, np.float64)))

    def require_same(self, what: str, values: Any) -> None:
        """Compares something that all must have with what the chief has.

        Args:
          what: its name, for the message.
          values: JSON types.

        Raises:
          UserError: on all workers, if one has something else.
        """
        text = json.dumps(values, sort_keys=True, default=str)
        digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.int64)
        of_chief = self.merge(digest if self.chief else np.zeros_like(digest))
        others = int(self.total([not np.array_equal(digest, of_chief)])[0])
        if others:
            raise UserError(
                f"{others} of {self.size} workers have not the chief's {what}: start all with "
                "the same command, on the same files"
            )

    @contextmanager
    def together(self) -> Iterator[None]:
        """Ends a block in which another worker gets lost with one message.

        Raises:
          WorkerLost: instead of TensorFlow's error.
        """
        try:
            yield
        except tf.errors.OpError as error:
            if self.size == 1 or not isinstance(error, _LOST):
                raise
            reason = _REASON.search(str(error))
            raise WorkerLost(
                f"worker {self.rank} of {self.size} has lost the others: one has ended, or "
                f"cannot be reached{f' ({reason[1]})' if reason else ''}. The checkpoints are as "
                "they were; the same command on all machines goes on from the last."
            ) from None


# What a collective operation ends in when one of its members has gone.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
)
_REASON = re.compile(r"aborted by: (.+?)(?:\. |\n|$)")
