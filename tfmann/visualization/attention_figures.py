"""The figure of an attention matrix.

Figures are built without pyplot, so nothing here touches a display, keeps a figure alive or
changes the settings of a program that plots too. Matplotlib is imported on first use.
Letters: S source length, T target length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfmann.visualization import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def attention_figure(
    attention: np.ndarray,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    title: str = "",
) -> Figure:
    """Draws an attention matrix, source words along the top, target words down the side.

    Args:
      attention: weights in [0, 1], [T, S]; row t is the attention of target word t.
      source_tokens: S words, with ``</s>`` if the model attends to it.
      target_tokens: T words.
      title: text above the source words.

    Returns:
      A figure that grows with the sentences. `image_files.figure_to_png` and `save_figure` make
      room for the words outside the matrix.

    Raises:
      ValueError: the matrix is not [T, S].
    """
    from matplotlib.figure import Figure

    attention = np.asarray(attention, dtype=np.float64)
    if attention.shape != (len(target_tokens), len(source_tokens)):
        raise ValueError(
            f"attention {attention.shape} does not match {len(target_tokens)} target words "
            f"and {len(source_tokens)} source words"
        )
    height, width = (drawing.words_side(count) for count in attention.shape)
    figure = Figure(figsize=(width, height), dpi=drawing.DPI)
    axes = figure.add_axes((0, 0, 1, 1))  # labels and colour bar lie outside
    drawing.colour_bar(figure, drawing.heat_map(axes, attention))
    drawing.word_axis(axes, "x", source_tokens, width)
    drawing.word_axis(axes, "y", target_tokens, height)
    drawing.cell_borders(axes, attention.shape)
    drawing.title(axes, title)
    return figure
