"""Searches with the two cross-sentence baselines."""

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.cross_sentence_models import (
    LENGTHS,
    SYSTEMS,
    histories,
)
from helpers.searches import as_arrays, assert_same_hypotheses, large_model

from tfmann.decoding import search
from tfmann.decoding.beam import BeamOptions
from tfmann.decoding.teacher_forcing import forced_log_probs
from tfmann.models.history_encoder import History


def rows_of(history, rows):
    return History(history.ids[rows], history.length[rows])


def searchable(system):
    return large_model("rnnsearch", 3, cell=system)


def run_search(built, batch, document, width):
    prepared = built.prepare(batch.source, batch.source_length, document=document)
    if width == "greedy":
        return as_arrays(search.greedy(built, prepared, search.SearchOptions(6, True)))
    alpha, beta = (0.8, 0.3) if width > 1 else (0.0, 0.0)  # greedy search has no penalties
    beam = BeamOptions(width, alpha, beta, width)
    return as_arrays(search.beam_search(built, prepared, beam, search.SearchOptions(6, True)))


@pytest.mark.parametrize("system", SYSTEMS)
def test_beam_of_one_is_greedy(system):
    built, batch, history = searchable(system), small_models.batch(LENGTHS), histories()
    beam, greedy = (run_search(built, batch, history, width) for width in (1, "greedy"))
    np.testing.assert_array_equal(beam.lengths, greedy.lengths)
    for row, length in enumerate(beam.lengths[:, 0]):
        np.testing.assert_array_equal(beam.ids[row, 0, :length], greedy.ids[row, 0, :length])
    assert len(set(beam.lengths[:, 0])) > 1


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_translation_depends_on_the_rest_of_its_batch(system):
    built, batch, history = searchable(system), small_models.batch(LENGTHS), histories()
    together = run_search(built, batch, history, 3)
    for row, length in enumerate(batch.source_length):
        sentence = batch._replace(
            source=batch.source[[row], :length], source_length=batch.source_length[[row]]
        )
        result = run_search(built, sentence, rows_of(history, [row]), 3)
        assert_same_hypotheses(together, row, result, 0)
    without = run_search(built, batch, (), 3)
    assert_same_hypotheses(together, 0, without, 0)
    changed = np.abs(without.scores - together.scores).max(axis=1)
    assert np.all(changed[1:] > 1e-3), "the history of each hypothesis is its sentence's"


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_hypothesis_is_what_forced_decoding_of_it_says(system):
    built, batch, history = searchable(system), small_models.batch(LENGTHS), histories()
    prepared = built.prepare(batch.source, batch.source_length, document=history)
    beam = BeamOptions(3, num_best=3)
    result = as_arrays(search.beam_search(built, prepared, beam, search.SearchOptions(6)))
    for rank in range(3):
        ids = result.ids[:, rank]
        read = np.concatenate([np.full([len(ids), 1], 1), ids[:, :-1]], axis=1)
        log_probs, *_ = forced_log_probs(
            built, prepared, tf.constant(read, tf.int32), tf.constant(ids),
            tf.constant(result.lengths[:, rank], tf.int32),
        )  # fmt: skip
        np.testing.assert_allclose(result.scores[:, rank], log_probs.numpy().sum(1), rtol=1e-4)
