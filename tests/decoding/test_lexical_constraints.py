"""Phrases that translations must contain, in beam search: banks, progress, hypotheses."""

import types

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models
from helpers.searches import (
    SIGNATURE,
    Stepper,
    as_arrays,
    assert_same_hypotheses,
    check,
    large_model,
    run_beam,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import beam as free_oracle
from oracles import lexical as oracle

from tfmann.data.vocab import EOS_ID
from tfmann.decoding import (
    backend,
    beam_banks,
    lexical_constraints,
    next_words,
    search,
    target_prefix,
)
from tfmann.decoding.beam import Beam, BeamOptions, Continuations, StepRules
from tfmann.decoding.beam_scoring import select
from tfmann.decoding.lexical_constraints import Phrases, pad_phrases
from tfmann.decoding.restrictions import Restrictions
from tfmann.decoding.target_prefix import ANY_WORD, pad_prefixes

LENGTHS = [(5, 1), (2, 1), (7, 1), (3, 1)]
TOKENS = range(3, 9)  # few, so that phrases overlap
SUBWORDS = {
    "words": oracle.WORDS,
    "open": oracle.Subwords(open=frozenset({3, 5, 9, 11})),
    "joining": oracle.Subwords(joining=frozenset({4, 6, 10, 12})),
}


def draw_phrases(stream, count, subwords=oracle.WORDS, longest=3):
    """Draws phrases of whole words, in which tokens occur in common."""
    phrases = []
    while len(phrases) < count:
        phrase = tuple(map(int, stream.choice(TOKENS, stream.integers(1, longest + 1))))
        if phrase[0] not in subwords.joining and phrase[-1] not in subwords.open:
            phrases.append(phrase)
    return phrases


def masks(subwords, size):
    """`is_open` and `joins` of a vocabulary; None where no token is a part of a word."""
    ids = np.arange(size)
    return [np.isin(ids, list(s)) if s else None for s in (subwords.open, subwords.joining)]


def phrases_of(lists, subwords=oracle.WORDS, size=small_models.TARGET_SIZE):
    is_open, joins = masks(subwords, size)
    return Phrases(tf.constant(pad_phrases(lists)), is_open, joins)


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=7), min_size=1, max_size=3),
    st.integers(1, 20),
)
def test_banks_share_the_beam_as_the_oracle_says(counts, width):
    most = max(map(len, counts))
    padded = [[*row, *[0] * (most - len(row))] for row in counts]
    last_bank = tf.constant([len(row) - 1 for row in counts])
    widths = [max(1, width - row) for row in range(len(counts))]
    slots = beam_banks.allocate(tf.constant(padded), last_bank, tf.constant(widths)).numpy()
    for row, actual, slots_of_beam in zip(counts, slots, widths):
        assert list(actual[: len(row)]) == oracle.shares(row, slots_of_beam)
        assert sum(actual) == min(slots_of_beam, sum(row))


def test_one_bank_selects_as_top_k_does():
    scores = tf.constant(np.random.default_rng(1).normal(size=[3, 8]).astype(np.float32))
    selected = beam_banks.best_of_banks(
        scores, tf.zeros([3, 8], tf.int32), tf.zeros([3], tf.int32), 4
    )
    for actual, expected in zip(selected, tf.math.top_k(scores, 4)):
        np.testing.assert_array_equal(actual, expected)


def read_progress(phrases, tokens):
    """Reads tokens `[B, T]`; returns what `lexical_constraints` says `[B]` after each of them."""
    progress, facts = lexical_constraints.first_progress(phrases, 1), []
    for column in tokens.T:
        after = lexical_constraints.advance(phrases, progress, tf.constant(column[:, None, None]))
        progress = tf.nest.map_structure(lambda value: value[:, :, 0], after)
        facts.append(
            (
                lexical_constraints.is_complete(phrases, progress)[:, 0].numpy(),
                lexical_constraints.tokens_present(phrases, progress)[:, 0].numpy(),
                lexical_constraints.tokens_left(phrases, progress)[:, 0].numpy(),
                lexical_constraints.next_tokens(phrases, progress)[:, 0].numpy(),
            )
        )
    return facts


