"""The searches against slow independent ones, and two roads to each result."""

import itertools
from collections import Counter
from functools import partial

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.searches import (
    EOS,
    LENGTHS,
    LIMIT,
    SIGNATURE,
    SOME_VARIANTS,
    SOS,
    WITH_ALIGNMENTS,
    Stepper,
    as_arrays,
    assert_same_hypotheses,
    check,
    force,
    large_model,
    prepare,
    run_beam,
)
from hypothesis import given
from hypothesis import strategies as st
from oracles import beam as oracle

from tfmann.decoding import search
from tfmann.decoding.beam import Beam, BeamOptions
from tfmann.decoding.beam_scoring import certain
from tfmann.decoding.next_words import BLOCK, top_words
from tfmann.decoding.sampling import SamplingOptions

PENALTIES = [(0.0, 0.0), (0.8, 0.0), (0.0, 0.3), (0.8, 0.3)]  # (alpha, beta)


@pytest.mark.quick("0-luong", "0-luong-cosine", "0-ntm-heads")
@pytest.mark.parametrize("variant", list(small_models.VARIANTS))
@pytest.mark.parametrize("turn", [0, 1])
def test_beam_search_equals_the_oracle(turn, variant):
    number, lengths = list(small_models.VARIANTS).index(variant), set()
    width, penalties = 2 + (number + turn) % 4, PENALTIES[(number + turn) % 2 :: 2]
    seeds = itertools.count(number + 100 * turn, step=1000)
    while len(lengths) < 2:  # hypotheses of one length show nothing
        seed = next(seeds)
        model, batch = large_model(variant, seed), small_models.batch(LENGTHS, seed)
        steppers = [Stepper(model, batch, row) for row in range(len(LENGTHS))]
        expected = [
            [oracle.beam_search(step, (), width, LIMIT, alpha, beta) for step in steppers]
            for alpha, beta in penalties
        ]
        lengths = {len(hypothesis.ids) for row in expected[0] for hypothesis in row}
    bests = (1, width) if number % 4 < 2 else (width, 1)  # a search for fewer stops sooner
    for best, of_rows, (alpha, beta) in zip(bests, expected, penalties):
        actual = run_beam(model, batch, width, alpha, beta, best)
        assert actual.ids.shape[:2] == (len(LENGTHS), best)
        for row in range(len(LENGTHS)):
            check(actual, row, of_rows[row], best, batch.source_length[row])


@pytest.mark.quick(
    "0.8-luong",
    "0.8-ntm-heads",
    "0.8-kvmematt-3",
    "0.8-coverage-neural",
    "0.8-memdec",
    "0.8-transformer-rewriting",
)
@pytest.mark.parametrize("variant", list(small_models.VARIANTS))
@pytest.mark.parametrize("alpha", [0.0, 0.8])
def test_hypothesis_is_what_forced_decoding_of_it_says(variant, alpha):
    model, batch = large_model(variant), small_models.batch(LENGTHS, 7)
    hypotheses = run_beam(model, batch, 3, alpha, best=3)
    log_probs, alignments = force(model, batch, hypotheses)
    penalty = ((5.0 + hypotheses.lengths) / 6.0) ** alpha
    np.testing.assert_allclose(hypotheses.scores * penalty, log_probs, rtol=1e-4, atol=1e-4)
    assert np.all(np.diff(hypotheses.scores, axis=1) <= 0), "from best to worst"
    for row, rank in np.ndindex(*hypotheses.lengths.shape):
        length = hypotheses.lengths[row, rank]
        np.testing.assert_allclose(
            hypotheses.alignments[row, rank, :length], alignments[row, rank, :length], atol=1e-4
        )


