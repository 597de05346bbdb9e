from __future__ import annotations

import io
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from matplotlib import image as matplotlib_image
from matplotlib import pyplot

from tfmann.errors import UserError
from tfmann.visualization import attention_figures, drawing, image_files

SOURCE = ["wo", "steht", "der", "Kran", "?", "</s>"]
TARGET = ["where", "is", "the", "crane", "?"]


def weights(rows: int, columns: int) -> np.ndarray:
    rng = np.random.default_rng(rows)
    return rng.dirichlet(np.ones(columns), size=rows)


def labels(figure, name):
    axis = getattr(figure.axes[0], f"{name}axis")
    return [label.get_text() for label in axis.get_ticklabels()]


def pixels(png: bytes) -> np.ndarray:
    return matplotlib_image.imread(io.BytesIO(png), format="png")


def test_attention_has_the_words_on_both_axes():
    figure = attention_figures.attention_figure(weights(5, 6), SOURCE, TARGET, title="a title")
    assert labels(figure, "x") == SOURCE
    assert labels(figure, "y") == TARGET
    assert figure.axes[0].get_title(loc="left") == "a title"
    assert figure.axes[0].xaxis.get_ticks_position() == "top"


def test_attention_shows_each_weight_in_its_cell():
    attention = np.zeros([5, 6])
    attention[1, 4], attention[2, 3] = 0.9, 0.3
    figure = attention_figures.attention_figure(attention, SOURCE, TARGET)
    image = figure.axes[0].images[0]
    colours = image.to_rgba(image.get_array())
    assert np.all(colours[0, 0] == 1.0)  # 0 is white
    assert colours[1, 4, :3].mean() < 0.35 < 0.6 < colours[2, 3, :3].mean()
    assert image.get_clim() == (0.0, 1.0)
    # Target words run downwards.
    bottom, top = figure.axes[0].get_ylim()
    assert bottom > top


def test_png_is_valid_and_has_the_dark_cell_where_it_belongs():
    attention = np.zeros([5, 6])
    attention[4, 0] = 1.0
    png = image_files.figure_to_png(attention_figures.attention_figure(attention, SOURCE, TARGET))
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    picture = pixels(png)[..., :3]
    blue = (picture[..., 2] > picture[..., 0] + 0.2) & (picture[..., 2] < 0.6)
    blue[:, int(blue.shape[1] * 0.8) :] = False  # the colour bar
    rows, columns = np.nonzero(blue)
    assert rows.min() > picture.shape[0] * 0.7
    assert columns.max() < picture.shape[1] * 0.4
    assert 15 < np.ptp(rows) < 35  # one cell of 0.3 inches at 100 dots an inch


def test_the_words_are_inside_the_picture():
    def picture(word):
        figure = attention_figures.attention_figure(weights(3, 3), [word] * 3, [word] * 3)
        return pixels(image_files.figure_to_png(figure))

    long_words, short_words = picture("Wasserversorgungsunternehmen"), picture("a")
    assert long_words.shape[0] > short_words.shape[0] + 100
    assert long_words.shape[1] > short_words.shape[1] + 100
    # Nothing is cut: the outermost rows and columns of pixels are blank.
    border = np.concatenate([long_words[0], long_words[-1], long_words[:, 0], long_words[:, -1]])
    assert np.all(border[:, :3] == 1.0)


def test_figures_grow_with_the_sentences_up_to_a_limit():
    def size(rows, columns):
        words = ["w"] * max(rows, columns)
        figure = attention_figures.attention_figure(
            np.zeros([rows, columns]), words[:columns], words[:rows]
        )
        return tuple(figure.get_size_inches()), labels(figure, "x")

    (width, height), _ = size(20, 10)
    assert (width, height) == pytest.approx((3.0, 6.0))
    (width, _), words = size(2, 1000)
    assert width == 40.0
    assert len(words) == 500  # every so many only: all of them would be one black bar


