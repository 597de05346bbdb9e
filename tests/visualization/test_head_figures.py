from __future__ import annotations

import io
import subprocess
import sys
import warnings

import numpy as np
import pytest
from helpers.traces import (
    SOURCE,
    TARGET,
    drawn_weights,
    head_trace,
    rounds_trace,
    tick_labels,
)
from matplotlib import image as matplotlib_image

from tfmann.visualization import image_files
from tfmann.visualization.head_figures import Panel, head_figures, head_panels, timeline


def figures(trace, title=""):
    return dict(head_figures(trace, title))


def panels(figure):
    """The axes of the quantities, from top to bottom, by their labels; without the bar."""
    return {axes.get_ylabel(): axes for axes in figure.axes if axes.get_ylabel()}


ADDRESS = "address\n(memory location)"
CONTENT = "content based\naddress"
NTM_READ = [ADDRESS, CONTENT, "interpolation gate", "shift kernel", "sharpening"]


def test_a_head_has_a_figure_with_its_quantities_in_the_order_of_the_paper():
    by_head = figures(head_trace(heads=(2, 2)))
    assert list(by_head) == ["read_head_0", "read_head_1", "write_head_0", "write_head_1"]
    assert list(panels(by_head["read_head_0"])) == NTM_READ
    assert list(panels(by_head["write_head_1"])) == [*NTM_READ, "erase norm", "add norm"]
    by_head = figures(head_trace("dnc"))
    assert list(panels(by_head["read_head_0"])) == [ADDRESS, CONTENT, "read modes", "free gate"]
    assert list(panels(by_head["write_head_0"])) == [
        ADDRESS, CONTENT, "allocation", "usage", "write gate", "allocation gate",
        "erase norm", "add norm",
    ]  # fmt: skip


def test_each_panel_shows_the_heads_own_numbers_time_along_x():
    trace = head_trace(heads=(2, 2))
    actual = panels(figures(trace)["write_head_1"])
    expected = trace.heads["write_head_1"]
    assert np.array_equal(drawn_weights(actual[ADDRESS]), expected["weights"].T)
    assert np.array_equal(drawn_weights(actual[CONTENT]), expected["content_weights"].T)
    assert np.array_equal(
        drawn_weights(actual["interpolation gate"]), expected["interpolation_gate"].T
    )
    assert np.array_equal(drawn_weights(actual["shift kernel"]), expected["shift_kernel"].T)
    assert tick_labels(actual["shift kernel"], "y") == ["-1", "0", "+1"]  # downwards: forwards
    for label, key in (("sharpening", "sharpening"), ("erase norm", "erase_norm")):
        heights, edges, _ = actual[label].patches[0].get_data()
        assert np.array_equal(heights, expected[key][:, 0])
        assert np.array_equal(edges, np.arange(10) - 0.5)
        assert actual[label].get_ylim()[0] == 0 < heights.max() < actual[label].get_ylim()[1]
    usage = panels(figures(head_trace("dnc"))["write_head_0"])["usage"]
    assert np.array_equal(drawn_weights(usage), head_trace("dnc")["usage"].T)


def test_all_panels_have_one_time_axis_with_the_words_of_both_phases():
    figure = figures(head_trace(), title="sentence 3")["read_head_0"]
    all_axes = list(panels(figure).values())
    assert tick_labels(all_axes[0], "x") == SOURCE + TARGET
    assert all_axes[0].xaxis.get_ticks_position() == "top"
    assert all_axes[0].get_title(loc="left") == "sentence 3: read head 0"
    for axes in all_axes:
        assert axes.get_xlim() == (-0.5, 8.5)
        box = axes.get_position()
        assert (box.x0, box.x1) == (0, 1)
    assert all(tick_labels(axes, "x") == [] for axes in all_axes[1:])
    tops = [axes.get_position().y1 for axes in all_axes]
    assert tops == sorted(tops, reverse=True)


def test_a_line_parts_the_phases_in_every_panel():
    of_head = panels(figures(head_trace())["write_head_0"])
    for axes in of_head.values():
        assert [list(line.get_xdata()) for line in axes.lines] == [[3.5, 3.5]]
    labels = [text.get_text() for text in of_head["add norm"].texts]
    assert labels == ["source", "target"]
    over_encoder = panels(figures(head_trace(reads_source=False))["write_head_0"])
    assert tick_labels(over_encoder[ADDRESS], "x") == TARGET
    assert not any(axes.lines or axes.texts for axes in over_encoder.values())


def test_read_modes_are_named_and_numbered_where_there_are_several():
    def names(heads):
        return tick_labels(
            panels(figures(head_trace("dnc", heads))["read_head_0"])["read modes"], "y"
        )

    assert names((1, 1)) == ["backward", "content", "forward"]
    assert names((1, 2)) == ["backward 0", "backward 1", "content", "forward 0", "forward 1"]


