"""The neural cache on models of several cells: what it computes, and what it leaves alone."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from helpers import small_models, translations
from helpers.sentences import Sentence
from oracles import beam
from oracles import neural_cache as oracle

from tfmann.cells.diagnostics import EVERYTHING
from tfmann.decoding import continuation, search
from tfmann.decoding.document_translator import DocumentTranslator
from tfmann.decoding.translator import Translator
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UsageError
from tfmann.export.settings import require_fixed
from tfmann.memory import neural_cache, word_mixture
from tfmann.models import history_encoder

DOCUMENTS = [
    ["a3 a9 a14 a5", "a12 a3", "a9 a9 a20 a7", "a3"],
    ["a4 a4 a4"],
    ["a8 nowhere a19", "a3 a11 a16 a21", "a12", "a17 a6", "a22 a13 a10"],
]
LINES = [line for document in DOCUMENTS for line in document]
IDS = [7, 7, 7, 7, 2, 9, 9, 9, 9, 9]
CELLS = {
    "luong": {"cell": "luong", "unit_type": "lstm"},
    "rnnsearch": {"cell": "rnnsearch"},
    "kvmematt": {"cell": "kvmematt"},
    "previous": {"cell": "previous"},
    "summary": {"cell": "summary"},
    "ntm": {"cell": "ntm", "encoder_type": "memory"},
}
SLOTS, THETA, LAMBDA = 5, 0.7, 0.4
CACHE = {
    "neural_cache_size": SLOTS,
    "neural_cache_theta": THETA,
    "neural_cache_lambda": LAMBDA,
}


def model_of(name):
    settings = {"unit_type": "gru", "projection_bias": True, **CELLS[name]}
    return translations.model("rnnsearch", **settings)


@functools.lru_cache(maxsize=3)  # a compiled search takes 100 MB
def translator(name, **changes):
    model = model_of(name)
    hparams = model.hparams.replace(**{"beam_width": 3, **CACHE, **changes})
    return make_translator(model, translations.languages(), hparams, None)


def run(name, lines=LINES, ids=IDS, size=32, chunk=0, **changes):
    system = translator(name, **changes)
    system.hparams = system.hparams.replace(infer_batch_size=size)  # not part of the trace
    return list(system.translate(lines, chunk=chunk, documents=ids))


def sentences_of(name, document):
    system = translator(name)
    lines = system.text.encode_lines(document, [0] * len(document))
    return [Sentence(model_of(name), line) for line in lines]


TARGETS = ["b5 b6 b5", "b6 b5 b18 b4", "b5", "b11 unheard-of b3 b6"]


@pytest.mark.quick("luong", "previous", "ntm")
@pytest.mark.parametrize("name", list(CELLS))
def test_forced_decoding_of_a_document_equals_the_oracle(name):
    forced = translator(name).force(zip(DOCUMENTS[0], TARGETS), documents=[3] * 4)
    cache, gains = [], []
    encode = translations.languages().target.encode
    for sentence, target, result in zip(sentences_of(name, DOCUMENTS[0]), TARGETS, forced):
        words = [*encode(target), 2]
        probabilities, readouts = sentence.forced(words)
        mixed = [
            oracle.mixture(p, h, cache, THETA, LAMBDA)[word]
            for p, h, word in zip(probabilities, readouts, words)
        ]
        np.testing.assert_allclose(result.word_log_probs, np.log(mixed), rtol=1e-4, atol=2e-5)
        gains.append(np.abs(np.log(mixed) - np.log(probabilities[range(len(words)), words])).max())
        cache = oracle.after(cache, readouts, words, SLOTS)
    assert gains[0] < 1e-6 and min(gains[1:]) > 0.1


@pytest.mark.quick("rnnsearch")
@pytest.mark.parametrize("name", ["rnnsearch", "ntm"])
def test_a_trace_has_the_votes_of_the_slots(name):
    forced = translator(name).force(zip(DOCUMENTS[0], TARGETS), EVERYTHING, [3] * 4)
    target, cache = translations.languages().target, []
    for sentence, text, result in zip(sentences_of(name, DOCUMENTS[0]), TARGETS, forced):
        words = [*target.encode(text), 2]
        probabilities, readouts = sentence.forced(words)
        memory = result.word_memory
        assert not [key for key in result.diagnostics if key.startswith("vote")]
        p_words = probabilities[range(len(words)), words]
        np.testing.assert_allclose(memory.model, p_words, rtol=1e-4)
        if not cache:
            assert memory.entries == [] and not memory.share.any() and not memory.memory.any()
        else:
            np.testing.assert_allclose(memory.share, LAMBDA, rtol=1e-6)
            votes = [np.exp(THETA * np.array([h @ key for key, _ in cache])) for h in readouts]
            expected = np.array([vote / vote.sum() for vote in votes])
            np.testing.assert_allclose(memory.weights, expected, rtol=1e-4, atol=1e-6)
            of_words = expected @ (np.array([w for _, w in cache])[:, None] == words)
            np.testing.assert_allclose(memory.memory, of_words.diagonal(), rtol=1e-4, atol=1e-6)
            assert [e.word for e in memory.entries] == target.vocabulary.decode(
                [word for _, word in cache]
            )
            ages = [f"{age} words ago" for age in range(len(cache), 1, -1)]
            assert [e.origin for e in memory.entries] == [*ages, "1 word ago"]
        mixed = (1 - memory.share) * memory.model + memory.share * memory.memory
        np.testing.assert_allclose(np.log(mixed), result.word_log_probs, rtol=1e-4, atol=2e-5)
        cache = oracle.after(cache, readouts, words, SLOTS)
    assert translator(name).force([("a3", "b5")])[0].word_memory is None


@pytest.mark.quick("1-rnnsearch")
@pytest.mark.parametrize("name", ["rnnsearch", "previous", "ntm"])
@pytest.mark.parametrize("width", [1, 3])
def test_a_search_through_a_document_equals_the_oracle(name, width):
    document = DOCUMENTS[0]
    results = run(name, document, [4] * 4, beam_width=width)
    cache = []
    for sentence, [result] in zip(sentences_of(name, document), results):
        mixture = functools.partial(oracle.mixture, cache=cache, theta=THETA, weight=LAMBDA)
        best = beam.beam_search(sentence.step_with(mixture), (), width, sentence.limit)[0]
        tokens = translations.languages().target.vocabulary.decode(list(best.ids))
        assert result.tokens == tokens
        assert result.score == pytest.approx(best.score, rel=1e-4, abs=1e-4)
        words = list(best.ids)
        cache = oracle.after(cache, sentence.forced(words)[1], words, SLOTS)


@pytest.mark.quick("rnnsearch")
@pytest.mark.parametrize("name", ["rnnsearch", "summary", "previous"])
def test_neither_neighbours_nor_chunks_change_a_document(name):
    expected = [n_best for lines in DOCUMENTS for n_best in run(name, lines, [0] * len(lines))]
    for size in (1, 2):
        translations.assert_same(run(name, size=size), expected)
    for chunk in (1, 3):
        translations.assert_same(run(name, chunk=chunk), expected)
    plain = run(name, neural_cache_size=0)
    assert any(a[0].score != b[0].score for a, b in zip(plain, expected))


@pytest.mark.parametrize("name", ["rnnsearch", "previous"])
def test_a_document_in_parts_is_translated_as_in_one_piece(name):
    system = translator(name)
    states = [system.begin_document()]
    for part in (DOCUMENTS[2][:2], DOCUMENTS[2][2:]):
        [results], states = system.resume([part], states)
    expected = run(name, DOCUMENTS[2], [0] * 5)
    translations.assert_same(results, expected[2:])


@pytest.mark.quick("beam_search")
@pytest.mark.parametrize("mode", ["greedy", "beam_search", "sample"])
def test_a_forced_translation_has_the_score_of_its_search(mode):
    results = [n_best[0] for n_best in run("rnnsearch", infer_mode=mode)]
    forced = translator("rnnsearch", infer_mode=mode).force_translations(results, documents=IDS)
    scores = [translation.score for translation in results]
    np.testing.assert_allclose([f.log_prob for f in forced], scores, atol=5e-5)


def test_words_one_by_one_are_those_of_the_greedy_search():
    system = translator("rnnsearch", infer_mode="greedy")
    [[*_, [expected]]], _ = system.resume([DOCUMENTS[0][:2]], [system.begin_document()])
    _, [state] = system.resume([DOCUMENTS[0][:1]], [system.begin_document()])
    prepared = system.prepare_line(DOCUMENTS[0][1], state)
    produced = continuation.continue_words(system.model, prepared, [], 0, 3)
    assert system.languages.target.vocabulary.decode(produced.ids) == expected.tokens
    assert float(produced.log_probs.sum()) == pytest.approx(expected.score, abs=5e-5)


@pytest.mark.parametrize("name", list(CELLS))
def test_an_empty_cache_changes_no_bit_of_a_search(name):
    model = model_of(name)
    source = tf.constant([[4, 9, 2], [7, 2, 0]]), tf.constant([3, 2])
    cache = neural_cache.empty(2, SLOTS, model.readout_width)
    history = history_encoder.nothing(tf.constant(2)) if model.history else ()
    document = word_mixture.DocumentAndProposer(history, neural_cache.prepare(cache, THETA, LAMBDA))
    results = []
    for before in (history, document):
        prepared = model.prepare(*source, document=before)
        step = search.step_words(
            model, model.cell, prepared.encoded, prepared.source, model.projection()
        )
        results.append(step(tf.constant([1, 1]), prepared.state).output.numpy())
    np.testing.assert_array_equal(*results)


@pytest.mark.thorough
def test_a_share_of_zero_changes_no_translation():
    translations.assert_same(
        run("rnnsearch", neural_cache_lambda=0.0), run("rnnsearch", neural_cache_size=0)
    )


def test_the_oldest_entries_leave_and_others_than_words_do_not_enter():
    cache = neural_cache.empty(2, 3, 1)
    readouts = tf.reshape(tf.range(10.0), [2, 5, 1])
    words = tf.constant([[3, 0, 4, 5, 6], [7, 2, 0, 0, 0]])
    real = tf.constant([[True, False, True, True, True], [True] + [False] * 4])
    cache = neural_cache.write(cache, readouts, words, real)
    assert cache.words.numpy().tolist() == [[4, 5, 6], [-1, -1, 7]]
    assert cache.keys.numpy()[..., 0].tolist() == [[2, 3, 4], [0, 0, 5]]
    cache = neural_cache.write(cache, readouts[:, :1], words[:, :1], real[:, :1])
    assert cache.words.numpy().tolist() == [[5, 6, 3], [-1, 7, 7]]
    emptied = neural_cache.reset(cache, tf.constant([True, False]))
    assert emptied.words.numpy().tolist() == [[-1, -1, -1], [-1, 7, 7]]


def test_a_translator_for_each_kind():
    assert type(translator("rnnsearch")) is DocumentTranslator
    assert type(translator("rnnsearch", neural_cache_size=0)) is Translator


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"neural_cache_size": -1}, "neural_cache_size: -1 is below the least value 0"),
        ({"neural_cache_theta": -0.5}, "neural_cache_theta: -0.5 is below the least value 0"),
        ({"neural_cache_lambda": 1.0}, "neural_cache_lambda: 1.0 is not below 1.0"),
        ({"neural_cache_lambda": -0.1}, "neural_cache_lambda: -0.1 is below the least value 0"),
        (
            {"cell": "cache", "neural_cache_size": 9},
            "neural_cache_size=9 is for models without a cache, and the cell 'cache' has its own",
        ),
    ],
)
def test_nonsense_is_refused(changes, message):
    with pytest.raises(UsageError) as error:
        small_models.hparams("rnnsearch", **changes)
    assert message in str(error.value)


def test_an_export_with_a_neural_cache_is_refused():
    with pytest.raises(UsageError, match="neural_cache_size=5 is not part of an export"):
        require_fixed(small_models.hparams("rnnsearch", **CACHE))


def test_documents_matter_to_a_model_with_a_neural_cache():
    assert small_models.hparams("rnnsearch", **CACHE).reads_documents
    assert not small_models.hparams("rnnsearch").reads_documents
