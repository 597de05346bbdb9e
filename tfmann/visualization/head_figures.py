"""One figure per head over time, as in Figures 4 and 5 of Collier & Beel 2019.

Time runs along x, one step per word. From top to bottom are the address, the quantities that it was
computed from and, for a write head, how much was written. If the cell read the source itself, a
line separates its steps from the target's. Matplotlib is imported on first use.
Letters: N memory slots, J shift taps, H write heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfmann.visualization import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tfmann.evaluation.trace import Trace

# The quantities of a head in the order of its figure: over locations, as named rows, as curves.
_LOCATIONS = {
    "weights": "address",
    "content_weights": "content based\naddress",
    "allocation_weights": "allocation",
    "usage": "usage",
}
_ROWS = {
    "interpolation_gate": "interpolation gate",
    "shift_kernel": "shift kernel",
    "write_gate": "write gate",
    "allocation_gate": "allocation gate",
    "read_modes": "read modes",
    "free_gate": "free gate",
}
_CURVES = {
    "sharpening": "sharpening",
    "backward_sharpness": "backward\nsharpness",
    "forward_sharpness": "forward\nsharpness",
    "erase_norm": "erase norm",
    "add_norm": "add norm",
}

_SLOT, _LOW, _HIGH = 0.06, 1.2, 2.6  # inches: of a slot, of few slots, of many slots
_ROW, _CURVE, _GAP = 0.24, 0.6, 0.14  # inches
_HIGHEST = drawing.LARGEST_SIDE / 2  # of a row for each word: a head has two such panels
_BOUNDARY, _LINE, _INK = "#c44e52", "#ececec", "#1f3a5f"


class Panel(NamedTuple):
    """One quantity over time."""

    label: str
    values: np.ndarray  # [steps, n]
    rows: Sequence[str] | None = None  # names of the n rows; None for numbered locations
    curve: bool = False  # a curve with its own scale, n = 1, instead of weights in [0, 1]

    @property
    def height(self) -> float:
        """The height in inches."""
        count = self.values.shape[1]
        if self.curve:
            return _CURVE
        if self.rows is None:
            return float(np.clip(count * _SLOT, _LOW, _HIGH))
        return min(count * _ROW, _HIGHEST)


def head_figures(trace: Trace, title: str = "") -> Iterator[tuple[str, Figure]]:
    """Yields the name of every head of a trace, as in `trace.heads`, and its figure.

    Args:
      trace: of a cell with heads; other cells have no figures.
      title: text before the head's name.
    """
    for name in trace.heads:
        text = " ".join([*([f"{title}:"] if title else []), *name.split("_")])
        panels = head_panels(trace, name)
        yield name, timeline(panels, trace.step_tokens, text, trace.boundary)


def head_panels(trace: Trace, name: str) -> list[Panel]:
    """Returns the panels of a head's figure, from top to bottom."""
    quantities = trace.heads[name]
    if name.startswith("write") and "usage" in trace:
        quantities["usage"] = trace["usage"]
    words = trace.source_tokens if trace.addresses_source else None
    locations = [
        Panel(label, quantities[key], words)
        for key, label in _LOCATIONS.items()
        if key in quantities
    ]
    if words is None:
        locations[0] = locations[0]._replace(label="address\n(memory location)")
    return [
        *locations,
        *(
            Panel(text, quantities[key], _row_names(key, quantities[key].shape[1]))
            for key, text in _ROWS.items()
            if key in quantities
        ),
        *(
            Panel(text, quantities[key], curve=True)
            for key, text in _CURVES.items()
            if key in quantities
        ),
    ]


