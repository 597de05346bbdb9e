"""Figures as PNG, and as files in PNG, SVG or PDF."""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING

from tfmann.errors import UserError, print_message
from tfmann.utils.files import PathLike, atomic_write
from tfmann.visualization import drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BOX = r"Glyph (\d+) .* missing from"  # matplotlib's warning that it draws a box
_BOXES: list[str] = []  # the letter that was named


def figure_to_png(figure: Figure) -> bytes:
    """Renders a figure as PNG and closes it."""
    return _render(figure, "png")


def save_figure(figure: Figure, path: PathLike) -> None:
    """Writes a figure to a file and closes it; the file is complete or not there at all.

    Args:
      figure: any figure of matplotlib's.
      path: a file name in ``.png``, ``.svg`` or ``.pdf``; the suffix selects the format.

    Raises:
      UserError: the suffix is another one, or the file cannot be written.
    """
    image_format = os.path.splitext(path)[1][1:].lower()
    if image_format not in ("png", "svg", "pdf"):
        raise UserError(f"{path}: a figure's file name must end in .png, .svg or .pdf")
    with atomic_write(path) as file:
        file.write(_render(figure, image_format))


def _render(figure: Figure, image_format: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message=_BOX, category=UserWarning)
        figure.savefig(
            buffer, format=image_format, dpi=drawing.DPI, bbox_inches="tight", pad_inches=0.1
        )
    for warning in caught:
        letter = re.match(_BOX, str(warning.message))
        if letter is None:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
        elif not _BOXES:  # once, not for every letter of every figure
            _BOXES.append(chr(int(letter[1])))
            print_message(
                f"no installed font has {_BOXES[0]}: it and other letters without one are boxes in "
                "figures; install a font that has them, such as Noto Sans CJK"
            )
    figure.clear()
    if "matplotlib.pyplot" in sys.modules:  # only pyplot keeps track of its figures
        sys.modules["matplotlib.pyplot"].close(figure)
    return _compressed(buffer) if image_format == "png" else buffer.getvalue()


def _compressed(png: io.BytesIO) -> bytes:
    """Returns the picture in 256 colours: a third of the bytes, and no colour changes by 2%."""
    from PIL import Image  # a requirement of matplotlib's

    compressed = io.BytesIO()
    image = Image.open(png).convert("RGB")
    palette = image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    palette.save(compressed, "PNG", optimize=True)
    return compressed.getvalue()
