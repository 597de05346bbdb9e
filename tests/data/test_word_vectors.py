"""Files of word vectors: what is read of them, and what is refused."""

import pytest

from tfmann.config import HParams
from tfmann.data import text_files, word_vectors
from tfmann.data.vocab import Vocabulary
from tfmann.errors import UserError

VOCABULARY = Vocabulary.from_tokens(["ein", "mann", "schläft", "5", "3"])


def read(tmp_path, *lines, width=3):
    path = str(tmp_path / "vectors.de")
    text_files.write_lines(path, lines)
    vectors = word_vectors.read(path, VOCABULARY, width)
    return {word: vector.tolist() for word, vector in vectors.items()}


def test_the_words_of_the_vocabulary_are_read_in_any_order(tmp_path):
    lines = ["frau 9 9 9", "schläft 0.5 -1 2e-1", "mann 1 2 3", "mann 7 7 7", ""]
    expected = {"schläft": [0.5, -1.0, pytest.approx(0.2)], "mann": [1.0, 2.0, 3.0]}
    assert read(tmp_path, *lines) == expected


@pytest.mark.parametrize("lines", [["5 3", "mann 1 2 3 "], ["mann\t1\t2\t3\r"], ["mann  1  2  3"]])
def test_headers_and_white_space_are_no_part_of_a_vector(tmp_path, lines):
    assert read(tmp_path, *lines) == {"mann": [1.0, 2.0, 3.0]}


def test_a_header_is_only_in_the_first_line(tmp_path):
    assert read(tmp_path, "mann 1", "5 3", width=1) == {"mann": [1.0], "5": [3.0]}


def test_special_tokens_and_words_with_a_space_are_left_out(tmp_path):
    lines = ["</s> 1 1 1", "<unk> 1 1 1", "mann und frau 1 2 3", "ein 4 5 6"]
    assert read(tmp_path, *lines) == {"ein": [4.0, 5.0, 6.0]}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["ein 1 2 3", "mann 1 2"], r"vectors\.de, line 2: .* 3 finite numbers, found 2"),
        (["mann 1 1e39 3"], r"vectors\.de, line 1: expected a word and 3 finite numbers"),
        (["mann 1 nan 3"], r"vectors\.de, line 1: expected a word and 3 finite numbers"),
        (["ein 1 2 3", "mann 1 x 3"], r"vectors\.de, line 2: .*'x'; expected a word and 3"),
        (["frau 1 2 3"], r"vectors\.de has a vector for none of the 8 words .* such as '3'"),
        (["2 3", "mann 1 2 3 4"], r"vectors\.de, line 2: expected 3 numbers, found 4"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, lines, message):
    with pytest.raises(UserError, match=message):
        read(tmp_path, *lines)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"there is neither .*vectors\.de nor .*vectors\.en"),
        ({"de": []}, r"vectors\.de has no word vectors"),
        ({"de": ["mann"]}, r"vectors\.de has no word vectors"),
        ({"de": ["a 1 2 3"], "en": ["a 1 2"]}, r"vectors\.en has .* 2 numbers, and .* 3 wide"),
        ({"en": ["10 4", "a 1 2 3 4"]}, r"vectors\.en has .* 4 numbers.*--embedding_size=4"),
    ],
)
def test_files_are_checked_before_training(tmp_path, files, message):
    for suffix, lines in files.items():
        text_files.write_lines(tmp_path / f"vectors.{suffix}", lines)
    hparams = HParams(src="de", tgt="en", num_units=3, embed_prefix=str(tmp_path / "vectors"))
    with pytest.raises(UserError, match=message):
        word_vectors.require(hparams)


def test_one_side_is_enough(tmp_path):
    text_files.write_lines(tmp_path / "vectors.en", ["2 3", "a 1 2 3"])
    hparams = HParams(src="de", tgt="en", num_units=3, embed_prefix=str(tmp_path / "vectors"))
    word_vectors.require(hparams)
    assert word_vectors.find(hparams) == {"target": str(tmp_path / "vectors.en")}
