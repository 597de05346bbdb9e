"""Heat maps of attention and of memory addresses.

Figures are built without pyplot, so nothing here touches a display, keeps a figure alive or
changes the settings of a program that plots too. Matplotlib is imported on first use.
Letters: S source length, T target length, N memory slots.
"""

from __future__ import annotations

import io
import os
import sys
import unicodedata
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfmann.corpus.files import PathLike, replacing
from tfmann.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

_DPI = 100
_FONT_POINTS = 11.0
_POINTS_PER_INCH = 72.0
_WORD_CELL = 0.3  # inches: a cell beside a word holds one line of text at _FONT_POINTS
_LARGEST_SIDE = 40.0  # inches: two very long sentences take about 64 MB to draw
_LONGEST_WORD = 32  # characters shown of a word
_BAR_WIDTH, _BAR_GAP = 0.14, 0.18  # inches

# DejaVu Sans comes with matplotlib and has Latin, Greek, Cyrillic, Arabic, Hebrew, Georgian, ...;
# the rest are used where they are installed. A letter in none of them is drawn as a box.
_FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Zen Hei",
    "Hiragino Sans",
    "PingFang SC",
    "Microsoft YaHei",
    "Malgun Gothic",
    "Arial Unicode MS",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
)


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
    attention = np.asarray(attention, dtype=np.float64)
    if attention.shape != (len(target_tokens), len(source_tokens)):
        raise ValueError(
            f"attention {attention.shape} does not match {len(target_tokens)} target words "
            f"and {len(source_tokens)} source words"
        )
    width, height = (
        min(max(count, 1) * _WORD_CELL, _LARGEST_SIDE) for count in reversed(attention.shape)
    )
    figure, axes = _heat_map(attention, width, height)
    _word_axis(axes, "x", source_tokens, width)
    _word_axis(axes, "y", target_tokens, height)
    _cell_borders(axes, attention.shape)
    _title(axes, title)
    return figure


