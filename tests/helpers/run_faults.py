"""Faults from within a run, by name for `Forks.start(prepare=...)`: each wraps what hurts it."""

import os
import subprocess
import sys
import time

NAN = float("nan")


def at_update(number, action):
    """Calls `action(learner)` before the update that makes `number` steps."""
    from tfmann.training.train_step import TrainStep

    update = TrainStep.update

    def hurt(self, batch, step, *args):
        if step + 1 == number:
            action(self)
        return update(self, batch, step, *args)

    TrainStep.update = hurt


def stop_at(number, signal):
    """Sends itself a signal."""
    at_update(number, lambda learner: os.kill(os.getpid(), signal))


def nan_at(number):
    """Turns a weight into NaN, and with it the gradients."""
    at_update(number, lambda learner: learner.variables[0].assign_add(NAN * learner.variables[0]))


def fill_at(number, disk):
    """Fills a disk to the last byte with a file `filler`."""

    def fill(learner):
        with open(os.path.join(disk, "filler"), "wb", buffering=0) as stream:
            for size in (1 << 16, 1 << 12, 1):
                try:
                    while True:
                        stream.write(bytes(size))
                except OSError:
                    pass

    at_update(number, fill)


def read_only_at(number, folder):
    """Covers a folder with an empty one that cannot be written to."""
    command = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder]
    at_update(number, lambda learner: subprocess.run(command, check=True))


def one_processor():
    """As on a machine with one: TensorFlow has a thread for each that a process may use."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])


def no_output():
    """As Python has it where standard output was closed before it began."""
    sys.stdout = None


def clock_backwards():
    """Every look at the time finds it an hour earlier."""
    start, hours = time.time(), iter(range(10**9))
    time.time = lambda: start - 3600 * next(hours)
    time.time_ns = lambda: int(time.time() * 1e9)
