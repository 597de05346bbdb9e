"""Times updates, leaving out start-up and warm-up; imported by both peers' drivers."""

from __future__ import annotations

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
