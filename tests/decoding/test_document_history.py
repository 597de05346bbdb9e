"""Histories that are given: the document's own, the references', another document's."""

import functools

import numpy as np
import pytest
from helpers import small_models, translations

from tfmann.cells.diagnostics import EVERYTHING
from tfmann.data.documents import exchange_documents
from tfmann.decoding.document_history import other_history, reference_history
from tfmann.decoding.translator_choice import make_translator
from tfmann.errors import UserError

# The second document is one of the shortest, the last one ends before the third.
DOCUMENTS = [
    ["a3 a9 a14 a5", "a12 a3", "a9 a9 a20 a7", "a3"],
    ["a4 a4 a4"],
    ["a8 nowhere a19", "a3 a11 a16 a21", "a12", "a17 a6", "a22 a13 a10"],
    ["a5 a6", "a7 a19"],
]
LINES = [line for document in DOCUMENTS for line in document]
REFERENCES = [f"b{3 + i} b{15 - i} b9" for i in range(len(LINES))]
IDS = [7, 7, 7, 7, 2, 9, 9, 9, 9, 9, 4, 4]
SPANS = [range(4), range(4, 5), range(5, 10), range(10, 12)]
NEURAL = {"neural_cache_size": 5, "neural_cache_theta": 0.3, "neural_cache_lambda": 0.3}
SETTINGS = {
    "cache": {"cell": "cache", "cache_size": 6},
    "shallow": {"cell": "cache", "cache_size": 4, "cache_fusion": "shallow"},
    "neural": {"cell": "rnnsearch", **NEURAL},
    "neural previous": {"cell": "previous", **NEURAL},
    "summary": {"cell": "summary"},
    "previous": {"cell": "previous"},
}
CACHES = ["cache", "shallow", "neural", "neural previous"]


@functools.lru_cache(maxsize=3)  # a compiled search takes 100 MB
def translator(name):
    sizes = {"init_weight": 1.0, "embedding_init_weight": 3.0, "random_seed": 1}
    settings = {"unit_type": "gru", "projection_bias": True, "beam_width": 3, **SETTINGS[name]}
    model = small_models.model("rnnsearch", **sizes, **settings)
    kernel = model.projection_kernel.numpy()
    kernel[:, 2] *= 3.0  # </s> is likely at some steps and not at others
    model.projection_kernel.assign(kernel)
    return make_translator(model, translations.languages(), model.hparams, None)


def run(name, history=None, size=32, chunk=0, lines=LINES, documents=IDS):
    system = translator(name)
    system.hparams = system.hparams.replace(infer_batch_size=size)  # not part of the trace
    n_best_lists = system.translate(lines, chunk=chunk, documents=documents, history=history)
    return [n_best[0] for n_best in n_best_lists]


def assert_same(actual, expected):
    assert [hypothesis.text for hypothesis in actual] == [
        hypothesis.text for hypothesis in expected
    ]
    scores = [[hypothesis.score for hypothesis in results] for results in (actual, expected)]
    np.testing.assert_allclose(*scores, atol=2e-5)


def forced_after(name, before, line, translation):
    """The log-probability of a translation after these pairs, all forced as one document."""
    pairs = [*before, (line, translation.text)]
    return translator(name).force(pairs, documents=[0] * len(pairs))[-1].log_prob


@pytest.mark.quick("previous")
@pytest.mark.parametrize("name", list(SETTINGS))
def test_the_own_history_changes_nothing(name):
    expected = run(name)
    assert_same(run(name, history=expected), expected)
    as_text = [(line, translation.text) for line, translation in zip(LINES, expected)]
    assert_same(run(name, history=as_text), expected)


@pytest.mark.parametrize("name", ["previous", "cache", "summary"])
def test_a_blank_line_is_the_same_in_a_given_history(name):
    lines = ["a3 a9 a14", "", "a12 a3", "a4"]
    expected = run(name, lines=lines, documents=[1] * 4)
    for history in (expected, [(line, best.text) for line, best in zip(lines, expected)]):
        assert_same(run(name, history, lines=lines, documents=[1] * 4), expected)


@pytest.mark.parametrize("name", ["cache", "summary"])
def test_no_pair_leaves_nothing(name):
    translated = run(name, [None] * len(LINES))
    system = translator(name)
    single = [n[0] for n in system.translate(LINES, documents=range(len(LINES)))]
    assert_same(translated, single)


