"""The two errors a user can cause, and how a command line ends by them: with one message."""

from __future__ import annotations

import io
import os
import sys
from typing import Callable


class UserError(Exception):
    """Something the user gave cannot be used: the message names it and says what was expected."""

    exit_status = 1


class UsageError(UserError):
    """The command line or a configuration file asks for something that does not exist."""

    exit_status = 2


def status_of(work: Callable[[], int | None], interrupted: str = "interrupted") -> int:
    """Does the work of a command line; returns the exit status.

    Args:
      work: returns a status, or None for 0.
      interrupted: what is said after Ctrl-C.
    """
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
    except KeyboardInterrupt:
        print(f"tfmann: {interrupted}", file=sys.stderr)
        return 130
