"""What a continuous cache was used for, as in Figures 3 and 4 of Tu et al. 2018.

Matplotlib is imported on first use. Letters: T words of a sentence, I cache slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfmann.report import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tfmann.decoding.lines import Slots
    from tfmann.evaluation.trace import Trace

_GAP = 0.08  # inches: between the gate and the matrix
_RECENCY_SIZE = (6.0, 3.6)  # inches
# Told apart by lightness too (Okabe & Ito 2008).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKERS = "osD^vPX"


def by_recency(slots: Slots) -> np.ndarray:
    """Indices of the filled slots, the one written last first: at most `[I]`."""
    order = np.argsort(slots.ages, kind="stable")
    return order[slots.ages[order] >= 0]


def cache_of_trace(trace: Trace, title: str = "") -> Figure | None:
    """Draws the cache matching of a trace; see `cache_figure`.

    Returns:
      None where there is nothing to draw: the model has no cache, or it was empty.
    """
    if trace.slots is None or not len(by_recency(trace.slots)):
        return None
    return cache_figure(
        trace["cache_match"], trace["cache_gate"], trace.slots, trace.tokens, title
    )


def cache_figure(
    match: np.ndarray,
    gate: np.ndarray,
    slots: Slots,
    tokens: Sequence[str],
    title: str = "",
) -> Figure:
    """Draws the cache matching matrix of a sentence (Figure 4b), and above it the gate.

    Args:
      match: P(c_i | c_t) (5), [T, I].
      gate: lambda_t (8), mean over its width, [T, 1]; 0: nothing of the cache was used.
      slots: what the I slots held when the sentence began; those that were empty are left out.
      tokens: the T words, along the top.
      title: text above the words.

    Returns:
      A figure for `plots.figure_to_png` or `plots.save_figure`: a row for each filled slot, named
      by its word, the one written last on top.

    Raises:
      ValueError: the shapes do not agree.
    """
    from matplotlib.figure import Figure

    match, gate = np.asarray(match, np.float64), np.asarray(gate, np.float64)
    steps, count = len(tokens), len(slots.words)
    if match.shape != (steps, count) or gate.shape != (steps, 1):
        raise ValueError(
            f"match {match.shape} and gate {gate.shape} do not match {steps} words and "
            f"{count} slots"
        )
    order = by_recency(slots)
    width, high = drawing.words_side(steps), drawing.words_side(len(order))
    strip = drawing.WORD_CELL
    height = strip + _GAP + high
    figure = Figure(figsize=(width, height), dpi=drawing.DPI)
    above = figure.add_axes((0, 1 - strip / height, 1, strip / height))
    below = figure.add_axes((0, 0, 1, high / height))
    drawing.heat_map(above, gate.T)
    image = drawing.heat_map(below, match.T[order])
    drawing.cell_borders(above, (1, steps))
    drawing.cell_borders(below, (len(order), steps))
    drawing.word_axis(above, "x", tokens, width)
    drawing.word_axis(above, "y", ["gate"], strip)
    above.yaxis.get_ticklabels()[0].set_fontstyle("italic")  # unlike the words below it
    drawing.word_axis(below, "y", [slots.words[i] for i in order], high)
    below.set_xticks([])
    drawing.colour_bar(figure, image)
    drawing.title(above, title)
    return figure


def recency(traces: Iterable[Trace]) -> np.ndarray:
    """Average matching probability of the slots by recency (Figure 3): `[I]`, the latest first.

    A mean over all steps of the sentences that began with something in the cache. Where the cache
    is not full yet, a sentence has fewer ranks than I: each rank's mean is over the steps at which
    a slot of that rank is filled, so the last ranks are means of fewer steps than the first, and
    the numbers need not sum to 1. A rank that was never filled is NaN.

    Mind that a sentence with n filled slots shares out 1 among n: where fills are unequal, even a
    model that matches all alike has a curve that falls, since only its first ranks have the
    sentences of small n. To tell that from recency, give it the sentences that began with a full
    cache.

    Args:
      traces: of sentences, read once; of none there are no ranks either.

    Raises:
      ValueError: the model has no cache, or the caches are of different sizes.
    """
    sums: np.ndarray | None = None  # [2, I]: of the probabilities, and how many
    for trace in traces:
        if trace.slots is None:
            raise ValueError("there is no cache in this model")
        match = np.asarray(trace["cache_match"], np.float64)  # [T, I]
        steps, count = match.shape
        sums = np.zeros([2, count]) if sums is None else sums
        if sums.shape[1] != count:
            raise ValueError(f"caches of {sums.shape[1]} and of {count} slots")
        order = by_recency(trace.slots)
        sums[:, : len(order)] += [match[:, order].sum(axis=0), np.full(len(order), steps)]
    if sums is None:
        return np.zeros(0)
    return np.where(sums[1] > 0, sums[0] / np.maximum(sums[1], 1), np.nan)


def recency_figure(curves: Mapping[str, np.ndarray], title: str = "") -> Figure:
    """Draws such averages, a curve for each model or data set.

    Args:
      curves: what `recency` returned, by the name that the legend says; they may be of caches of
        different sizes. NaN is not drawn.
      title: text above.

    Returns:
      A figure for `plots.figure_to_png` or `plots.save_figure`.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=_RECENCY_SIZE, dpi=drawing.DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    longest = max(map(len, curves.values()), default=0)
    for number, values in enumerate(curves.values()):
        axes.plot(
            np.arange(1, len(values) + 1),
            values,
            color=_COLOURS[number % len(_COLOURS)],
            marker=_MARKERS[number % len(_MARKERS)],
            markevery=max(1, longest // 50),  # more would run together
            markersize=4,
            linewidth=1.5,
        )
    axes.set_xlim(0.5, max(longest, 1) + 0.5)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    drawing.title(axes, title)
    _plain(axes)
    _legend(axes, curves)
    return figure


def _plain(axes: Axes) -> None:
    """Names the axes; leaves of the frame what carries numbers."""
    style: dict[str, Any] = {"fontsize": drawing.FONT_POINTS - 1, "family": drawing.fonts()}
    axes.set_xlabel("cache slot, the most recent first", **style)
    axes.set_ylabel("average matching probability", **style)
    axes.tick_params(length=2, labelsize=drawing.FONT_POINTS - 2)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_color(drawing.FRAME)
        spine.set_visible(side in ("left", "bottom"))


def _legend(axes: Axes, names: Iterable[str]) -> None:
    """Says whose the curves are, whatever their names: a "$" is a dollar, a first "_" is shown."""
    if not axes.lines:
        return
    legend = axes.legend(
        axes.lines,
        map(str, range(len(axes.lines))),
        frameon=False,
        prop={"size": drawing.FONT_POINTS - 2, "family": drawing.fonts()},
    )
    for text, name in zip(legend.get_texts(), names):
        text.set_parse_math(False)
        text.set_text(drawing.printable(name))