def address_figure(
    weights: np.ndarray,
    step_tokens: Sequence[str],
    title: str = "",
    slot_label: str = "memory location",
    phase_boundary: int | None = None,
) -> Figure:
    """Draws where a head's address lay at every step: time along x, locations down y.

    Args:
      weights: address weights in [0, 1], [T, N], one row a step.
      step_tokens: T words, what the model read or wrote at each step.
      title: text above the words.
      slot_label: what the locations are.
      phase_boundary: first step of the second phase (the number of source steps of a model that
        reads and then writes); a line is drawn before it.

    Raises:
      ValueError: the matrix does not have one row a step.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[0] != len(step_tokens):
        raise ValueError(f"weights {weights.shape} do not match {len(step_tokens)} steps")
    steps, slots = weights.shape
    width = min(max(steps, 1) * _WORD_CELL, _LARGEST_SIDE)
    # Locations have no words beside them: a few pixels each will do.
    height = float(np.clip(slots * 0.06, 1.5, 8.0))
    figure, axes = _heat_map(weights.T, width, height)
    _word_axis(axes, "x", step_tokens, width)
    axes.set_ylabel(slot_label, fontsize=_FONT_POINTS, family=_fonts())
    axes.locator_params(axis="y", integer=True)
    if phase_boundary is not None:
        axes.axvline(phase_boundary - 0.5, color="#c44e52", linewidth=1.5)
    _title(axes, title)
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


def printable(token: str) -> str:
    """Makes a token fit for a label: control characters become U+FFFD, long words are cut."""
    text = _without_controls(token)
    return text if len(text) <= _LONGEST_WORD else text[: _LONGEST_WORD - 1] + "…"


def _heat_map(matrix: np.ndarray, width: float, height: float) -> tuple[Figure, Axes]:
    """Returns a figure whose axes fill it, and the axes; labels and bar lie outside."""
    from matplotlib.figure import Figure

    if matrix.size == 0:  # a blank sentence: one empty cell, since no image has none
        matrix = np.zeros(np.maximum(matrix.shape, 1))
    figure = Figure(figsize=(width, height), dpi=_DPI)
    axes = figure.add_axes((0, 0, 1, 1))
    image = axes.imshow(
        matrix, cmap=_colour_map(), vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest"
    )
    axes.tick_params(length=0, labelsize=_FONT_POINTS - 2)
    axes.xaxis.tick_top()
    bar_height = float(np.clip(height, 1.2, 4.0))
    bar = figure.add_axes(
        (1 + _BAR_GAP / width, 1 - bar_height / height, _BAR_WIDTH / width, bar_height / height)
    )
    figure.colorbar(image, cax=bar, ticks=[0, 0.25, 0.5, 0.75, 1])
    bar.tick_params(length=2, labelsize=_FONT_POINTS - 3)
    for spine in (*axes.spines.values(), bar.spines["outline"]):
        spine.set_color("#909090")
    return figure, axes


def _word_axis(axes: Axes, which: str, tokens: Sequence[str], inches: float) -> None:
    """Writes the words along an axis, in smaller type or with gaps where they are very many."""
    points = inches / max(len(tokens), 1) * _POINTS_PER_INCH / 1.25  # a line is 1.25 letters high
    every = max(1, int(np.ceil(4.0 / points)))  # below 4 points nobody can read
    style: dict[str, Any] = {
        "fontsize": float(np.clip(points, 4.0, _FONT_POINTS)),
        "family": _fonts(),
        "parse_math": False,  # a "$" is a dollar
    }
    if which == "x":
        style.update(rotation=55, ha="left", va="center", rotation_mode="anchor")
    axis = axes.xaxis if which == "x" else axes.yaxis
    positions = range(0, len(tokens), every)
    axis.set_ticks(list(positions), labels=[printable(tokens[i]) for i in positions], **style)


def _cell_borders(axes: Axes, shape: tuple[int, int]) -> None:
    """Draws faint lines between cells, to lead the eye from a word to its weight."""
    rows, columns = shape
    axes.set_xticks(np.arange(1, columns) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, rows) - 0.5, minor=True)
    axes.grid(which="minor", color="#e4e4e4", linewidth=0.6)
    axes.tick_params(which="minor", length=0)


def _title(axes: Axes, title: str) -> None:
    # Left, where it grows away from the matrix on one side only.
    text = _without_controls(title)
    axes.set_title(text, loc="left", fontsize=_FONT_POINTS, family=_fonts(), parse_math=False)


def _without_controls(text: str) -> str:
    # Control characters, lone surrogates, line and paragraph separators.
    unfit = ("Cc", "Cs", "Zl", "Zp")
    return "".join("\ufffd" if unicodedata.category(c) in unfit else c for c in text)


def _fonts() -> list[str]:
    """Returns those of `_FONTS` that are installed: naming others makes matplotlib complain."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return [name for name in _FONTS if name in installed]


def _colour_map() -> Colormap:
    """Returns white to dark blue in equal steps of seen lightness (Oklab, Ottosson 2020).

    None of matplotlib's perceptually uniform maps begins at white, the paper's own colour, which
    alone says "nothing here".
    """
    from matplotlib.colors import ListedColormap

    share = np.linspace(0.0, 1.0, 256)[:, np.newaxis]
    lab = np.array([1.0, 0.0, 0.0]) + share * np.array([-0.72, -0.02, -0.12])  # [256, 3]
    cone = lab @ np.array([[1, 1, 1], [0.39634, -0.10556, -0.08948], [0.21580, -0.06385, -1.29149]])
    linear = cone**3 @ np.array(
        [[4.07674, -1.26844, -0.00420], [-3.30771, 2.60976, -0.70342], [0.23097, -0.34132, 1.70761]]
    )
    linear = np.clip(linear, 0.0, 1.0)
    rgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    # Rounded, because the published matrices make 0.999996 of white.
    colours = ListedColormap(np.clip(rgb.round(4), 0.0, 1.0), name="white_to_blue")
    return colours.with_extremes(bad="#dddddd")  # NaN: grey, unlike any weight


def _render(figure: Figure, image_format: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A letter that no font has is drawn as a box; that is no reason to warn at every save.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        figure.savefig(buffer, format=image_format, dpi=_DPI, bbox_inches="tight", pad_inches=0.1)
    figure.clear()
    if "matplotlib.pyplot" in sys.modules:  # only a figure made by pyplot is known to it
        sys.modules["matplotlib.pyplot"].close(figure)
    return buffer.getvalue()
