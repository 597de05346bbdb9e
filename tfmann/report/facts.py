"""What to know of a table's numbers: what they are of, signatures, the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tfmann.report.measures import BREVITY_APART, SURE, Record, outdated, test_bleu, variants

_FAR_APART = 5.0  # BLEU between the best and the worst seed of a row


def is_bound(record: Record) -> bool:
    """Whether what is under-translated holds what is reworded too: nothing tells them apart."""
    return "adequacy" in record and record["adequacy"]["reworded"] is None


def what_to_know(records: Sequence[Record], several: bool) -> list[str]:
    """Which text the numbers are of, the signatures of the scores, the machine."""
    signatures, machines = set(), set()
    for record in records:
        scores = [record["best"][split][0] for split in ("dev", "test")]
        scores += record.get("detokenised", {}).values()
        signatures.update(score["signature"] for score in scores)
        machines.add(record["hardware"]["cpu"])
    started = sorted({record["start"] for record in records if record.get("start")})
    return [
        *(["mean ± sample standard deviation over the seeds"] if several else []),
        *_about_spread(records),
        *_about_gold_links(records),
        *_about_documents(records),
        *_about_tests(records),
        *_about_intervals(records),
        *(f"+ updates: on top of those of {name}" for name in started),
        *variants(records),
        *(f"BLEU signature: {signature}" for signature in sorted(signatures)),
        f"hardware: {', '.join(sorted(machines))}",
    ]


def _about_spread(records: Sequence[Record]) -> Iterator[str]:
    """Of seeds so far apart that a mean of them is of no run."""
    runs: dict[str, list[float]] = {}
    for record in records:
        runs.setdefault(record["row"], []).append(test_bleu(record))
    for row, scores in runs.items():
        if max(scores) - min(scores) > _FAR_APART:
            each = ", ".join(f"{score:.2f}" for score in scores)
            yield f"seeds far apart: test BLEU of {row} is {each}"


def _about_gold_links(records: Sequence[Record]) -> Iterator[str]:
    sets = {(one["alignment"]["sentences"], one["alignment"]["sure"], one["alignment"]["possible"])
            for one in records if "alignment" in one}  # fmt: skip
    for sentences, sure, possible in sorted(sets):
        yield (
            f"AER, soft AER: % by the attention of forced decoding of {sentences} references, "
            f"{sure} sure and {possible - sure} only possible links"
        )
    for judged in sorted({one["adequacy"]["judged"] for one in records if "adequacy" in one}):
        yield (
            f"under-translated, reworded, over-translated: % of {judged} source words that have a "
            "sure link, in the translations of the best checkpoint"
        )
    if any(map(is_bound, records)):
        yield "≤: with what is reworded, since the cell has no alignments"


def _about_documents(records: Sequence[Record]) -> Iterator[str]:
    for sentences in sorted({one["tense"]["sentences"] for one in records if "tense" in one}):
        yield (
            f"tense: % of {sentences} sentences, the first of each document left out, that have "
            "the reference's; shuffled: the same sentences translated in the documents of others"
        )


def _about_tests(records: Sequence[Record]) -> Iterator[str]:
    found = [one for record in records for one in record.get("significance", ())]
    if found:
        several = len({one.get("seed", 1) for one in records}) > 1
        both = " over the seeds that both have" if several else ""
        greatest = " (the greatest of the seeds)" if several else ""
        yield (
            f"against: difference in test BLEU{both}, p of the paired bootstrap / of the sign test"
            f"{greatest}; †: both below {SURE}; ‡: brevity penalties more than {BREVITY_APART} "
            "apart, so the difference is one of length too"
        )
    rows = {(one["row"], one.get("seed", 1)): one for one in records}
    if any(
        outdated(one, rows[rival, one.get("seed", 1)])
        for one in records
        for rival in (test["baseline"] for test in one.get("significance", ()))
        if (rival, one.get("seed", 1)) in rows
    ):
        yield "§: p values are of an earlier decoding of one of the two"
    for signature in sorted({one["signature"] for one in found}):
        yield f"bootstrap signature: {signature}"


def _about_intervals(records: Sequence[Record]) -> Iterator[str]:
    runs = Counter(one["row"] for one in records)
    found = {one["interval"]["signature"] for one in records
             if "interval" in one and runs[one["row"]] == 1}  # fmt: skip
    if found:
        yield "[low, high]: 95% confidence interval of BLEU over resamples of the test's sentences"
    yield from (f"signature of the interval: {signature}" for signature in sorted(found))
