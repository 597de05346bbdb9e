"""Signals that ask a run to stop, as a flag that its loop reads."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
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
    """Turns signals to stop into a flag, and says so at the first; a second SIGINT interrupts."""
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

    with handle_stop_signals(on_signal):
        yield flag


@contextlib.contextmanager
def handle_stop_signals(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Handles SIGINT, SIGTERM and SIGHUP, but SIGHUP only where `nohup` does not ignore it.

    In other threads than the main one, which alone may handle signals, nothing changes.
    """
    previous = {}
    try:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            previous[number] = signal.signal(number, handler)
    except ValueError:  # not in the main thread
        pass
    try:
        yield
    finally:
        for number, earlier in previous.items():
            signal.signal(number, earlier)