def test_a_letter_without_a_font_is_named_once(capsys, monkeypatch):
    monkeypatch.setattr(image_files, "_BOXES", [])
    for token in ("\U00013000", "\U00013001"):  # hieroglyphs
        figure = attention_figures.attention_figure(weights(1, 1), [token], ["b"])
        image_files.figure_to_png(figure)
    assert capsys.readouterr().err == (
        "no installed font has \U00013000: it and other letters without one are boxes in figures; "
        "install a font that has them, such as Noto Sans CJK\n"
    )


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("$x^2$", "$x^2$"),
        ("$", "$"),
        ("$\\frac{$", "$\\frac{$"),  # as mathematics it would be an error
        ("a\x00b\tc\n", "a\ufffdb\ufffdc\ufffd"),
        ("\x1b[31m\u2028\ud800", "\ufffd[31m\ufffd\ufffd"),
        ("昨日は", "昨日は"),
        ("người", "người"),
        ("\U0001f680", "\U0001f680"),
        ("", ""),
        ("_hidden", "_hidden"),
        ("x" * 500, "x" * 31 + "…"),
    ],
)
def test_any_token_can_be_drawn(token, label):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = attention_figures.attention_figure(
            weights(1, 2), [token, "b"], [token], title=token
        )
        assert labels(figure, "x") == [label, "b"]
        assert labels(figure, "y") == [label]
        assert image_files.figure_to_png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (2, 0), (1, 1)])
def test_small_and_empty_sentences(shape):
    figure = attention_figures.attention_figure(np.ones(shape), ["s"] * shape[1], ["t"] * shape[0])
    assert image_files.figure_to_png(figure).startswith(b"\x89PNG")


def test_a_weight_that_is_no_number_is_grey():
    figure = attention_figures.attention_figure(np.array([[np.nan, 0.5]]), ["a", "b"], ["c"])
    image = figure.axes[0].images[0]
    red, green, blue, _ = image.to_rgba(image.get_array())[0, 0]
    assert red == green == blue < 0.9
    assert image_files.figure_to_png(figure).startswith(b"\x89PNG")


def test_shapes_must_agree():
    with pytest.raises(ValueError, match=r"\(6, 5\) does not match 5 target words and 6 source"):
        attention_figures.attention_figure(weights(6, 5), SOURCE, TARGET)


def test_colours_go_from_white_in_equal_steps_of_lightness():
    colours = drawing.colour_map()(np.linspace(0, 1, 256))[:, :3]
    assert np.all(colours[0] == 1.0)
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    # CIELAB lightness, another measure than the one the map was made with.
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    lightness = 116 * np.cbrt(luminance[luminance > 0.009]) - 16
    steps = -np.diff(lightness)
    assert steps.min() > 0
    assert steps.max() < 1.5 * steps.min()


def test_closing_leaves_nothing_behind():
    figure = attention_figures.attention_figure(weights(5, 6), SOURCE, TARGET)
    assert pyplot.get_fignums() == []
    image_files.figure_to_png(figure)
    assert figure.axes == []
    open_figure, axes = pyplot.subplots()
    axes.plot([1, 2])
    image_files.figure_to_png(open_figure)
    assert pyplot.get_fignums() == []


def test_matplotlib_is_imported_on_first_use_and_pyplot_never():
    code = (
        "import sys; from tfmann.visualization import attention_figures, image_files;"
        "assert 'matplotlib' not in sys.modules;"
        "figure = attention_figures.attention_figure([[1.0]], ['a'], ['b']);"
        "image_files.figure_to_png(figure);"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("b.svg", b"<?xml"), ("c.PDF", b"%PDF")]
)
def test_the_name_of_a_figure_chooses_its_format(tmp_path, name, start):
    path = tmp_path / name
    path.write_text("old")
    image_files.save_figure(attention_figures.attention_figure(weights(5, 6), SOURCE, TARGET), path)
    assert path.read_bytes().startswith(start)
    assert os.listdir(tmp_path) == [name]


def test_save_errors_leave_files_as_they_were(tmp_path, monkeypatch):
    def figure():
        return attention_figures.attention_figure(weights(5, 6), SOURCE, TARGET)

    with pytest.raises(UserError, match="must end in .png, .svg or .pdf"):
        image_files.save_figure(figure(), str(tmp_path / "a.jpeg"))
    with pytest.raises(UserError, match="none/a.png"):
        image_files.save_figure(figure(), str(tmp_path / "none" / "a.png"))
    path = tmp_path / "a.png"
    path.write_text("old")

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(UserError, match="No space left"):
        image_files.save_figure(figure(), str(path))
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.png"]
