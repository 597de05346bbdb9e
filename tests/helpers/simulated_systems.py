"""Random sentences, and translations of them by systems of any quality."""

from __future__ import annotations

import random

WORDS = "ash birch cedar elm fir hazel larch oak pine rowan willow yew".split()


def corpus(seed: int, count: int) -> list[str]:
    """Returns sentences of 4 to 12 random words."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(4, 12))) for _ in range(count)]


def damage(lines: list[str], seed: int, rate: float) -> list[str]:
    """Replaces a share of the words, drops a few, and leaves some sentences whole."""
    rng = random.Random(seed)
    result = []
    for line in lines:
        words = [rng.choice(WORDS) if rng.random() < rate else word for word in line.split()]
        result.append(" ".join(words[: len(words) - rng.randint(0, 1)]))
    return result
