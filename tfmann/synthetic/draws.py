"""Random choices that are the same in every version of Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Draws:
    """A stream of choices, seeded by a number and a purpose; different streams are unrelated.

    Only ``random.random()`` is used: it is the one method whose sequence Python promises to keep.
    """

    def __init__(self, seed: int, purpose: str):
        # Python hashes a string seed by SHA-512, so similar names give unrelated streams.
        self._random = random.Random(f"{purpose} {seed}").random

    def chance(self, probability: float) -> bool:
        """Returns True with this probability."""
        return self._random() < probability

    def one_of(self, items: Sequence[Item]) -> Item:
        """Returns one of the items, all equally likely."""
        return items[int(self._random() * len(items))]

    def weighted(self, items: Sequence[Item], weights: Sequence[int]) -> Item:
        """Returns one of the items, in proportion to weights that are integers for exact sums."""
        left = self._random() * sum(weights)
        for item, weight in zip(items, weights):
            left -= weight
            if left < 0:
                return item
        return items[-1]

    def some_of(self, items: Sequence[Item], count: int) -> list[Item]:
        """Returns ``count`` different items in the order drawn."""
        left = list(items)
        return [left.pop(int(self._random() * len(left))) for _ in range(count)]
