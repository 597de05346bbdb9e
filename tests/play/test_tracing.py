"""Traces for the page: the same as in Python, and a forced word is a forced decoding."""

import json

import numpy as np
import pytest
from helpers import small_models
from helpers.command_line import write_model

from tfmann import api
from tfmann.cells.diagnostics import SHAPES
from tfmann.data.subword import WordSegmenter
from tfmann.play.tracing import trace_line
from tfmann.serving.requests import RequestError

pytestmark = pytest.mark.usefixtures("untraced")
CAP = 7
MEMORY = {"encoder_type": "memory", "num_memory_locations": 5, "memory_unit_size": 6}
CHANGES = {
    "luong": {},
    "ntm-heads": {},
    "kvmematt-3": {},
    "ntm_memory": {"cell": "ntm", **MEMORY},
    "dnc_memory": {"cell": "dnc", **MEMORY},
    "cache": {"cell": "cache", "cache_size": 4, "unit_type": "gru", "projection_bias": True},
    "previous": {"cell": "previous", "unit_type": "gru", "append_source_eos": False},
}
LINES = ["der hund", "die katze sieht die katze", "größe một chó"]


@pytest.fixture(scope="module", params=list(CHANGES))
def model(request, tmp_path_factory):
    name = request.param
    variant = (
        name if name in small_models.VARIANTS else "luong" if "memory" in name else "rnnsearch"
    )
    folder = write_model(tmp_path_factory.mktemp("model"), variant, **CHANGES[name])
    return api.load(str(folder))


@pytest.mark.quick("kvmematt-3", "previous")
def test_the_page_draws_what_the_trace_says(model):
    answer = trace_line(model, LINES)
    json.dumps(answer, allow_nan=False)
    pairs = [(pair["source"], pair["target"]) for pair in answer["earlier"]]
    assert [source for source, _ in pairs] == LINES[:-1]
    text = " ".join(answer["tokens"][:-1])
    trace = model.traces([*pairs, (LINES[-1], text)], [0] * len(LINES))[-1]
    tokens = [pair["source_tokens"] for pair in answer["earlier"]]
    assert tokens == [[*line.split(), "</s>"] for line in LINES[:-1]]
    for weights in answer["arrays"].get("previous_alignments", ()):
        assert len(weights) == len(tokens[-1])
    assert answer["tokens"] == trace.tokens and answer["source_tokens"] == trace.source_tokens
    assert answer["step_tokens"] == trace.step_tokens and answer["boundary"] == trace.boundary
    assert answer["rounds"] == trace.rounds
    assert set(answer["arrays"]) == set(trace) - {"decoder_state", "link"} <= set(SHAPES)
    for name, values in answer["arrays"].items():
        np.testing.assert_allclose(values, trace[name], atol=2e-5)
    assert set(answer["heads"]) == set(trace.heads)
    for head, quantities in trace.heads.items():
        for name, values in quantities.items():
            np.testing.assert_allclose(answer["heads"][head][name], values, atol=2e-5)
    if trace.slots is None:
        assert answer["slots"] is None
    else:
        assert answer["slots"]["words"] == trace.slots.words
        assert answer["slots"]["ages"] == list(trace.slots.ages)


def test_words_are_the_most_probable_ones(model):
    answer = trace_line(model, LINES[-1:])
    assert len(answer["nearest"]) == len(answer["probs"]) == len(answer["tokens"])
    for token, nearest, prob in zip(answer["tokens"][:-1], answer["nearest"], answer["probs"]):
        probs = [choice["prob"] for choice in nearest]
        assert probs == sorted(probs, reverse=True) and sum(probs) <= 1 + 1e-4
        best = next(choice for choice in nearest if choice["token"] != "<s>")
        assert best == {"token": token, "prob": pytest.approx(prob, abs=3e-5)}
    greedy = model.with_search(infer_mode="greedy", num_translations_per_input=1)
    [[best]] = greedy.translate(LINES[-1:])
    assert answer["tokens"] == best.tokens
    assert answer["log_prob"] == pytest.approx(best.score, abs=1e-3)


@pytest.mark.quick("luong")
def test_the_last_line_has_the_length_and_repeats_as_little_as_the_settings_ask(model):
    greedy = {"infer_mode": "greedy", "num_translations_per_input": 1}
    found = set()
    for settings in ({}, {"no_repeat_ngram_size": 1}, {"tgt_min_len_infer": 6}):
        searched = model.with_search(**greedy, **settings)
        [[best]] = searched.translate(LINES[-1:])
        assert trace_line(searched, LINES[-1:])["tokens"] == best.tokens
        found.add(best.text)
    assert len(found) > 1, "the settings change nothing here"


@pytest.mark.quick("luong")
def test_a_forced_word_that_the_model_cannot_write_is_refused(model):
    for word, message in {
        "unheard-of": "'unheard-of' is not in the model's vocab.* into <unk>",
        "HUND DER": "'HUND DER' is not in the model's vocab.* into HUND DER: give one token",
        "<s>": "'<s>' stands for the beginning",
        "": "the prefix has an empty token",
    }.items():
        with pytest.raises(RequestError, match=message):
            trace_line(model, LINES[:1], [word])


@pytest.mark.quick("previous")
def test_a_line_without_tokens_is_left_out_or_refused(model, monkeypatch):
    """SentencePiece leaves out a zero-width space, which is no white space to Python."""
    segment = WordSegmenter.segment
    monkeypatch.setattr(
        WordSegmenter, "segment", lambda self, line: segment(self, line.replace("\u200b", ""))
    )
    with pytest.raises(RequestError, match=r"the model reads nothing in the last line, '\\u200b'"):
        trace_line(model, [LINES[0], "\u200b"])
    answer = trace_line(model, [LINES[0], "\u200b", LINES[2]])
    assert answer == trace_line(model, [LINES[0], LINES[2]])


def test_a_forced_word_is_a_forced_decoding(model):
    free = trace_line(model, LINES[:1])
    prefix = [free["tokens"][0], "HUND" if free["tokens"][1] != "HUND" else "DER"]
    forced = trace_line(model, LINES[:1], prefix)
    assert forced["tokens"][:2] == prefix and forced["forced"] == 2
    text = " ".join(forced["tokens"][:-1])
    [scored] = model.score([(LINES[0], text)])
    assert scored.tokens == forced["tokens"]
    probs = np.exp(scored.word_log_probs)
    np.testing.assert_allclose(forced["probs"], probs, atol=2e-5)
    for token, prob, nearest in zip(forced["tokens"], probs, forced["nearest"]):
        probs_of_token = [choice["prob"] for choice in nearest if choice["token"] == token]
        assert not probs_of_token or probs_of_token[0] == pytest.approx(prob, abs=3e-5)
    trace = model.trace((LINES[0], text))
    for name, values in forced["arrays"].items():
        np.testing.assert_allclose(values, trace[name], atol=2e-5)


def test_the_end_may_be_forced_and_a_long_prefix_is_followed(model):
    assert trace_line(model, LINES[:1], ["HUND", "</s>", "DER"])["tokens"] == ["HUND", "</s>"]
    long = ["HUND"] * (CAP + 3)
    assert trace_line(model, LINES[:1], long)["tokens"] == [*long, "</s>"]
