"""Raw text to tokens by the rules of mteval-v13a, and English tokens to text again.

They serve corpora that are published raw (WMT). The rules are sacreBLEU's, so that a score on
tokens (`tok:none`) and one on detokenised text (`tok:13a`) split the text in the same way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

# The version of these rules in the record of a prepared corpus; raise it with every change.
RULES = "13a-1"

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("„“”‟«»″", '"'),
        **dict.fromkeys("‘’‚‛´`ʼ′", "'"),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u200a\u202f\u3000", " "),
        # soft hyphen, zero-width characters, marks of direction and of byte order
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff", ""),
        "…": "...",
    }
)
_ROMANIAN = str.maketrans("ăâîșşțţĂÂÎȘŞȚŢ", "aaissttAAISSTT")

_DIGITS = frozenset("0123456789")  # 13a's: m² ends in none
_CLOSING = frozenset(".,:;!?)]}%")
_OPENING = frozenset("([{$")


def plain_punctuation(line: str) -> str:
    """Replaces typographic quotes, dashes and spaces by ASCII; removes invisible characters."""
    return line.translate(_PLAIN)


def without_romanian_diacritics(line: str) -> str:
    """Drops Romanian diacritics, as Sennrich et al. 2016 do on a Romanian source.

    Cedilla (ş, ţ) and comma below (ș, ț) are two spellings of one letter; both occur in one text.
    """
    return line.translate(_ROMANIAN)


def tokenise(line: str) -> str:
    """Returns the tokens of a line with one space between them."""
    return _rules_13a()(plain_punctuation(line))


def detokenise(line: str) -> str:
    """Returns English tokens as text, with punctuation attached to its words.

    Ambiguous tokens (a slash, a hyphen between words) keep their spaces. Tokenising the result
    gives the same as tokenising the tokens.
    """
    words: list[str] = []
    glue = True  # whether the next token is written without a space before it
    inside_quotes = False
    for token in line.split():
        last = words[-1][-1] if words else ""
        attached = glue or token in _CLOSING
        glue = token in _OPENING
        if token == '"':
            attached = attached or inside_quotes
            inside_quotes = not inside_quotes
            glue = inside_quotes
        elif token == "-" and last in _DIGITS:  # 13a splits 10-year after the number only
            attached = glue = True
        if attached and words:
            words[-1] += token
        else:
            words.append(token)
    return " ".join(words)


@functools.cache
def _rules_13a() -> Callable[[str], str]:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    return Tokenizer13a()
