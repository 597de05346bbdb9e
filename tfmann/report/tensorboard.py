"""What a run shows in TensorBoard: curves, sample translations, attention, hyperparameters.

TensorFlow is imported when a `Board` is made, not before.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfmann.errors import UserError
from tfmann.report import cache_figures, memory_figures, plots, projector, round_figures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfmann.evaluation.trace import Trace


class Board:
    """Writes one run's event files; close it when the run ends.

    A run that is resumed opens a new `Board` on the same folder: a further event file is begun
    there, and TensorBoard shows all of them as one run. Steps that were done again after a crash
    stand in two files; TensorBoard shows the later ones only, unless it runs with
    ``--load_fast=false`` or on a machine without its data server, where it shows both.

    Once the folder takes no more, e.g. on a full disk, what is added is lost: a picture is no
    reason to end a run.

    Args:
      log_dir: the run's folder; made if it is missing.

    Raises:
      UserError: the folder cannot be made or written to.
    """

    def __init__(self, log_dir: str):
        import tensorflow as tf

        self._tf, self._log_dir = tf, log_dir
        try:
            self._writer = tf.summary.create_file_writer(os.fsencode(log_dir))
            self._writer.init()
        except (tf.errors.OpError, OSError) as error:
            raise UserError(f"{log_dir}: cannot write TensorBoard files there: {error}") from error

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Adds a point to each curve named; a number beyond float32 is shown as infinite."""
        with np.errstate(over="ignore"):
            points = {name: np.float32(value) for name, value in values.items()}
        with self._writing():
            for name, point in points.items():
                self._tf.summary.scalar(name, point, step=step)

    def text(self, step: int, name: str, markdown: str) -> None:
        """Adds a text, shown as Markdown."""
        with self._writing():
            self._tf.summary.text(name, markdown, step=step)

    def figure(self, step: int, name: str, figure: Figure) -> None:
        """Adds a Matplotlib figure as an image, and closes it."""
        png = plots.figure_to_png(figure)
        with self._writing(), self._tf.device("CPU"):
            image = self._tf.io.decode_png(png, channels=3)  # [height, width, 3]
            self._tf.summary.image(name, image[self._tf.newaxis], step=step)

    def attention(
        self,
        step: int,
        index: int,
        source_tokens: Sequence[str],
        target_tokens: Sequence[str],
        attention: np.ndarray,
    ) -> None:
        """Adds the attention matrix of one of the sentences that are watched.

        Args:
          step: training step.
          index: which of the watched sentences; each has its own slider over the steps.
          source_tokens: S words.
          target_tokens: T words, as translated at this step.
          attention: weights, [T, S].
        """
        drawn = plots.attention_figure(
            attention, source_tokens, target_tokens, title=f"sentence {index}, step {step}"
        )
        self.figure(step, f"attention/{index}", drawn)

    def addresses(self, step: int, index: int, trace: Trace) -> None:
        """Adds what was addressed at one of the watched sentences, as far as the cell has it.

        What each head did: `addresses/HEAD/INDEX`. The rounds of a cell that rewrites the source's
        keys: `attention/rounds/INDEX`. Which slots of a cache were matched, where there was
        something in it: `cache/INDEX`.

        Args:
          step: training step.
          index: which of the watched sentences.
          trace: of the sentence and its translation; a cell with none of this adds nothing.
        """
        title = f"sentence {index}, step {step}"
        for head, drawn in memory_figures.head_figures(trace, title):
            self.figure(step, f"addresses/{head}/{index}", drawn)
        if trace.rounds:
            rounds = round_figures.rounds_of_trace(trace, title)
            self.figure(step, f"attention/rounds/{index}", rounds)
        matched = cache_figures.cache_of_trace(trace, title)
        if matched is not None:
            self.figure(step, f"cache/{index}", matched)

    def contents(self, index: int, labels: Sequence[str], vectors: np.ndarray) -> None:
        """Gives the projector the memory's slots for one of the watched sentences.

        Args:
          index: which of the watched sentences; what it had before goes.
          labels: of n slots.
          vectors: [n, W].
        """
        with contextlib.suppress(UserError):  # as of what cannot be written above
            projector.write(self._log_dir, index, labels, vectors)

    def recency(self, step: int, curves: Mapping[str, np.ndarray]) -> None:
        """Adds how the slots of a cache were matched on average: `cache/recency`.

        Args:
          step: training step.
          curves: averages of `cache_figures.recency` by name.
        """
        drawn = cache_figures.recency_figure(curves, f"step {step}")
        self.figure(step, "cache/recency", drawn)

    def hparams(self, mapping: Mapping[str, Any]) -> None:
        """Adds the run to the HPARAMS tab, where every scalar of the run is a metric.

        No experiment record is written beside it. TensorBoard would take the columns of all runs
        from whichever such record it meets first; without one it takes them from the runs, knows
        the numbers among them and puts those that differ first.

        Args:
          mapping: hyperparameters by name; what is no number, string or truth value is shown as
            JSON.
        """
        from tensorboard.plugins.hparams import api

        values = {name: _shown(value) for name, value in mapping.items()}
        with self._writing():
            api.hparams(values)

    def flush(self) -> None:
        """Makes everything added so far visible to TensorBoard.

        TensorFlow 2.15 does so after every call above as well, but does not promise it.
        """
        with self._writing():
            self._writer.flush()

    def close(self) -> None:
        """Writes what is outstanding and ends the event file."""
        with self._writing():
            self._writer.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with contextlib.suppress(self._tf.errors.OpError), self._writer.as_default():
            yield


def _shown(value: Any) -> bool | int | float | str:
    if isinstance(value, str):  # a file's name may have bytes that are no UTF-8
        return value.encode("utf-8", "backslashreplace").decode()
    return value if isinstance(value, (bool, int, float)) else json.dumps(value)