@pytest.mark.quick("shallow", "summary")
@pytest.mark.parametrize("name", list(SETTINGS))
def test_a_sentence_is_read_after_those_of_another_document(name):
    with_own_history = run(name)
    translated = run(name, other_history(translator(name), LINES, IDS, seed=3))
    for span, exchanged in zip(SPANS, exchange_documents(list(map(len, SPANS)), 3)):
        pairs = [(LINES[i], with_own_history[i].text) for i in SPANS[exchanged]]
        for position, index in enumerate(span):
            score = forced_after(name, pairs[:position], LINES[index], translated[index])
            assert translated[index].score == pytest.approx(score, abs=5e-5)
    firsts = [span[0] for span in SPANS]
    assert_same([translated[i] for i in firsts], [with_own_history[i] for i in firsts])
    assert any(abs(a.score - b.score) > 1e-3 for a, b in zip(translated, with_own_history))


@pytest.mark.parametrize("name", ["cache", "neural previous", "summary"])
def test_neither_neighbours_nor_chunks_change_a_given_history(name):
    history = other_history(translator(name), LINES, IDS)
    expected = run(name, history)
    for size in (1, 2):
        assert_same(run(name, history, size=size), expected)
    for chunk in (1, 5):
        assert_same(run(name, history, chunk=chunk), expected)


@pytest.mark.quick("cache", "neural")
@pytest.mark.parametrize("name", CACHES)
def test_a_sentence_is_read_after_the_references_of_those_before_it(name):
    translated = run(name, reference_history(LINES, REFERENCES))
    pairs = list(zip(LINES, REFERENCES))
    for span in SPANS:
        for index in span:
            before = [pairs[i] for i in span if i < index]
            score = forced_after(name, before, LINES[index], translated[index])
            assert translated[index].score == pytest.approx(score, abs=5e-5)
    assert any(abs(a.score - b.score) > 1e-3 for a, b in zip(translated, run(name)))


def test_blank_lines_are_no_sentences_of_either_document():
    lines = ["a3 a9", "", "a12", "", "a4", "a5 a6", "a7"]
    history = other_history(translator("summary"), lines, [1, 1, 1, 1, 2, 2, 2])
    sources = [pair and pair[0] for pair in history]
    assert sources == ["a4", None, "a5 a6", None, "a3 a9", "a12", None]
    by_blank_line = other_history(translator("summary"), ["a3", "a4", "", "a5", ""], None)
    assert [pair and pair[0] for pair in by_blank_line] == ["a5", None, None, "a3", None]


def test_what_cannot_be_exchanged_is_refused():
    for lines, number in ((["a3", "a4"], "one"), (["", " "], "none")):
        with pytest.raises(UserError, match=f"two documents or more, and there is {number}"):
            other_history(translator("cache"), lines, [1, 1])
    with pytest.raises(UserError, match="1 references of 2 lines"):
        reference_history(["a3", "a4"], ["b3"])
    assert reference_history(["a3", "", "a4"], ["", "b3", "b4"]) == [None, None, ("a4", "b4")]
    with pytest.raises(UserError, match="line 2 has no entry in history: expected one for each"):
        run("cache", [None])
    with pytest.raises(UserError, match=f"more entries in history than lines: expected {len(IDS)}"):
        run("cache", [None] * (len(IDS) + 1))
    system = translator("cache")
    for remembered, message in (([True], "line 2 has no entry"), ([True] * 3, "more entries")):
        with pytest.raises(UserError, match=f"{message} in remembered"):
            system.force([("a3", "b3"), ("a4", "b4")], remembered=remembered)


@pytest.mark.parametrize("name", ["previous", "cache"])
def test_a_forced_pair_knows_the_words_of_the_sentence_before(name):
    pairs = list(zip(LINES[:2], REFERENCES))
    first, second = translator(name).force(pairs, EVERYTHING, [0, 0])
    if name == "cache":
        assert not first.previous_tokens and not second.previous_tokens
        return
    assert first.previous_tokens == ()
    assert second.previous_tokens == [*LINES[0].split(), "</s>"]
    assert second.diagnostics["previous_alignments"].shape[1] == len(second.previous_tokens)
