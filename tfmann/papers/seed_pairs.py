"""Two rows of a table, seed by seed: their difference, and how far chance can move it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfmann.evaluation import verdicts
from tfmann.papers import metrics
from tfmann.papers.metrics import Record

_SENTENCES_ONLY = "valid for these test sentences only"
_LOST = "BLEU lost to errors in the history"
# measures that are resampled: their place in `resampled` of a record
_RESAMPLED = {
    "test BLEU": ("test", "bleu"), "dev BLEU": ("dev", "bleu"), _LOST: ("test", "bleu"),
    "BLEU of unseen pairs": ("unseen", "bleu"), "AER": ("alignment", "aer"),
    "under-translated words": ("adequacy", "under"),
    "over-translated words": ("adequacy", "over"),
    "repeated bigrams": ("repetition", "repeated"),
    "repeated words translated alike": ("lexical_consistency", "alike"),
    "sentences of the right tense": ("tense", "right"),
    "nouns of the right sense": ("senses", "right"),
}  # fmt: skip


@dataclass(frozen=True)
class SeedPairs:
    """Runs of two rows with the same seeds.

    Attributes:
      measure: a key of `metrics.MEASURES`.
      seeds: in ascending order, S of them.
      runs: the row's run for each seed.
      rival_runs: the rival's run for each seed.
    """

    measure: str
    seeds: Sequence[int]
    runs: Sequence[Record]
    rival_runs: Sequence[Record]

    @property
    def records(self) -> list[tuple[Record, Record]]:
        """Both runs of each seed."""
        return list(zip(self.runs, self.rival_runs))

    def values(self) -> tuple[list[float], list[float]]:
        """Returns the measure of the row and of its rival, for each seed."""
        value = metrics.MEASURES[self.measure]
        ours, theirs = (
            [float(value(record)) for record in runs] for runs in (self.runs, self.rival_runs)
        )
        return ours, theirs

    def differences(self) -> list[float]:
        """Returns the row's value minus the rival's, for each seed."""
        return [a - b for a, b in zip(*self.values())]

    def estimate(self) -> verdicts.Estimate:
        """Returns the mean difference and its error."""
        variance, _ = self.sentence_variance()
        return verdicts.estimate(self.differences(), variance, self._documents)

    def sentence_variance(self) -> tuple[float, str]:
        """Returns the variance of the mean over other test sentences, and a note on its source."""
        if self._resampled is None:
            return 0.0, _SENTENCES_ONLY
        return verdicts.sentence_variance(self._resampled), self._resamples_note

    def sentence_errors(self) -> list[float]:
        """Returns the standard error over other test sentences of each seed that has resamples.

        Without resamples it is unknown, 0, for every seed.
        """
        if self._resampled is None:
            return [0.0] * len(self.seeds)
        return [float(error) for error in self._resampled.std(axis=1, ddof=1)]

    def unused_history(self) -> str:
        """Returns which row's history changes no translation, so that errors in it do no harm.

        '' if the measure is another one, or both rows use their history.
        """
        if self.measure != _LOST:
            return ""
        rows = zip((self.runs, self.rival_runs), self.values())
        unused = [runs[0]["row"] for runs, values in rows if not any(values)]
        return f"{' and '.join(unused)} without use of the history" if unused else ""

    @functools.cached_property
    def _resamples(self) -> list[list[Record]]:
        """The resamples of each seed that has them; empty if they are not the same for all."""
        if self.measure not in _RESAMPLED:
            return []
        of_seeds = [_resampled_scores(self.measure, *pair) for pair in self.records]
        complete = [
            [scores for scores in of_seed if scores] for of_seed in of_seeds if all(of_seed)
        ]
        _, key = _RESAMPLED[self.measure]
        kinds = {
            (scores["sentences"], scores.get("documents"), scores["seed"], len(scores[key]))
            for of_seed in complete
            for scores in of_seed
        }
        return complete if len(kinds) == 1 else []

    @functools.cached_property
    def _resampled(self) -> np.ndarray | None:
        """Differences on these resamples, [seeds that have them, resamples]."""
        if not self._resamples:
            return None
        _, key = _RESAMPLED[self.measure]
        scores = np.array([[of_run[key] for of_run in of_seed] for of_seed in self._resamples])
        added, subtracted = scores[:, ::2].sum(axis=1), scores[:, 1::2].sum(axis=1)
        return (added - subtracted) / metrics.RESAMPLED_UNITS

    @property
    def _documents(self) -> int | None:
        """The number of documents, if they were resampled; None if sentences were, or nothing."""
        return self._resamples[0][0].get("documents") if self._resamples else None

    @property
    def _resamples_note(self) -> str:
        """Whether documents were resampled, if their number is known, and for how many seeds."""
        notes = []
        few = metrics.few_documents(self._resamples[0][0])
        if self._documents:
            notes.append(f"resampled by document, of which there are {self._documents}")
        elif few:
            notes.append(f"{few}, too few to resample")
        if len(self._resamples) < len(self.seeds):
            of_seeds = f"{len(self._resamples)} of {len(self.seeds)} seeds"
            notes.append(f"the error due to the sentences is that of {of_seeds}")
        return "; ".join(notes)


def pair_seeds(measure: str, records: Sequence[Record], row: str, rival: str) -> SeedPairs:
    """Returns the runs of two rows that have the same seed and both have the measure."""
    runs, rival_runs = (
        {metrics.seed_of(record): record for record in records if record["row"] == name}
        for name in (row, rival)
    )
    value = metrics.MEASURES[measure]
    seeds = [
        seed
        for seed in sorted(set(runs) & set(rival_runs))
        if None not in (value(runs[seed]), value(rival_runs[seed]))
    ]
    return SeedPairs(
        measure, seeds, [runs[seed] for seed in seeds], [rival_runs[seed] for seed in seeds]
    )


def valid_test(record: Record, rival: Record) -> Record:
    """Returns the recorded tests of two runs, whichever was the baseline.

    Empty if there are none, or if one of the two was decoded again after them.
    """
    for run, baseline in ((record, rival), (rival, record)):
        if test := metrics.significance_test(run, baseline["row"]):
            return {} if metrics.test_is_outdated(run, baseline) else test
    return {}


def _resampled_scores(measure: str, record: Record, rival: Record) -> list[Record | None]:
    """Returns the resamples whose scores, alternately added and subtracted, are a difference.

    Each is None where there are no resamples.
    """
    split, _ = _RESAMPLED[measure]
    own, rivals_own = (run.get("resampled", {}).get(split) for run in (record, rival))
    if measure != _LOST:
        return [own, rivals_own]
    with_references, rivals_with_references = (
        run["histories"]["reference"].get("resampled", {}).get(split) for run in (record, rival)
    )
    return [with_references, own, rivals_own, rivals_with_references]
