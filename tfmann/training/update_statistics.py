"""The statistics of updates, for the log, TensorBoard and the progress bar."""

from __future__ import annotations

import sys
import time

import tensorflow as tf
from tqdm import tqdm

from tfmann.config import TrainingSettings
from tfmann.training.perplexity import perplexity
from tfmann.training.train_state import TrainState
from tfmann.training.train_step import Update


class Meter:
    """The updates since the last statistics.

    The first update of all also compiles the program, which can take a hundred times as long. It
    counts in the speed only where there is no other. `read`, and the first `add`, synchronise with
    the device.
    """

    def __init__(self) -> None:
        """Starts at zero."""
        self._updates: list[Update] = []
        self.words = 0
        self._start = time.perf_counter()
        self._compiled = False
        self._first_words, self._first_seconds = 0, 0.0  # of the update that compiled

    def add(self, update: Update, words: int) -> None:
        """Adds an update."""
        self._updates.append(update)
        self.words += words
        if not self._compiled:
            update.cross_entropy.numpy()  # waits for it
            self._compiled = True
            self._first_words, self._first_seconds = words, time.perf_counter() - self._start

    def read(self) -> dict[str, float]:
        """Returns perplexity, gradient norm, words/s and seconds since the last reading."""
        total = float(tf.add_n([update.cross_entropy for update in self._updates]))
        norm = float(self._updates[-1].gradient_norm)
        seconds = time.perf_counter() - self._start
        mean = total / max(1, self.words)
        count, words, steady_seconds = len(self._updates), self.words, seconds
        if self._first_seconds and self.steady:
            count, words = count - 1, words - self._first_words
            steady_seconds -= self._first_seconds
        statistics = {
            "perplexity": perplexity(mean),
            "gradient_norm": norm,
            "words_per_second": words / steady_seconds,
            "step_seconds": steady_seconds / count,
            "seconds": seconds,
        }
        self.reset()
        return statistics

    def reset(self) -> None:
        """Starts again, e.g. after an evaluation."""
        self._updates, self.words, self._start = [], 0, time.perf_counter()
        self._first_words, self._first_seconds = 0, 0.0

    @property
    def steady(self) -> bool:
        """True if an update was added besides the one that compiled the program."""
        return len(self._updates) > (1 if self._first_seconds else 0)

    @property
    def empty(self) -> bool:
        """True if no update was added."""
        return not self._updates


def log_line(
    hparams: TrainingSettings, state: TrainState, statistics: dict[str, float], steady: bool
) -> str:
    """Formats the statistics of a step, with the time left if they are `Meter.steady`."""
    best = ""
    if state.best_bleu >= 0:
        best = f" best bleu {state.best_bleu:.2f} at {state.best_step}"
    seconds = (hparams.num_train_steps - state.step) * statistics["step_seconds"]
    left = f"{_duration(seconds)} of updates left" if steady else "with the time to compile it"
    return (
        f"step {state.step} lr {statistics['learning_rate']:.4g} "
        f"step-time {statistics['step_seconds']:.3f}s "
        f"words/s {statistics['words_per_second']:.0f} ppl {statistics['perplexity']:.2f} "
        f"gN {statistics['gradient_norm']:.2f}{best}, {left}"
    )


def _duration(seconds: float) -> str:
    """Formats seconds as `42s`, `42m` or `1h42m`."""
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes = int(seconds // 60)
    return f"{minutes // 60}h{minutes % 60:02d}m" if minutes >= 60 else f"{minutes}m"


def progress_bar(hparams: TrainingSettings, state: TrainState, visible: bool) -> tqdm:
    """Makes the progress bar of a run; it appears on a terminal only."""
    return tqdm(
        total=hparams.num_train_steps,
        initial=state.step,
        unit="step",
        desc="training",
        disable=not (visible and sys.stderr.isatty()),
        dynamic_ncols=True,
    )
