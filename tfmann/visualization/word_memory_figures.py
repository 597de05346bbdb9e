"""The use of a memory that proposes words to the search: its share, and which entries voted.

Matplotlib is imported on first use. Letters: T words of a sentence, E entries of the memory.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfmann.visualization import drawing
from tfmann.visualization.cache_figures import code_cell

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfmann.decoding.word_memory_entries import Entry, WordMemory
    from tfmann.evaluation.trace import Trace

MOST_ENTRIES = 30  # rows of a figure; the others are added up in one more
LEAST_WEIGHT = 0.01  # that an entry with a row has at some word
_VOTES = 5  # entries of a word in a table
_LEAST_VOTE = 0.0005  # of them; smaller ones would be listed as 0.000
_HEADINGS = ("word", "share of the memory", "p by the model", "p by the memory", "votes")
_GAP = 0.08  # inches between the probabilities and the matrix
_ROWS = ("share of the memory", "p by the model", "p by the memory")


def word_memory_of_trace(trace: Trace, title: str = "") -> Figure | None:
    """Draws the word memory of a trace; see `word_memory_figure`.

    Returns:
      None if there is nothing to draw: the search has no such memory, or it was empty.
    """
    memory = trace.word_memory
    if memory is None or not memory.entries:
        return None
    return word_memory_figure(memory, trace.tokens, title)


def word_memory_figure(memory: WordMemory, tokens: Sequence[str], title: str = "") -> Figure:
    """Draws what a word memory does at every word.

    Args:
      memory: at the T words.
      tokens: the T words, along the top.
      title: text above the words.

    Returns:
      A figure of two parts. Above: lambda, and the probability of each word by the model and by the
      memory. Below: a row for each entry with its share of the memory's vote, the greatest on top,
      and the sum of the others: of those that nowhere have `LEAST_WEIGHT`, and of those after the
      first `MOST_ENTRIES`.

    Raises:
      ValueError: the shapes do not match.
    """
    from matplotlib.figure import Figure

    steps = len(tokens)
    if memory.weights.shape != (steps, len(memory.entries)) or len(memory.share) != steps:
        raise ValueError(
            f"weights {memory.weights.shape} do not match {steps} words and "
            f"{len(memory.entries)} entries"
        )
    labels, weights = _greatest(memory.entries, memory.weights)
    width, matrix_height = drawing.words_side(steps), drawing.words_side(len(labels))
    strips = len(_ROWS) * drawing.WORD_CELL
    height = strips + _GAP + matrix_height
    figure = Figure(figsize=(width, height), dpi=drawing.DPI)
    above = figure.add_axes((0, 1 - strips / height, 1, strips / height))
    below = figure.add_axes((0, 0, 1, matrix_height / height))
    image = drawing.heat_map(above, np.stack([memory.share, memory.model, memory.memory]))
    drawing.heat_map(below, weights)
    drawing.cell_borders(above, (len(_ROWS), steps))
    drawing.cell_borders(below, (len(labels), steps))
    drawing.word_axis(above, "x", tokens, width)
    drawing.word_axis(above, "y", _ROWS, strips)
    for label in above.yaxis.get_ticklabels():
        label.set_fontstyle("italic")  # unlike the words below
    drawing.word_axis(below, "y", labels, matrix_height)
    below.set_xticks([])
    drawing.colour_bar(figure, image)
    drawing.title(above, title)
    return figure


def word_memory_table(memory: WordMemory, tokens: Sequence[str]) -> str:
    """Lists what a word memory does at every word as a Markdown table.

    Args:
      memory: at the T words.
      tokens: the T words.

    Returns:
      lines, each ended: of each word lambda, its probability by the model and by the memory, and
      the five entries with the greatest weights.
    """
    lines = [_HEADINGS, tuple("-" for _ in _HEADINGS)]
    for step, token in enumerate(tokens):
        weights = memory.weights[step]
        greatest = [
            i for i in np.argsort(-weights, kind="stable")[:_VOTES] if weights[i] >= _LEAST_VOTE
        ]
        votes = "; ".join(
            f"{weights[i]:.3f} {code_cell(_label(memory.entries[i]))}" for i in greatest
        )
        numbers = (memory.share[step], memory.model[step], memory.memory[step])
        lines.append((code_cell(token), *(f"{number:.4f}" for number in numbers), votes))
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _greatest(entries: Sequence[Entry], weights: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Returns the labels of the rows and their weights `[rows, T]`."""
    order = np.argsort(-weights.sum(axis=0), kind="stable")
    votes = weights.max(axis=0)[order] >= LEAST_WEIGHT
    is_shown = votes & (np.cumsum(votes) <= MOST_ENTRIES)
    shown, others = order[is_shown], order[~is_shown]
    labels = [_left_to_right(_label(entries[i])) for i in shown]
    rows = weights.T[shown]
    if len(others):
        labels.append(f"{len(others)} others")
        rows = np.concatenate([rows, weights.T[others].sum(axis=0, keepdims=True)])
    return labels, rows


def _label(entry: Entry) -> str:
    return f"{entry.word} ({entry.origin})"


def _left_to_right(text: str) -> str:
    """Begins a text that has Hebrew or Arabic letters with U+200E, LEFT-TO-RIGHT MARK.

    Otherwise the direction is that of its first letter, and `1 word ago` becomes `word ago 1`.
    """
    is_mixed = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)
    return f"\u200e{text}" if is_mixed else text