def timeline(
    panels: Sequence[Panel], step_tokens: Sequence[str], title: str = "", boundary: int = 0
) -> Figure:
    """Draws quantities from top to bottom over a common time axis.

    Args:
      panels: from top to bottom.
      step_tokens: the word of each step.
      title: text above the words.
      boundary: first step of the second phase; 0 if there is only one.

    Returns:
      A figure for `image_files.figure_to_png` or `image_files.save_figure`.

    Raises:
      ValueError: a panel does not have one row for each step.
    """
    from matplotlib.figure import Figure

    steps = len(step_tokens)
    for panel in panels:
        if panel.values.ndim != 2 or len(panel.values) != steps:
            raise ValueError(f"{panel.label} {panel.values.shape} does not match {steps} steps")
    width = drawing.words_side(steps)
    height = sum(panel.height + _GAP for panel in panels) - _GAP
    figure = Figure(figsize=(width, height), dpi=drawing.DPI)
    top = height
    for number, panel in enumerate(panels):
        top -= panel.height
        axes = figure.add_axes((0, top / height, 1, panel.height / height))
        top -= _GAP
        _draw(axes, panel)
        axes.set_xlim(-0.5, max(steps, 1) - 0.5)
        _step_lines(axes, steps, boundary)
        if number == 0:
            drawing.word_axis(axes, "x", step_tokens, width)
            drawing.title(axes, title)
            if not panel.curve:
                drawing.colour_bar(figure, axes.images[0])
        else:
            axes.set_xticks([])
    if boundary:
        _phases(axes, boundary)
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    style: dict[str, Any] = {"fontsize": drawing.FONT_POINTS - 1, "family": drawing.fonts()}
    axes.set_ylabel(panel.label, rotation=0, ha="right", va="center", **style)
    if panel.curve:
        _draw_curve(axes, panel.values[:, 0])
        return
    matrix = panel.values.T  # [n, steps]
    count = len(matrix)
    if panel.rows is None:
        matrix = _condense(matrix, int(_HIGH * drawing.DPI))
        # the axis counts locations, even if a row of cells shows several of them
        drawing.heat_map(axes, matrix, extent=(-0.5, matrix.shape[1] - 0.5, count - 0.5, -0.5))
        axes.locator_params(axis="y", integer=True, nbins=6)
    else:
        drawing.heat_map(axes, matrix)
        drawing.word_axis(axes, "y", panel.rows, panel.height)


def _draw_curve(axes: Axes, values: np.ndarray) -> None:
    """Draws a step function from 0 up, since values belong to steps, not to points between."""
    edges = np.arange(len(values) + 1) - 0.5
    axes.stairs(values, edges, fill=True, color=_INK, alpha=0.25)
    axes.stairs(values, edges, color=_INK)
    axes.set_ylim(0, 1.15 * max(values[np.isfinite(values)].max(initial=0.0), 1e-6))
    axes.locator_params(axis="y", nbins=3)
    axes.tick_params(length=0, labelsize=drawing.FONT_POINTS - 2)
    for spine in axes.spines.values():
        spine.set_color(drawing.FRAME)


def _condense(matrix: np.ndarray, max_rows: int) -> np.ndarray:
    """Takes the maximum of neighbouring rows, so that no single peak falls between pixels.

    The last row can be the maximum of fewer.
    """
    group = -(-len(matrix) // max_rows)
    if group <= 1:
        return matrix
    return np.maximum.reduceat(matrix, np.arange(0, len(matrix), group), axis=0)


def _step_lines(axes: Axes, steps: int, boundary: int) -> None:
    """Draws lines between the steps, which lead the eye down, and the phases' boundary."""
    edges = np.arange(1, steps) - 0.5
    axes.vlines(edges, 0, 1, _LINE, linewidth=0.6, transform=axes.get_xaxis_transform())
    if boundary:
        axes.axvline(boundary - 0.5, color=_BOUNDARY, linewidth=2)


def _phases(axes: Axes, boundary: int) -> None:
    """Labels the two phases on either side of the boundary, below the lowest panel."""
    for text, offset, side in (("source", -5, "right"), ("target", 5, "left")):
        axes.annotate(
            text,
            xy=(boundary - 0.5, 0),
            xycoords=("data", "axes fraction"),
            xytext=(offset, -5),
            textcoords="offset points",
            ha=side,
            va="top",
            color=_BOUNDARY,
            fontsize=drawing.FONT_POINTS - 1,
            family=drawing.fonts(),
        )


def _row_names(quantity: str, count: int) -> list[str]:
    """Returns the names of the rows of a shift kernel, of read modes, or of a gate."""
    if quantity == "shift_kernel":
        reach = count // 2
        return [f"{offset:+d}" if offset else "0" for offset in range(-reach, reach + 1)]
    if quantity == "read_modes":
        writers = count // 2
        numbers = [f" {i}" if writers > 1 else "" for i in range(writers)]
        return [
            *(f"backward{number}" for number in numbers),
            "content",
            *(f"forward{number}" for number in numbers),
        ]
    return [""] * count
