"""Statistics of a cache, by hand."""

import itertools

import numpy as np
import pytest
from helpers.traces import cache_trace, head_trace

from tfmann.decoding.translation import Slots
from tfmann.evaluation.cache_statistics import (
    cache_statistics,
    frequent_words,
    phrases,
    rank_sums,
    recent_half,
    word_kind,
)

TOKENS = ["new", "felt", ",", "</s>"]
# by recency: new (0), the (3), felt (7); two slots are empty
SLOTS = Slots(["felt", "", "new", "the", ""], np.array([7, -1, 0, 3, -1]))
BY_RECENCY = np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6], [0.6, 0.2, 0.2]])
GATES = np.array([0.1, 0.2, 0.4, 0.8])


def trace():
    example = cache_trace(SLOTS, TOKENS)
    match = np.zeros([4, 5])
    match[:, [2, 3, 0]] = BY_RECENCY
    example._arrays.update(cache_match=match, cache_gate=GATES[:, None])
    return example


def values(of_trace, frequent=frozenset()):
    return {key.name: value for key, value in cache_statistics(of_trace, frequent).items()}


def test_matches_by_hand():
    statistics = values(trace())
    assert statistics["recent_half"] == pytest.approx(
        np.mean(BY_RECENCY[:, 0] + BY_RECENCY[:, 1] / 2)
    )
    assert statistics["exact"] == pytest.approx(
        (0.5 + 0.8) / 4
    )  # "new" and "felt" are in the cache
    assert statistics["fuzzy"] == pytest.approx(1 - statistics["exact"])
    assert statistics["exact_by_chance"] == pytest.approx(2 / 3 / 4)
    assert statistics["exact_gain"] == pytest.approx(
        statistics["exact"] - statistics["exact_by_chance"]
    )
    assert statistics["word_in_cache"] == 0.5
    assert statistics["exact_if_in_cache"] == pytest.approx((0.5 + 0.8) / 2)
    assert statistics["top_exact_if_in_cache"] == 1.0
    assert statistics["greatest_weight"] == pytest.approx(np.mean([0.5, 0.8, 0.6, 0.6]))


def test_entropy_is_a_share_of_that_of_matching_all_slots_alike():
    shares = [-(match * np.log(match)).sum() / np.log(3) for match in BY_RECENCY]
    assert values(trace())["entropy"] == pytest.approx(np.mean(shares))


@pytest.mark.parametrize("filled", [1, 2])
def test_entropy_and_phrases_are_of_two_slots_or_more(filled):
    measured = values(cache_trace(Slots(list("ab")[:filled], np.arange(filled)), ["a", "b"]))
    assert ("entropy" in measured, "phrase" in measured) == (filled == 2, filled == 2)


def test_matches_are_shares_of_what_is_matched_at_all():
    halved = trace()
    halved._arrays["cache_match"] /= 2
    assert values(halved) == pytest.approx(values(trace()))


def test_gates_by_hand():
    statistics = values(trace(), frozenset(["felt"]))
    assert statistics["gate"] == pytest.approx(GATES.mean())
    assert (statistics["gate_frequent"], statistics["gate_other"]) == pytest.approx((0.2, 0.1))
    assert (statistics["gate_punctuation"], statistics["gate_end"]) == pytest.approx((0.4, 0.8))
    assert (statistics["gate_in_cache"], statistics["gate_not_in_cache"]) == pytest.approx(
        (0.15, 0.6)
    )
    assert "gate_frequent" not in values(trace())


def test_a_phrase_is_a_walk_through_what_was_written_in_a_row():
    slots = Slots(list("abcd"), np.array([3, 2, 1, 0]))
    example = cache_trace(slots, ["a", "b", "c", "x"])
    example._arrays["cache_match"] = np.eye(4)[[0, 1, 2, 0]]
    assert values(example)["phrase"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("seed", range(3))
def test_phrases_by_chance_are_the_mean_over_all_orders(seed):
    """Of five steps: all 120 orders, each walked step by step."""
    ages = np.random.default_rng(seed).integers(0, 4, 5)
    shares = []
    for order in itertools.permutations(ages):
        hits = sum(after == before - 1 for before, after in zip(order, order[1:]))
        shares.append(hits / 4)
    measured = phrases(ages)
    assert measured["phrase_by_chance"] == pytest.approx(np.mean(shares))
    hits = sum(ages[t + 1] == ages[t] - 1 for t in range(4))
    assert measured["phrase"] == pytest.approx(hits / 4)
    assert measured["phrase_gain"] == pytest.approx(hits / 4 - np.mean(shares))
    assert phrases(ages[:1]) == {}


def test_the_gain_of_words_by_whether_the_cache_has_them():
    gains = np.array([0.5, 0.25, -0.5, 1.0])  # of new, felt: in the cache; of "," and </s>: not
    measured = {k.name: v for k, v in cache_statistics(trace(), gains=gains).items()}
    assert measured["word_gain"] == pytest.approx(1.25 / 4)
    assert measured["word_gain_in_cache"] == pytest.approx(0.375)
    assert measured["word_gain_not_in_cache"] == pytest.approx(0.25)
    assert "word_gain" not in values(trace())
    absent = cache_trace(SLOTS, ["x", "</s>"])
    names = {key.name for key in cache_statistics(absent, gains=gains[:2])}
    assert "word_gain_not_in_cache" in names and "word_gain_in_cache" not in names


def test_matching_all_slots_alike_gives_the_recent_half_a_half():
    for count in (1, 2, 5, 6):
        assert recent_half(np.full([3, count], 1 / count)) == pytest.approx(0.5)
    assert recent_half(np.array([[0.75, 0.25]])) == 0.75


def test_what_has_no_cache_or_an_empty_one_has_no_statistics():
    empty = cache_trace(Slots(["", ""], np.array([-1, -1])), TOKENS)
    assert cache_statistics(empty) == {}
    assert cache_statistics(head_trace()) == {}
    with pytest.raises(ValueError, match="no cache"):
        rank_sums(head_trace())
    nothing = trace()  # as `cache_matching=nothing` leaves it
    for steps in ([2], slice(None)):
        nothing._arrays["cache_match"][steps] = 0.0
        statistics = values(nothing)
        assert not {"exact", "phrase"} & statistics.keys()
        assert statistics["gate"] == pytest.approx(GATES.mean())


def test_sums_by_rank():
    sums = rank_sums(trace())
    np.testing.assert_allclose(sums[0], [*BY_RECENCY.sum(axis=0), 0, 0])
    np.testing.assert_array_equal(sums[1], [4, 4, 4, 0, 0])


def test_kinds_of_words():
    assert [word_kind(word) for word in ("</s>", "。", "it's", "3", "▁")] == [
        "end", "punctuation", "other", "other", "punctuation"
    ]  # fmt: skip
    assert frequent_words([["b", "a", ",", ","], ["a", "b", "c", ","]], 2) == {"a", "b"}
    assert frequent_words([["b", "a"]], 1) == {"a"}  # of equally frequent ones
