"""Tests of the oracles of loss, optimizers and learning rates, with values known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from oracles import objective


def test_cross_entropy_of_known_probabilities():
    logits = [np.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]), np.log([[0.2, 0.2, 0.6]])]
    targets = [[0, 2], [1]]
    total = -math.log(0.5) - math.log(0.8) - math.log(0.2)
    assert objective.cross_entropy(logits, targets, "sentence") == pytest.approx(total / 2)
    assert objective.cross_entropy(logits, targets, "token") == pytest.approx(total / 3)


def test_label_smoothing_spreads_over_the_whole_vocabulary():
    logits = np.log([0.5, 0.25, 0.25])
    expected = -(0.8 + 0.1 - 1 / 30) * math.log(0.5) - 2 * (0.1 - 1 / 30) * math.log(0.25)
    loss = objective.token_cross_entropy(logits, 0, label_smoothing=0.2)
    assert loss == pytest.approx(expected)
    uniform = objective.token_cross_entropy(np.zeros(4), 1, label_smoothing=0.3)
    assert uniform == pytest.approx(math.log(4.0))


def test_cross_entropy_does_not_overflow():
    assert objective.token_cross_entropy([1e4, 0.0], 1) == pytest.approx(1e4)


def test_luong234_halves_four_times_at_the_end_of_12000_steps():
    def rate(step):
        return objective.learning_rate(step, 1.0, decay_scheme="luong234", num_train_steps=12000)

    for step, expected in [
        (0, 1.0),
        (8000, 1.0),
        (8999, 1.0),
        (9000, 0.5),
        (9999, 0.5),
        (10000, 0.25),
        (11000, 0.125),
        (11999, 0.125),
        (12000, 0.0625),
    ]:
        assert rate(step) == expected, step


@pytest.mark.parametrize(
    ("scheme", "interval", "times"), [("luong5", 1200, 5), ("luong10", 600, 10)]
)
def test_luong5_and_luong10_start_half_way(scheme, interval, times):
    def factor(step):
        return objective.decay_factor(step, scheme, 12000)

    assert factor(6000) == 1.0
    for halving in range(1, times + 1):
        step = 6000 + halving * interval
        assert factor(step - 1) == 0.5 ** (halving - 1)
        assert factor(step) == 0.5**halving
    assert step == 12000


def test_start_and_interval_are_rounded_down():
    # 1000 steps of luong234: start 666, interval 334 // 4 = 83.
    factors = [objective.decay_factor(step, "luong234", 1000) for step in (748, 749, 998)]
    assert factors == [1.0, 0.5, 0.0625]
    assert objective.decay_factor(2, "luong10", 3) == 0.5  # an interval of one step


def test_warmup_rises_a_hundredfold():
    rates = [objective.learning_rate(step, 0.5, warmup_steps=100) for step in (0, 50, 100, 101)]
    assert rates == pytest.approx([0.005, 0.05, 0.5, 0.5])
    after_warmup = objective.learning_rate(
        9000, 1.0, warmup_steps=18000, decay_scheme="luong234", num_train_steps=12000
    )
    assert after_warmup == pytest.approx(0.1 * 0.5)


def test_sgd_subtracts_the_rate_times_the_gradient():
    np.testing.assert_allclose(objective.sgd_step([1.0, 2.0], [0.5, -1.0], 0.1), [0.95, 2.1])


def test_adam_first_steps_move_by_the_learning_rate():
    # With a constant gradient m / sqrt(v) is sign(g) after correction, at every step.
    variable, m, v = np.zeros(2), np.zeros(2), np.zeros(2)
    for time in (1, 2, 3):
        variable, m, v = objective.adam_step(variable, [2.0, -0.1], m, v, time, 0.01)
    np.testing.assert_allclose(variable, [-0.03, 0.03], rtol=1e-5)
    np.testing.assert_allclose(m, np.array([2.0, -0.1]) * (1 - 0.9**3))
    np.testing.assert_allclose(v, np.array([4.0, 0.01]) * (1 - 0.999**3))


def test_adam_epsilon_is_not_corrected_for_bias():
    # g = epsilon / sqrt(1 - beta2) makes sqrt(v) = epsilon, which halves the first step.
    epsilon = 1e-8
    gradient = epsilon / math.sqrt(0.001)
    variable, _, _ = objective.adam_step(0.0, gradient, 0.0, 0.0, time=1, learning_rate=0.01)
    assert variable == pytest.approx(-0.005)


def test_adadelta_two_steps():
    x, squared_g, squared_dx = objective.adadelta_step(1.0, 2.0, 0.0, 0.0)
    first = math.sqrt(1e-6) / math.sqrt(0.05 * 4.0 + 1e-6) * 2.0
    assert x == pytest.approx(1.0 - first)
    assert squared_g == pytest.approx(0.2)
    assert squared_dx == pytest.approx(0.05 * first**2)
    y, squared_g, _ = objective.adadelta_step(x, -1.0, squared_g, squared_dx, learning_rate=0.5)
    assert squared_g == pytest.approx(0.95 * 0.2 + 0.05)
    second = math.sqrt(0.05 * first**2 + 1e-6) / math.sqrt(0.24 + 1e-6)
    assert y == pytest.approx(1.0 - first + 0.5 * second)


def test_adadelta_gathers_the_update_before_the_learning_rate():
    _, _, full = objective.adadelta_step(0.0, 1.0, 0.0, 0.0, learning_rate=1.0)
    _, _, tenth = objective.adadelta_step(0.0, 1.0, 0.0, 0.0, learning_rate=0.1)
    assert full == tenth > 0.0


def test_clip_by_global_norm():
    gradients = [np.array([3.0, 0.0]), np.array([[4.0]])]
    clipped, norm = objective.clip_by_global_norm(gradients, 2.5)
    assert norm == 5.0
    np.testing.assert_allclose(clipped[0], [1.5, 0.0])
    np.testing.assert_allclose(clipped[1], [[2.0]])
    untouched, _ = objective.clip_by_global_norm(gradients, 50.0)
    np.testing.assert_array_equal(untouched[0], gradients[0])


def test_eos_objective_of_a_sentence_by_hand():
    # "b c </s>" from "x y </s>": n = 3, m = 3. While b and c are predicted, 0.1 and 0.3 of the
    # attention lie on the source's </s>; at </s> 0.6 does, which lacks 0.4.
    alignment = [[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    value, (gradient,) = objective.eos_attention([alignment], [3], [3], "sentence", 1.0)
    assert value == pytest.approx(0.1 + 0.3 + (1.0 - 0.6))
    np.testing.assert_array_equal(gradient, [[0, 0, 1], [0, 0, 1], [0, 0, -1]])


def test_eos_objective_ignores_padding_and_is_divided_as_the_loss():
    # Second sentence: n = 2, m = 1; only </s> is predicted, 0.25 of it lies on </s>. Its row
    # of padding and its column of padding say 9.
    first = [[0.7, 0.2, 0.1], [0.3, 0.4, 0.3]]
    second = [[0.75, 0.25, 9.0], [9.0, 9.0, 9.0]]
    total = (0.1 + 1.0 - 0.3) + (1.0 - 0.25)
    for normalize, number in (("sentence", 2), ("token", 3)):
        value, gradients = objective.eos_attention([first, second], [3, 2], [2, 1], normalize, 0.5)
        assert value == pytest.approx(0.5 * total / number)
        share = 0.5 / number
        np.testing.assert_allclose(gradients[0], [[0, 0, share], [0, 0, -share]])
        np.testing.assert_allclose(gradients[1], [[0, -share, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match="'sentence' or 'token'"):
        objective.eos_attention([first], [3], [2], "batch", 1.0)


def test_eos_objective_of_a_perfect_and_of_a_blank_sentence():
    value, _ = objective.eos_attention([np.eye(3)], [3], [3], "sentence", 1.0)
    assert value == 0.0
    # A blank source has nothing but </s> to look at: every word but the last costs 1.
    value, _ = objective.eos_attention([np.ones((3, 1))], [1], [3], "sentence", 1.0)
    assert value == 2.0


def test_eos_objective_gradient_equals_central_differences():
    rng = np.random.default_rng(32)
    sizes, step = [(4, 3), (2, 5), (1, 1)], 1e-6
    alignments = [rng.dirichlet(np.ones(5), size=5) for _ in sizes]

    def value(changed):
        lengths = [n for _, n in sizes], [m for m, _ in sizes]
        return objective.eos_attention(changed, *lengths, "sentence", 0.7)

    _, gradients = value(alignments)
    for sentence, gradient in enumerate(gradients):
        for index in np.ndindex(5, 5):
            ends = []
            for sign in (1, -1):
                changed = [alignment.copy() for alignment in alignments]
                changed[sentence][index] += sign * step
                ends.append(value(changed)[0])
            assert gradient[index] == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-8)
    assert sum(np.count_nonzero(gradient) for gradient in gradients) == 4 + 2 + 1
