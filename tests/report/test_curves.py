"""Learning curves: the numbers behind the drawing."""

import math

import pytest
from helpers.records import record, table

from tfmann.papers.table import Row
from tfmann.report import curves


def history(*evaluations):
    return {"history": [
        {"step": step, "dev_bleu": bleu, "dev_ppl": ppl} for step, bleu, ppl in evaluations
    ]}  # fmt: skip


def chart(charts, measure, over):
    (match,) = [
        candidate for candidate in charts if (candidate.measure, candidate.over) == (measure, over)
    ]
    return match


def texts(line):
    return [point.text for point in line.points]


def test_curves_are_means_over_the_seeds():
    two_rows = table(Row("a", "A"), Row("b", "B"))
    runs = [
        record("a", seed=1, steps=20, train_seconds=120, **history((10, 4, 8), (20, 6, 4))),
        record("a", seed=2, steps=20, train_seconds=240, **history((10, 6, 6), (20, 8, 2))),
        record("b"),
    ]
    charts = curves.charts(two_rows, runs)
    (line,) = chart(charts, "dev BLEU", "updates").lines
    assert (line.name, line.number) == ("A", 0)
    assert texts(line) == ["5.00 at 10 updates", "7.00 at 20 updates"]
    (line,) = chart(charts, "dev perplexity", "minutes").lines
    assert texts(line) == ["7.00 at 1.5 minutes", "3.00 at 3 minutes"]  # 1 and 2, 2 and 4


def test_a_row_continues_where_the_one_it_starts_from_ended():
    two_rows = table(Row("a", "A"), Row("b", "B", start="a"))
    runs = [
        record("a", seed=1, steps=20, train_seconds=120, **history((20, 6, 4))),
        record("b", seed=1, start="a", steps=5, train_seconds=60, **history((5, 7, 3))),
    ]
    charts = curves.charts(two_rows, runs)
    assert texts(chart(charts, "dev BLEU", "updates").lines[1]) == ["7.00 at 25 updates"]
    assert texts(chart(charts, "dev BLEU", "minutes").lines[1]) == ["7.00 at 3 minutes"]


def test_all_points_and_ticks_are_inside_the_frame():
    runs = [record("a", seed=1, steps=3000, **history((500, 0.03, 900.0), (3000, 26.1, 9.0)))]
    for diagram in curves.charts(table(Row("a", "A")), runs):
        for line in diagram.lines:
            for point in line.points:
                assert curves.LEFT <= point.x <= curves.RIGHT
                assert curves.TOP <= point.y <= curves.BOTTOM
        assert diagram.y_ticks[0][0] == curves.BOTTOM and diagram.y_ticks[-1][0] == curves.TOP
        assert diagram.x_ticks[-1][0] == curves.RIGHT
    (line,) = chart(curves.charts(table(Row("a", "A")), runs), "dev BLEU", "updates").lines
    assert line.points[0].y > line.points[1].y  # more is further up


def test_nothing_was_validated():
    assert curves.charts(table(Row("a", "A")), [record("a", seed=1)]) == []


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 10, [0, 2, 4, 6, 8, 10]), (3, 3, [3, 3.000001]), (6.7, 9.1, [6.5, 7, 7.5, 8, 8.5, 9, 9.5]),
     (0, 2500, [0, 500, 1000, 1500, 2000, 2500])],
)  # fmt: skip
def test_ticks_are_round_numbers(low, high, expected):
    assert curves.ticks(low, high) == pytest.approx(expected)


def test_log_ticks_enclose_the_values():
    assert curves.log_ticks(9, 900) == [5, 10, 20, 50, 100, 200, 500, 1000]
    assert curves.log_ticks(8.9, 23.5)[0] <= 8.9 and curves.log_ticks(8.9, 23.5)[-1] >= 23.5
    assert curves.log_ticks(1.1, 1.3)[0] <= 1.1
    for low, high in ((3.5, 13.75), (0.2, 0.79), (1.0, 3.99), (2.4, 9.5)):  # with five steps from 0
        marks = curves.log_ticks(low, high)
        assert 0 < marks[0] <= low and marks[-1] >= high


@pytest.mark.parametrize("high", [1e5, 3e8, 1e13, 1.9e43])
def test_the_axis_after_a_divergence_has_few_labels(high):
    marks = curves.log_ticks(7.5, high)
    assert marks[0] == 1 and marks[-1] >= high and 5 < len(marks) <= 14
    powers = [round(math.log10(mark)) for mark in marks]
    assert [float(f"1e{power}") for power in powers] == marks
    assert len({b - a for a, b in zip(powers, powers[1:])}) == 1


def test_long_runs_have_whole_numbers_and_short_ones_fractions_of_minutes():
    runs = [record("a", steps=1500000, train_seconds=5e7, **history((1500000, 6, 4)))]
    (updates,) = chart(curves.charts(table(Row("a", "A")), runs), "dev BLEU", "updates").lines
    assert texts(updates) == ["6.00 at 1,500,000 updates"]
    labels = chart(curves.charts(table(Row("a", "A")), runs), "dev BLEU", "updates").x_ticks
    assert [label for _, label in labels][:3] == ["0", "500,000", "1,000,000"]
    runs = [record("a", steps=20, train_seconds=18, **history((5, 4, 8), (10, 6, 4)))]
    (minutes,) = chart(curves.charts(table(Row("a", "A")), runs), "dev BLEU", "minutes").lines
    assert texts(minutes) == ["4.00 at 0.075 minutes", "6.00 at 0.15 minutes"]


def test_a_flat_curve_has_short_labels():
    runs = [record("a", seed=1, steps=20, train_seconds=60, **history((10, 12.3456789, 1.000001)))]
    for diagram in curves.charts(table(Row("a", "A")), runs):
        assert all(len(label) <= 5 for _, label in diagram.y_ticks), diagram.y_ticks
        [[point]] = [line.points for line in diagram.lines]
        assert curves.TOP <= point.y <= curves.BOTTOM


def test_a_run_that_has_learned_nothing_yet_has_an_axis():
    runs = [record("a", steps=20, train_seconds=120, **history((10, 0, 8)))]
    (bleu,) = [c for c in curves.charts(table(Row("a", "A")), runs) if c.measure == "dev BLEU"][:1]
    assert bleu.y_ticks[0][1] == "0" and float(bleu.y_ticks[-1][1]) >= 1


def test_dots_do_not_touch_each_other_and_the_last_is_drawn():
    points = [curves.Point(x, 10.0, str(x)) for x in (0.0, 5.0, 9.0, 12.0, 20.0)]
    dots = curves.Line("a", 0, points).dots
    assert [dot.x for dot in dots] == [0.0, 12.0, 20.0]
    assert curves.Line("a", 0, points[:1]).dots == points[:1]
    above = [*points[:1], curves.Point(1.0, 30.0, "far above")]
    assert curves.Line("a", 0, above).dots == above
