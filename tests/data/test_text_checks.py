"""Reports of a run about its text: unknown tokens, raw text, dev pairs of the training text."""

import numpy as np
import pytest

from tfmann.data import text_checks
from tfmann.data.encoded_corpus import EncodedCorpus

RAW = ["A man sleeps.", "Who is there?", "He said: »Go!«", "", "no end here", "Two, three, four."]
TOKENS = ["a man sleeps .", "who is there ?", "he said : » go ! «", "", "no end", "it is U.S. law"]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def advice_on(paths):
    return "\n".join(text_checks.text_advice(paths, subword_option="", tokenizer=""))


@pytest.mark.parametrize("lines", [TOKENS, ["", " "], ["3.", "4.", "5 . 6"], ["a", "b", "c"]])
def test_raw_text_is_distinguished_from_tokens(tmp_path, lines):
    raw, tokens = write(tmp_path / "raw", RAW), write(tmp_path / "tokens", lines)
    assert advice_on((tokens, tokens)) == ""
    assert advice_on((raw, tokens)).startswith(f"{raw}: words and punctuation")


def test_the_advice_names_the_raw_side_alone(tmp_path):
    raw, tokens = write(tmp_path / "t.de", RAW), write(tmp_path / "t.en", TOKENS)
    advice = advice_on((raw, tokens))
    assert advice.startswith(f"{raw}: ") and "tfmann prepare" in advice
    assert advice_on((tokens, tokens)) == ""


@pytest.mark.parametrize("space", ["\u00a0", "\u2009", "\u3000"])
def test_lines_that_are_one_token_are_noticed(tmp_path, space):
    joined = write(tmp_path / "t.de", [line.replace(" ", space) for line in TOKENS])
    tokens = write(tmp_path / "t.en", TOKENS)
    advice = advice_on((joined, tokens))
    assert advice.startswith(f"{joined}: ") and "each line is one token" in advice
    mixed = write(tmp_path / "mixed", [f"10{space}000 {line}" for line in TOKENS])
    words = write(tmp_path / "words", ["a", "b", "c"])
    assert "each line is one token" not in advice_on((mixed, words))


@pytest.mark.parametrize(
    "ids, share", [([0, 5, 6, 7], "25.00% of 4"), ([5], "0.00% of 1"), ([], "0.00% of 0")]
)
def test_unknown_tokens_are_counted(ids, share):
    ids = np.array(ids, np.int32)
    corpus = EncodedCorpus(ids, np.array([0, len(ids)]), ids[:1], np.array([0, 1]), np.array([-1]))
    line = text_checks.unknown_tokens(corpus, ("dev.de", "dev.en"))
    is_high = share.startswith("25")
    remark = " (is it segmented like the training text?)" if is_high else ""
    assert line.startswith(f"unknown: {share} tokens in dev.de{remark}, ")


def corpus(folder, name, pairs):
    sides = zip(*pairs)
    return tuple(write(folder / f"{name}.{suffix}", lines) for suffix, lines in zip("st", sides))


def test_an_evaluation_set_of_training_pairs_is_noticed(tmp_path):
    first = corpus(tmp_path, "first", [("a", "A"), ("b", "B"), ("a", "A")])
    second = corpus(tmp_path, "second", [("c", "C"), ("", ""), ("d", "other")])
    pairs = [("a", "A"), ("a", "A"), ("c", "C"), ("d", "D"), ("e", "E")]
    dev = corpus(tmp_path, "dev", pairs)
    warning = text_checks.seen_pairs([first, second], dev)
    assert warning.startswith(f"{dev[0]} and {dev[1]}: 3 of 5 pairs are in the training text too")
    assert text_checks.seen_pairs([first], dev) == ""  # 2 of 5
    assert text_checks.seen_pairs([first, second], first, dev).splitlines() == [
        f"{first[0]} and {first[1]}: 3 of 3 {warning.partition('5 ')[2]}", warning
    ]  # fmt: skip


def test_equal_sources_with_other_translations_are_new_pairs(tmp_path):
    training = corpus(tmp_path, "train", [("a", "A"), ("b", "B")])
    dev = corpus(tmp_path, "dev", [("a", "B"), ("b", "A")])
    assert text_checks.seen_pairs([training], dev) == ""