@pytest.mark.quick("luong", "rnnsearch", "key-value-iw", "past-future-gru_o", "transformer-window")
@pytest.mark.parametrize("variant", list(small_models.VARIANTS))
def test_beam_of_one_is_greedy_and_both_are_the_oracle(variant):
    model, batch = large_model(variant, 11), small_models.batch(LENGTHS, 11)
    beam = run_beam(model, batch, 1)
    greedy = as_arrays(search.greedy(model, prepare(model, batch), WITH_ALIGNMENTS))
    for row in range(len(LENGTHS)):
        expected = [oracle.greedy(Stepper(model, batch, row), (), LIMIT)]
        check(beam, row, expected, 1, batch.source_length[row])
        check(greedy, row, expected, 1, batch.source_length[row])


def test_coverage_counts_a_position_whose_attention_is_exactly_nothing():
    model, batch = large_model("ntm"), small_models.batch(LENGTHS, 2)
    bias = model.cell.head_bias.numpy()
    bias[-6:] = [40.0, 40.0, -40.0, 40.0, -40.0, 40.0]  # sure of the content, sharp, no shift
    model.cell.head_bias.assign(bias)
    hypotheses, unseen = run_beam(model, batch, 3, beta=0.3, best=3), 0
    for row, length in enumerate(batch.source_length):
        stepper = Stepper(model, batch, row)
        expected = oracle.beam_search(stepper, (), 3, LIMIT, beta=0.3)
        check(hypotheses, row, expected, 3, length)
        unseen += np.sum(expected[0].alignments.sum(axis=0) == 0.0)
    assert unseen, "every position was looked at a little"


def compiled_beam_search(model, limit):
    """A search for the three best as a function of source and length, traced once."""
    options = search.SearchOptions(limit, with_alignments=True)

    @tf.function(input_signature=SIGNATURE, autograph=False)
    def run(source, length):
        beam = BeamOptions(3, 0.8, 0.3, num_best=3)
        return search.beam_search(model, model.prepare(source, length), beam, options)

    return run


@pytest.mark.quick("luong")
@pytest.mark.parametrize("variant", SOME_VARIANTS)
def test_a_compiled_search_equals_the_eager_one_in_any_batch(variant, rewritten_graphs):
    """With batches of any size, and with one whose size the graph knows."""
    model, batch = large_model(variant, 3), small_models.batch(LENGTHS, 3)
    compiled = compiled_beam_search(model, 0)  # each sentence has its own limit

    def run(rows, padding=0, function=compiled):
        source = np.pad(batch.source[rows], [(0, 0), (0, padding)], constant_values=5)
        return as_arrays(function(tf.constant(source), tf.constant(batch.source_length[rows])))

    together = run([0, 1, 2, 3])
    assert together.lengths[3].max() > together.lengths[1].max(), "all end together"
    eager = run([0, 1, 2, 3], function=compiled.python_function)
    reordered = run([3, 1, 1])
    for row, other_row in ((3, 0), (1, 1), (1, 2)):
        assert_same_hypotheses(together, row, reordered, other_row)
    padded = run([0, 1, 2, 3], padding=20)
    for row in range(len(LENGTHS)):
        width = int(batch.source_length[row])
        alone = compiled(batch.source[row : row + 1, :width], batch.source_length[row : row + 1])
        for other, other_row in ((eager, row), (as_arrays(alone), 0), (padded, row)):
            assert_same_hypotheses(together, row, other, other_row)
    of_known_size = run([1, 2], function=tf.function(compiled.python_function, autograph=False))
    for row in (1, 2):
        assert_same_hypotheses(together, row, of_known_size, row - 1)


@pytest.mark.quick("0.0-0.0-rnnsearch", "0.8-0.3-luong")
@pytest.mark.parametrize("variant", SOME_VARIANTS)
@pytest.mark.parametrize("alpha,beta", PENALTIES)
def test_wide_beam_finds_the_best_of_all_translations(variant, alpha, beta):
    model, batch = large_model(variant, 9, target_size=5), small_models.batch([(4, 1), (0, 1)], 9)
    count = 1 + 3 + 9 + 27  # translations of at most 4 ids over 5, </s> included and no <s>
    actual = run_beam(model, batch, count, alpha, beta, best=count, limit=4)
    for row, length in enumerate(batch.source_length):
        expected = oracle.exhaustive(Stepper(model, batch, row), (), 5, 4, alpha, beta)
        assert len(expected) == count
        check(actual, row, expected, count, length)


