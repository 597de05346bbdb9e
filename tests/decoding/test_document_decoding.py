"""Translation of documents: the cache is carried, whatever else is in the batch."""

import functools

import numpy as np
import pytest
from helpers import small_models, translations

from tfmann.data.subword import WordSegmenter
from tfmann.decoding import document_translator
from tfmann.decoding.document_translator import DocumentTranslator, rounds
from tfmann.decoding.translator import Translator
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UsageError, UserError
from tfmann.utils import memory_limits

# sentences of three documents, the second of one sentence
DOCUMENTS = [
    ["a3 a9 a14 a5", "a12 a3", "a9 a9 a20 a7", "a3"],
    ["a4 a4 a4"],
    ["a8 nowhere a19", "a3 a11 a16 a21", "a12", "a17 a6", "a22 a13 a10"],
]
LINES = [line for document in DOCUMENTS for line in document]
IDS = [7, 7, 7, 7, 2, 9, 9, 9, 9, 9]
SETTINGS = {
    "deep": {"cell": "cache", "cache_size": 6},
    "shallow": {"cell": "cache", "cache_size": 6, "cache_fusion": "shallow"},
    "new slots": {"cell": "cache", "cache_size": 4, "cache_overwrite": False},
    "no slots": {"cell": "cache", "cache_size": 0},
    "summary": {"cell": "summary"},
    "previous": {"cell": "previous"},
}
CACHES = ["deep", "shallow", "new slots", "no slots"]


@functools.lru_cache(maxsize=3)  # a compiled search takes 100 MB
def translator(name, **changes):
    settings = {"unit_type": "gru", "projection_bias": True, "beam_width": 3, **SETTINGS[name]}
    sizes = {"init_weight": 1.0, "embedding_init_weight": 3.0, "random_seed": 1}
    model = small_models.model("rnnsearch", **{**sizes, **settings, **changes})
    kernel = model.projection_kernel.numpy()
    kernel[:, 2] *= 3.0  # </s> is likely at some steps and not at others
    model.projection_kernel.assign(kernel)
    return make_translator(model, translations.languages(), model.hparams, None)


def run(name, lines=None, size=32, chunk=0, ids=IDS, **changes):
    system = translator(name, **changes)
    system.hparams = system.hparams.replace(infer_batch_size=size)  # not part of the trace
    return list(system.translate(LINES if lines is None else lines, chunk=chunk, documents=ids))


def test_a_translator_for_each_kind():
    assert type(translator("deep")) is DocumentTranslator
    assert type(translator("summary")) is Translator


@pytest.mark.quick("deep")
@pytest.mark.parametrize("name", list(SETTINGS))
def test_neither_neighbours_nor_chunks_change_a_document(name):
    expected = [n_best for lines in DOCUMENTS for n_best in run(name, lines, ids=[0] * len(lines))]
    for size in (1, 2, 32):
        translations.assert_same(run(name, size=size), expected, atol=2e-5)
    for chunk in (1, 3, 4):
        translations.assert_same(run(name, chunk=chunk), expected, atol=2e-5)
    order = [9 - i for i in range(3)]
    shuffled = DOCUMENTS[2] + DOCUMENTS[0] + DOCUMENTS[1]
    actual = run(name, shuffled, ids=[order[0]] * 5 + [order[1]] * 4 + [order[2]])
    translations.assert_same(actual[5:] + actual[:5], expected, atol=2e-5)


def test_a_search_for_documents_beyond_the_memory_is_refused(monkeypatch):
    system = translator("deep")
    monkeypatch.setattr(memory_limits, "available_memory", lambda: 100.0)
    with pytest.raises(UsageError, match="a search for 3 sentences with 3 hypotheses each"):
        run("deep")
    with pytest.raises(UsageError, match="a search for 1 sentences with 3 hypotheses each"):
        system.resume(DOCUMENTS[:1], [system.begin_document()])


