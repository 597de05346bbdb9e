"""The papers' claims in our own words, a module for each paper; `judgement.judge` tests them.

Unlike the papers, we compare models that start from a trained RNNSearch with an RNNSearch of the
same number of updates, so that the additional training alone is no gain. Training a cache leaves
RNNSearch unchanged, so a cache is compared with the original RNNSearch too. No paper makes the
claims of `controls`, which those about previous sentences depend on, and of `hypotheses`.
"""

from __future__ import annotations

from tfmann.papers.claim import AnyClaim, Claim
from tfmann.papers.claims import collier2019, controls, hypotheses, meng2018, mino2017, tu2018

CLAIMS: tuple[AnyClaim, ...] = (
    *collier2019.CLAIMS,
    *meng2018.CLAIMS,
    *mino2017.CLAIMS,
    *tu2018.CLAIMS,
    *controls.CLAIMS,
    *hypotheses.CLAIMS,
)


def rivals(table: str, row: str) -> set[str]:
    """Returns the rows that a claim about test BLEU compares with this row of a table."""
    return {
        {claim.row: claim.rival, claim.rival: claim.row}[row]
        for claim in CLAIMS
        if isinstance(claim, Claim)
        and table in claim.tables
        and claim.measure == "test BLEU"
        and row in (claim.row, claim.rival)
    }
