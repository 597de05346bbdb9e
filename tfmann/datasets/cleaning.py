"""Rules that exclude pairs of a parallel corpus from training."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
from collections.abc import Iterable, Iterator

from tfmann.data.text_files import Pair


@dataclasses.dataclass(frozen=True)
class CleaningRules:
    """Requirements of a training pair; lengths are in words between white space.

    Attributes:
      max_length: greatest length of a side; 0 = no limit.
      max_ratio: greatest length of one side over that of the other; 0 = no limit.
      drop_duplicates: whether of equal pairs only the first stays.
      drop_copies: whether pairs go whose sides are equal.
    """

    max_length: int = 0
    max_ratio: float = 0.0
    drop_duplicates: bool = False
    drop_copies: bool = False


class Cleaner:
    """Filters the pairs of a corpus one by one.

    Attributes:
      removed: the number of pairs left out, by reason: "empty", "too long", "lengths too
        different", "copied", "duplicate".
    """

    def __init__(self, rules: CleaningRules):
        """Starts with no pair."""
        self.removed: collections.Counter[str] = collections.Counter()
        self._rules = rules
        self._digests: set[bytes] = set()  # 16 bytes for each pair, however long its text

    def clean(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yields the pairs that the rules keep, in their order."""
        for pair in pairs:
            reason = self._reason(pair)
            if reason:
                self.removed[reason] += 1
            else:
                yield pair

    def _reason(self, pair: Pair) -> str:
        """Returns why a pair is left out, or an empty string."""
        rules = self._rules
        lengths = sorted((len(pair.source.split()), len(pair.target.split())))
        if not lengths[0]:
            return "empty"
        if rules.max_length and lengths[1] > rules.max_length:
            return "too long"
        if rules.max_ratio and lengths[1] > rules.max_ratio * lengths[0]:
            return "lengths too different"
        if rules.drop_copies and pair.source.split() == pair.target.split():
            return "copied"
        if rules.drop_duplicates and self._is_duplicate(pair):
            return "duplicate"
        return ""

    def _is_duplicate(self, pair: Pair) -> bool:
        text = f"{pair.source}\n{pair.target}".encode()
        digest = hashlib.blake2b(text, digest_size=16).digest()
        if digest in self._digests:
            return True
        self._digests.add(digest)
        return False