def test_the_state_of_a_document_does_not_keep_those_of_its_batch(monkeypatch):
    """A server keeps the states of many documents, each from another batch."""
    batches, take_row = [], document_translator._row

    def spy(cache, row):
        batches.append(cache)
        return take_row(cache, row)

    monkeypatch.setattr(document_translator, "_row", spy)
    system = translator("deep")
    beginnings = [system.begin_document() for _ in range(3)]
    _, states = system.resume(DOCUMENTS, beginnings)
    kept = [np.asarray(memoryview(part)) for cache, _ in states for part in cache]
    of_batches = [np.asarray(memoryview(part)) for cache in batches for part in cache]
    assert {part.shape[0] for part in of_batches} == {1, 2, 3}
    assert all(part.shape[0] == 1 for part in kept)
    assert not any(np.shares_memory(a, b) for a in kept for b in of_batches if len(b) > 1)


def test_two_calls_at_once_do_not_mix_their_documents():
    system = translator("deep")
    texts = DOCUMENTS[0], DOCUMENTS[2][:4]
    alone = [run("deep", lines, ids=[0] * 4) for lines in texts]
    interleaved = zip(*(system.translate(lines, chunk=1, documents=[0] * 4) for lines in texts))
    for actual, expected in zip(zip(*interleaved), alone):
        translations.assert_same(list(actual), expected, atol=2e-5)


@pytest.mark.parametrize("name", ["previous", "shallow", "summary", "deep"])
def test_what_was_before_matters_within_a_document_alone(name):
    together = run(name)
    single = run(name, ids=list(range(len(LINES))))  # every sentence a document
    firsts = [0, 4, 5]
    translations.assert_same([together[i] for i in firsts], [single[i] for i in firsts], atol=2e-5)
    later = [i for i in range(len(LINES)) if i not in firsts]
    assert any(together[i][0].score != single[i][0].score for i in later)


@pytest.mark.parametrize("name", ["deep", "summary"])
def test_a_blank_line_ends_a_document(name):
    blank = [line for document in DOCUMENTS for line in [*document, ""]]
    translated = run(name, blank, ids=None)
    real = [i for i, line in enumerate(blank) if line]
    translations.assert_same([translated[i] for i in real], run(name), atol=2e-5)
    assert all(translated[i][0].text == "" for i in range(len(blank)) if i not in real)


def test_a_blank_line_inside_a_document_adds_nothing_to_its_cache():
    lines = [*DOCUMENTS[0][:2], "", *DOCUMENTS[0][2:]]
    translated = run("deep", lines, ids=[1] * 5)
    translations.assert_same(
        translated[:2] + translated[3:], run("deep", DOCUMENTS[0], ids=[1] * 4), atol=2e-5
    )


@pytest.mark.quick("previous")
@pytest.mark.parametrize("name", ["summary", "previous", "deep"])
def test_a_line_without_tokens_is_no_sentence_of_a_session_either(name, monkeypatch):
    """SentencePiece leaves out a zero-width space, which is no white space to Python."""
    system, segment = translator(name), WordSegmenter.segment
    monkeypatch.setattr(
        WordSegmenter, "segment", lambda self, line: segment(self, line.replace("\u200b", ""))
    )
    lines = [*DOCUMENTS[0][:2], "\u200b", *DOCUMENTS[0][2:]]
    expected = run(name, DOCUMENTS[0], ids=None)
    translated, state = [], system.begin_document()
    for line in lines:
        [[n_best]], [state] = system.resume([[line]], [state])
        translated.append(n_best)
    in_file = run(name, lines, ids=None)
    for n_best_lists in (translated, in_file):
        assert n_best_lists.pop(2)[0].text == ""
        translations.assert_same(n_best_lists, expected, atol=2e-5)


@pytest.mark.parametrize("chunk", [0, 1, 2, 3])
def test_a_document_of_blank_lines_ends_the_one_before(chunk):
    lines = [*DOCUMENTS[0][:2], "", *DOCUMENTS[0][2:]]
    expected = run("deep", lines, ids=[1, 1, 2, 3, 3])
    for ids in ([1, 1, 2, 1, 1], [1, 1, 1, 2, 2]):
        translations.assert_same(run("deep", lines, chunk=chunk, ids=ids), expected, atol=2e-5)
    within = run("deep", lines, chunk=chunk, ids=[1] * 5)
    assert within[3][0].score != pytest.approx(expected[3][0].score, abs=1e-4)


