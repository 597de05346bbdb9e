"""Signals that ask a run to stop, as a flag that its loop reads."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class StopFlag:
    """True once a signal has come."""

    def __init__(self) -> None:
        """Starts as false."""
        self.is_set = False

    def __bool__(self) -> bool:
        return self.is_set


@contextmanager
def catch_stop_signals() -> Iterator[StopFlag]:
    """Turns SIGTERM and the first SIGINT into a flag; a second SIGINT interrupts."""
    flag = StopFlag()

    def on_signal(number: int, frame: Any) -> None:
        del frame
        flag.is_set = True
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    previous = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            previous[number] = signal.signal(number, on_signal)
    except ValueError:  # not in the main thread, which alone may handle signals
        pass
    try:
        yield flag
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
