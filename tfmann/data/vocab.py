"""Vocabularies: files with one token on each line, and ids that start with the three specials.

Published vocabulary files differ in the order of `<unk>`, `<s>` and `</s>` (those of IWSLT'15 start
with `</s>`), so ids are not line numbers: loading gives the specials the ids 0, 1, 2.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import logging
import re
from collections.abc import Iterable, Sequence

from tfmann.data.text_files import iter_lines, write_lines
from tfmann.errors import UserError
from tfmann.utils.files import PathLike

UNK, SOS, EOS = "<unk>", "<s>", "</s>"
UNK_ID, SOS_ID, EOS_ID = 0, 1, 2
SPECIALS = (UNK, SOS, EOS)

WHITE_SPACE = re.compile(r"[ \t\r\n]")  # separates tokens, so that no token contains it
_NAMED_LINES = 5  # line numbers in a message before "..."

_log = logging.getLogger(__name__)


class NoTokenError(UserError):
    """No token of a text is left for its vocabulary."""


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The tokens of one language in the order of their ids; immutable.

    Attributes:
      tokens: V distinct tokens, of which `<unk>`, `<s>`, `</s>` are the first three.
    """

    tokens: tuple[str, ...]
    _ids: dict[str, int] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {token: i for i, token in enumerate(self.tokens)}
        if self.tokens[:3] != SPECIALS or len(ids) != len(self.tokens):
            raise ValueError("tokens must begin with <unk>, <s>, </s> and be all different")
        for token in self.tokens:
            if not token or WHITE_SPACE.search(token):
                raise ValueError(f"{token!r} cannot be a line of a vocabulary file")
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def load(cls, path: PathLike) -> Vocabulary:
        """Reads a vocabulary file; the specials may be anywhere in it, the rest keep their order.

        A repeated token is dropped with a warning: its second id would never be used, and hash
        tables built from such a file fail much later.

        Raises:
          UserError: the file cannot be read, is not UTF-8, is empty, lacks a special, or has a
            line that is blank or contains white space; the message names the line.
        """
        first_lines: dict[str, int] = {}
        repeated: list[int] = []
        for number, line in enumerate(iter_lines(path), start=1):
            _check_token(line, path, number)
            if line in first_lines:
                repeated.append(number)
            else:
                first_lines[line] = number
        if not first_lines:
            raise UserError(f"the vocabulary {path} is empty; expected one token a line")
        missing = [token for token in SPECIALS if token not in first_lines]
        if missing:
            raise UserError(
                f"the vocabulary {path} lacks {', '.join(missing)}: "
                f"add {'it' if len(missing) == 1 else 'each'} on a line of its own"
            )
        if repeated:
            named = ", ".join(str(number) for number in repeated[:_NAMED_LINES])
            ellipsis = ", ..." if len(repeated) > _NAMED_LINES else ""
            _log.warning(
                "%s: dropped %d tokens that occur earlier in the file (lines %s%s)",
                path,
                len(repeated),
                named,
                ellipsis,
            )
        return cls.from_tokens(first_lines)

    @classmethod
    def from_tokens(cls, tokens: Iterable[str]) -> Vocabulary:
        """Makes a vocabulary of distinct tokens, with the specials first, given or not."""
        return cls(SPECIALS + tuple(token for token in tokens if token not in SPECIALS))

    @classmethod
    def build(
        cls, token_lines: Iterable[Sequence[str]], max_size: int = 0, min_frequency: int = 1
    ) -> Vocabulary:
        """Counts tokens; the most frequent come first, equally frequent ones by code point.

        Args:
          token_lines: segmented sentences.
          max_size: greatest V, specials included; 0 for no limit.
          min_frequency: rarer tokens are left out.

        Raises:
          NoTokenError: no token is left, because of the text or because of the two limits.
        """
        counts: collections.Counter[str] = collections.Counter()
        for line in token_lines:
            counts.update(line)
        for special in SPECIALS:  # in the text they are special too
            counts.pop(special, None)
        tokens = [token for token, count in counts.items() if count >= min_frequency]
        tokens.sort(key=lambda token: (-counts[token], token))
        if max_size:
            tokens = tokens[: max(0, max_size - len(SPECIALS))]
        if not tokens:
            if not counts:
                raise NoTokenError("no token is left for the vocabulary: the text is blank")
            limits = f"vocab_min_frequency={min_frequency}, vocab_size={max_size}"
            raise NoTokenError(
                f"no token is left for the vocabulary: the text has {len(counts):,} different "
                f"ones, {limits} (specials included)"
            )
        return cls.from_tokens(tokens)

    def save(self, path: PathLike) -> None:
        """Writes the tokens in the order of ids, one on each line; raises UserError on failure."""
        write_lines(path, self.tokens)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Returns the id of every token, that of `<unk>` for a token outside the vocabulary."""
        id_of = self._ids.get
        return [id_of(token, UNK_ID) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Returns the token of every id, specials included.

        Raises:
          IndexError: an id is negative or not below V.
        """
        tokens = []
        for i in ids:
            if i < 0:  # Python would index from the end
                raise IndexError(f"{i} is no token's id")
            tokens.append(self.tokens[i])
        return tokens

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the file that `save` writes; that of the loaded file may differ."""
        content = "".join(token + "\n" for token in self.tokens)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids


def _check_token(line: str, path: PathLike, number: int) -> None:
    if not line.strip(" \t\r"):
        raise UserError(f"{path}, line {number}: blank; a vocabulary has one token on every line")
    if WHITE_SPACE.search(line):
        raise UserError(
            f"{path}, line {number}: white space in {line[:40]!r}; a vocabulary has one token "
            "on every line and nothing else (no counts)"
        )