@pytest.mark.quick("deep")
@pytest.mark.parametrize("name", ["deep", "shallow"])
def test_beam_of_one_is_greedy_across_sentences(name):
    translations.assert_same(run(name, beam_width=1), run(name, infer_mode="greedy"), atol=2e-5)


@pytest.mark.quick("deep", "summary")
@pytest.mark.parametrize("name", list(SETTINGS))
def test_a_forced_translation_has_the_score_of_its_search(name):
    n_best_lists = run(name)
    system = translator(name)
    best = [n_best[0] for n_best in n_best_lists]
    forced = system.force_translations(best, documents=IDS)
    assert [f.tokens for f in forced] == [t.tokens for t in best]
    scores = [t.score for t in best]
    np.testing.assert_allclose([f.log_prob for f in forced], scores, atol=5e-5)
    pairs = [(line, t.text) for line, t in zip(LINES, best)]
    from_text = system.force(pairs, documents=IDS)
    np.testing.assert_allclose([f.log_prob for f in from_text], scores, atol=5e-5)


def test_no_slots_is_the_model_without_a_cache():
    system = translator("no slots")
    plain = small_models.model("rnnsearch", **{
        "init_weight": 1.0, "embedding_init_weight": 3.0, "random_seed": 1, "unit_type": "gru",
        "projection_bias": True, "beam_width": 3,
    })  # fmt: skip
    variables = {v.name: v for v in system.model.trainable_variables}
    for variable in plain.trainable_variables:
        variable.assign(variables[variable.name])
    expected = Translator(plain, translations.languages(), plain.hparams)
    translations.assert_same(run("no slots"), list(expected.translate(LINES)), atol=2e-5)


def test_slots_as_a_sentence_finds_them():
    system = translator("new slots")
    pairs = [("a3 a4", "b5 b6"), ("a5", "b7"), ("a6", "b8")]
    first, second, third = system.force(pairs, ("cache_match", "cache_gate"), [4, 4, 1])
    assert first.slots.words == third.slots.words == [""] * 4
    assert first.slots.ages.tolist() == [-1] * 4
    assert second.slots.words == ["b5", "b6", "</s>", ""]
    assert second.slots.ages.tolist() == [2, 1, 0, -1]
    matched = second.diagnostics["cache_match"]
    assert matched.shape == (2, 4)
    np.testing.assert_allclose(matched.sum(axis=1), 1.0, atol=1e-6)
    assert (matched[:, 3] == 0).all()
    assert (first.diagnostics["cache_match"] == 0).all()
    assert second.diagnostics["cache_gate"].shape == (2, 1)


def test_blank_sources_can_be_forced():
    system = translator("deep")
    with_blank = system.force([("a3", "b5"), ("", "b6"), ("a4", "b7")], documents=[1, 1, 1])
    bare = system.force([("a3", "b5"), ("a4", "b7")], documents=[1, 1])
    np.testing.assert_allclose([with_blank[0].log_prob, with_blank[2].log_prob], [
        f.log_prob for f in bare
    ], atol=1e-5)  # fmt: skip
    assert np.isfinite(with_blank[1].log_prob)


@pytest.mark.parametrize("ids", [[1, 1], [1] * 4])
def test_as_many_ids_as_lines(ids):
    with pytest.raises(UserError, match="document id"):
        run("deep", DOCUMENTS[0][:3], ids=ids)


def test_rounds_by_hand():
    batches = list(rounds([[0, 1, 2], [3], [4, 5]], 2, False))
    assert [batch.sentences for batch in batches] == [[0, 3], [1, 4], [2, 5]]
    assert [batch.previous_rows.tolist() for batch in batches] == [[0, 0], [0, 0], [0, 1]]
    assert [batch.starts.tolist() for batch in batches] == [
        [True, True],
        [False, True],
        [False] * 2,
    ]
    continued = next(iter(rounds([[0, 1], [2]], 2, True)))
    assert continued.starts.tolist() == [False, True]
