"""Minimum lengths and forbidden repetition of n-grams, in every search."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.searches import LENGTHS, SIGNATURE, Stepper, as_arrays, check, large_model, prepare
from hypothesis import example, given
from hypothesis import strategies as st
from oracles import beam as oracle

from tfmann.decoding import search
from tfmann.decoding.beam import BeamOptions
from tfmann.decoding.restrictions import Restrictions, add_words, forbid, no_words
from tfmann.decoding.sampling import SamplingOptions

EOS, LIMIT = 2, 9
LIMITS = [(4, 0), (0, 1), (0, 2), (3, 2), (0, 3), (20, 0)]  # (least length, n)
CELLS = ["luong", "ntm-heads"]


def run_beam(model, batch, width, restrictions, alpha=0.0):
    beam = BeamOptions(width, alpha, 0.0, width)
    options = search.SearchOptions(LIMIT, True, restrictions=Restrictions(*restrictions))
    return as_arrays(search.beam_search(model, prepare(model, batch), beam, options))


@given(st.lists(st.integers(3, 6), max_size=8), st.integers(0, 4), st.integers(0, 9))
@example([3, 3], 2, 0)  # the bigrams overlap
def test_forbidden_words_are_those_of_the_oracle(prefix, ngram, least):
    restrictions = Restrictions(least, ngram)
    words = no_words([1], tf.constant([9]), restrictions)
    for time, word in enumerate(prefix):
        words = add_words(words, tf.constant([word]), tf.constant(time))
    scores = forbid(tf.zeros([1, 7]), words, tf.constant(len(prefix)), restrictions)
    allowed = [word for word in range(7) if scores[0, word] == 0]
    assert allowed == oracle.allowed(prefix, 7, limit=99, min_length=least, ngram=ngram)
    assert all(scores[0, word] == -np.inf for word in set(range(7)) - set(allowed))


@pytest.mark.quick("limits1-luong", "limits3-luong", "limits5-luong")
@pytest.mark.parametrize("variant", CELLS)
@pytest.mark.parametrize("limits", LIMITS)
def test_beam_search_equals_the_oracle(variant, limits):
    bound = 0
    for seed, width, alpha in ((1, 3, 0.0), (2, 4, 0.8)):
        model, batch = large_model(variant, seed), small_models.batch(LENGTHS, seed)
        actual = run_beam(model, batch, width, limits, alpha)
        for row, length in enumerate(batch.source_length):
            stepper = Stepper(model, batch, row)
            expected = oracle.beam_search(stepper, (), width, LIMIT, alpha, 0.0, *limits)
            check(actual, row, expected, width, length)
            free = oracle.beam_search(stepper, (), width, LIMIT, alpha)
            bound += [h.ids for h in free] != [h.ids for h in expected]
    assert bound, "nothing was forbidden that would have been chosen"


@pytest.mark.quick("limits1-luong", "limits3-luong", "limits5-luong")
@pytest.mark.parametrize("variant", CELLS)
@pytest.mark.parametrize("limits", LIMITS)
def test_greedy_search_equals_the_oracle(variant, limits):
    model, batch = large_model(variant, 11), small_models.batch(LENGTHS, 11)
    options = search.SearchOptions(LIMIT, True, restrictions=Restrictions(*limits))
    actual = as_arrays(search.greedy(model, prepare(model, batch), options))
    for row, length in enumerate(batch.source_length):
        expected = [oracle.greedy(Stepper(model, batch, row), (), LIMIT, 0.0, *limits)]
        check(actual, row, expected, 1, length)


@pytest.mark.parametrize("limits", [(2, 0), (0, 1), (8, 1)])
def test_fewer_words_are_allowed_than_the_beam_takes(limits):
    """With four words in all; where none is left, a translation ends before its least length."""
    model, batch = large_model("luong", 9, target_size=4), small_models.batch(LENGTHS, 9)
    options = search.SearchOptions(LIMIT, True, restrictions=Restrictions(*limits))
    prepared, seed = prepare(model, batch), tf.constant([1, 2])
    beam = run_beam(model, batch, 10, limits)
    greedy = as_arrays(search.greedy(model, prepared, options))
    coldest = as_arrays(search.sample(model, prepared, SamplingOptions(1e-4), seed, options))
    for row, length in enumerate(batch.source_length):
        stepper = Stepper(model, batch, row)
        check(beam, row, oracle.beam_search(stepper, (), 10, LIMIT, 0.0, 0.0, *limits), 10, length)
        expected = [oracle.greedy(stepper, (), LIMIT, 0.0, *limits)]
        for hypotheses in (greedy, coldest):
            check(hypotheses, row, expected, 1, length)


def test_the_limit_by_the_source_has_room_for_the_least_length():
    model, batch, least = large_model("luong", 4), small_models.batch(LENGTHS, 4), 20
    options = search.SearchOptions(0, True, restrictions=Restrictions(least))
    prepared, seed = prepare(model, batch), tf.constant([1, 2])
    beam = as_arrays(search.beam_search(model, prepared, BeamOptions(2), options))
    greedy = as_arrays(search.greedy(model, prepared, options))
    coldest = as_arrays(search.sample(model, prepared, SamplingOptions(1e-4), seed, options))
    limits = [max(2 * int(length) + 10, least + 1) for length in batch.source_length]
    assert len(set(limits)) > 1
    for row, (length, limit) in enumerate(zip(batch.source_length, limits)):
        stepper = Stepper(model, batch, row)
        expected = oracle.beam_search(stepper, (), 2, limit, min_length=least)
        check(beam, row, expected, 1, length)
        expected = [oracle.greedy(stepper, (), limit, min_length=least)]
        for hypotheses in (greedy, coldest):
            check(hypotheses, row, expected, 1, length)


def test_a_sample_keeps_to_them():
    model, batch = large_model("luong", 4), small_models.batch([(5, 1)] * 40, 4)
    options = search.SearchOptions(max_length=12)
    constrained = options._replace(restrictions=Restrictions(5, 2))
    prepared, seed = prepare(model, batch), tf.constant([1, 2])
    sampled = as_arrays(search.sample(model, prepared, SamplingOptions(1.5), seed, constrained))
    free = as_arrays(search.sample(model, prepared, SamplingOptions(1.5), seed, options))
    assert free.lengths.min() < 6 <= sampled.lengths.min()
    for ids, length in zip(sampled.ids[:, 0], sampled.lengths[:, 0]):
        pairs = list(zip(ids[: length - 2], ids[1 : length - 1]))
        assert len(set(pairs)) == len(pairs)


def test_a_compiled_search_in_stretches_equals_the_eager_one():
    model, batch = large_model("luong", 4), small_models.batch(LENGTHS, 4)
    beam = BeamOptions(3, 0.8, 0.3, 3)
    options = search.SearchOptions(with_alignments=True, restrictions=Restrictions(2, 2))

    def run(source, length):
        return search.beam_search(model, model.prepare(source, length), beam, options)

    compiled = as_arrays(
        tf.function(run, input_signature=SIGNATURE, autograph=False)(
            batch.source, batch.source_length
        )
    )
    eager = as_arrays(run(tf.constant(batch.source), tf.constant(batch.source_length)))
    assert len(set(eager.lengths[:, 0])) > 1, "all end together"
    np.testing.assert_array_equal(compiled.ids, eager.ids)
    np.testing.assert_allclose(compiled.scores, eager.scores, rtol=1e-4)