@pytest.mark.quick("True")
@pytest.mark.parametrize("bias", [False, True])
def test_large_vocabulary_is_searched_by_blocks(bias):
    size = 12 * BLOCK - 5  # no multiple: the last block is filled up
    model = large_model("rnnsearch", target_size=size, projection_bias=bias)
    batch = small_models.batch(LENGTHS[:2], 8)
    expected = [
        oracle.beam_search(Stepper(model, batch, row), (), 4, LIMIT, 0.8, 0.0) for row in range(2)
    ]
    actual = run_beam(model, batch, 4, 0.8, best=4)
    for row in range(2):
        check(actual, row, expected[row], 4, batch.source_length[row])


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 20), st.integers(1, 1000))
def test_top_words_are_the_first_of_the_greatest(seed, count, blocks, kinds):
    stream = np.random.default_rng(seed)
    values = stream.normal(size=kinds)  # each drawn several times
    values[0] = -np.inf
    logits = stream.choice(values, size=[3, blocks * BLOCK]).astype(np.float32)
    actual, ids = top_words(tf.constant(logits), count)
    expected = np.argsort(-logits, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_array_equal(actual, np.take_along_axis(logits, expected, axis=1))


@pytest.mark.quick("300.0")
@pytest.mark.parametrize("above", [0.0, 300.0])
def test_no_search_says_the_start_of_a_sentence(above):
    """However probable it is: a text that contains it is read with another word and score."""
    model = large_model("luong", projection_bias=True)
    model.projection_bias.assign(tf.one_hot(SOS, small_models.TARGET_SIZE) * above)
    batch = small_models.batch(LENGTHS, 3)
    prepared, seed = prepare(model, batch), tf.constant([1, 2])
    searches = [
        run_beam(model, batch, 4, best=4),
        as_arrays(search.greedy(model, prepared, WITH_ALIGNMENTS)),
        as_arrays(search.sample(model, prepared, SamplingOptions(1.0), seed, WITH_ALIGNMENTS)),
    ]
    for hypotheses in searches:
        assert not np.any(hypotheses.ids == SOS)
        log_probs, _ = force(model, batch, hypotheses)
        np.testing.assert_allclose(hypotheses.scores, log_probs, rtol=1e-4, atol=1e-4)
        assert above == 0.0 or np.all(hypotheses.scores < -100)


@pytest.mark.quick("0.3")
@pytest.mark.parametrize("beta", [0.0, 0.3])
def test_vocabulary_smaller_than_the_beam(beta):
    model, batch = large_model("luong", 9, target_size=4), small_models.batch(LENGTHS, 9)
    for limit in (1, 3):
        actual = run_beam(model, batch, 6, 0.8, beta, best=6, limit=limit)
        assert not np.any(np.isnan(actual.scores))
        for row, length in enumerate(batch.source_length):
            expected = oracle.beam_search(Stepper(model, batch, row), (), 6, limit, 0.8, beta)
            check(actual, row, expected, 6, length)
            missing = actual.scores[row, len(expected) :]
            assert np.all(np.isneginf(missing)), "what does not exist is impossible"


@pytest.mark.parametrize(
    "live,best,expected",
    [
        (-2.5, 1, False),  # behind now, but -2.5 / ((5 + 20) / 6) = -0.6 is within its reach
        (-8.3, 1, False),  # -1.99
        (-8.4, 1, True),  # -2.02
        (-8.4, 2, False),  # the second best, -3, can still be overtaken
        (-12.6, 2, True),  # -3.02
        (-np.inf, 2, True),
        (-np.inf, 3, False),  # there is no third
    ],
)
def test_search_stops_only_when_nothing_can_overtake(live, best, expected):
    state = Beam(
        log_probs=tf.constant([[-2.0, live, -3.0]]),
        finished=tf.constant([[True, False, True]]),
        lengths=tf.constant([[1, 1, 1]], tf.int64),
        coverage=tf.zeros([1, 3, 0]),
        words=tf.zeros([1, 3, 0], tf.int32),
    )
    stops = certain(state, tf.constant([20]), BeamOptions(3, 1.0, 0.0, best))
    assert stops.numpy().tolist() == [expected]


def products(graph):
    """Counts a function's products of two matrices, by type."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    return Counter(tf.as_dtype(n.attr["T"].type).name for n in nodes if n.op == "MatMul")


@pytest.mark.quick("3-rnnsearch")
@pytest.mark.bfloat16
@pytest.mark.parametrize("variant", SOME_VARIANTS)
@pytest.mark.parametrize("beam_width", [0, 3])
def test_a_search_makes_its_matrix_products_in_the_set_type(variant, beam_width):
    model, batch = small_models.model(variant), small_models.batch(LENGTHS, 4)
    hypotheses, counts = {}, {}

    def run(dtype, source, length):
        prepared = model.prepare(source, length, dtype=dtype)
        options = search.SearchOptions(LIMIT, dtype=dtype)
        if not beam_width:
            return search.greedy(model, prepared, options)
        return search.beam_search(model, prepared, BeamOptions(beam_width), options)

    for dtype in (tf.float32, tf.bfloat16):
        compiled = tf.function(partial(run, dtype), input_signature=SIGNATURE, autograph=False)
        hypotheses[dtype] = as_arrays(compiled(batch.source, batch.source_length))
        counts[dtype] = products(compiled.get_concrete_function().graph)
    assert set(counts[tf.float32]) == {"float32"}
    assert counts[tf.bfloat16]["bfloat16"] > counts[tf.bfloat16]["float32"]
    assert sum(counts[tf.bfloat16].values()) == sum(counts[tf.float32].values())
    exact, _ = force(model, batch, hypotheses[tf.bfloat16])
    # 8 bits: 2^-8 a product where the processor truncates, and some four products to a word
    np.testing.assert_allclose(hypotheses[tf.bfloat16].scores, exact, rtol=4 * 2**-8)
    assert np.any(hypotheses[tf.bfloat16].scores != hypotheses[tf.float32].scores)


def endless(variant="rnnsearch"):
    """A model that never ends a sentence of its own will."""
    model = large_model(variant)
    bias = model.projection_bias.numpy()
    bias[EOS] = -200.0
    model.projection_bias.assign(bias)
    return model


@pytest.mark.quick("1", "4")
@pytest.mark.parametrize("cap", [1, 4, 0])
def test_translation_ends_at_its_limit(cap):
    model, batch = endless(), small_models.batch(LENGTHS[:3])
    prepared = prepare(model, batch)
    options = search.SearchOptions(cap, with_alignments=True)
    limit = [cap or 2 * length + 10 for length in batch.source_length]
    beam = run_beam(model, batch, 2, limit=cap)
    greedy = as_arrays(search.greedy(model, prepared, options))
    sampled = as_arrays(
        search.sample(model, prepared, SamplingOptions(1.0), tf.constant([1, 2]), options)
    )
    for hypotheses in (beam, greedy, sampled):
        assert hypotheses.lengths[:, 0].tolist() == limit
        log_probs, _ = force(model, batch, hypotheses)
        np.testing.assert_allclose(hypotheses.scores, log_probs, rtol=1e-4)
        for row, length in enumerate(limit):
            assert EOS not in hypotheses.ids[row, 0, : length - 1]
            assert np.all(hypotheses.ids[row, 0, length - 1 :] == EOS)
