"""The parts that all figures share: sizes, fonts, colours, heat maps, words along an axis.

Matplotlib is imported on first use.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

DPI = 100
FONT_POINTS = 11.0
WORD_CELL = 0.3  # inches: the cell of a word has the height of one line at FONT_POINTS
LARGEST_SIDE = 40.0  # inches: two very long sentences take about 64 MB to draw
FRAME = "#909090"
_POINTS_PER_INCH = 72.0
_LONGEST_WORD = 32  # characters; the rest of a word is cut
_BAR_WIDTH, _BAR_GAP = 0.14, 0.18  # inches

# DejaVu Sans comes with matplotlib and has Latin, Greek, Cyrillic, Arabic, Hebrew, Georgian, ...;
# the others are used if they are installed. A letter that none of them has is drawn as a box.
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

_OVERRIDES = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd")


def printable(token: str) -> str:
    """Returns a token as a label: control characters become U+FFFD, long words are cut."""
    text = without_controls(token)
    return text if len(text) <= _LONGEST_WORD else text[: _LONGEST_WORD - 1] + "…"


def words_side(count: int) -> float:
    """Returns the inches that this many words take along an axis."""
    return min(max(count, 1) * WORD_CELL, LARGEST_SIDE)


def heat_map(axes: Axes, matrix: np.ndarray, **extent: Any) -> AxesImage:
    """Draws weights in [0, 1] as cells from white to blue, the first row on top."""
    if matrix.size == 0:  # a blank sentence: one empty cell, since no image has none
        matrix = np.zeros(np.maximum(matrix.shape, 1))
    image = axes.imshow(
        matrix,
        cmap=colour_map(),
        vmin=0.0,
        vmax=1.0,
        aspect="auto",
        interpolation="nearest",
        **extent,
    )
    axes.tick_params(length=0, labelsize=FONT_POINTS - 2)
    for spine in axes.spines.values():
        spine.set_color(FRAME)
    return image


def cell_borders(axes: Axes, shape: tuple[int, int]) -> None:
    """Draws faint lines between cells, which lead the eye from a word to its weight."""
    rows, columns = shape
    axes.set_xticks(np.arange(1, columns) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, rows) - 0.5, minor=True)
    axes.grid(which="minor", color="#e4e4e4", linewidth=0.6)
    axes.tick_params(which="minor", length=0)


def colour_bar(figure: Figure, image: AxesImage) -> None:
    """Draws the scale of the colours to the right of a heat map, from its top down."""
    box = image.axes.get_position()
    width, height = figure.get_size_inches()
    bar_height = float(np.clip(box.height * height, 1.2, 4.0)) / height
    left = box.x1 + _BAR_GAP / width
    bar = figure.add_axes((left, box.y1 - bar_height, _BAR_WIDTH / width, bar_height))
    figure.colorbar(image, cax=bar, ticks=[0, 0.25, 0.5, 0.75, 1])
    bar.tick_params(length=2, labelsize=FONT_POINTS - 3)
    bar.spines["outline"].set_color(FRAME)


def word_axis(axes: Axes, side: str, tokens: Sequence[str], inches: float) -> None:
    """Writes the words along an axis, in smaller type or with gaps if there are very many."""
    points = inches / max(len(tokens), 1) * _POINTS_PER_INCH / 1.25  # a line is 1.25 letters high
    every = max(1, int(np.ceil(4.0 / points)))  # text below 4 points is unreadable
    style: dict[str, Any] = {
        "fontsize": float(np.clip(points, 4.0, FONT_POINTS)),
        "family": fonts(),
        "parse_math": False,  # a "$" is a dollar
    }
    if side == "x":
        style.update(rotation=55, ha="left", va="center", rotation_mode="anchor")
        axes.xaxis.tick_top()
    axis = axes.xaxis if side == "x" else axes.yaxis
    positions = range(0, len(tokens), every)
    axis.set_ticks(list(positions), labels=[printable(tokens[i]) for i in positions], **style)


def title(axes: Axes, *lines: str) -> None:
    """Writes a title above the words, aligned left, so that it grows on one side only."""
    text = "\n".join(without_controls(line) for line in lines if line)
    axes.set_title(text, loc="left", fontsize=FONT_POINTS, family=fonts(), parse_math=False)


@functools.cache
def fonts() -> list[str]:
    """Returns the installed ones of `_FONTS`, since matplotlib warns about any others."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return [name for name in _FONTS if name in installed]


@functools.cache
def colour_map() -> Colormap:
    """Returns white to dark blue in equal steps of perceived lightness (Oklab, Ottosson 2020).

    None of matplotlib's perceptually uniform maps begins at white, the background, which alone
    means "nothing here".
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
    # Rounded, because the published matrices turn white into 0.999996.
    colours = ListedColormap(np.clip(rgb.round(4), 0.0, 1.0), name="white_to_blue")
    return colours.with_extremes(bad="#dddddd")  # NaN: grey, unlike any weight


def without_overrides(text: str) -> str:
    """Replaces what would turn the direction of the text around it by U+FFFD."""
    return text.translate(_OVERRIDES)


def without_controls(text: str) -> str:
    """Replaces controls, also of the direction, lone surrogates and line separators by U+FFFD."""
    categories = ("Cc", "Cs", "Zl", "Zp")
    text = without_overrides(text)
    return "".join("\ufffd" if unicodedata.category(c) in categories else c for c in text)
