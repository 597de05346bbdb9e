"""A vocabulary: one token a line on disk, ids in memory, the three specials always first.

Vocabulary files in circulation differ in where `<unk>`, `<s>` and `</s>` stand (IWSLT'15's begin
with `</s>`), so ids never come from line numbers: loading puts the specials at 0, 1, 2.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import logging
import re
from collections.abc import Iterable, Sequence

from tfmann.corpus.files import PathLike, iter_lines, write_lines
from tfmann.errors import UserError

UNK, SOS, EOS = "<unk>", "<s>", "</s>"
UNK_ID, SOS_ID, EOS_ID = 0, 1, 2
SPECIALS = (UNK, SOS, EOS)

WHITE_SPACE = re.compile(r"[ \t\r\n]")  # tokens are split at it, and none can hold it
_NAMED_LINES = 5  # line numbers a message lists before it says "..."

_log = logging.getLogger(__name__)


class NoTokenError(UserError):
    """A text leaves nothing for its vocabulary."""


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The tokens of one language in the order of their ids; it never changes.

    Attributes:
      tokens: V different tokens; `<unk>`, `<s>`, `</s>` are the first three.
    """

    tokens: tuple[str, ...]
    _ids: dict[str, int] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {token: i for i, token in enumerate(self.tokens)}
        if self.tokens[:3] != SPECIALS or len(ids) != len(self.tokens):
            raise ValueError("tokens must begin with <unk>, <s>, </s> and be all different")
        for token in self.tokens:
            if not token or WHITE_SPACE.search(token):
                raise ValueError(f"{token!r} cannot stand on a line of a vocabulary file")
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def load(cls, path: PathLike) -> Vocabulary:
        """Reads a vocabulary file; the specials may stand anywhere in it, the rest keep order.

        A token that comes again is dropped with a warning: a second id for it would never be
        used, and hash tables made from such files fail much later.

        Raises:
          UserError: the file cannot be read, is not UTF-8, is empty, lacks a special, or has a
            line that is blank or holds white space; the message names the line.
        """
        seen: dict[str, int] = {}
        repeated: list[int] = []
        for number, line in enumerate(iter_lines(path), start=1):
            _check_token(line, path, number)
            if line in seen:
                repeated.append(number)
            else:
                seen[line] = number
        if not seen:
            raise UserError(f"the vocabulary {path} is empty; expected one token a line")
        missing = [token for token in SPECIALS if token not in seen]
        if missing:
            raise UserError(
                f"the vocabulary {path} lacks {', '.join(missing)}: "
                f"add {'it' if len(missing) == 1 else 'each'} on a line of its own"
            )
        if repeated:
            named = ", ".join(str(number) for number in repeated[:_NAMED_LINES])
            more = ", ..." if len(repeated) > _NAMED_LINES else ""
            _log.warning(
                "%s: dropped %d tokens that stand earlier in the file (lines %s%s)",
                path,
                len(repeated),
                named,
                more,
            )
        return cls.of(seen)

    @classmethod
    def of(cls, tokens: Iterable[str]) -> Vocabulary:
        """Makes a vocabulary of different tokens, specials first whether they are given or not."""
        return cls(SPECIALS + tuple(token for token in tokens if token not in SPECIALS))

    @classmethod
    def build(
        cls, token_lines: Iterable[Sequence[str]], max_size: int = 0, min_frequency: int = 1
    ) -> Vocabulary:
        """Counts tokens: the most frequent first, equally frequent ones by code point.

        Args:
          token_lines: segmented sentences.
          max_size: greatest V, specials included; 0 = as many as there are.
          min_frequency: rarer tokens are left out.

        Raises:
          NoTokenError: no token is left, because of the text or because of the two limits.
        """
        counts: collections.Counter[str] = collections.Counter()
        for tokens in token_lines:
            counts.update(tokens)
        for special in SPECIALS:  # text that spells them means them
            counts.pop(special, None)
        kept = [token for token, count in counts.items() if count >= min_frequency]
        kept.sort(key=lambda token: (-counts[token], token))
        if max_size:
            kept = kept[: max(0, max_size - len(SPECIALS))]
        if not kept:
            if not counts:
                raise NoTokenError("no token is left for the vocabulary: the text is blank")
            limits = f"vocab_min_frequency={min_frequency}, vocab_size={max_size}"
            raise NoTokenError(
                f"no token is left for the vocabulary: the text has {len(counts):,} different "
                f"ones, {limits} (specials included)"
            )
        return cls.of(kept)

    def save(self, path: PathLike) -> None:
        """Writes one token a line in the order of ids; raises UserError if it cannot."""
        write_lines(path, self.tokens)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Returns the id of every token, `<unk>`'s for those that are not in the vocabulary."""
        find = self._ids.get
        return [find(token, UNK_ID) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Returns the token of every id, specials included.

        Raises:
          IndexError: an id is negative or not below V.
        """
        tokens = []
        for i in ids:
            if i < 0:  # Python would count from the end
                raise IndexError(f"{i} is no token's id")
            tokens.append(self.tokens[i])
        return tokens

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the file `save` would write: equal for files that differ in form only."""
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
