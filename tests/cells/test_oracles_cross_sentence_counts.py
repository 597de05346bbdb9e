"""Parameter counts of the two cross-sentence baselines, as in Table 5 of the paper."""

from __future__ import annotations

import pytest
from oracles import cross_sentence

GRU = {"sentence": 3 * (620 + 1000 + 1) * 1000, "document": 3 * (1000 + 1000 + 1) * 1000}
TABLE = 30000 * 620
MILLION = 1_000_000


def fits(extra, printed):
    """Returns whether `extra` agrees with `printed`, a total of Table 5, where RNNSearch has 84.2.

    Both are rounded to a tenth of a million, the difference so to a tenth either way.
    """
    return abs(extra / 1e6 - (printed - 84.2)) < 0.1


def summary_total():
    return sum(cross_sentence.summary_parameters(620, 1000, 2000).values())


def previous_total():
    return sum(cross_sentence.previous_parameters(620, 1000, 2000, 1000, 620).values())


def test_the_counts_of_table_5():
    assert summary_total() == 18_866_000 == sum(GRU.values()) + 8 * MILLION
    assert fits(summary_total(), 103.0)
    assert previous_total() == 19_967_000
    assert fits(previous_total(), 104.2)


@pytest.mark.parametrize(
    ("alternative", "change"),
    [
        ("the gate reads s, y and c", 620_000 - MILLION),
        ("the gate reads s, y, c and d", 620_000),
        ("the gate reads q and c", -MILLION),
        ("no gate", -4 * MILLION),
        ("d does not begin the decoder", -MILLION),
        ("d enters the encoder through a matrix", MILLION),
        ("one gate for each of GRU2's", 8 * MILLION),
        ("d enters the readout", 620_000),
        ("no document GRU", -GRU["document"]),
        ("its own embeddings", TABLE),
    ],
)
def test_the_count_of_summary_refuses(alternative, change):
    assert not fits(summary_total() + change, 103.0), alternative


@pytest.mark.parametrize(
    ("alternative", "change"),
    [
        ("the attention reads c as well", 2 * MILLION),
        ("the attention reads y as well", 620_000),
        ("the attention is RNNSearch's", -3_001_000),
        ("the context enters the readout alone", -6 * MILLION),
        ("the context enters the update alone", -1_240_000),
        ("the encoder is RNNSearch's", -2 * GRU["sentence"]),
        ("its own embeddings", TABLE),
    ],
)
def test_the_count_of_previous_refuses(alternative, change):
    assert not fits(previous_total() + change, 104.2), alternative


def test_the_counts_leave_biases_open():
    # Nor do they tell a gate that reads d from a matrix between d and the encoder.
    assert fits(summary_total() + 1000, 103.0)
    assert fits(previous_total() + 1000, 104.2)
