"""The conditions of a comparison: the corpus and its size, seeds, convergence, lengths."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from tfmann import config
from tfmann.papers import metrics, seed_settings, update_counts
from tfmann.papers.claim import Claim, MemoryClaim, SpeedClaim
from tfmann.papers.metrics import Record
from tfmann.papers.seed_pairs import SeedPairs
from tfmann.papers.tables import PAPERS, TABLES

MAX_RISE = 0.1  # dev BLEU: runs that rise by more on average at their end have not converged
RISING = "not converged"  # the reservation
_END = 0.2  # the last share of the updates, in which a rise is looked for
_SEARCH = (
    "infer_mode", "beam_width", "coverage_penalty_weight", "no_repeat_ngram_size", "replace_unk",
    "tgt_min_len_infer", "tgt_max_len_infer",
)  # fmt: skip
_WHOLE = 0.9  # of the paper's number of pairs; fewer are a part of its corpus


class Conditions(NamedTuple):
    """The conditions under which two rows were compared.

    Attributes:
      corpus: the paper's corpus, a part of it, a stand-in, or another one.
      summary: size, seeds, convergence, numbers of updates and lengths.
      reservations: why the runs prove nothing, whatever their scores.
    """

    corpus: str
    summary: str
    reservations: tuple[str, ...] = ()


def conditions(
    pairs: SeedPairs,
    claim: Claim | MemoryClaim,
    name: str,
    scale: str,
    of_table: Sequence[Record],
) -> Conditions:
    """Returns the conditions of a comparison.

    Args:
      pairs: the runs of both rows.
      claim: the claim that they test.
      name: the table of the runs.
      scale: the scale of the runs.
      of_table: all runs of the table, among them those that other runs start from.
    """
    records = [*pairs.runs, *pairs.rival_runs]
    not_converged, other_settings = _not_converged(pairs, of_table), _other_settings(pairs)
    updates, is_fair = "", True
    if isinstance(claim, Claim):
        updates = update_counts.differences(pairs.records, of_table)
        is_fair = not updates or not _has_equal_updates(claim.rival, name, scale)
    own_pairs = _pairs_of_paper(claim.paper, name)
    parts = [
        _corpus_size(records, own_pairs or TABLES[claim.tables[0]].paper_pairs),
        _describe_seeds(pairs, of_table),
        not_converged or "converged",
        *([other_settings] if other_settings else []),
        *([updates] if updates else []),
        *([starts] if (starts := _other_starts(pairs)) else []),
    ]
    if pairs.measure == "BLEU of unseen pairs":
        parts.append("{sentences:,} of {of:,} test pairs".format(**pairs.runs[0]["unseen"]))
    split = metrics.LENGTH_DEPENDENT.get(pairs.measure)
    if split and any(metrics.lengths_differ(*records, split) for records in pairs.records):
        parts.append(_brevity_penalties(pairs, split))
    corpus = _describe_corpus(records, name, scale, own_pairs)
    reservations = {
        RISING: bool(not_converged),
        "seeds with other settings": bool(other_settings),
        "not the same number of updates": not is_fair,
        "not the same corpus": not _same_corpus(records),
        "not the same search or scores": not _same_evaluation(records),
    }
    found = tuple(reason for reason, is_found in reservations.items() if is_found)
    return Conditions(corpus, "; ".join(parts), found)


def of_benchmark(record: Record, claim: SpeedClaim) -> Conditions:
    """Returns the machine and the day of a benchmark's record, and the size of its models."""
    hardware = record["hardware"]
    devices = hardware["gpus"] or [f"{hardware['cpu']}, {hardware['cores']} cores"]
    parts = [", ".join(map(str, devices)), record["date"][:10], claim.models]
    return Conditions("", "; ".join(filter(None, parts)))


def of_settings(record: Record) -> Conditions:
    """Returns the settings from which parameters were counted."""
    words = f"{record['vocabulary']:,} words on either side"
    return Conditions("", f"counted from the settings, with vocabularies of {words}")


def are_comparable(pairs: SeedPairs, of_table: Sequence[Record]) -> bool:
    """Returns whether the runs of both rows have converged, and each row's seeds are repeats.

    Args:
      pairs: the runs of both rows.
      of_table: all runs of the table, among them those that other runs start from.
    """
    records = [*pairs.runs, *pairs.rival_runs]
    problems = _not_converged(pairs, of_table), _other_settings(pairs)
    return not any(problems) and _same_corpus(records) and _same_evaluation(records)


