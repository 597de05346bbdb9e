"""Tests of the oracle of the continuous cache, its reads and writes, with values known by hand."""

from __future__ import annotations

import math
from collections import OrderedDict, deque

import numpy as np
import pytest
from oracles import cache

# --- what the tests are made of ----------------------------------------------------------


def write_triples(slots, triples, overwrite=True):
    """A cache, keys and values one number wide, after (key, value, word) triples."""
    contexts, states, words = zip(*triples)
    return cache.write_sentence(
        cache.empty(slots, 1, 1), np.c_[list(contexts)], np.c_[list(states)], words, overwrite
    )


def random_cache(rng, slots, writes, width=3, vocabulary=9, overwrite=True):
    contexts, states = rng.normal(size=(2, writes, width))
    words = rng.integers(vocabulary, size=writes)
    start = cache.empty(slots, width, width)
    return cache.write_sentence(start, contexts, states, words, overwrite)


# --- reading -----------------------------------------------------------------------------


def test_match_by_hand():
    entries = write_triples(3, [(1.0, 0.0, 7), (2.0, 0.0, 8)])
    # Scores log(3) and 2 log(3): 3 to 9. The empty slot has no part, though its score is 0.
    np.testing.assert_allclose(cache.match(entries, [math.log(3.0)]), [0.25, 0.75, 0.0])
    np.testing.assert_allclose(cache.match(entries, [-math.log(3.0)]), [0.75, 0.25, 0.0])


def test_match_has_no_scale_and_does_not_overflow():
    entries = cache.empty(2, 4, 1)
    for key, word in (([1.0] * 4, 3), ([0.0] * 4, 4)):
        entries = cache.write(entries, np.array(key), np.zeros(1), word)
    np.testing.assert_allclose(
        cache.match(entries, [0.5] * 4), np.array([math.e**2, 1]) / (math.e**2 + 1)
    )
    np.testing.assert_array_equal(cache.match(entries, [1e4] * 4), [1.0, 0.0])
    np.testing.assert_array_equal(cache.match(entries, [-1e4] * 4), [0.0, 1.0])


@pytest.mark.parametrize("filled", [1, 4, 7])
def test_empty_slots_get_exactly_nothing(filled):
    rng = np.random.default_rng(filled)
    entries = random_cache(rng, 7, filled, overwrite=False)
    for context in -5.0 * rng.normal(size=(20, 3)):
        probabilities = cache.match(entries, context)
        assert np.all(probabilities[:filled] > 0.0)
        assert np.all(probabilities[filled:] == 0.0)
        assert probabilities.sum() == pytest.approx(1.0)


def test_retrieve_by_hand():
    entries = write_triples(3, [(1.0, 10.0, 7), (2.0, 20.0, 8)])
    np.testing.assert_allclose(cache.retrieve(entries, [0.25, 0.75, 0.0]), [17.5])


def test_gate_and_combine_by_hand():
    weights = {
        "gate_state_kernel": np.array([[1.0, 0.0], [0.0, 2.0]]),
        "gate_context_kernel": np.array([[0.5, 0.0]]),
        "gate_retrieved_kernel": np.array([[0.0, 1.0], [0.0, 0.0]]),
    }
    state, context, retrieved = np.array([1.0, 2.0]), np.array([4.0]), np.array([-3.0, 5.0])
    entries = cache.write(cache.empty(2, 1, 2), context, retrieved, 3)
    opening = cache.gate(weights, entries, state, context, retrieved)
    np.testing.assert_allclose(opening, [1 / (1 + math.exp(-3.0)), 1 / (1 + math.exp(-1.0))])
    nothing = cache.gate(weights, cache.empty(2, 1, 2), state, context, np.zeros(2))
    np.testing.assert_array_equal(nothing, [0.0, 0.0])
    combined = cache.combine(np.array([0.25, 1.0]), state, retrieved)
    np.testing.assert_allclose(combined, [0.75 * 1.0 + 0.25 * -3.0, 5.0])


def test_word_probabilities_by_hand():
    # Word 2 has two slots, which only a cache without overwriting can hold; the last is empty.
    entries = write_triples(4, [(0.0, 0.0, 2), (0.0, 0.0, 5), (0.0, 0.0, 2)], overwrite=False)
    of_words = cache.word_probabilities(entries, [0.5, 0.25, 0.125, 0.125], 6)
    np.testing.assert_array_equal(of_words, [0, 0, 0.625, 0, 0, 0.25])


@pytest.mark.parametrize("overwrite", [True, False])
def test_the_order_of_the_slots_does_not_matter_to_a_read(overwrite):
    rng = np.random.default_rng(3)
    entries = random_cache(rng, 8, 6, overwrite=overwrite)
    for context in rng.normal(size=(10, 3)):
        order = rng.permutation(8)
        moved = cache.Cache(*(part[order] for part in entries))
        probabilities = cache.match(entries, context)
        np.testing.assert_allclose(cache.match(moved, context), probabilities[order])
        retrieved = cache.retrieve(entries, probabilities)
        np.testing.assert_allclose(cache.retrieve(moved, probabilities[order]), retrieved)
        np.testing.assert_allclose(
            cache.word_probabilities(moved, probabilities[order], 9),
            cache.word_probabilities(entries, probabilities, 9),
        )


# --- writing -----------------------------------------------------------------------------


