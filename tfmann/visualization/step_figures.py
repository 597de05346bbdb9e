"""Numbers of each step that belong to no head, and those that only a cell of one's own has.

Matplotlib is imported on first use. Letters: S source tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tfmann.cells.diagnostics import SHAPES
from tfmann.visualization.head_figures import Panel, timeline

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfmann.evaluation.trace import Trace

_ELSEWHERE = ("cache_gate",)  # in the figure of the cache


def steps_figure(trace: Trace, title: str = "") -> Figure | None:
    """Draws what a step does with the memory as a whole, over the words of the target.

    One number a step is a curve: the gate of a summary, how far Past and Future move, and whatever
    a cell returns of that shape under a name that `cells.diagnostics.SHAPES` lacks. Weights `[S]`
    under such a name, from 0 up and with a sum of at most 1, are a row for each source word.

    Args:
      trace: of the sentence.
      title: text above the words.

    Returns:
      None if the cell has no such numbers.
    """
    panels = step_panels(trace)
    return timeline(panels, trace.step_tokens, title, trace.boundary) if panels else None


def step_panels(trace: Trace) -> list[Panel]:
    """Returns the panels of the figure: those with a row for each source word come first."""
    words, curves = [], []
    for name, values in trace.items():
        label = name.replace("_", " ")
        if SHAPES.get(name, ("1",)) == ("1",) and values.shape[1:] == (1,):
            if name not in _ELSEWHERE:
                curves.append(Panel(label, values, curve=True))
        elif name not in SHAPES and _are_weights(values, len(trace.source_tokens)):
            words.append(Panel(label, values, trace.source_tokens))
    return [*words, *curves]


def _are_weights(values: np.ndarray, count: int) -> bool:
    """Returns whether values can be weights of so many source words."""
    if values.shape[1:] != (count,):
        return False
    return bool(np.all(values >= 0) and np.all(values.sum(axis=-1) <= 1 + 1e-3))
