"""Attention and, next to it, what it has covered so far (Tu et al. 2016).

Matplotlib is imported on first use. Letters: S source length, T target length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfmann.visualization import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfmann.evaluation.trace import Trace

_NARROWEST = 1.6  # inches: of a panel, so that its title does not run into the next one's
_GAP = 0.3  # inches


def coverage_of_trace(trace: Trace, title: str = "") -> Figure:
    """Draws attention and coverage of a trace that has both; see `coverage_figure`."""
    words = trace.source_tokens, trace.tokens
    return coverage_figure(trace["alignments"], trace["coverage"], *words, title=title)


def coverage_figure(
    attention: np.ndarray,
    coverage: np.ndarray,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    title: str = "",
) -> Figure:
    """Draws an attention matrix and, to its right, the coverage after each target word.

    Args:
      attention: weights in [0, 1], [T, S].
      coverage: at least 0, [T, S]; 1 and more has the darkest colour.
      source_tokens: S words, along the top of both.
      target_tokens: T words, down the left side.
      title: text above the figure.

    Returns:
      A figure for `image_files.figure_to_png` or `image_files.save_figure`.

    Raises:
      ValueError: one of the arrays is not [T, S].
    """
    from matplotlib.figure import Figure

    steps, width = len(target_tokens), len(source_tokens)
    panels = {"attention": attention, "coverage": coverage}
    for name, values in panels.items():
        if np.shape(values) != (steps, width):
            raise ValueError(
                f"{name} {np.shape(values)} does not match {steps} target words and {width} "
                "source words"
            )
    side = max(drawing.words_side(width), _NARROWEST)
    side = min(side, (drawing.LARGEST_SIDE - _GAP) / 2)
    total_width, height = 2 * side + _GAP, drawing.words_side(steps)
    figure = Figure(figsize=(total_width, height), dpi=drawing.DPI)
    for number, (name, values) in enumerate(panels.items()):
        left = number * (side + _GAP) / total_width
        axes = figure.add_axes((left, 0, side / total_width, 1))
        image = drawing.heat_map(axes, np.asarray(values, np.float64))
        drawing.cell_borders(axes, (steps, width))
        drawing.word_axis(axes, "x", source_tokens, side)
        axes.set_yticks([])
        drawing.title(axes, "" if number else title, name)
    drawing.colour_bar(figure, image)
    drawing.word_axis(figure.axes[0], "y", target_tokens, height)
    return figure