@pytest.mark.parametrize("kind", SUBWORDS)
def test_progress_is_what_the_oracle_reads_from_the_text(kind):
    subwords, lists, texts, different = SUBWORDS[kind], [], [], set()
    for seed in range(100):
        stream = np.random.default_rng(seed)
        phrases = draw_phrases(stream, stream.integers(1, 4), subwords)
        lists.append(phrases + phrases[: seed % 2])  # some twice
        texts.append(stream.choice(TOKENS, 10).tolist())
    read = read_progress(phrases_of(lists, subwords, 12), np.array(texts, np.int32))
    for row, (phrases, tokens) in enumerate(zip(lists, texts)):
        for end, facts in enumerate(read, start=1):
            ids = tokens[:end]
            lacking = oracle.missing(ids, phrases, subwords)
            expected = (
                not lacking,
                oracle.bank(ids, phrases, subwords),
                oracle.tokens_left(ids, phrases, subwords),
            )
            *actual, following = (fact[row] for fact in facts)
            assert tuple(actual) == expected, (ids, phrases)
            assert {i for i in following if i >= 0} == {
                phrase[oracle.continued(ids, phrase, phrases, subwords)[0]] for phrase in lacking
            }
            different.add(expected)
    assert len(different) > 20


def test_an_open_word_is_ended_by_the_best_token_that_ends_it():
    size, lasts = small_models.TARGET_SIZE, [3, 4]  # of two hypotheses: the first's word is open
    phrases = phrases_of([[(6,)]], SUBWORDS["open"])
    progress = lexical_constraints.first_progress(phrases, 2)
    progress = lexical_constraints.advance(phrases, progress, tf.constant(lasts)[None, :, None])
    progress = tf.nest.map_structure(lambda value: value[:, :, 0], progress)
    logits = np.zeros([2, size], np.float32)
    logits[:, [5, EOS_ID, 7]] = 9.0, 8.0, 6.0  # 5 leaves the word open
    beam = types.SimpleNamespace(progress=progress, words=tf.zeros([1, 2, 1], tf.int32))
    rules = StepRules(time=tf.constant(1), limits=tf.constant([9]), phrases=phrases)
    required = next_words._required_tokens(
        tf.constant(logits), tf.constant([[0], [1]]), beam, rules, phrases
    )
    np.testing.assert_array_equal(required, [[6, 7], [6, lexical_constraints.NO_TOKEN]])


def compiled_search(
    model, beam, limit, subwords=oracle.WORDS, constraints=(), prefixes=False, greedy=False
):
    """A search as a function of source, length, phrases and prefixes, traced once."""
    is_open, joins = masks(subwords, model.target_size)

    def run(source, length, ids, prefix):
        options = search.SearchOptions(
            limit,
            True,
            restrictions=Restrictions(*constraints),
            prefix=prefix if prefixes else None,
            phrases=Phrases(ids, is_open, joins),
        )
        prepared = model.prepare(source, length)
        if greedy:
            return search.greedy(model, prepared, options, beam.beam_width)
        return search.beam_search(model, prepared, beam, options)

    signature = [*SIGNATURE, lexical_constraints.SIGNATURE, target_prefix.SIGNATURE]
    return tf.function(run, input_signature=signature, autograph=False)


def run_search(function, batch, phrases, prefixes=None):
    given_prefixes = pad_prefixes(prefixes or [()] * len(phrases))
    return as_arrays(
        function(batch.source, batch.source_length, pad_phrases(phrases), given_prefixes)
    )


