"""What a verdict stands on: which corpus, how much of it, how many seeds, how far they trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tfmann.report import measures
from tfmann.report.measures import Record
from tfmann.report.paired import Pairs
from tfmann.report.systems import TABLES

RISE = 0.1  # dev BLEU; what is less counts as no rise
_LAST = 0.2  # share of the updates at whose evaluations a rise is looked for


class Basis(NamedTuple):
    """What a verdict stands on.

    Attributes:
      corpus: which, beside the paper's.
      facts: size, seeds, convergence, lengths.
      unconverged: why the runs cannot be said to have converged; empty where they have.
    """

    corpus: str
    facts: str
    unconverged: str


def rise(record: Record) -> float | None:
    """By how much dev BLEU still rose at the end of a run; None where that is not known.

    The greatest dev BLEU of the evaluations in the last fifth of the recorded updates (after 0.8 of
    the last step that has one) less the greatest before. Where there is none before, as in a
    history of one evaluation or of none, nothing is known. A run has converged where it is known
    and at most `RISE`.
    """
    history = [(one["step"], one["dev_bleu"]) for one in record.get("history", ())
               if "dev_bleu" in one]  # fmt: skip
    begin = (1 - _LAST) * max((step for step, _ in history), default=0)
    before = [bleu for step, bleu in history if step <= begin]
    last = [bleu for step, bleu in history if step > begin]
    return max(last) - max(before) if before else None


def basis(pairs: Pairs, tables: Sequence[str], name: str, scale: str) -> Basis:
    """What a verdict on two rows stands on.

    Args:
      pairs: their runs.
      tables: where the claim can be looked at, the paper's own first.
      name: of the table where it was.
      scale: of that.
    """
    unconverged = _unconverged(pairs)
    facts = [
        _pairs(pairs.row[0], TABLES[tables[0]].paper_pairs),
        f"{len(pairs.seeds)} seeds" if len(pairs.seeds) > 1 else "one seed",
        unconverged or "converged",
    ]
    if pairs.measure in measures.OF_LENGTH and any(
        measures.lengths_apart(*one) for one in zip(pairs.row, pairs.rival)
    ):
        facts.append(_lengths(pairs))
    own = name == tables[0]
    return Basis(corpus_of(pairs.row, name, scale, own), "; ".join(facts), unconverged)


def corpus_of(records: Sequence[Record], name: str, scale: str, own: bool = True) -> str:
    """Whether records are of the corpus of the paper's table, of which copy, or of a stand-in."""
    manifest = TABLES[name].at(scale).manifest
    if not own or manifest is None or manifest != TABLES[name].manifest:
        return "another corpus than the paper's"
    notes = measures.variants(records)
    shown = f" ({'; '.join(notes)})" if notes else ""
    if any(map(measures.stands_in, records)):
        return f"a stand-in for the paper's corpus, in dev and test too{shown}"
    return f"the paper's corpus{shown}"


def _pairs(record: Record, paper: int) -> str:
    trained = record.get("pairs", {}).get("train")
    if trained is None:
        return "size of the corpus not recorded"
    return f"{trained:,} pairs" + (f" (the paper {paper:,})" if paper else "")


def _unconverged(pairs: Pairs) -> str:
    """The rises of the rows that have not converged."""
    rising, unknown = [], []
    for runs in (pairs.row, pairs.rival):
        rises = [rise(one) for one in runs]
        known = [one for one in rises if one is not None]
        if len(known) < len(rises):
            unknown.append(runs[0]["row"])
        elif max(known) > RISE:
            rising.append(f"{runs[0]['row']} by {max(known):.2f}")
    parts = []
    if rising:
        parts.append(f"dev BLEU still rises at the end, of {' and of '.join(rising)}")
    if unknown:
        parts.append(f"the record of {' and of '.join(unknown)} is too short to tell")
    return f"not converged: {', and '.join(parts)}" if parts else ""


def _lengths(pairs: Pairs) -> str:
    shown = (" / ".join(f"{measures.brevity_penalty(one):.3f}" for one in runs)
             for runs in (pairs.row, pairs.rival))  # fmt: skip
    return "lengths differ, brevity penalties {} against {}".format(*shown)
