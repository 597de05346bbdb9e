"""The figure of an attention matrix, and figures as PNG and in files.

Figures are built without pyplot, so nothing here touches a display, keeps a figure alive or
changes the settings of a program that plots too. Matplotlib is imported on first use.
Letters: S source length, T target length.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tfmann.corpus.files import PathLike, replacing
from tfmann.errors import UserError
from tfmann.report import drawing

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
      attention: weights in [0, 1], [T, S]; row t is where target word t looked.
      source_tokens: S words, with ``</s>`` if the model attends to it.
      target_tokens: T words.
      title: text above the source words.

    Returns:
      A figure that grows with the sentences; hand it to `figure_to_png` or `save_figure`, which
      make room for the words outside the matrix.

    Raises:
      ValueError: the matrix does not have one row a target word and one column a source word.
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
    axes = figure.add_axes((0, 0, 1, 1))  # labels and bar lie outside
    drawing.colour_bar(figure, drawing.heat_map(axes, attention))
    drawing.word_axis(axes, "x", source_tokens, width)
    drawing.word_axis(axes, "y", target_tokens, height)
    drawing.cell_borders(axes, attention.shape)
    drawing.title(axes, title)
    return figure


def figure_to_png(figure: Figure) -> bytes:
    """Renders a figure as PNG and closes it."""
    return _render(figure, "png")


def save_figure(figure: Figure, path: PathLike) -> None:
    """Writes a figure to a file and closes it; the file is complete or not there at all.

    Args:
      figure: as made here, or any of matplotlib's.
      path: ends in ``.png``, ``.svg`` or ``.pdf``, which decides the format.

    Raises:
      UserError: another ending, or the file cannot be written.
    """
    image_format = os.path.splitext(path)[1][1:].lower()
    if image_format not in ("png", "svg", "pdf"):
        raise UserError(f"{path}: a figure's file name must end in .png, .svg or .pdf")
    with replacing(path) as file:
        file.write(_render(figure, image_format))


def _render(figure: Figure, image_format: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that no font has is drawn as a box; that is no reason to warn at every save.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        figure.savefig(
            buffer, format=image_format, dpi=drawing.DPI, bbox_inches="tight", pad_inches=0.1
        )
    figure.clear()
    if "matplotlib.pyplot" in sys.modules:  # only a figure made by pyplot is known to it
        sys.modules["matplotlib.pyplot"].close(figure)
    return _smaller(buffer) if image_format == "png" else buffer.getvalue()


def _smaller(png: io.BytesIO) -> bytes:
    """The same picture in 256 colours: a third of the bytes, and no colour changes by 2%."""
    from PIL import Image  # matplotlib needs it anyhow

    smaller = io.BytesIO()
    exact = Image.Quantize.MAXCOVERAGE
    few = Image.open(png).convert("RGB").quantize(256, exact, dither=Image.Dither.NONE)
    few.save(smaller, "PNG", optimize=True)
    return smaller.getvalue()