def rise_at_end(record: Record) -> float | None:
    """Returns how much dev BLEU still rose at the end of a run; None if that is unknown.

    It is the best dev BLEU of the evaluations in the last fifth of the recorded updates (after 0.8
    of the last step) minus the best before. It is unknown if there was no evaluation before. A row
    has converged if the rises of its runs are known and `MAX_RISE` at most on average, where a
    greater fall counts as one of `MAX_RISE`.
    """
    history = [
        (point["step"], point["dev_bleu"])
        for point in record.get("history", ())
        if "dev_bleu" in point
    ]
    begin = (1 - _END) * max((step for step, _ in history), default=0)
    before = [bleu for step, bleu in history if step <= begin]
    end = [bleu for step, bleu in history if step > begin]
    return max(end) - max(before) if before else None


def _describe_seeds(pairs: SeedPairs, of_table: Sequence[Record]) -> str:
    """Returns how many seeds both rows have, and of how many if one of the two has more."""
    number = len(pairs.seeds)
    rows = [runs[0]["row"] for runs in (pairs.runs, pairs.rival_runs) if runs]
    most = max((sum(run["row"] == row for run in of_table) for row in rows), default=0)
    if most > number:
        return f"{number if number > 1 else 'one'} of {most} seeds"
    return f"{number} seeds" if number > 1 else "one seed"


def _has_equal_updates(row: str, name: str, scale: str) -> bool:
    """Returns whether a row is in a table to have as many updates as those compared with it."""
    return any(other.equal_updates for other in TABLES[name].at(scale).rows if other.name == row)


def _pairs_of_paper(paper: str, name: str) -> int:
    """Returns the training pairs of a table of the paper itself, or of a control's; else 0."""
    is_control = paper not in PAPERS
    return TABLES[name].paper_pairs if is_control or name in PAPERS[paper] else 0


def _describe_corpus(records: Sequence[Record], name: str, scale: str, paper_pairs: int) -> str:
    """Returns whether records are of the paper's corpus, a part of it, a stand-in, or another.

    Args:
      records: of runs.
      name: their table.
      scale: their scale.
      paper_pairs: from `_pairs_of_paper`.
    """
    manifest = TABLES[name].at(scale).manifest
    if not paper_pairs or manifest is None or manifest != TABLES[name].manifest:
        return "not the paper's corpus"
    notes = metrics.corpus_variants(records)
    suffix = f" ({'; '.join(notes)})" if notes else ""
    if note := metrics.stand_in(records):
        return f"{note}{suffix}"
    smallest = min(record.get("pairs", {}).get("train", paper_pairs) for record in records)
    part = "a part of " if smallest < _WHOLE * paper_pairs else ""
    return f"{part}the paper's corpus{suffix}"


def _not_converged(pairs: SeedPairs, of_table: Sequence[Record]) -> str:
    """Names the rows that have not converged, or of which it is unknown.

    A row's score is the mean of its seeds, and so is its rise: the best of a few noisy evaluations
    rises by chance in one seed or another, and falls by chance too. A greater fall says nothing of
    the other seeds: a run that falls is scored at its best.
    """
    rising, unknown, missing = [], [], []
    for row, runs in _trained_rows(pairs, of_table).items():
        if not all(runs):
            missing.append(row)
            continue
        rises = [rise_at_end(record) for record in runs]
        measured_rises = [max(-MAX_RISE, rise) for rise in rises if rise is not None]
        if len(measured_rises) < len(rises):
            unknown.append(row)
        elif (rise := statistics.fmean(measured_rises)) > MAX_RISE:
            decimals = 2 if round(rise, 2) > MAX_RISE else 4
            rising.append(f"{row} by {rise:.{decimals}f}")
    reasons = []
    if rising:
        reasons.append(f"dev BLEU was still rising, {' and '.join(rising)}")
    if unknown:
        records = "records" if len(unknown) > 1 else "record"
        verb = "are" if len(unknown) > 1 else "is"
        reasons.append(f"the {records} of {' and '.join(unknown)} {verb} too short to tell")
    if missing:
        reasons.append(f"there is no record of {' and '.join(missing)}")
    return f"not converged: {', and '.join(reasons)}" if reasons else ""


