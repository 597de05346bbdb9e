"""What becomes of characters before SentencePiece cuts a line into pieces: nearly nothing.

A model can only write what its pieces have. The library's own rules, NFKC, would make "12 m2" of
the target's "12 m²" and ASCII of Chinese punctuation, so that no translation equals its reference.
Here tabs and line ends become spaces, as no token contains them, and what nobody sees is removed:
control characters, soft hyphens, zero-width spaces and byte order marks. Joiners stay.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator

_SPACES = "\t\n\v\f\r\u2028\u2029"
_INVISIBLE = [
    chr(code) for code in (*range(1, 9), *range(14, 32), 127, 0xAD, 0x200B, 0x2060, 0xFEFF)
]

# Fields of sentencepiece_model.proto, and how they are written (protobuf's wire types).
_NORMALIZER, _RULE_FILE = 3, 6
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@contextlib.contextmanager
def rule_file() -> Iterator[str]:
    """Yields the path of a file with the rules, for `normalization_rule_tsv`."""
    rules = [f"{ord(character):X}\t20" for character in _SPACES]
    rules += [f"{ord(character):X}\t" for character in _INVISIBLE]
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as stream:
        stream.write("".join(f"{rule}\n" for rule in rules))
        stream.flush()
        yield stream.name


def without_rule_file(model: bytes) -> bytes:
    """Removes the path of `rule_file` from a model, whose file would change with every training."""
    parts = []
    for number, whole, content in _fields(model):
        if number == _NORMALIZER:
            kept = [inner for name, inner, _ in _fields(content) if name != _RULE_FILE]
            content = b"".join(kept)
            whole = _varint(_NORMALIZER << 3 | _BYTES) + _varint(len(content)) + content
        parts.append(whole)
    return b"".join(parts)


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yields each field of a message: its number, all its bytes, its content if it has a length."""
    position = 0
    while position < len(message):
        begin = position
        key, position = _read_varint(message, position)
        content = b""
        if key & 7 == _BYTES:
            length, position = _read_varint(message, position)
            content = message[position : position + length]
            position += length
        elif key & 7 == _VARINT:
            _, position = _read_varint(message, position)
        else:
            position += {_FIXED64: 8, _FIXED32: 4}[key & 7]
        yield key >> 3, message[begin:position], content


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    """Returns a number at a position, and the position after it."""
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position


def _varint(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