@pytest.mark.quick("luong-joining-setting3-6-tfa", "luong-words-setting4-5-plain")
@pytest.mark.parametrize(
    ("variant", "kind", "setting", "width", "loop"),
    [
        ("luong", "words", (0.0, 0.0, 0, 0), 1, "tfa"),
        ("luong", "words", (0.8, 0.3, 0, 0), 4, "tfa"),
        ("luong", "open", (0.0, 0.0, 0, 0), 5, "tfa"),
        ("luong", "joining", (0.6, 0.0, 0, 0), 6, "tfa"),
        ("luong", "words", (0.0, 0.0, 5, 2), 5, "plain"),
        ("ntm-heads", "open", (0.0, 0.0, 4, 2), 4, "plain"),
    ],
)
def test_beam_search_equals_the_oracle(variant, kind, setting, width, loop):
    if loop == "tfa" and backend.addons_or_none() is None:
        pytest.skip("tensorflow_addons cannot be imported")
    alpha, beta, *constraints = setting
    subwords, limit, best = SUBWORDS[kind], 8, min(width, 2)
    model, batch = large_model(variant, 3, decoder_backend=loop), small_models.batch(LENGTHS, 3)
    with_prefixes = width > 4
    beam = BeamOptions(width, alpha, beta, best)
    function = compiled_search(model, beam, limit, subwords, constraints, with_prefixes)
    steppers = [Stepper(model, batch, row) for row in range(len(LENGTHS))]
    changed = 0
    for seed in range(3):
        stream = np.random.default_rng([seed, width])
        phrases = [draw_phrases(stream, count, subwords) for count in stream.permutation(4)]
        phrases = [[*lists, *lists[: seed % 2]] for lists in phrases]  # some twice
        prefixes = [()] * len(phrases)
        if with_prefixes:
            prefixes = [(*map(int, stream.choice(TOKENS, row)), 4) for row in range(2)]
            prefixes += [(*map(int, stream.choice(TOKENS, 4)), 9), ()]  # 9 is a part of a word
        hypotheses = run_search(function, batch, phrases, prefixes)
        for row, length in enumerate(batch.source_length):
            scoring = (alpha, beta, *constraints, prefixes[row])
            expected = oracle.beam_search(
                steppers[row], (), width, limit, phrases[row], subwords, *scoring, best
            )
            for hypothesis in expected:
                assert not oracle.missing(hypothesis.ids[:-1], phrases[row], subwords)
            check(hypotheses, row, expected, best, length)
            free = free_oracle.beam_search(steppers[row], (), width, limit, *scoring)
            changed += free[0].ids != expected[0].ids
    assert changed > 5, "the phrases were in the translations without being given"


@pytest.mark.quick("open")
@pytest.mark.parametrize("kind", SUBWORDS)
def test_a_wide_beam_finds_every_translation_with_the_phrases(kind):
    subwords, size, limit, width = SUBWORDS[kind], 7, 4, 160
    model, batch = large_model("luong", 6, target_size=size), small_models.batch([(4, 1)], 6)
    function = compiled_search(model, BeamOptions(width, 0.7, 0.0, 20), limit, subwords)
    step = Stepper(model, batch, 0)
    # Phrases that do not overlap: those that do may need less room than the search leaves them.
    lists = {"words": [(3,)], "open": [(6,)], "joining": [(5,)]}
    for phrases in ([(5, 4), *lists[kind]], [(3, 6)], [(5, 5, 4)]):
        everything = oracle.every_sentence(step, (), size, limit, phrases, subwords, 0.7)
        hypotheses = run_search(function, batch, [phrases])
        check(hypotheses, 0, everything, 20, batch.source_length[0])
        count = np.isfinite(hypotheses.scores[0]).sum()
        assert count == min(20, len(everything)) > 0
        in_steps = oracle.beam_search(
            step, (), width, limit, phrases, subwords, 0.7, num_best=width
        )
        assert [h.ids for h in in_steps] == [h.ids for h in everything]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("variant", "kind"),
    [("luong", "words"), ("luong", "open"), ("luong", "joining"), ("ntm-heads", "words")],
)
def test_greedy_search_has_a_hypothesis_for_each_number_of_tokens(variant, kind):
    subwords, limit = SUBWORDS[kind], 9
    model, batch = large_model(variant, 3), small_models.batch(LENGTHS, 3)
    function = compiled_search(model, BeamOptions(16), limit, subwords, (0, 0), True, greedy=True)
    steppers = [Stepper(model, batch, row) for row in range(len(LENGTHS))]
    free = as_arrays(
        search.greedy(
            model,
            model.prepare(batch.source, batch.source_length),
            search.SearchOptions(limit, with_alignments=True),
        )
    )
    changed = 0
    for seed in range(4):
        stream = np.random.default_rng(seed)
        counts = stream.permutation(4)
        phrases = [draw_phrases(stream, count, subwords) for count in counts]
        prefixes = [(4,) if count and seed % 2 else () for count in counts]
        hypotheses = run_search(function, batch, phrases, prefixes)
        for row, length in enumerate(batch.source_length):
            width = sum(map(len, phrases[row])) + 1
            expected = oracle.beam_search(
                steppers[row], (), width, limit, phrases[row], subwords, prefix=prefixes[row]
            )
            check(hypotheses, row, expected, 1, length)
            assert not oracle.missing(expected[0].ids[:-1], phrases[row], subwords)
            if width == 1:
                assert_same_hypotheses(hypotheses, row, free, row)
            changed += not np.array_equal(hypotheses.ids[row, 0, :4], free.ids[row, 0, :4])
    assert changed > 5, "the phrases were in the translations without being given"


