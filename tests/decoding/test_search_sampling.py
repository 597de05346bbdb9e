"""Sampling: from a seed, at temperature zero, and in distribution."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.searches import (
    EOS,
    LENGTHS,
    SOME_VARIANTS,
    SOS,
    WITH_ALIGNMENTS,
    Stepper,
    as_arrays,
    assert_same_hypotheses,
    force,
    large_model,
    prepare,
)

from tfmann.decoding import search
from tfmann.decoding.sampling import SamplingOptions


@pytest.mark.parametrize("variant", SOME_VARIANTS)
def test_sampling_at_no_temperature_is_greedy(variant):
    model, batch = large_model(variant), small_models.batch(LENGTHS)
    prepared = prepare(model, batch)
    sampled = search.sample(
        model, prepared, SamplingOptions(1e-4), tf.constant([1, 2]), WITH_ALIGNMENTS
    )
    greedy = as_arrays(search.greedy(model, prepared, WITH_ALIGNMENTS))
    for row in range(len(LENGTHS)):
        assert_same_hypotheses(greedy, row, as_arrays(sampled), row)


def test_sample_follows_from_its_seed():
    model, batch = large_model("luong"), small_models.batch([(5, 1)] * 6)
    prepared = prepare(model, batch)
    first, repeated, of_other_seed = (
        as_arrays(
            search.sample(
                model, prepared, SamplingOptions(3.0), tf.constant([1, seed]), WITH_ALIGNMENTS
            )
        )
        for seed in (2, 2, 3)
    )
    assert np.array_equal(first.ids, repeated.ids) and np.array_equal(first.scores, repeated.scores)
    assert not np.array_equal(first.ids, of_other_seed.ids)
    log_probs, _ = force(model, batch, first)
    np.testing.assert_allclose(first.scores, log_probs, rtol=1e-4)


def test_samples_are_distributed_as_the_model_says():
    model, count, temperature = large_model("luong"), 4000, 4.0
    single = small_models.batch([(5, 1)], 1)
    source, length = np.repeat(single.source, count, axis=0), np.repeat(single.source_length, count)
    batch = single._replace(source=source, source_length=length)
    sampled = search.sample(
        model,
        prepare(model, batch),
        SamplingOptions(temperature),
        tf.constant([3, 1]),
        search.SearchOptions(3),
    )
    stepper = Stepper(model, single, 0)
    for time in (0, 1):  # the first word, and the second after the most frequent first
        ids = sampled.ids.numpy()[:, 0, time]
        if time == 1:
            first = sampled.ids.numpy()[:, 0, 0]
            often = np.bincount(first[first != EOS]).argmax()
            ids = ids[first == often]
            log_probs, *_ = stepper(int(often), (SOS,))
        else:
            log_probs, *_ = stepper(SOS, ())
        expected = np.exp(log_probs / temperature)
        expected[SOS] = 0.0  # is never predicted
        expected *= len(ids) / expected.sum()
        counts = np.bincount(ids, minlength=small_models.TARGET_SIZE)
        common = expected >= 5
        statistic = np.sum((counts - expected)[common] ** 2 / expected[common])
        freedom = common.sum() - 1
        assert freedom >= 5 and statistic < freedom + 4 * np.sqrt(2 * freedom)
        assert counts[~common].sum() < 2 * expected[~common].sum() + 15