def test_writes_by_hand():
    entries = write_triples(3, [(4.0, 40.0, 7), (1.0, 2.0, 0), (2.0, 20.0, 7), (8.0, 80.0, 7)])
    # Word 7: (4 + 2) / 2 = 3, (3 + 8) / 2 = 5.5; word 0 keeps its one write; one is empty.
    np.testing.assert_array_equal(entries.keys, [[5.5], [1.0], [0.0]])
    np.testing.assert_array_equal(entries.values, [[55.0], [2.0], [0.0]])
    np.testing.assert_array_equal(entries.words, [7, 0, cache.EMPTY])
    np.testing.assert_array_equal(entries.counts, [3, 1, 0])
    np.testing.assert_array_equal(entries.ages, [0, 2, 0])


def test_the_least_recently_written_slot_makes_room():
    entries = write_triples(3, [(1.0, 0.0, 11), (2.0, 0.0, 12), (3.0, 0.0, 13)])
    entries = cache.write(entries, [5.0], [0.0], 11)  # an update is a use ...
    cache.match(entries, [9.0])  # ... and a read is none, however well word 12 matches
    entries = cache.write(entries, [4.0], [0.0], 14)
    np.testing.assert_array_equal(entries.words, [11, 14, 13])
    np.testing.assert_array_equal(entries.keys, [[3.0], [4.0], [3.0]])
    entries = cache.write(entries, [6.0], [0.0], 12)  # which restarts: 13 is the oldest now
    np.testing.assert_array_equal(entries.words, [11, 14, 12])
    np.testing.assert_array_equal(entries.keys, [[3.0], [4.0], [6.0]])
    np.testing.assert_array_equal(entries.counts, [2, 1, 1])


def test_without_overwriting_the_oldest_write_makes_room():
    entries = write_triples(2, [(1.0, 0.0, 5), (2.0, 0.0, 5), (3.0, 0.0, 5)], overwrite=False)
    np.testing.assert_array_equal(entries.words, [5, 5])
    np.testing.assert_array_equal(entries.keys, [[3.0], [2.0]])
    np.testing.assert_array_equal(entries.counts, [1, 1])


def test_a_write_leaves_the_cache_before_it_alone():
    before = write_triples(2, [(1.0, 10.0, 5)])
    copy = [part.copy() for part in before]
    cache.write(before, [3.0], [30.0], 5)
    cache.write(before, [3.0], [30.0], 6)
    for part, copied in zip(before, copy):
        np.testing.assert_array_equal(part, copied)


def test_many_writes_of_a_word_decay_by_halves():
    rng = np.random.default_rng(5)
    contexts, states = rng.normal(size=(2, 6, 3))
    entries = cache.write_sentence(cache.empty(2, 3, 3), contexts, states, [4] * 6)
    shares = np.array([1 / 32, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2])
    np.testing.assert_allclose(entries.keys[0], shares @ contexts)
    np.testing.assert_allclose(entries.values[0], shares @ states)
    assert list(entries.counts) == [6, 0]


def contents(entries):
    """The filled slots by age, the last written first: word, count, key and value."""
    filled = [slot for slot in range(len(entries.counts)) if entries.counts[slot]]
    filled.sort(key=lambda slot: entries.ages[slot])
    return [
        (entries.words[slot], entries.counts[slot], *entries.keys[slot], *entries.values[slot])
        for slot in filled
    ]


@pytest.mark.parametrize("slots", [1, 2, 5, 25])
def test_long_sequences_of_writes_against_an_ordered_dictionary(slots):
    rng = np.random.default_rng(slots)
    entries, expected = cache.empty(slots, 1, 1), OrderedDict()
    for _ in range(400):
        word, key, value = int(rng.zipf(1.3)) % 60, rng.normal(), rng.normal()
        if word in expected:
            count, old_key, old_value = expected.pop(word)
            expected[word] = count + 1, (old_key + key) / 2, (old_value + value) / 2
        else:
            if len(expected) == slots:
                expected.popitem(last=False)
            expected[word] = 1, key, value
        entries = cache.write(entries, [key], [value], word)
        assert len(entries.counts) == slots
        assert contents(entries) == [(w, *expected[w]) for w in reversed(expected)]
        for cached in expected:  # every word is found until it is evicted, in one slot
            assert entries.words[cache.slot_of(entries, cached)] == cached
            assert np.sum(entries.words == cached) == 1
        assert all(cache.slot_of(entries, w) is None for w in range(60) if w not in expected)
    assert len(expected) == slots


@pytest.mark.parametrize("slots", [1, 4, 25])
def test_long_sequences_without_overwriting_against_a_queue(slots):
    rng = np.random.default_rng(slots)
    entries, expected = cache.empty(slots, 1, 1), deque(maxlen=slots)
    for _ in range(200):
        word, key, value = int(rng.integers(6)), rng.normal(), rng.normal()
        expected.append((word, 1, key, value))
        entries = cache.write(entries, [key], [value], word, overwrite=False)
        assert contents(entries) == list(reversed(expected))


def test_no_slots_hold_nothing():
    entries = cache.write(cache.empty(0, 3, 2), np.ones(3), np.ones(2), 4)
    assert [part.shape for part in entries] == [(0, 3), (0, 2), (0,), (0,), (0,)]
    assert cache.match(entries, np.ones(3)).shape == (0,)
    np.testing.assert_array_equal(cache.retrieve(entries, np.zeros(0)), np.zeros(2))
