"""Errors that a user can cause, and how a command ends on them: with one message and a status."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any, Callable


class UserError(Exception):
    """A user's file or setting cannot be used; the message names it and says what was expected."""

    exit_status = 1


class UsageError(UserError):
    """A flag, or a key of a configuration file, is unknown or has a value that is not allowed."""

    exit_status = 2


class Terminated(KeyboardInterrupt):
    """A signal arrived that would otherwise have ended the process at once."""

    def __init__(self, number: int):
        """Takes the signal's number."""
        super().__init__()
        self.exit_status = 128 + number
        self.name = signal.Signals(number).name


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP raise, as Ctrl-C does, so that temporary files are removed.

    A signal may arrive while TensorFlow's C++ code calls Python: it takes what is raised there for
    a missing attribute, say, and raises an error of its own. That error is one of the signal, too.

    Not for code that may wait in TensorFlow for other machines: only the default action ends that.
    """
    received: list[BaseException] = []

    def stop(number: int, frame: Any) -> None:
        del frame
        # a second one ends the process at once
        signal.signal(number, before.get(number, signal.SIG_DFL))
        received.append(KeyboardInterrupt() if number == signal.SIGINT else Terminated(number))
        raise received[-1]

    before: dict[int, Any] = {}
    with contextlib.suppress(ValueError):  # only the main thread may handle signals
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            handler = signal.getsignal(number)
            if handler in (signal.SIG_DFL, signal.default_int_handler):  # nohup ignores SIGHUP
                signal.signal(number, stop)
                before[number] = handler
    try:
        yield
    except Exception as error:
        if received:
            raise received[0] from error
        raise
    finally:
        for changed, handler in before.items():
            signal.signal(changed, handler)


def run_command(work: Callable[[], int | None], interrupted: str = "interrupted") -> int:
    """Runs a command, prints its error, one line for each fault, and returns the exit status.

    Args:
      work: the command; returns a status, or None for 0.
      interrupted: the message after Ctrl-C.
    """
    _fill_standard_streams()
    for stream in (sys.stdout, sys.stderr):  # a word that the terminal cannot show is no error
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        return work() or 0
    except UserError as error:
        print(f"tfmann: {error}", file=sys.stderr)
        return error.exit_status
    except OSError as error:  # of standard output; errors of other files are UserErrors
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # the reader has closed the pipe
            reason = error if error.filename else f"cannot write the output: {error.strerror}"
            print(f"tfmann: {reason}", file=sys.stderr)
        return 1
    except Terminated as error:
        print(f"tfmann: ended by {error.name}", file=sys.stderr)
        return error.exit_status
    except Exception as error:
        if not _out_of_memory(error):
            raise
        reason = next(iter(str(error).splitlines()), "no details are given")
        advice = (
            "Smaller batches (batch_size, infer_batch_size, beam_width) or a smaller model need "
            "less."
        )
        if isinstance(error, ImportError):
            advice = "This is a library alone: allow the process more (`ulimit -v`)."
        print(f"tfmann: memory has run out: {reason}. {advice}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"tfmann: {interrupted}", file=sys.stderr)
        return 130


def print_message(message: str) -> None:
    """Prints a message to standard error, which keeps it out of a command's results."""
    print(message, file=sys.stderr, flush=True)


def _out_of_memory(error: Exception) -> bool:
    """Returns whether Python, NumPy or TensorFlow could not allocate memory, or be loaded."""
    if isinstance(error, ImportError):  # as the dynamic linker says it
        return any(words in str(error) for words in _NOT_MAPPED)
    if isinstance(error, RuntimeError) and str(error) == _NO_THREAD:
        return True
    errors = sys.modules.get("tensorflow.python.framework.errors_impl")
    kinds = (MemoryError, *((errors.ResourceExhaustedError,) if errors else ()))
    return isinstance(error, kinds)


_NO_THREAD = "can't start new thread"  # there is no memory for its stack
_NOT_MAPPED = ("failed to map segment from shared object", "cannot allocate memory")


def _fill_standard_streams() -> None:
    """Opens /dev/null in place of a standard stream that was closed before Python started.

    Otherwise the next file that is opened gets the stream's number, and text for the stream ends
    up in that file; without a standard error, messages would be printed among the results.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
