"""Attention and, next to it, what it has covered so far (Tu et al. 2016).

Matplotlib is imported on first use. Letters: S source length, T target length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfmann.visualization import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfmann.evaluation.trace import Trace

_NARROWEST = 1.6  # inches: of a panel, so that its title does not run into the next one's
_GAP = 0.3  # inches


def coverage_figure(trace: Trace, title: str = "") -> Figure:
    """Draws the attention `[T, S]` and, to its right, the coverage after each target word `[T, S]`.

    Source words are along the top of both, target words down the left side. A coverage of 1 and
    more has the darkest colour.

    Args:
      trace: of a cell that has a coverage.
      title: text above the figure.
    """
    from matplotlib.figure import Figure

    steps, width = len(trace.tokens), len(trace.source_tokens)
    panels = {"attention": trace["alignments"], "coverage": trace["coverage"]}
    side = max(drawing.words_side(width), _NARROWEST)
    side = min(side, (drawing.LARGEST_SIDE - _GAP) / 2)
    total_width, height = 2 * side + _GAP, drawing.words_side(steps)
    figure = Figure(figsize=(total_width, height), dpi=drawing.DPI)
    for number, (name, values) in enumerate(panels.items()):
        left = number * (side + _GAP) / total_width
        axes = figure.add_axes((left, 0, side / total_width, 1))
        image = drawing.heat_map(axes, np.asarray(values, np.float64))
        drawing.cell_borders(axes, (steps, width))
        drawing.word_axis(axes, "x", trace.source_tokens, side)
        axes.set_yticks([])
        drawing.title(axes, "" if number else title, name)
    drawing.colour_bar(figure, image)
    drawing.word_axis(figure.axes[0], "y", trace.tokens, height)
    return figure
