"""Tests of the oracle of verdicts, with values from printed tables and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import verdicts


@pytest.mark.parametrize(
    ("t", "degrees", "share"),
    # Student's table: two-sided 5% at 1, 2, 4, 10 degrees of freedom; one-sided 1% at 5
    [(12.706, 1, 0.025), (4.303, 2, 0.025), (2.776, 4, 0.025), (2.228, 10, 0.025),
     (3.365, 5, 0.01), (0.0, 3, 0.5)],
)  # fmt: skip
def test_the_tail_is_that_of_the_printed_table(t, degrees, share):
    assert verdicts.tail(t, degrees) == pytest.approx(share, rel=1e-3)
    assert verdicts.quantile(share, degrees) == pytest.approx(t, abs=2e-3)


def test_errors_by_hand():
    # runs 1 and 3: variance 2, of the mean of two 1. Resamples: means 2, 1.5 and 2.5
    scores = [[0.0, 2.0], [3.0, 3.0]]
    of_seeds, of_sentences = verdicts.errors(scores, [[0, 1], [0, 0], [1, 1]])
    assert of_seeds == pytest.approx(1.0)
    assert of_sentences == pytest.approx(0.25)


def test_equivalence_is_an_interval_within_the_margins():
    # 4.303 x 0.1 around 0.2 with 2 degrees of freedom at 2.5%: -0.230 to 0.630
    assert verdicts.equivalent(0.2, 0.1, 2, -0.24, 0.64, 0.025)
    assert not verdicts.equivalent(0.2, 0.1, 2, -0.22, 0.64, 0.025)
    assert not verdicts.equivalent(0.2, 0.1, 2, -0.24, 0.62, 0.025)


def test_holm_stops_at_the_first_that_is_not_rejected():
    # 0.01 <= 0.05 / 4, 0.04 > 0.05 / 3: what follows is not looked at, though 0.045 <= 0.05
    assert verdicts.holm_rejected([0.045, 0.01, 0.04, 0.6], 0.05) == [False, True, False, False]
    assert verdicts.holm_rejected(np.array([0.02, 0.012]), 0.05) == [True, True]
