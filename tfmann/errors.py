"""The two errors a user can cause; the command line prints their message and nothing else."""

from __future__ import annotations


class UserError(Exception):
    """Something the user gave cannot be used: the message names it and says what was expected."""

    exit_status = 1


class UsageError(UserError):
    """The command line or a configuration file asks for something that does not exist."""

    exit_status = 2
