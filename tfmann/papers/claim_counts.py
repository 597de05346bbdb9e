"""How many claims of each paper are proven, and what keeps the others inconclusive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tfmann.evaluation.verdicts import FAILS, HOLDS, INCONCLUSIVE
from tfmann.papers import judgement
from tfmann.papers.claim import AnyClaim
from tfmann.papers.claims import CLAIMS
from tfmann.papers.judgement import OBSTACLES, Verdict


def by_paper(judged: Sequence[tuple[AnyClaim, Verdict]]) -> tuple[list[str], list[list[str]]]:
    """Counts the measured claims of each paper.

    Args:
      judged: from `judgement.judge`, in any order.

    Returns:
      heading: paper, verdicts, and those obstacles that any inconclusive claim has.
      rows: a row for each paper of which a claim was measured.
    """
    counts: dict[str, Counter[str]] = {claim.paper: Counter() for claim in CLAIMS}
    for claim, verdict in judged:
        if verdict.status != judgement.NOT_MEASURED:
            counts[claim.paper].update((verdict.status, verdict.obstacle))
    obstacles = [name for name in OBSTACLES if any(count[name] for count in counts.values())]
    columns = [HOLDS, FAILS, INCONCLUSIVE, *obstacles]
    heading = ["paper", HOLDS, FAILS, INCONCLUSIVE, *(f"({name})" for name in obstacles)]
    rows = [
        [paper, *(str(count[name] or "-") for name in columns)]
        for paper, count in counts.items()
        if count
    ]
    return heading, rows