def test_a_sentence_without_phrases_is_translated_as_in_a_free_search(untraced):
    model, batch = large_model("luong", 3), small_models.batch(LENGTHS, 3)
    beam = BeamOptions(4, 0.8, 0.0, 4)
    function = compiled_search(model, beam, 9)
    mixed = run_search(function, batch, [[(4, 5)], [], [], [(7,), (3, 3)]])
    free = run_beam(model, batch, 4, 0.8, best=4, limit=9)
    for row in (1, 2):
        assert_same_hypotheses(mixed, row, free, row)
    assert not np.array_equal(mixed.ids[0, 0, :3], free.ids[0, 0, :3])


def test_hypotheses_of_a_sentence_that_is_done_keep_their_slots():
    """Three have ended with the phrase; a live one, far behind, begins the bank without it."""
    phrases = phrases_of([[(5,)]])
    progress = lexical_constraints.first_progress(phrases, 4)
    beam = Beam(
        log_probs=tf.constant([[-1.0, -2.0, -3.0, -50.0]]),
        finished=tf.constant([[True, True, True, False]]),
        lengths=tf.constant([[2, 2, 2, 1]], tf.int64),
        coverage=tf.zeros([1, 4, 0]),
        words=tf.zeros([1, 4, 0], tf.int32),
        progress=progress._replace(included=tf.constant([[[True], [True], [True], [False]]])),
    )
    ended = [[0.0, -np.inf, -np.inf]] * 3
    continuations = Continuations(
        tf.constant([[*ended, [-1.0, -1.0, -1.0]]]),
        tf.constant([[[EOS_ID, EOS_ID, EOS_ID]] * 3 + [[3, 4, 6]]]),
    )
    rules = StepRules(tf.constant(1), tf.constant([10]), phrases=phrases)
    _, after = select(continuations, beam, None, rules, BeamOptions(4, num_best=3))
    assert after.log_probs[0, :3].numpy().tolist() == [-1.0, -2.0, -3.0]


def test_a_limit_leaves_room_for_the_prefix_and_the_phrases(untraced):
    model, batch = large_model("luong", 3), small_models.batch(LENGTHS, 3)
    function = compiled_search(model, BeamOptions(3), 2, prefixes=True)
    phrases, prefixes = [[(4, 5, 6)], [], [(7,), (3, 3)], [(8,)]], [(9, 9), (), (5,), ()]
    hypotheses = run_search(function, batch, phrases, prefixes)
    assert hypotheses.lengths[:, 0].tolist() == [6, 2, 5, 2]
    assert hypotheses.ids[0, 0, :6].tolist() == [9, 9, 4, 5, 6, 2]
    assert ANY_WORD not in hypotheses.ids


@pytest.mark.thorough
def test_the_last_word_of_a_phrase_may_begin_a_longer_word_of_another():
    # like `the house` and `houseboat`: 4, 6 and 10 continue words, and the limit fits no others
    lists = [[(7, 8, 3), (3, 4)], [(5, 5, 8), (8, 6)], [(8, 3, 3), (3, 4)], [(5, 8), (8, 10)]]
    subwords, batch = SUBWORDS["joining"], small_models.batch(LENGTHS, 3)
    for seed in (3, 4):
        function = compiled_search(large_model("luong", seed), BeamOptions(1), 3, subwords)
        hypotheses = run_search(function, batch, lists)
        assert np.all(np.isfinite(hypotheses.scores))
        for phrases, ids, length in zip(lists, hypotheses.ids[:, 0], hypotheses.lengths[:, 0]):
            assert not oracle.missing(tuple(ids[: length - 1]), phrases, subwords)
