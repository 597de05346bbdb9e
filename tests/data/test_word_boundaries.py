"""Where words begin and end among the tokens of words, byte pairs and sentence pieces."""

import pytest

from tfmann.data.moses import MosesSegmenter
from tfmann.data.subword import (
    BpeSegmenter,
    SentencePieceSegmenter,
    WordSegmenter,
    sentencepiece_vocabulary,
)
from tfmann.data.subword_learning import train_sentencepiece
from tfmann.data.text_encoder import TextEncoder
from tfmann.data.text_files import write_lines
from tfmann.data.vocab import Vocabulary
from tfmann.data.word_boundaries import word_boundaries


def test_words_have_none_inside():
    encoder = TextEncoder(Vocabulary.from_tokens(["low", "est@@"]), WordSegmenter())
    boundaries = word_boundaries(encoder)
    assert boundaries == (None, None)
    assert boundaries.are_words([4, 3])


def test_a_byte_pair_is_open_if_its_word_continues():
    encoder = TextEncoder(Vocabulary.from_tokens(["low@@", "est", "low"]), BpeSegmenter())
    boundaries = word_boundaries(encoder)
    assert boundaries.is_open.tolist() == [False] * 3 + [True, False, False]
    assert boundaries.joins is None
    assert boundaries.are_words([3, 4]) and not boundaries.are_words([5, 3])


def test_tokens_of_moses_are_cut_by_byte_pairs_all_the_same():
    segmenter = MosesSegmenter(BpeSegmenter(), "en")
    encoder = TextEncoder(Vocabulary.from_tokens(["low@@", "est", "low"]), segmenter)
    assert word_boundaries(encoder).is_open.tolist() == [False] * 3 + [True, False, False]


def test_a_piece_joins_the_word_before_it(tmp_path):
    pytest.importorskip("tensorflow_text")
    lines = ["lower lowest slow .", "low , slower ( owl )", "who lows lower than owls ?"]
    write_lines(tmp_path / "text", lines * 20)
    path = train_sentencepiece([tmp_path / "text"], tmp_path / "spm", 22)
    encoder = TextEncoder(sentencepiece_vocabulary(path), SentencePieceSegmenter(path))
    boundaries = word_boundaries(encoder)
    assert boundaries.is_open is None
    for token, joins in zip(encoder.vocabulary.tokens, boundaries.joins):
        assert joins == (token[0].isalpha()), token
    for line in lines:
        ids = encoder.encode(line)
        assert boundaries.are_words(ids)
        words = sum(not boundaries.joins[i] for i in ids)
        assert words >= len(line.split())


@pytest.mark.parametrize(
    "piece, joins",
    [
        ("er", True),
        ("\u2581er", False),
        ("\u0301e", True),
        ("7", True),
        (",", False),
        ("\u20ac", False),
    ],
)
def test_letters_digits_and_accents_join_the_word_before_them(piece, joins):
    segmenter = SentencePieceSegmenter.__new__(SentencePieceSegmenter)  # its model is not read
    encoder = TextEncoder(Vocabulary.from_tokens([piece]), segmenter)
    assert word_boundaries(encoder).joins.tolist()[3:] == [joins]
