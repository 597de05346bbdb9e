"""Trains as on a machine whose clock is a day ahead and whose disk is slow.

    python tests/helpers/odd_machine.py FLAGS

Every file that is opened, forced to disk or renamed takes a fifth of a second more.
"""

import builtins
import os
import runpy
import time

AHEAD, DELAY = 86_400, 0.2  # seconds


def delayed(function):
    """Returns a function that waits first."""

    def wait_first(*args, **options):
        time.sleep(DELAY)
        return function(*args, **options)

    return wait_first


def delayed_to_write(function):
    """Returns an `open` that waits before it opens a file to write."""

    def open_later(file, mode="r", *args, **options):
        if set(mode) & set("wax+"):
            time.sleep(DELAY)
        return function(file, mode, *args, **options)

    return open_later


def main():
    """Runs the command line with another clock and disk."""
    clock = time.time
    time.time = lambda: clock() + AHEAD
    builtins.open = delayed_to_write(builtins.open)
    for name in ("fsync", "rename", "replace"):
        setattr(os, name, delayed(getattr(os, name)))
    runpy.run_module("tfmann.nmt", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
