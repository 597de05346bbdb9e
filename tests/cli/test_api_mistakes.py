"""Mistakes in Python: what is no sentence, no pair, no translation, and what objects tell."""

import pytest

from tfmann import api


@pytest.fixture(scope="module")
def loaded(model):
    return api.load(str(model))


@pytest.mark.parametrize("lines", ["der hund", b"der hund"])
def test_one_string_is_no_list_of_sentences(loaded, lines):
    with pytest.raises(TypeError, match=r"expected a list of sentences, \['ein mann"):
        loaded.translate(lines)
    with pytest.raises(TypeError, match="expected pairs of sentences, not one string"):
        loaded.score(lines)


def test_n_best_lists_are_no_translations(loaded):
    n_best = list(loaded.translate(["der hund"]))
    for given in (n_best, [n_best[0][0].text]):
        with pytest.raises(TypeError, match=r"translation 0: expected a Translation, as in \[n_b"):
            loaded.trace_translations(given)
    assert len(loaded.trace_translations([best[0] for best in n_best])) == 1


@pytest.mark.parametrize("line", [1, None, b"hund", ["der", "hund"]])
def test_what_is_no_sentence_is_named(loaded, line):
    with pytest.raises(
        TypeError, match="sentence 1: expected a string, words separated by spaces, not "
    ):
        list(loaded.translate(["der", line]))
    with pytest.raises(TypeError, match="pair 0, target: expected a string"):
        loaded.align([("der", line)])


@pytest.mark.parametrize("pair", ["ab", "der hund", ("a",), ("a", "b", "c"), 3])
def test_what_is_no_pair_is_named(loaded, pair):
    for use in (loaded.trace, loaded.tokens, lambda value: loaded.score([value])):
        with pytest.raises(TypeError, match=r"pair 0: expected \(source, target\)"):
            use(pair)


def test_any_iterable_will_do(loaded):
    expected = [n_best[0].text for n_best in loaded.translate(["hund", "der"])]
    lines = (line for line in ("hund", "der"))
    assert [n_best[0].text for n_best in loaded.translate(lines)] == expected
    assert len(loaded.score(iter([["der", "HUND"], ("der", "DER")]))) == 2


def test_models_and_traces_tell_what_they_are(loaded, model):
    assert repr(loaded) == f"<tfmann.Model: luong, weights of {model / 'best_bleu'}>"
    trace = loaded.trace(("der hund", "HUND"))
    assert "'hund'" in repr(trace) and "alignments" in repr(trace)
    with pytest.raises(KeyError, match="'alignment': did you mean 'alignments'.*there are"):
        trace["alignment"]
    assert "alignment" not in trace and "alignments" in trace
