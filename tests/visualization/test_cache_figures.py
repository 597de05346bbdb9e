"""The cache in figures and as a table: order, orientation, averages by hand."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
from helpers.traces import SLOTS, TOKENS, cache_trace, drawn_weights, tick_labels

from tfmann.decoding.translation import Slots
from tfmann.visualization import cache_figures, image_files

ORDER = [2, 3, 0]  # of the filled slots, the latest first


def test_the_matrix_has_generated_words_along_x_and_the_latest_slot_on_top():
    trace = cache_trace()
    above, below, _ = cache_figures.cache_figure(trace, "a title").axes
    assert np.array_equal(drawn_weights(below), trace["cache_match"].T[ORDER])
    assert tick_labels(below, "y") == ["new", "the", "felt"]
    bottom, top = below.get_ylim()
    assert bottom > top  # row 0 is on top
    assert tick_labels(above, "x") == TOKENS and tick_labels(below, "x") == []
    assert above.xaxis.get_ticks_position() == "top"
    assert above.get_title(loc="left") == "a title"
    assert above.get_xlim() == below.get_xlim()


def test_the_gate_is_a_strip_of_one_row_above_the_matrix():
    trace = cache_trace()
    above, below, _ = cache_figures.cache_figure(trace).axes
    assert np.array_equal(drawn_weights(above), trace["cache_gate"].T)
    assert tick_labels(above, "y") == ["gate"]
    strip, matrix = above.get_position(), below.get_position()
    assert strip.y0 > matrix.y1 and (strip.x0, strip.x1) == (matrix.x0, matrix.x1)
    assert matrix.height == pytest.approx(3 * strip.height)  # rows are of one height
    assert above.images[0].get_clim() == below.images[0].get_clim() == (0.0, 1.0)


def test_where_nothing_was_kept_there_is_nothing_to_draw():
    assert cache_figures.cache_figure(cache_trace(Slots(["", ""], np.array([-1, -1])))) is None
    assert cache_figures.cache_figure(cache_trace(Slots([], np.zeros(0, int)))) is None
    without = cache_trace()
    without.slots = None
    assert cache_figures.cache_figure(without) is None


@pytest.mark.quick("1-1", "80-25")
@pytest.mark.parametrize("count", [1, 25])
@pytest.mark.parametrize("steps", [1, 80])
def test_any_number_of_slots_and_words(count, steps):
    slots = Slots(["$x^{"] * count, np.arange(count))
    trace = cache_trace(slots, ["昨日"] * steps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = cache_figures.cache_figure(trace, "$\\frac{$")
        assert image_files.figure_to_png(figure).startswith(b"\x89PNG\r\n\x1a\n")


def trace_of(match, ages):
    """A trace of which only the matching matters."""
    slots = Slots(["w" if age >= 0 else "" for age in ages], np.array(ages))
    trace = cache_trace(slots, ["w"] * len(match))
    trace["cache_match"][:] = match
    return trace


def test_recency_by_hand():
    traces = [
        trace_of([[0.0, 0.0, 0.0, 0.0]], [-1, -1, -1, -1]),  # begins with nothing: does not count
        trace_of([[0.3, 0.7, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]], [1, 0, -1, -1]),  # ranks: slots 1, 0
        trace_of(
            [[0.2, 0.1, 0.6, 0.1]], [4, 9, 0, -1]
        ),  # ranks: slots 2, 0, 1; the fourth is empty
    ]
    traces[2]["cache_match"][0, 3] = 0.0
    # rank 1: (0.7 + 0.5 + 0.6) / 3 steps; rank 2: (0.3 + 0.5 + 0.2) / 3; rank 3: 0.1 / 1 step
    np.testing.assert_allclose(cache_figures.recency(iter(traces)), [0.6, 1 / 3, 0.1, np.nan])
    # every step counts the same, in whatever sentence it is
    longer = trace_of([[1.0, 0.0]] * 9, [0, 1])
    shorter = trace_of([[0.0, 1.0]], [0, 1])
    np.testing.assert_allclose(cache_figures.recency([longer, shorter]), [0.9, 0.1])


def test_recency_of_nothing_and_of_what_does_not_fit():
    assert cache_figures.recency([]).shape == (0,)
    assert np.isnan(cache_figures.recency([trace_of([[0.0, 0.0]], [-1, -1])])).all()
    with pytest.raises(ValueError, match="caches of 2 and of 1 slots"):
        cache_figures.recency([trace_of([[0.5, 0.5]], [0, 1]), trace_of([[1.0]], [0])])
    without = cache_trace()
    without.slots = None
    with pytest.raises(ValueError, match="no cache"):
        cache_figures.recency([without])


def test_a_curve_with_the_latest_leftmost():
    averages = np.array([0.6, 0.3, np.nan])
    (axes,) = cache_figures.recency_figure(averages, "$T_ED$", "a title").axes
    (line,) = axes.lines
    assert np.array_equal(line.get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(line.get_ydata(), averages)
    left, right = axes.get_xlim()
    assert left < 1 < 3 < right and axes.get_ylim()[0] == 0
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["$T_ED$"]
    assert axes.get_title(loc="left") == "a title"


@pytest.mark.parametrize(
    ("name", "averages"),
    [("a", np.zeros(0)), ("$\\frac{$", np.full(3, np.nan)), ("_hidden", np.ones(500) / 500)],
)
def test_any_curve_can_be_drawn(name, averages):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = cache_figures.recency_figure(averages, name)
        assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [name]
        assert image_files.figure_to_png(figure).startswith(b"\x89PNG")


def test_the_table_lists_the_latest_first():
    assert cache_figures.cache_table(SLOTS) == (
        "| rank | word   | age in words |\n"
        "| ---: | ------ | -----------: |\n"
        "|    1 | `new`  |            0 |\n"
        "|    2 | `the`  |            3 |\n"
        "|    3 | `felt` |            7 |\n"
    )
    assert cache_figures.cache_table(Slots(["", ""], np.array([-1, -1]))).count("\n") == 2


@pytest.mark.parametrize(
    ("word", "cell"),
    [
        ("</s>", "`</s>`"),
        ("*a*", "`*a*`"),
        ("a|b", "`a\\|b`"),
        ("`", "`` ` ``"),
        ("a``b", "```a``b```"),
        ("x\n| 9", "`x\ufffd\\| 9`"),
        ("昨日", "`昨日`"),
    ],
)
def test_any_word_stays_in_its_cell(word, cell):
    *_, row, end = cache_figures.cache_table(Slots([word, "b"], np.array([1, 0]))).split("\n")
    assert end == "" and row.split(" | ", 1)[1].startswith(cell)
    assert row.endswith(" 1 |")


def test_words_of_wide_letters_keep_the_columns_below_each_other():
    lines = cache_figures.cache_table(Slots(["昨日は", "abcdef"], np.array([1, 0]))).splitlines()
    assert len(lines[-1]) == len(lines[-2]) - 3


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = (
        "import sys; from tfmann.visualization import cache_figures;"
        "from tfmann.visualization import round_figures, sentence_figures;"
        "import tfmann.cli.report;"
        "assert not {'matplotlib', 'tensorflow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
