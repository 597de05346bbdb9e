"""Rounds of attention side by side, as in Figure 3 of Meng et al. 2018.

Matplotlib is imported on first use. Letters: S source length, T target length, R rounds.
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
_WITHIN, _BETWEEN = 0.15, 0.45  # inches: gaps within a round and between two


def rounds_of_trace(trace: Trace, title: str = "") -> Figure:
    """Draws the rounds of a trace with rounds (`trace.rounds`); see `rounds_figure`."""
    return rounds_figure(
        trace["read_weights"],
        trace["write_weights"],
        trace.source_tokens,
        trace.tokens,
        title,
    )


def rounds_figure(
    read_weights: np.ndarray,
    write_weights: np.ndarray,
    source_tokens: Sequence[str],
    target_tokens: Sequence[str],
    title: str = "",
) -> Figure:
    """Draws the attention of each round of a step and, next to it, the round's write address.

    From left to right: round 1's attention and write address, round 2's, ...; in each panel the
    source words are along the top and the target words down the side, labelled at the left of the
    figure. All panels have the same colour scale.

    Args:
      read_weights: weights in [0, 1], [T, R, S].
      write_weights: the same.
      source_tokens: S words.
      target_tokens: T words.
      title: text above the figure.

    Returns:
      A figure for `image_files.figure_to_png` or `image_files.save_figure`.

    Raises:
      ValueError: one of the arrays has another shape.
    """
    from matplotlib.figure import Figure

    reads, writes = (np.asarray(weights, np.float64) for weights in (read_weights, write_weights))
    steps, width = len(target_tokens), len(source_tokens)
    for name, weights in (("read", reads), ("write", writes)):
        shape = weights.shape
        if len(shape) != 3 or shape != (steps, reads.shape[1], width) or not shape[1]:
            raise ValueError(
                f"{name} weights {shape} do not match {steps} target words and {width} source words"
            )
    rounds = reads.shape[1]
    gaps = rounds * _WITHIN + (rounds - 1) * _BETWEEN
    panel = max(drawing.words_side(width), _NARROWEST)
    panel = min(panel, (drawing.LARGEST_SIDE - gaps) / (2 * rounds))
    total_width, height = 2 * rounds * panel + gaps, drawing.words_side(steps)
    figure = Figure(figsize=(total_width, height), dpi=drawing.DPI)
    for number in range(rounds):
        left = number * (2 * panel + _WITHIN + _BETWEEN)
        for label, weights in (("attention", reads), ("written to", writes)):
            axes = figure.add_axes((left / total_width, 0, panel / total_width, 1))
            image = drawing.heat_map(axes, weights[:, number])
            drawing.cell_borders(axes, (steps, width))
            drawing.word_axis(axes, "x", source_tokens, panel)
            axes.set_yticks([])
            above = title if axes is figure.axes[0] else ""
            drawing.title(axes, above, f"round {number + 1}: {label}")
            left += panel + _WITHIN
    drawing.colour_bar(figure, image)
    drawing.word_axis(figure.axes[0], "y", target_tokens, height)
    return figure
