"""Truncated sampling: the words that are left, and searches that draw from them."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.searches import as_arrays, large_model, prepare

from tfmann import config
from tfmann.decoding import search
from tfmann.decoding.sampling import SamplingOptions, truncated_logits
from tfmann.errors import UsageError

LOGITS = np.log([[0.5, 0.2, 0.15, 0.1, 0.05], [0.05, 0.3, 0.3, 0.3, 0.05]]).astype(np.float32)


def remaining_words(**options):
    """The words of each row that can be drawn."""
    truncated = truncated_logits(tf.constant(LOGITS), SamplingOptions(**options)).numpy()
    return [np.flatnonzero(row > -1e20).tolist() for row in truncated]


@pytest.mark.parametrize(
    "options, words",
    [
        ({}, [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]),
        ({"top_k": 1}, [[0], [1, 2, 3]]),  # equally probable words stay together
        ({"top_k": 3}, [[0, 1, 2], [1, 2, 3]]),
        ({"top_k": 99}, [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]),
        ({"top_p": 0.4}, [[0], [1, 2, 3]]),
        ({"top_p": 0.6}, [[0, 1], [1, 2, 3]]),
        ({"top_p": 0.84}, [[0, 1, 2], [1, 2, 3]]),
        ({"top_p": 1e-6}, [[0], [1, 2, 3]]),
        ({"top_k": 3, "top_p": 0.6}, [[0, 1], [1, 2, 3]]),  # p is of the mass of the three
        ({"temperature": 0.1, "top_p": 0.9}, [[0], [1, 2, 3]]),  # the temperature comes first
    ],
)
def test_the_most_probable_words_are_left(options, words):
    assert remaining_words(**options) == words


def test_words_that_are_left_keep_their_proportions():
    truncated = truncated_logits(tf.constant(LOGITS), SamplingOptions(top_k=2))
    np.testing.assert_allclose(tf.nn.softmax(truncated)[0, :2], [5 / 7, 2 / 7], rtol=1e-5)


def test_one_word_left_is_greedy_search():
    model, batch = large_model("luong"), small_models.batch([(5, 1), (3, 1)])
    prepared, options = prepare(model, batch), search.SearchOptions(6)
    expected = as_arrays(search.greedy(model, prepared, options))
    for sampling in (SamplingOptions(3.0, top_k=1), SamplingOptions(3.0, top_p=1e-6)):
        sampled = search.sample(model, prepared, sampling, tf.constant([1, 2]), options)
        np.testing.assert_array_equal(as_arrays(sampled).ids, expected.ids)
        np.testing.assert_allclose(as_arrays(sampled).scores, expected.scores, rtol=1e-4)


def test_a_search_draws_from_the_words_that_are_left():
    model, single = large_model("luong"), small_models.batch([(5, 1)], 1)
    source, length = np.repeat(single.source, 200, axis=0), np.repeat(single.source_length, 200)
    batch = single._replace(source=source, source_length=length)
    prepared, seed = prepare(model, batch), tf.constant([1, 2])
    sampling = SamplingOptions(5.0, top_k=2)
    sampled = search.sample(model, prepared, sampling, seed, search.SearchOptions(2))
    free = search.sample(model, prepared, SamplingOptions(5.0), seed, search.SearchOptions(2))
    assert len(np.unique(sampled.ids[:, 0, 0])) == 2
    assert len(np.unique(free.ids[:, 0, 0])) > 2


def test_a_mass_of_nothing_is_refused():
    with pytest.raises(UsageError, match="sampling_top_p"):
        config.HParams(sampling_top_p=0.0)
