"""Counters of a server in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

import bisect
import os
import threading
from collections.abc import Callable, Sequence
from typing import Union

Labels = tuple[tuple[str, str], ...]

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
LINES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


class Counter:
    """A counter for each set of labels."""

    kind = "counter"

    def __init__(self) -> None:
        self._values: dict[Labels, float] = {}
        self._lock = threading.Lock()

    def add(self, amount: float = 1.0, **labels: str) -> None:
        """Adds to the number of these labels."""
        key = tuple(sorted(labels.items()))
        with self._lock:
            self._values[key] = self._values.get(key, 0.0) + amount

    def lines(self, name: str) -> list[str]:
        """Returns the sample lines."""
        with self._lock:
            values = sorted(self._values.items()) or [((), 0.0)]
        return [f"{name}{_braces(labels)} {_number(value)}" for labels, value in values]


class Gauge:
    """A number that a function computes when the metrics are read."""

    kind = "gauge"

    def __init__(self, read: Callable[[], float], **labels: str):
        self._read, self._labels = read, tuple(sorted(labels.items()))

    def lines(self, name: str) -> list[str]:
        """Returns the sample line."""
        return [f"{name}{_braces(self._labels)} {_number(self._read())}"]


class Histogram:
    """A histogram: counts of observations by upper bounds."""

    kind = "histogram"

    def __init__(self, bounds: Sequence[float]):
        self._bounds = list(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        self._lock = threading.Lock()

    def observe(self, value: float) -> None:
        """Counts one value."""
        with self._lock:
            self._counts[bisect.bisect_left(self._bounds, value)] += 1
            self._sum += value

    def lines(self, name: str) -> list[str]:
        """Returns the sample lines: cumulative counts by bound, the sum, the count."""
        with self._lock:
            counts, total = list(self._counts), self._sum
        lines, below = [], 0
        for bound, count in zip([*map(_number, self._bounds), "+Inf"], counts):
            below += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {below}')
        return [*lines, f"{name}_sum {_number(total)}", f"{name}_count {below}"]


Metric = Union[Counter, Gauge, Histogram]


class Registry:
    """Metrics by name, with a help text each, in the order in which they were added."""

    def __init__(self) -> None:
        self._metrics: dict[str, tuple[str, Metric]] = {}

    def add(self, name: str, text: str, metric: Metric) -> None:
        """Adds a metric; `text` describes it."""
        self._metrics[name] = (text, metric)

    def text(self) -> str:
        """Returns the page that Prometheus reads."""
        lines = []
        for name, (text, metric) in self._metrics.items():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {metric.kind}", *metric.lines(name)]
        return "\n".join([*lines, ""])


def resident_bytes() -> float:
    """Returns the memory of this process, or 0 where the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return float(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0.0


def _braces(labels: Labels) -> str:
    pairs = ",".join(f'{name}="{_escape(value)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