def _trained_rows(pairs: SeedPairs, of_table: Sequence[Record]) -> dict[str, Sequence[Record]]:
    """Returns the runs whose training made the systems of a comparison, by their rows.

    These are the runs of both rows. A run that trains some of its weights only, such as the gate of
    a cache, has the others from the run that it starts from, so that one belongs to its system too.
    The row that has its weights replaces a row without training. A run that was not recorded is
    empty.
    """
    by_run = metrics.by_run(of_table)

    def of_seeds(row: str, runs: Sequence[Record]) -> list[Record]:
        return [by_run.get((row, metrics.seed_of(run)), {}) for run in runs]

    rows: dict[str, Sequence[Record]] = {}
    for runs in filter(None, (pairs.runs, pairs.rival_runs)):
        row = runs[0].get("weights") or runs[0]["row"]
        rows[row] = runs if row == runs[0]["row"] else of_seeds(row, runs)
    for runs in list(rows.values()):
        for start in dict.fromkeys(run["start"] for run in runs if _has_frozen_weights(run)):
            rows.setdefault(start, of_seeds(start, runs))
    return rows


def _has_frozen_weights(record: Record) -> bool:
    return bool(record.get("start") and metrics.trained_part(record))


def _other_settings(pairs: SeedPairs) -> str:
    """Names the settings in which the seeds of a row differ, which are no repeats then."""
    parts = [
        f"seeds of {runs[0]['row']} differ in {', '.join(keys)}"
        for runs in filter(None, (pairs.runs, pairs.rival_runs))
        if (keys := seed_settings.differing(runs))
    ]
    return "; ".join(parts)


def _other_starts(pairs: SeedPairs) -> str:
    """Names the seeds whose two runs start, or may start, from other weights of a row.

    The row that both start from has other weights where another processor has trained it again; so
    runs on different devices may have different starts, unless the records have their digests.
    """
    rivals = {metrics.seed_of(rival): rival for rival in pairs.rival_runs}
    others, perhaps = [], []
    for seed, run in zip(pairs.seeds, pairs.runs):
        rival = rivals.get(seed)
        if rival is None or not _have_one_start(run, rival):
            continue
        ours, theirs = _start_weights(run, rival), _start_weights(rival, run)
        if ours and theirs:
            others += [str(seed)] * (ours != theirs)
        elif metrics.devices(run) != metrics.devices(rival):
            perhaps.append(str(seed))
    words = {"not": others, "on other processors, and perhaps not": perhaps}
    return "; ".join(
        f"{word} from the same start with seed {', '.join(seeds)}"
        for word, seeds in words.items()
        if seeds
    )


def _have_one_start(run: Record, rival: Record) -> bool:
    """Returns whether two runs start from the same row, or one from the other's."""
    starts = run.get("start"), rival.get("start")
    return (starts[0] == starts[1] is not None) or run["row"] in starts or rival["row"] in starts


def _start_weights(record: Record, other: Record) -> str | None:
    """Returns the digest of the weights that two runs with one start have from it, if recorded."""
    own = record["row"] == other.get("start")
    return record.get("weights_sha256" if own else "init_sha256")


def _corpus_size(records: Sequence[Record], paper_pairs: int) -> str:
    sizes = [record.get("pairs", {}).get("train") for record in records]
    known = sorted({size for size in sizes if size is not None})
    if not known:
        return "corpus size not recorded"
    size = " and ".join(f"{pairs:,}" for pairs in known)
    return f"{size} pairs" + (f" (paper: {paper_pairs:,})" if paper_pairs else "")


def _same_corpus(records: Sequence[Record]) -> bool:
    """Returns whether runs had equally many training and test sentences, as far as is recorded.

    On synthetic documents, the numbers of nouns must be equal too: another grammar may write
    equally many sentences.
    """
    for split in ("train", "dev", "test"):
        sizes = {record.get("pairs", {}).get(split) for record in records}
        if len(sizes - {None}) > 1:
            return False
    tested = {record.get("resampled", {}).get("test", {}).get("sentences") for record in records}
    nouns = {record.get("senses", {}).get("nouns") for record in records}
    return len(tested - {None}) <= 1 and len(nouns - {None}) <= 1


def _same_evaluation(records: Sequence[Record]) -> bool:
    """Returns whether runs were searched alike and scored by the same metric.

    The length penalty and the settings of a memory without training may differ: dev chooses them.
    """
    searches = {
        tuple(record.get("hparams", {}).get(key, config.FIELDS[key].default) for key in _SEARCH)
        for record in records
    }
    return len(searches) <= 1 and len(set(map(metrics.bleu_signature, records)) - {None}) <= 1


def _brevity_penalties(pairs: SeedPairs, split: str) -> str:
    ours, theirs = (
        " / ".join(f"{metrics.brevity_penalty(record, split):.3f}" for record in runs)
        for runs in (pairs.runs, pairs.rival_runs)
    )
    return f"brevity penalties differ: {ours} against {theirs}"
