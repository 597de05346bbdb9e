"""Limits of memory: what needs more than this machine has is refused before it is allocated."""

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
_DRAWN = 4  # times its size is what a weight takes while it is created: drawn in float64, converted
_LIMITS = ((resource.RLIMIT_AS, 0), (resource.RLIMIT_DATA, 5))  # with their field of statm
_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@functools.cache
def available_memory() -> float:
    """Bytes that this process may use: the least that machine, container and `ulimit` leave it.

    What the process already takes is subtracted from the limits of `ulimit` only: they end it at
    once, without a message where TensorFlow allocates.
    """
    page = os.sysconf("SC_PAGE_SIZE")
    least = float(os.sysconf("SC_PHYS_PAGES") * page)
    for kind, field in _LIMITS:
        limit = resource.getrlimit(kind)[0]
        if limit != resource.RLIM_INFINITY:
            pages = Path("/proc/self/statm").read_text(encoding="ascii").split()
            least = min(least, max(0, limit - int(pages[field]) * page))
    for path in _CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # not there, or "max"
            least = min(least, int(Path(path).read_text(encoding="ascii")))
    return least


def format_bytes(size: float) -> str:
    """Returns a number of bytes with three digits and a unit, such as `1.5 GB`."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")
    power = min(len(units) - 1, int(math.log10(max(1.0, size)) // 3))
    return f"{size / 1000**power:.3g} {units[power]}"


def require_memory(numbers: int, name: str, advice: str) -> None:
    """Refuses data that does not fit into memory.

    Args:
      numbers: the number of its float32 numbers.
      name: its name, for the message.
      advice: how to need less memory.

    Raises:
      UsageError: they take more than there is.
    """
    if numbers * _BYTES > available_memory():
        raise UsageError(
            f"{name} would take {format_bytes(numbers * _BYTES)} at least, and there are "
            f"{format_bytes(available_memory())} of memory: {advice}"
        )


def require_without_gpu(numbers: int, name: str, advice: str) -> None:
    """Calls `require_memory` on a machine without a GPU; a GPU reports its own full memory.

    Raises:
      UsageError: they take more than there is.
    """
    import tensorflow as tf

    if not tf.config.list_physical_devices("GPU"):
        require_memory(numbers, name, advice)


class WeightBudget:
    """Counts the weights of a model while it is built, each before it is allocated."""

    def __init__(self) -> None:
        """Starts with no weight."""
        self.numbers = 0

    def add(self, name: str, shape: Sequence[int]) -> None:
        """Counts a weight.

        Raises:
          UsageError: it cannot be created in memory with those before it.
        """
        size = math.prod(map(int, shape))
        before, self.numbers = self.numbers, self.numbers + size
        require_memory(
            before + _DRAWN * size,
            f"the weights up to {name} {list(map(int, shape))}",
            "give smaller sizes (num_units, embedding_size, num_layers, those of the cell)",
        )
