"""What a cache holds, as a table: readable as it is, and Markdown without HTML."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfmann.report import drawing
from tfmann.report.cache_figures import by_recency

if TYPE_CHECKING:
    from tfmann.decoding.lines import Slots

_HEADINGS = ("rank", "word", "age in words")


def cache_table(slots: Slots) -> str:
    """Lists the filled slots, the one written last first.

    Its age counts the words of the document that were written since: 0 is the last one. Words stand
    as code, so that a ``</s>`` or a ``*`` is shown as it is.

    Returns:
      lines, each ended; a heading alone where nothing is filled.
    """
    rows = [_HEADINGS] + [
        (str(rank), _code(slots.words[i]), str(slots.ages[i]))
        for rank, i in enumerate(by_recency(slots), start=1)
    ]
    widths = [max(map(_columns, column)) for column in zip(*rows)]
    rank_rule, word_rule, age_rule = ("-" * width for width in widths)
    rows.insert(1, (f"{rank_rule[1:]}:", word_rule, f"{age_rule[1:]}:"))  # ":": to the right
    return "".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    rank, word, age = (
        (" " * (width - _columns(text)), text) for text, width in zip(row, widths)
    )
    return f"| {''.join(rank)} | {''.join(reversed(word))} | {''.join(age)} |\n"


def _code(word: str) -> str:
    """A word as a code span in a cell; its fence is longer than any run of backticks in it."""
    word = drawing.without_controls(word)
    ticks = "`" * (max(map(len, re.findall("`+", word)), default=0) + 1)
    gap = " " if word.startswith("`") or word.endswith("`") else ""
    return f"{ticks}{gap}{word}{gap}{ticks}".replace("|", "\\|")  # a bar would end the cell


def _columns(text: str) -> int:
    """Columns that a text takes in a terminal: two a wide letter, none a combining mark."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
