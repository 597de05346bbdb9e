"""The SGML of WMT's development and test sets as plain text, one segment a line."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from tfmann.data.text_files import write_lines
from tfmann.errors import UserError
from tfmann.utils.files import PathLike, read_bytes

_SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")
_WHITE_SPACE = re.compile(r"[ \t\r\n]+")


def segments(text: str) -> Iterator[str]:
    """Yields the text between `<seg ...>` and `</seg>`, in the order of the file.

    Tags inside are dropped, entities (`&amp;`, `&#39;`) become characters, and a run of spaces,
    tabs and line ends becomes one space: a segment is one line.
    """
    for match in _SEGMENT.finditer(text):
        yield _WHITE_SPACE.sub(" ", html.unescape(_TAG.sub("", match[1]))).strip(" ")


def to_plain_text(source: PathLike, target: PathLike) -> None:
    """Writes the segments of an SGML file as lines of `target`, which may be the same file.

    Raises:
      UserError: a file cannot be read or written, is not UTF-8, or has no segment.
    """
    try:
        lines = list(segments(read_bytes(source).decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise UserError(f"{source}: not UTF-8 at byte {error.start:,}: {error.reason}") from None
    if not lines:
        raise UserError(f"{source}: no <seg> in it; expected the SGML of a WMT test set")
    write_lines(target, lines)
