"""Moses tokens around words and BPE: raw text in, detokenized text out."""

import sys

import pytest

from tfmann import config
from tfmann.data.moses import make_segmenters
from tfmann.errors import UsageError, UserError
from tfmann.export.settings import require_fixed


@pytest.fixture
def moses():
    pytest.importorskip("sacremoses", reason="needs pip install '.[moses]'")


def test_raw_text_is_cut_and_put_together_again(moses):
    german, english = make_segmenters("moses", "", None, ["de", "en"])
    assert english.segment("He's here, isn't he?") == [
        "He", "'s", "here", ",", "isn", "'t", "he", "?",
    ]  # fmt: skip
    for segmenter, line in (
        (english, "He's here, isn't he?"),
        (german, "Die „Büsche“, z.B. hier."),
    ):
        assert segmenter.join(segmenter.segment(line)) == line
    assert english.segment("") == [] and english.join([]) == ""
    assert english.segment("a & b <c>") == ["a", "&", "b", "<", "c", ">"]  # nothing is escaped


def test_languages_have_different_fingerprints(moses):
    german, english = make_segmenters("moses", "", None, ["de", "en"])
    assert german.fingerprint != english.fingerprint
    plain = make_segmenters("", "", None, ["de", "en"])
    assert plain[0] is plain[1] and plain[0].fingerprint != german.fingerprint


def test_without_sacremoses_there_is_one_message(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(UserError, match=r"pip install 'tfmann\[moses\]'"):
        make_segmenters("moses", "", None, ["de", "en"])


def test_an_export_refuses_tokens_that_only_python_makes():
    with pytest.raises(UsageError, match="tokenizer='moses' runs in Python"):
        require_fixed(config.HParams(tokenizer="moses"))


def test_sentencepiece_takes_no_tokenizer():
    with pytest.raises(UsageError, match="leave out tokenizer"):
        config.HParams(subword_option="spm", subword_model="m", tokenizer="moses")
