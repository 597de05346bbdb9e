"""The use of a continuous cache, as in Figures 3 and 4 of Tu et al. 2018, and its contents.

Matplotlib is imported on first use. Letters: T words of a sentence, I cache slots.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfmann.evaluation.cache_statistics import by_recency, rank_sums
from tfmann.visualization import drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tfmann.decoding.translation import Slots
    from tfmann.evaluation.trace import Trace

_GAP = 0.08  # inches between the gate and the matrix
_RECENCY_SIZE = (6.0, 3.6)  # inches
_TABLE_HEADINGS = ("rank", "word", "age in words")


def cache_figure(trace: Trace, title: str = "") -> Figure | None:
    """Draws the cache matching matrix of a sentence (Figure 4b) with the gate above it.

    The matrix has P(c_i | c_t) (5), a row for each slot that is filled when the sentence begins,
    labelled with its word, the most recent on top; the words of the sentence are along the top. The
    gate is lambda_t (8), mean over its width; 0 means that the cache was not used.

    Args:
      trace: of the sentence.
      title: text above the words.

    Returns:
      None if there is nothing to draw: the model has no cache, or it was empty.
    """
    slots = trace.slots
    if slots is None or not len(by_recency(slots)):
        return None
    from matplotlib.figure import Figure

    match, gate = trace["cache_match"], trace["cache_gate"]  # [T, I], [T, 1]
    steps, order = len(trace.tokens), by_recency(slots)
    width, matrix_height = drawing.words_side(steps), drawing.words_side(len(order))
    strip = drawing.WORD_CELL
    height = strip + _GAP + matrix_height
    figure = Figure(figsize=(width, height), dpi=drawing.DPI)
    above = figure.add_axes((0, 1 - strip / height, 1, strip / height))
    below = figure.add_axes((0, 0, 1, matrix_height / height))
    drawing.heat_map(above, gate.T)
    image = drawing.heat_map(below, match.T[order])
    drawing.cell_borders(above, (1, steps))
    drawing.cell_borders(below, (len(order), steps))
    drawing.word_axis(above, "x", trace.tokens, width)
    drawing.word_axis(above, "y", ["gate"], strip)
    above.yaxis.get_ticklabels()[0].set_fontstyle("italic")  # unlike the words next to it
    drawing.word_axis(below, "y", [slots.words[i] for i in order], matrix_height)
    below.set_xticks([])
    drawing.colour_bar(figure, image)
    drawing.title(above, title)
    return figure


def recency(traces: Iterable[Trace]) -> np.ndarray:
    """Returns the average matching probability by recency (Figure 3): `[I]`, the latest first.

    It is a mean over all steps of the sentences whose cache was not empty. A sentence with a
    partly filled cache has fewer ranks than I. The mean of each rank is over the steps at which a
    slot of that rank is filled, so the last ranks are means of fewer steps than the first, and the
    numbers need not sum to 1. A rank that was never filled is NaN.

    A sentence with n filled slots divides a probability of 1 among n. If n varies, even a model
    that matches all slots equally has a falling curve, since only the first ranks include sentences
    of small n. To measure recency alone, pass sentences that begin with a full cache.

    Args:
      traces: of sentences, read once; without any the result is empty.

    Raises:
      ValueError: the model has no cache, or caches differ in size.
    """
    sums: np.ndarray | None = None  # [2, I]: sums of probabilities, and their number
    for trace in traces:
        of_sentence = rank_sums(trace)
        sums = np.zeros_like(of_sentence) if sums is None else sums
        if sums.shape != of_sentence.shape:
            raise ValueError(f"caches of {sums.shape[1]} and of {of_sentence.shape[1]} slots")
        sums += of_sentence
    if sums is None:
        return np.zeros(0)
    return np.where(sums[1] > 0, sums[0] / np.maximum(sums[1], 1), np.nan)


def recency_figure(averages: np.ndarray, name: str, title: str = "") -> Figure:
    """Draws a curve of averages by recency.

    Args:
      averages: from `recency`; NaN is not drawn.
      name: of the model or the data set, for the legend.
      title: text above the figure.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=_RECENCY_SIZE, dpi=drawing.DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    ranks = len(averages)
    axes.plot(
        np.arange(1, ranks + 1),
        averages,
        color="#0072b2",
        marker="o",
        markevery=max(1, ranks // 50),  # more would overlap
        markersize=4,
        linewidth=1.5,
    )
    axes.set_xlim(0.5, max(ranks, 1) + 0.5)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    drawing.title(axes, title)
    _style_axes(axes)
    _legend(axes, name)
    return figure


def _style_axes(axes: Axes) -> None:
    """Labels the axes; keeps only the sides of the frame that have numbers."""
    style: dict[str, Any] = {"fontsize": drawing.FONT_POINTS - 1, "family": drawing.fonts()}
    axes.set_xlabel("cache slot, the most recent first", **style)
    axes.set_ylabel("average matching probability", **style)
    axes.tick_params(length=2, labelsize=drawing.FONT_POINTS - 2)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_color(drawing.FRAME)
        spine.set_visible(side in ("left", "bottom"))


def _legend(axes: Axes, name: str) -> None:
    """Names the curve literally: a "$" is a dollar, and a leading "_" is shown."""
    style = {"size": drawing.FONT_POINTS - 2, "family": drawing.fonts()}
    legend = axes.legend(axes.lines, ["0"], frameon=False, prop=style)
    (text,) = legend.get_texts()
    text.set_parse_math(False)
    text.set_text(drawing.printable(name))


def cache_table(slots: Slots) -> str:
    """Lists the filled slots as a Markdown table, the most recently written first.

    The age counts the words of the document that were written since: 0 is the last one. Words are
    code spans, so that a ``</s>`` or a ``*`` is shown as it is.

    Returns:
      lines, each ended; only the heading if no slot is filled.
    """
    rows = [_TABLE_HEADINGS] + [
        (str(rank), code_cell(slots.words[i]), str(slots.ages[i]))
        for rank, i in enumerate(by_recency(slots), start=1)
    ]
    widths = [max(map(_display_width, column)) for column in zip(*rows)]
    rank_rule, word_rule, age_rule = ("-" * width for width in widths)
    rows.insert(1, (f"{rank_rule[1:]}:", word_rule, f"{age_rule[1:]}:"))  # ":" aligns right
    return "".join(_table_line(row, widths) for row in rows)


def _table_line(row: Sequence[str], widths: Sequence[int]) -> str:
    """Pads a row to the columns: numbers on the left, the word on the right."""
    pads = [" " * (width - _display_width(text)) for text, width in zip(row, widths)]
    rank, word, age = row
    return f"| {pads[0]}{rank} | {word}{pads[1]} | {pads[2]}{age} |\n"


def code_span(word: str) -> str:
    """Returns a word as a code span of Markdown, whose fence is longer than its backticks."""
    word = drawing.without_controls(word)
    ticks = "`" * (max(map(len, re.findall("`+", word)), default=0) + 1)
    gap = " " if word.startswith("`") or word.endswith("`") else ""
    return f"{ticks}{gap}{word}{gap}{ticks}"


def code_cell(word: str) -> str:
    """Returns a word as a code span in a cell of a table, which a bar alone would end."""
    return code_span(word).replace("|", "\\|")


def _display_width(text: str) -> int:
    """Counts terminal columns: two for a wide letter, none for a combining mark."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
