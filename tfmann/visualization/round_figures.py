"""Rounds of attention side by side, as in Figure 3 of Meng et al. 2018.

Matplotlib is imported on first use. Letters: S source length, T target length, R rounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfmann.visualization import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfmann.evaluation.trace import Trace

_NARROWEST = 1.6  # inches: of a panel, so that its title does not run into the next one's
_WITHIN, _BETWEEN = 0.15, 0.45  # inches: gaps within a round and between two


def rounds_figure(trace: Trace, title: str = "") -> Figure:
    """Draws the attention of each round of a step and, next to it, the round's write address.

    From left to right: round 1's attention and write address, round 2's, ...; in each panel the
    source words are along the top and the target words down the side, labelled at the left of the
    figure. All panels have the same colour scale.

    Args:
      trace: of a cell that has rounds (`trace.rounds`).
      title: text above the figure.
    """
    from matplotlib.figure import Figure

    reads, writes = trace["read_weights"], trace["write_weights"]  # [T, R, S]
    steps, width, rounds = len(trace.tokens), len(trace.source_tokens), trace.rounds
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
            drawing.word_axis(axes, "x", trace.source_tokens, panel)
            axes.set_yticks([])
            above = title if axes is figure.axes[0] else ""
            drawing.title(axes, above, f"round {number + 1}: {label}")
            left += panel + _WITHIN
    drawing.colour_bar(figure, image)
    drawing.word_axis(figure.axes[0], "y", trace.tokens, height)
    return figure
