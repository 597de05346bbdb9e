"""The TensorBoard of a run: curves, sample translations, attention, hyperparameters.

TensorFlow is imported when a `Board` is created, not before.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfmann.errors import UserError
from tfmann.visualization import (
    attention_figures,
    cache_figures,
    head_figures,
    image_files,
    projector,
    round_figures,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfmann.evaluation.trace import Trace


class Board:
    """Writes one run's event files; close it when the run ends.

    A resumed run opens a new `Board` in the same folder, which begins another event file;
    TensorBoard shows all of them as one run. Steps that are repeated after a crash are in two
    files. TensorBoard shows only the later ones, unless it runs with ``--load_fast=false`` or on a
    machine without its data server, where it shows both.

    If the folder cannot be written to any more, e.g. because the disk is full, additions are lost:
    a picture is no reason to end a run.

    Args:
      log_dir: the run's folder; it is created if missing.

    Raises:
      UserError: the folder cannot be created or written to.
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
        """Adds a point to each named curve; a number beyond float32 is shown as infinite."""
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
        png = image_files.figure_to_png(figure)
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
        """Adds the attention matrix of a watched sentence.

        Args:
          step: training step.
          index: of the watched sentence; each has its own slider over the steps.
          source_tokens: S words.
          target_tokens: T words, the translation at this step.
          attention: weights, [T, S].
        """
        figure = attention_figures.attention_figure(
            attention, source_tokens, target_tokens, title=f"sentence {index}, step {step}"
        )
        self.figure(step, f"attention/{index}", figure)

    def addresses(self, step: int, index: int, trace: Trace) -> None:
        """Adds the addresses at a watched sentence, as far as the cell has any.

        Each head has `addresses/HEAD/INDEX`, a cell that rewrites source keys has
        `attention/rounds/INDEX`, and a cache that is not empty has `cache/INDEX`.

        Args:
          step: training step.
          index: of the watched sentence.
          trace: of the sentence and its translation.
        """
        title = f"sentence {index}, step {step}"
        for head, figure in head_figures.head_figures(trace, title):
            self.figure(step, f"addresses/{head}/{index}", figure)
        if trace.rounds:
            rounds = round_figures.rounds_figure(trace, title)
            self.figure(step, f"attention/rounds/{index}", rounds)
        matched = cache_figures.cache_figure(trace, title)
        if matched is not None:
            self.figure(step, f"cache/{index}", matched)

    def contents(self, index: int, labels: Sequence[str], vectors: np.ndarray) -> None:
        """Shows the memory's slots at a watched sentence in the projector.

        Args:
          index: of the watched sentence; its earlier slots are replaced.
          labels: of n slots.
          vectors: [n, W].
        """
        with contextlib.suppress(UserError):  # as above, a lost picture does not end a run
            projector.write(self._log_dir, index, labels, vectors)

    def recency(self, step: int, averages: np.ndarray) -> None:
        """Adds the average matching of a cache's slots by recency: `cache/recency`.

        Args:
          step: training step.
          averages: from `cache_figures.recency`, of the dev set.
        """
        figure = cache_figures.recency_figure(averages, "dev", f"step {step}")
        self.figure(step, "cache/recency", figure)

    def hparams(self, mapping: Mapping[str, Any]) -> None:
        """Adds the run to the HPARAMS tab, where every scalar of the run is a metric.

        No experiment record is written. TensorBoard would take the columns of all runs from the
        first such record that it finds; without one it takes them from the runs, recognises
        numbers and puts columns that differ first.

        Args:
          mapping: hyperparameters by name; other values than numbers, strings and booleans are
            shown as JSON.
        """
        from tensorboard.plugins.hparams import api

        values = {name: _displayable(value) for name, value in mapping.items()}
        with self._writing():
            api.hparams(values)

    def flush(self) -> None:
        """Makes everything added so far visible to TensorBoard.

        TensorFlow 2.15 also does so after every call above, but does not guarantee it.
        """
        with self._writing():
            self._writer.flush()

    def close(self) -> None:
        """Writes what is pending and ends the event file."""
        with self._writing():
            self._writer.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with contextlib.suppress(self._tf.errors.OpError), self._writer.as_default():
            yield


def _displayable(value: Any) -> bool | int | float | str:
    if isinstance(value, str):  # the name of a file can have bytes that are not UTF-8
        return value.encode("utf-8", "backslashreplace").decode()
    return value if isinstance(value, (bool, int, float)) else json.dumps(value)
