"""The two errors a user can cause, and how a command line ends by them: with one message."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any, Callable


class UserError(Exception):
    """Something the user gave cannot be used: the message names it and says what was expected."""

    exit_status = 1


class UsageError(UserError):
    """The command line or a configuration file asks for something that does not exist."""

    exit_status = 2


class Stopped(KeyboardInterrupt):
    """A signal came that would have ended the process at once."""

    def __init__(self, number: int):
        """Takes the signal's number."""
        super().__init__()
        self.exit_status = 128 + number
        self.name = signal.Signals(number).name


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """In here SIGTERM and SIGHUP end a command as Ctrl-C does: nothing half written is left.

    Not for what may wait in TensorFlow for other machines, which only a plain signal ends.
    """

    def stop(number: int, frame: Any) -> None:
        del frame
        signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
        raise Stopped(number)

    changed = []
    with contextlib.suppress(ValueError):  # not in the main thread: signals are somebody else's
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_DFL:  # nohup has SIGHUP ignored
                signal.signal(number, stop)
                changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


def status_of(work: Callable[[], int | None], interrupted: str = "interrupted") -> int:
    """Does the work of a command line; returns the exit status.

    Args:
      work: returns a status, or None for 0.
      interrupted: what is said after Ctrl-C.
    """
    _fill_standard_streams()
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a word stops nothing
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return work() or 0
    except UserError as error:
        print(f"tfmann: {error}", file=sys.stderr)
        return error.exit_status
    except OSError as error:  # of standard output; our files' errors are UserErrors
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # a reader that has gone wants no message
            print(f"tfmann: {error}", file=sys.stderr)
        return 1
    except Stopped as error:
        print(f"tfmann: ended by {error.name}", file=sys.stderr)
        return error.exit_status
    except Exception as error:
        if not _out_of_memory(error):
            raise
        reason = next(iter(str(error).splitlines()), "no more is given")
        print(
            f"tfmann: memory has run out: {reason}. Smaller batches (batch_size, infer_batch_size, "
            "beam_width) or a smaller model need less.",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print(f"tfmann: {interrupted}", file=sys.stderr)
        return 130


def _out_of_memory(error: Exception) -> bool:
    """Whether Python, NumPy or TensorFlow, where it is loaded, found no memory for something."""
    errors = sys.modules.get("tensorflow.python.framework.errors_impl")
    kinds = (MemoryError, *((errors.ResourceExhaustedError,) if errors else ()))
    return isinstance(error, kinds)


def _fill_standard_streams() -> None:
    """Puts /dev/null where a standard stream was closed before Python began.

    Its number would be the next file's, and what is meant for the stream would end up in there.
    Without a standard error, messages would be printed among what is asked for.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
