"""Times updates, leaving out start-up and warm-up; or all until a quality is reached.

Imported by every driver, each in its own environment.
"""

from __future__ import annotations

import argparse
import time

# The drivers import this module first, before their toolkit.
_STARTED = time.perf_counter()


class UpdateMeter:
    """Counts words and seconds from the end of update `warmup` to the end of the last one.

    Reading a batch, the update and what the toolkit logs are all inside; loading the corpus,
    tracing a graph and the last checkpoint are not.
    """

    def __init__(self, warmup: int):
        self._warmup = warmup
        self._updates = 0
        self._start_up = 0.0  # seconds from the process's first line to its first update
        self._begin = self._end = (0.0, 0)  # time, words so far

    def update_done(self, words_so_far: int) -> None:
        """To be called at the end of every update with the number of target words until then."""
        now = (time.perf_counter(), words_so_far)
        self._updates += 1
        if self._updates == 1:
            self._start_up = now[0] - _STARTED
        if self._updates == self._warmup:
            self._begin = now
        self._end = now

    def result(self) -> dict[str, float]:
        """Words and seconds after the warm-up, and how many updates they took."""
        return {
            "words": self._end[1] - self._begin[1],
            "seconds": self._end[0] - self._begin[0],
            "updates": self._updates - self._warmup,
            "start_up_seconds": self._start_up,
        }


class Reached(Exception):
    """A training is as good as it has to be."""


class Watch:
    """The evaluations of a training, each at its second since the process began.

    An evaluation is all that a toolkit does at one: loss and translations of the development set,
    scores, checkpoints, pictures.
    """

    def __init__(self, goal: float):
        self._goal = goal
        self._history: list[dict[str, float]] = []

    def evaluated(self, updates: int, bleu: float, seconds: float) -> None:
        """To be called after every evaluation, which took so many seconds.

        Raises:
          Reached: it found the goal.
        """
        since = time.perf_counter() - _STARTED
        one = {"updates": updates, "bleu": bleu, "seconds": since, "evaluation": seconds}
        self._history.append(one)
        if bleu >= self._goal:
            raise Reached

    def result(self) -> dict[str, object]:
        """Seconds from the process's first line to the end of the last evaluation, and all."""
        last = self._history[-1]
        return {
            "goal": self._goal,
            "reached": last["bleu"] >= self._goal,
            "bleu": last["bleu"],
            "updates": last["updates"],
            "seconds": last["seconds"],
            "evaluation_seconds": sum(one["evaluation"] for one in self._history),
            "history": self._history,
        }


def add_goal(parser: argparse.ArgumentParser) -> None:
    """The flags of a training that is watched."""
    parser.add_argument("--goal", type=float, default=25.0, help="development BLEU")
    parser.add_argument("--every", type=int, default=200, help="updates between two evaluations")
    parser.add_argument("--most", type=int, default=6000, help="updates after which it is given up")
