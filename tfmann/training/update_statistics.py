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
    """The updates since the last statistics; `read` alone synchronises with the device."""

    def __init__(self) -> None:
        """Starts at zero."""
        self._updates: list[Update] = []
        self.words = 0
        self._start = time.perf_counter()

    def add(self, update: Update, words: int) -> None:
        """Adds an update."""
        self._updates.append(update)
        self.words += words

    def read(self) -> dict[str, float]:
        """Returns perplexity, gradient norm, words/s and seconds since the last reading."""
        total = float(tf.add_n([update.cross_entropy for update in self._updates]))
        norm = float(self._updates[-1].gradient_norm)
        seconds = time.perf_counter() - self._start
        mean = total / max(1, self.words)
        statistics = {
            "perplexity": perplexity(mean),
            "gradient_norm": norm,
            "words_per_second": self.words / seconds,
            "step_seconds": seconds / len(self._updates),
            "seconds": seconds,
        }
        self.reset()
        return statistics

    def reset(self) -> None:
        """Starts again, e.g. after an evaluation."""
        self._updates, self.words, self._start = [], 0, time.perf_counter()

    @property
    def empty(self) -> bool:
        """True if no update was added."""
        return not self._updates


def log_line(hparams: TrainingSettings, state: TrainState, statistics: dict[str, float]) -> str:
    """Formats the statistics of a step, with the time left."""
    best = ""
    if state.best_step >= 0:
        best = f" best bleu {state.best_bleu:.2f} at {state.best_step}"
    left = (hparams.num_train_steps - state.step) * statistics["step_seconds"]
    return (
        f"step {state.step} lr {statistics['learning_rate']:.4g} "
        f"step-time {statistics['step_seconds']:.3f}s "
        f"words/s {statistics['words_per_second']:.0f} ppl {statistics['perplexity']:.2f} "
        f"gN {statistics['gradient_norm']:.2f}{best}, {_duration(left)} of updates left"
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