def test_locations_of_a_cell_that_only_reads_are_the_source_words():
    trace = head_trace(heads=(1, 0), slots=len(SOURCE), reads_source=False)
    (figure,) = figures(trace).values()
    of_head = panels(figure)
    assert list(of_head) == ["address", *NTM_READ[1:]]
    assert tick_labels(of_head["address"], "y") == tick_labels(of_head[CONTENT], "y") == SOURCE
    assert tick_labels(of_head["address"], "x") == TARGET


def test_locations_of_keys_that_are_rewritten_are_the_source_words():
    of_heads = figures(rounds_trace(rounds=2))
    for name in ("read_head_0", "read_head_1", "write_head_0", "write_head_1"):
        assert tick_labels(panels(of_heads[name])["address"], "y") == SOURCE


def test_no_lone_peak_is_lost_among_many_locations():
    weights = np.zeros([3, 1000])
    weights[0, 123], weights[1, 999], weights[2, 0] = 0.9, 0.5, 0.2
    figure = timeline([Panel("address", weights)], ["a", "b", "c"])
    image = figure.axes[0].images[0]
    cells = np.asarray(image.get_array())
    assert len(cells) == 250 <= figure.get_size_inches()[1] * figure.dpi
    assert np.array_equal(cells.max(axis=0), [0.9, 0.5, 0.2])
    # the axis counts locations
    assert image.get_extent() == [-0.5, 2.5, 999.5, -0.5]
    assert cells[123 // 4, 0] == 0.9
    few = timeline([Panel("address", weights[:, :200])], ["a", "b", "c"])
    assert np.array_equal(few.axes[0].images[0].get_array(), weights[:, :200].T)


@pytest.mark.parametrize("token", ["$x^2$", "$\\frac{$", "a\x00b", "昨日は", "", "x" * 500])
def test_any_token_can_be_drawn(token):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace = head_trace(source=[token], target=[token, "</s>"])
        for _, figure in head_figures(trace, token):
            assert image_files.figure_to_png(figure).startswith(b"\x89PNG\r\n\x1a\n")


def test_short_long_and_broken_sentences():
    for trace in (
        head_trace(source=["</s>"], target=["</s>"]),
        head_trace(target=["</s>"], reads_source=False, slots=1),
        head_trace("dnc", source=["w"] * 300, target=["v"] * 300, slots=40),
    ):
        for array in trace.values():
            array[-1] = np.nan
        for figure in figures(trace).values():
            width, _ = figure.get_size_inches()
            assert width <= 40
            assert image_files.figure_to_png(figure).startswith(b"\x89PNG")


def test_a_head_over_a_very_long_sentence_has_a_picture_of_limited_size():
    trace = head_trace(heads=(1, 0), slots=900, reads_source=False, source=["w"] * 900)
    (figure,) = figures(trace).values()
    assert figure.get_size_inches()[1] < 45
    words = tick_labels(panels(figure)["address"], "y")
    assert len(words) == 225  # every fourth, as along the axes of an attention


def test_the_picture_has_dark_cells_where_the_address_is():
    trace = head_trace(source=["w"] * 4, target=["v"] * 5)
    for array in trace.values():
        array[:] = 0.0
    trace["write_weights"][0, 0, 0] = trace["write_weights"][8, 0, 5] = 1.0
    png = image_files.figure_to_png(figures(trace)["write_head_0"])
    picture = matplotlib_image.imread(io.BytesIO(png), format="png")[..., :3]
    assert np.all(picture[[0, -1]] == 1.0) and np.all(picture[:, [0, -1]] == 1.0)  # nothing is cut
    blue = (picture[..., 2] > picture[..., 0] + 0.2) & (picture[..., 2] < 0.6)
    blue[:, -75:] = False  # the colour bar
    blue[250:] = False  # the curves
    rows, columns = np.nonzero(blue)
    left, right = columns < columns.mean(), columns > columns.mean()
    assert 25 < np.ptp(columns[left]) <= 30 and 25 < np.ptp(columns[right]) <= 30  # one step each
    assert 15 < np.ptp(rows[left]) <= 20  # one of six locations in 1.2 inches
    assert columns[right].max() - columns[left].min() == pytest.approx(9 * 30, abs=3)
    assert rows[right].max() - rows[left].min() == pytest.approx(120, abs=3)  # downwards


def test_panels_must_have_one_row_a_step():
    with pytest.raises(ValueError, match=r"gate \(3, 1\) does not match 4 steps"):
        timeline([Panel("gate", np.zeros([3, 1]), [""])], SOURCE)
    with pytest.raises(ValueError, match=r"address \(4,\)"):
        timeline([Panel("address", np.zeros(4))], SOURCE)


def test_nothing_heavy_is_imported_before_it_is_needed():
    code = (
        "import sys; from tfmann.visualization import head_figures;"
        "assert not {'matplotlib', 'tensorflow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_matrices_and_precedence_are_left_to_the_trace():
    trace = head_trace("dnc")
    labels = [panel.label for panel in head_panels(trace, "write_head_0")]
    assert not [label for label in labels if "link" in label or "precedence" in label]
