"""The numbers of a step that belong to no head, and the attention to the sentence before."""

from __future__ import annotations

import numpy as np
from helpers.traces import (
    SOURCE,
    TARGET,
    cache_trace,
    drawn_weights,
    head_trace,
    tick_labels,
    trace_of,
)

from tfmann.visualization import image_files
from tfmann.visualization.sentence_figures import sentence_figures
from tfmann.visualization.step_figures import step_panels, steps_figure

PREVIOUS = ["a", "longer", "sentence", "was", "here", "</s>"]


def test_numbers_of_a_step_are_curves_below_weights_of_source_words():
    trace = trace_of(
        summary_gate=(1,), my_gate=(1,), my_weights=(len(SOURCE),), my_vector=(9,), matrix=(1, 4),
        as_wide=(len(SOURCE),),
    )  # fmt: skip
    trace["my_weights"][:] /= trace["my_weights"].sum(axis=-1, keepdims=True)
    trace["as_wide"][0, 0] = -1.0  # a vector, and no weights
    panels = step_panels(trace)
    assert [panel.label for panel in panels] == ["my weights", "summary gate", "my gate"]
    assert panels[0].rows == SOURCE and [panel.curve for panel in panels] == [False, True, True]
    figure = steps_figure(trace, "title")
    heat, *curves, _ = figure.axes[:3] + figure.axes[-1:]
    np.testing.assert_array_equal(drawn_weights(heat), trace["my_weights"].T)
    assert tick_labels(heat, "y") == SOURCE and heat.get_title(loc="left") == "title"
    assert image_files.figure_to_png(figure)


def test_a_figure_of_curves_alone_has_no_scale_of_colours():
    figure = steps_figure(trace_of(past_change=(1,)))
    assert [axes.get_ylabel() for axes in figure.axes] == ["past change"]


def test_what_other_figures_show_is_not_drawn_again():
    for trace in (cache_trace(), head_trace(), head_trace("dnc"), trace_of(alignments=(4,))):
        assert steps_figure(trace) is None


def test_the_attention_to_the_sentence_before_has_its_words():
    shapes = {"alignments": (len(SOURCE),), "previous_alignments": (len(PREVIOUS),)}
    figures = dict(sentence_figures(trace_of(PREVIOUS, **shapes)))
    assert list(figures) == ["attention", "previous_sentence"]
    [heat, _] = figures["previous_sentence"].axes
    assert tick_labels(heat, "x") == PREVIOUS and tick_labels(heat, "y") == TARGET
    first = {**shapes, "previous_alignments": (1,)}  # there is none
    assert list(dict(sentence_figures(trace_of(**first)))) == ["attention"]
