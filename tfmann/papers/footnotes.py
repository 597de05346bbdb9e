"""The notes below a table: what its columns and marks mean, the corpus, signatures, the machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tfmann.papers import metrics, seed_settings
from tfmann.papers.metrics import Record

_OTHER_DOCUMENT = "; other document: with the history of another document"
_SEEDS_APART = 5.0  # BLEU between the best and the worst seed of a row

# Kinds of notes: what limits a comparison, what a column or mark means, and how figures were made.
WARNING, MEANING, DETAIL = "warning", "meaning", "detail"


class Footnote(NamedTuple):
    """A note below a table; tables in documents have no details."""

    kind: str
    text: str


def footnotes(records: Sequence[Record], several_seeds: bool) -> list[Footnote]:
    """Returns the notes below a table of these records."""
    signatures, machines = set(), set()
    for record in records:
        scores = [record["best"][split][0] for split in ("dev", "test")]
        scores += record.get("detokenised", {}).values()
        signatures.update(score["signature"] for score in scores)
        machines.update(metrics.devices(record))
    starts = sorted({record["start"] for record in records if record.get("start")})
    starts += sorted({record["weights"] for record in records if record.get("weights")} - {*starts})
    notes = (
        (MEANING, ["mean ± sample standard deviation over the seeds"] * several_seeds),
        (WARNING, _seeds_apart(records)),
        (WARNING, _other_settings(records)),
        (WARNING, _other_updates(records)),
        (MEANING, _gold_links(records)),
        (MEANING, _histories(records)),
        (MEANING, _unseen(records)),
        (MEANING, _tense(records)),
        (MEANING, _senses(records)),
        (MEANING, _consistency(records)),
        (MEANING, _significance(records)),
        (DETAIL, map("bootstrap signature: {}".format, _bootstrap_signatures(records))),
        (MEANING, _intervals(records)),
        (DETAIL, map("signature of the interval: {}".format, _interval_signatures(records))),
        (DETAIL, map("+N updates: in addition to those of {}".format, starts)),
        (MEANING, _without_training(records)),
        (WARNING, metrics.corpus_variants(records)),
        (DETAIL, map("BLEU signature: {}".format, sorted(signatures))),
        (DETAIL, [f"hardware: {', '.join(sorted(machines))}"]),
    )
    return [Footnote(kind, text) for kind, texts in notes for text in texts]


def includes_reworded(record: Record) -> bool:
    """Returns whether under-translated words include reworded ones, for lack of alignments."""
    return "adequacy" in record and record["adequacy"]["reworded"] is None


def _seeds_apart(records: Sequence[Record]) -> Iterator[str]:
    """Names the seeds of a row that are so far apart that no run is like their mean."""
    for row, runs in metrics.by_row(records).items():
        scores = list(map(metrics.test_bleu, runs))
        if max(scores) - min(scores) > _SEEDS_APART:
            seeds = map(metrics.seed_of, runs)
            values = ", ".join(f"{score:.2f} (seed {seed})" for score, seed in zip(scores, seeds))
            yield f"seeds far apart: test BLEU of {row} is {values}"


def _other_settings(records: Sequence[Record]) -> Iterator[str]:
    """Names the settings of training in which the seeds of a row differ."""
    for row, runs in metrics.by_row(records).items():
        for key, values in seed_settings.differing(runs).items():
            listed = ", ".join(
                f"{value} (seed {metrics.seed_of(run)})" for value, run in zip(values, runs)
            )
            yield f"seeds of {row} differ in {key}: {listed}"


def _other_updates(records: Sequence[Record]) -> Iterator[str]:
    """Names the rows that made another number of updates than most rows with the same start.

    A row that trains a part of its weights, such as the gate of a cache, is compared with none.
    """
    steps_by_start: dict[str, dict[str, int]] = {}
    for record in records:
        if record.get("steps") is not None and not metrics.trained_part(record):
            of_start = steps_by_start.setdefault(record.get("start", ""), {})
            of_start[record["row"]] = record["steps"]
    for start, of_rows in steps_by_start.items():
        (usual, _), *_ = Counter(of_rows.values()).most_common(1)
        others = [f"{row} {steps:,}" for row, steps in of_rows.items() if steps != usual]
        if others:
            rest = f"the other rows{f' that start from {start}' if start else ''} {usual:,}"
            yield f"other numbers of updates: {', '.join(others)}; {rest}"


def _without_training(records: Sequence[Record]) -> Iterator[str]:
    """Names the weights of rows without training, and the searches that were chosen on dev."""
    seeds_by_row: dict[tuple[str, str], dict[str, list[int]]] = {}
    for record in records:
        if record.get("weights"):
            chosen = record["search"]["chosen"].items()
            text = ", ".join(f"{name} {value:.3g}" for name, value in chosen)
            searches = seeds_by_row.setdefault((record["row"], record["weights"]), {})
            searches.setdefault(text, []).append(metrics.seed_of(record))
    for (row, weights), searches in seeds_by_row.items():
        several = sum(map(len, searches.values())) > 1
        texts = [
            f"{text} (seed {', '.join(map(str, sorted(seeds)))})" if several else text
            for text, seeds in searches.items()
        ]
        yield (
            f"without training: {row}, on the weights of {weights}; its search was chosen on dev: "
            f"{'; '.join(texts)}"
        )


def _gold_links(records: Sequence[Record]) -> Iterator[str]:
    alignments = [record["alignment"] for record in records if "alignment" in record]
    sets = {(scores["sentences"], scores["sure"], scores["possible"]) for scores in alignments}
    for sentences, sure, possible in sorted(sets):
        yield (
            f"AER, soft AER: % by the attention in forced decoding of {sentences} references, with "
            f"{sure} sure and {possible - sure} only possible links"
        )
    for judged in sorted(
        {record["adequacy"]["judged"] for record in records if "adequacy" in record}
    ):
        yield (
            f"under-translated, reworded, over-translated: % of the {judged} source words with a "
            "sure link, in the translations of the best checkpoint"
        )
    if any(map(includes_reworded, records)):
        yield "≤: includes reworded words, which a cell without alignments cannot tell apart"


def _histories(records: Sequence[Record]) -> Iterator[str]:
    histories = {history for record in records for history in record.get("histories", ())}
    if histories:
        yield (
            "other document: test BLEU with the history of another document of similar length; "
            "reference history: with that of its own document and the reference translations"
        )


def _unseen(records: Sequence[Record]) -> Iterator[str]:
    unseen = [record["unseen"] for record in records if "unseen" in record]
    for sentences, total in sorted({(count["sentences"], count["of"]) for count in unseen}):
        yield f"unseen pairs: the {sentences} of {total} test pairs that are not in training too"


def _tense(records: Sequence[Record]) -> Iterator[str]:
    counts = [record["tense"] for record in records if "tense" in record]
    controls = _OTHER_DOCUMENT * any("other_right" in count for count in counts)
    for sentences in sorted({count["sentences"] for count in counts}):
        yield (
            f"tense: % of {sentences} sentences, without the first of each document, that have the "
            f"reference's tense{controls}"
        )


def _senses(records: Sequence[Record]) -> Iterator[str]:
    for nouns in sorted({record["senses"]["nouns"] for record in records if "senses" in record}):
        yield (
            f"senses: % of {nouns} ambiguous nouns, in sentences that do not show their topic, "
            "that have the reference's sense and no other; other document: with its history"
        )


def _consistency(records: Sequence[Record]) -> Iterator[str]:
    counts = [
        record["lexical_consistency"] for record in records if "lexical_consistency" in record
    ]
    references = {tuple(sorted(count["reference"].items())) for count in counts}
    for reference in map(dict, sorted(references)):
        within, across = (
            100 * reference[f"{prefix}alike"] / max(reference[f"{prefix}pairs"], 1)
            for prefix in ("", "other_")
        )
        yield (
            "consistent: % of repeated source words in a document, counted in pairs of "
            "occurrences, that have the same translation (by an IBM Model 1 lexicon); two "
            "documents: the same for pairs across documents; first reference: "
            f"{within:.2f}% of {reference['pairs']}, {across:.2f}%"
        )


def _significance(records: Sequence[Record]) -> Iterator[str]:
    tests = [test for record in records for test in record.get("significance", ())]
    if tests:
        several = len({metrics.seed_of(record) for record in records}) > 1
        common = " over the seeds that both have" if several else ""
        shown = (
            " (the largest over the seeds that were tested; their number follows if some were not)"
        )
        largest = shown if several else ""
        agree = ", and no seed differs the other way" if several else ""
        seed = " with some seed" if several else ""
        yield (
            f"vs.: difference in test BLEU{common}, p of the paired bootstrap (sacreBLEU's, about "
            f"one-sided) / of the sign test (two-sided){largest}; †: both below "
            f"{metrics.SIGNIFICANCE_LEVEL}{agree}; ‡: brevity penalties differ by more than "
            f"{metrics.BREVITY_TOLERANCE}{seed}, so lengths explain part of the difference there; "
            "§: the two were not tested, or one of them was decoded again after the test"
        )


def _bootstrap_signatures(records: Sequence[Record]) -> list[str]:
    tests = (test for record in records for test in record.get("significance", ()))
    return sorted({test["signature"] for test in tests})


def _intervals(records: Sequence[Record]) -> Iterator[str]:
    if _interval_signatures(records):
        yield "[low, high]: 95% confidence interval of BLEU over resamples of the test sentences"


def _interval_signatures(records: Sequence[Record]) -> list[str]:
    """Returns those of rows with one run; a row with several has a deviation, not an interval."""
    single = (runs[0] for runs in metrics.by_row(records).values() if len(runs) == 1)
    return sorted({run["interval"]["signature"] for run in single if "interval" in run})
