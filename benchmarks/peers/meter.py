"""Timers of updates after start-up and warm-up, and of a whole training up to a quality; turns.

Every driver imports this module, each in its own environment.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Generator
from typing import Callable

# Updates before the clock starts in a later turn of the same process.
WARMUP_OF_TURN = 1

# The drivers import this module first, before their toolkit.
_STARTED = time.perf_counter()


class UpdateMeter:
    """Counts words and seconds from the end of update `warmup` to the end of the last one.

    The time includes reading batches, updates and the toolkit's logging, but not the loading of the
    corpus, the tracing of a graph or the last checkpoint.
    """

    def __init__(self, warmup: int, cpu: Callable[[], float] = time.process_time):
        """Starts without an update; `cpu` tells the processor seconds of all threads so far."""
        self._warmup, self._cpu = warmup, cpu
        self._updates = 0
        self._start_up = 0.0  # seconds from the process's first line to its first update
        self._begin = self._end = (0.0, 0.0, 0)  # time, processor time, words so far

    def update_done(self, words_so_far: int) -> None:
        """Records the end of an update, with the number of target words so far."""
        reading = (time.perf_counter(), self._cpu(), words_so_far)
        self._updates += 1
        if self._updates == 1:
            self._start_up = reading[0] - _STARTED
        if self._updates == self._warmup:
            self._begin = reading
        self._end = reading

    def result(self) -> dict[str, float]:
        """Returns words and both kinds of seconds after the warm-up, and the number of updates."""
        return {
            "words": self._end[2] - self._begin[2],
            "seconds": self._end[0] - self._begin[0],
            "cpu_seconds": self._end[1] - self._begin[1],
            "updates": self._updates - self._warmup,
            "start_up_seconds": self._start_up,
        }


class Reached(Exception):
    """A training has reached its goal."""


class Watch:
    """The evaluations of a training, each with the seconds since the process began.

    An evaluation includes all that a toolkit does then: loss and translations of the development
    set, scores, checkpoints, figures.
    """

    def __init__(self, goal: float):
        self._goal = goal
        self._history: list[dict[str, float]] = []

    def evaluated(self, updates: int, bleu: float, seconds: float) -> None:
        """Records an evaluation that took `seconds`.

        Raises:
          Reached: its BLEU reaches the goal.
        """
        elapsed = time.perf_counter() - _STARTED
        evaluation = {"updates": updates, "bleu": bleu, "seconds": elapsed, "evaluation": seconds}
        self._history.append(evaluation)
        if bleu >= self._goal:
            raise Reached

    def result(self) -> dict[str, object]:
        """Returns the last evaluation, its seconds since the process's start, and the history."""
        last = self._history[-1]
        return {
            "goal": self._goal,
            "reached": last["bleu"] >= self._goal,
            "bleu": last["bleu"],
            "updates": last["updates"],
            "seconds": last["seconds"],
            "evaluation_seconds": sum(evaluation["evaluation"] for evaluation in self._history),
            "history": self._history,
        }


def add_goal(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of a training with a goal."""
    parser.add_argument("--goal", type=float, default=25.0, help="development BLEU")
    parser.add_argument("--every", type=int, default=200, help="updates between two evaluations")
    parser.add_argument("--most", type=int, default=6000, help="updates after which it is given up")


def take_turns(
    records: Generator[dict, None, None], report: Callable[[dict], object], resident: bool
) -> None:
    """Reports the first measurement; a resident process one more for every line of its input.

    It computes nothing between two turns: `records` measures when it is asked for the next.
    """
    for record in records:
        report(record)
        if not resident or not sys.stdin.readline():
            break
    records.close()


def add_resident(parser: argparse.ArgumentParser) -> None:
    """Adds the flag of a process that measures several times."""
    parser.add_argument("--resident", action="store_true", help="one more turn for a line of input")
