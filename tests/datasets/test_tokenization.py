"""Tokens by mteval-v13a's rules, and text again: a score of one is a score of the other."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfmann.datasets.tokenization import detokenise, tokenise, without_romanian_diacritics
from tfmann.evaluation.bleu import evaluate

# raw, tokens, text of the tokens where that is not the raw line
LINES = [
    ("A house, a tree.", "A house , a tree .", None),
    ("He said: \"yes (no)\"!", 'He said : " yes ( no ) " !', None),
    ("It's 3.5% of $1,000 in 10-year bonds", "It's 3.5 % of $ 1,000 in 10 - year bonds", None),
    ("„Bine” – a spus‑o … ‘da’\u00a0!", "\" Bine \" - a spus-o . . . 'da' !",
     "\"Bine\" - a spus-o... 'da'!"),
    ("Page 7 of 9", "Page 7 of 9", None),
    ("either/or", "either / or", "either / or"),
    ("&quot;so&quot; &amp; on", '" so " & on', '"so" & on'),
    ("soft\u00adhyphen\u200b and\ufeff marks", "softhyphen and marks", "softhyphen and marks"),
    ("80 m² - a big flat", "80 m² - a big flat", None),
    ("  ", "", ""),
]  # fmt: skip


@pytest.mark.parametrize("raw, tokens, text", LINES)
def test_lines_are_tokenised_and_put_together_again(raw, tokens, text):
    assert tokenise(raw) == tokens == tokenise(tokens)
    assert detokenise(tokens) == (raw if text is None else text)


def test_both_spellings_of_romanian_letters_become_plain():
    assert without_romanian_diacritics("şi ţară și țară ÎNCĂ Ș Ț â") == "si tara si tara INCA S T a"
    assert without_romanian_diacritics("é ö ñ") == "é ö ñ"


WORDS = st.sampled_from(
    ["a", "don't", "m²", "7", "٣", "1,000", "3.5", "10-year", "1990-2000", "U.S.", "Mr.", "end."]
)
PARTS = st.sampled_from([",", ".", "...", ":", ";", "!", "?", '"', "(", ")", "[", "]", "%", "$",
                         "-", "--", "/", "&", "#", "*"])  # fmt: skip
PIECES = st.tuples(st.one_of(WORDS, PARTS), st.sampled_from(["", " "])).map("".join)


@given(st.lists(PIECES, max_size=20).map("".join))
def test_the_text_of_tokens_has_those_tokens(line):
    tokens = tokenise(line)
    # 13a cuts ",,7" to ", ,7", and that to ", , 7": its tokens are not always its tokens again
    assert tokenise(detokenise(tokens)) == tokenise(tokens)


def test_a_score_of_tokens_is_the_13a_score_of_the_text():
    draw = random.Random(1)
    words = ["tree", "house", "1,000", "it's", "10-year", "green", '"', "(", ",", ".", "%"]

    def sentence():
        return detokenise(" ".join(draw.choice(words) for _ in range(12)))

    references = [sentence() for _ in range(30)]
    hypotheses = [line.replace("tree", draw.choice(words)) for line in references]
    (text,) = evaluate(hypotheses, [references], tokenize="13a")
    tokens = [[tokenise(line) for line in lines] for lines in (hypotheses, references)]
    (tokenised,) = evaluate(tokens[0], [tokens[1]], tokenize="none")
    assert 0 < text.value < 100
    assert text.value == pytest.approx(tokenised.value)
