"""Repeated n-grams against a plain reading of the definition."""

import numpy as np
import pytest

from tfmann.errors import UserError
from tfmann.evaluation.repetition import ORDERS, Repetition, repetition


def shares(hypothesis, *references):
    of_orders = repetition([hypothesis.split()], [[r.split()] for r in references])
    return [(result.repeated.sum(), result.ngrams.sum()) for result in of_orders]


def test_ngrams_beyond_those_of_every_reference_are_counted():
    # 1-grams: b and c occur twice; 2-grams: "b c" does.
    assert shares("a b c b c", "a b c d") == [(2, 5), (1, 4), (0, 3), (0, 2)]
    assert shares("a b c b c", "b c b c") == [(0, 5), (0, 4), (0, 3), (0, 2)]
    assert shares("a b c b c", "b b", "c c c") == [(0, 5), (1, 4), (0, 3), (0, 2)]
    assert shares("x x x", "a b") == [(2, 3), (1, 2), (0, 1), (0, 0)]
    assert shares("a b c d", "w x y z") == [(0, 4), (0, 3), (0, 2), (0, 1)], "other, not repeated"
    assert shares("", "a") == [(0, 0)] * 4


def oracle(order, hypotheses, references):
    """OTEM's two cases (Yang et al. 2018), n-gram by n-gram; of several references the kindest."""
    repeated, total = [], []
    for number, words in enumerate(hypotheses):
        grams = [words[i : i + order] for i in range(len(words) - order + 1)]
        total.append(len(grams))
        repeated.append(0)
        for gram in {tuple(g) for g in grams}:
            count = sum(tuple(g) == gram for g in grams)
            excess = []
            for lines in references:
                reference = lines[number]
                reference_count = sum(
                    tuple(reference[i : i + order]) == gram
                    for i in range(len(reference) - order + 1)
                )
                if reference_count == 0:
                    excess.append(count - 1 if count > 1 else 0)
                else:
                    excess.append(count - reference_count if count > reference_count else 0)
            repeated[-1] += min(excess)
    return repeated, total


@pytest.mark.parametrize("sets", [1, 3])
def test_against_the_oracle(sets):
    stream = np.random.default_rng(sets)

    def lines():
        return [list("abcd"[i] for i in stream.integers(0, 4, n)) for n in (0, 1, 3, 9, 14)]

    for _ in range(10):
        hypotheses, references = lines(), [lines() for _ in range(sets)]
        actual = repetition(hypotheses, references)
        assert [(result.repeated.tolist(), result.ngrams.tolist()) for result in actual] == [
            oracle(order, hypotheses, references) for order in ORDERS
        ]
        assert actual[0].repeated.sum() > 0
        assert [result.share for result in actual] == [
            result.repeated.sum() / result.ngrams.sum() for result in actual
        ]


def test_no_ngrams_no_share():
    assert Repetition(4, np.zeros(2), np.zeros(2)).share == 0.0


def test_other_numbers_of_lines():
    with pytest.raises(UserError, match="1 translations do not match 2 references"):
        repetition([["a"]], [[["a"]], [["a"], ["b"]]])
    with pytest.raises(UserError, match="no references"):
        repetition([["a"]], [])
