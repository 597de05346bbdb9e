"""Rounds of attention side by side: which panel shows what, sizes, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from helpers.traces import (
    ROUNDS,
    SOURCE,
    TARGET,
    drawn_weights,
    head_trace,
    rounds_trace,
    tick_labels,
)

from tfmann.visualization import image_files, round_figures


def test_each_round_has_its_attention_and_its_writing():
    trace = rounds_trace()
    assert trace.rounds == ROUNDS
    *panels, bar = round_figures.rounds_figure(trace, "a title").axes
    assert len(panels) == 2 * ROUNDS
    for number in range(ROUNDS):
        read, write = panels[2 * number : 2 * number + 2]
        assert np.array_equal(drawn_weights(read), trace["read_weights"][:, number])
        assert np.array_equal(drawn_weights(write), trace["write_weights"][:, number])
        assert read.get_title(loc="left").endswith(f"round {number + 1}: attention")
        assert write.get_title(loc="left") == f"round {number + 1}: written to"
    assert panels[0].get_title(loc="left") == "a title\nround 1: attention"
    assert bar not in panels


def test_panels_stand_from_left_to_right_on_one_colour_scale():
    *panels, _ = round_figures.rounds_figure(rounds_trace()).axes
    boxes = [axes.get_position() for axes in panels]
    assert all(left.x1 < right.x0 for left, right in zip(boxes, boxes[1:]))
    assert {(box.y0, box.y1) for box in boxes} == {(0.0, 1.0)}
    gaps = np.array([right.x0 - left.x1 for left, right in zip(boxes, boxes[1:])])
    assert gaps[1::2].min() > 2 * gaps[::2].max()  # the two of a round are closer
    for number, axes in enumerate(panels):
        assert axes.images[0].get_clim() == (0.0, 1.0)
        assert tick_labels(axes, "x") == SOURCE
        assert tick_labels(axes, "y") == (TARGET if number == 0 else [])
        bottom, top = axes.get_ylim()
        assert bottom > top  # target words run downwards


def test_a_cell_that_rewrites_nothing_has_no_rounds():
    assert head_trace(heads=(2, 2)).rounds == 0


@pytest.mark.parametrize(("rounds", "source", "target"), [(1, 1, 1), (3, 60, 20)])
def test_short_and_long_sentences(rounds, source, target):
    trace = rounds_trace(rounds, ["$x^{"] * source, ["昨日"] * target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = round_figures.rounds_figure(trace, "$\\frac{$")
        assert figure.get_size_inches()[0] <= 40 + 1e-6
        assert image_files.figure_to_png(figure).startswith(b"\x89PNG\r\n\x1a\n")
