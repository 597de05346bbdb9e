"""Signals that ask a run to stop, as a flag that its loop reads."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

_NOTICE = b"stopping after this update or evaluation\n"
_STDERR = 2


class StopFlag:
    """True once a signal has come.

    Attributes:
      number: of the last signal; 0 before.
    """

    def __init__(self) -> None:
        """Starts as false."""
        self.number = 0

    def __bool__(self) -> bool:
        return self.number > 0


@contextlib.contextmanager
def catch_stop_signals() -> Iterator[StopFlag]:
    """Turns SIGTERM and the first SIGINT into a flag, and says so; a second SIGINT interrupts."""
    flag = StopFlag()

    def on_signal(number: int, frame: Any) -> None:
        del frame
        if not flag:
            # print might be what the signal has interrupted
            with contextlib.suppress(OSError):
                os.write(_STDERR, b"\n" + _NOTICE if os.isatty(_STDERR) else _NOTICE)
        flag.number = number
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
