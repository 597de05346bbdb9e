"""What a run would take of this machine's memory, said before it is taken."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import resource
from collections.abc import Sequence
from pathlib import Path

from tfmann.errors import UsageError

_BYTES = 4  # of a number: weights, states and logits are float32
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@functools.cache
def memory() -> float:
    """Bytes that this process may use: of the machine, of its container, of `ulimit -v`."""
    least = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            least = min(least, limit)
    for path in _LIMITS:
        with contextlib.suppress(OSError, ValueError):  # not there, or "max"
            least = min(least, int(Path(path).read_text(encoding="ascii")))
    return least


def shown(size: float) -> str:
    """Bytes as people write them."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
    power = min(len(units) - 1, int(math.log10(max(1.0, size)) // 3))
    return f"{size / 1000**power:.3g} {units[power]}"


def require(numbers: int, what: str, advice: str) -> None:
    """Raises UsageError where so many float32 numbers are more than there is memory."""
    if numbers * _BYTES > memory():
        raise UsageError(
            f"{what} would take {shown(numbers * _BYTES)} at least, and there are "
            f"{shown(memory())} of memory: {advice}"
        )


def require_on_device(numbers: int, what: str, advice: str) -> None:
    """As `require`, where there is no GPU, whose memory is another and says itself that it is full.

    Raises:
      UsageError: so many numbers are more than there is memory.
    """
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        require(numbers, what, advice)


class Room:
    """Counts the weights of a model while it is made, each before it takes any memory."""

    def __init__(self) -> None:
        """Nothing is taken yet."""
        self.numbers = 0

    def take(self, name: str, shape: Sequence[int]) -> None:
        """Adds a weight.

        Raises:
          UsageError: it does not fit beside those before it.
        """
        self.numbers += math.prod(map(int, shape))
        require(
            self.numbers,
            f"the weights up to {name} {list(map(int, shape))}",
            "give smaller sizes (num_units, embedding_size, num_layers, those of the cell)",
        )
