"""Statistics of attention, heads and caches in the record of a run, and as evidence for a claim.

They are recorded when a row's run ends, because a checkpoint may not be kept as long as its record.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

from tfmann import config
from tfmann.data.text_files import iter_documents, iter_lines, write_lines
from tfmann.errors import UserError
from tfmann.evaluation import significance, verdicts
from tfmann.evaluation.inspection import DESCRIPTIONS
from tfmann.papers import metrics
from tfmann.papers.claim import AddressClaim
from tfmann.papers.metrics import Record
from tfmann.papers.table_corpus import Corpus
from tfmann.utils.run_folder import has_weights

_FILE = "inspection.json"
_FILE_OF_TESTS = "inspection-all-tests.json"  # once, only the first of several was measured
_PROVENANCE = ("date", "revision", "versions", "hardware")
_ONE_TEST = "the test set"
_INTERVAL = 2 * NormalDist().inv_cdf(0.975)  # standard errors that a 95% interval is wide


def measure(corpus: Corpus, out_dir: str, cell: str) -> dict[str, Any] | None:
    """Measures a run over its own translations of all tests, in a process of its own.

    The numbers are those of `tfmann inspect`, which stay in the run's folder. The sentences of
    several tests are pooled.

    Args:
      corpus: that the run was trained on.
      out_dir: folder of the run, with its translations.
      cell: of its model.

    Returns:
      what `evaluation.inspection.record` returns, with the number of `tests` and the revision that
      it was measured with; None if the run has no weights any more.

    Raises:
      UserError: the model could not be used.
    """
    sources = corpus.test_sources()
    path = Path(out_dir, _FILE if len(sources) == 1 else _FILE_OF_TESTS)
    if not path.exists():
        if not has_weights(out_dir):
            print(f"{out_dir} has no weights any more: its attention and heads are not measured")
            return None
        with tempfile.TemporaryDirectory() as folder:
            _inspect(_input_files(sources, out_dir, cell, Path(folder)), out_dir, path)
    recorded = json.loads(path.read_text(encoding="utf-8"))
    measures = {key: value for key, value in recorded.items() if key not in _PROVENANCE}
    return {**measures, "tests": len(sources), "revision": recorded["revision"]}


def _inspect(flags: Mapping[str, str], out_dir: str, path: Path) -> None:
    command = [sys.executable, "-m", "tfmann.cli.inspection", f"--model={out_dir}"]
    command += [f"--output={path}", *(f"--{name}={value}" for name, value in flags.items())]
    if subprocess.run(command, check=False).returncode:
        raise UserError(f"the attention and heads of the model in {out_dir} could not be measured")


def _input_files(
    sources: Mapping[str, str], out_dir: str, cell: str, folder: Path
) -> dict[str, str]:
    """Returns the files of the tests by their flags; files of several tests are joined.

    Args:
      sources: source files of the tests, by the names of a run's translations.
      out_dir: folder of the run.
      cell: of its model.
      folder: gets the joined files.
    """
    files = {
        "input": list(sources.values()),
        "translations": [str(Path(out_dir, name)) for name in sources],
    }
    if config.cell_spec(cell).reads_documents:
        files["documents"] = [str(Path(path).with_suffix(".docs")) for path in sources.values()]
    if len(sources) == 1:
        return {flag: path for flag, (path,) in files.items()}
    for flag, paths in files.items():
        lines = _join_documents(paths) if flag == "documents" else map(iter_lines, paths)
        write_lines(folder / flag, itertools.chain.from_iterable(lines))
    return {flag: str(folder / flag) for flag in files}


def _join_documents(paths: Sequence[str]) -> Iterator[list[str]]:
    """Yields the numbers of the documents in each file, so that no two files share one."""
    first = 0
    for path in paths:
        numbers = [first + number for number in iter_documents(path)]
        yield list(map(str, numbers))
        first = max(numbers, default=first) + 1


@dataclass(frozen=True)
class MeasuredRuns:
    """The runs of a row that recorded a statistic, in the order of their seeds.

    Attributes:
      seeds: of the runs.
      runs: their records.
      entries: the statistic in each, as `evaluation.inspection.record` has it.
    """

    seeds: Sequence[int]
    runs: Sequence[Record]
    entries: Sequence[dict[str, Any]]

    def values(self) -> list[float]:
        """Returns the mean over the sentences, for each seed."""
        return [entry["mean"] for entry in self.entries]

    def sentence_errors(self) -> list[float]:
        """Returns the standard error over other sentences, for each seed; 0 if unknown."""
        intervals = [entry["interval"] or (0.0, 0.0) for entry in self.entries]
        return [(high - low) / _INTERVAL for low, high in intervals]

    def too_few(self) -> str:
        """Returns why the sentences cannot speak for others; '' if they can.

        The bootstrap over few units underestimates their spread, and what they have in common does
        not show in the spread over seeds.
        """
        has_intervals = all(entry["interval"] for entry in self.entries)
        if has_intervals and self._units >= significance.ENOUGH_DOCUMENTS:
            return ""
        unit = self.runs[0]["inspection"]["unit"]
        return f"of {self._units} {unit}s only, too few to speak for others"

    def beyond_start(self, low: float, high: float) -> tuple[float, float]:
        """Returns the part of a claim's interval that is further in than untrained weights.

        These are the null hypothesis: a head that starts as the claim says has not learned it. The
        claim has a single limit, low or high.
        """
        if not self.untrained:
            return low, high
        start = statistics.fmean(entry["mean"] for entry in self.untrained)
        return (max(low, start), high) if math.isinf(high) else (low, min(high, start))

    @property
    def untrained(self) -> list[dict[str, Any]]:
        """The statistic with the weights that training starts from, where it was measured."""
        return [entry["untrained"] for entry in self.entries if "untrained" in entry]

    @property
    def _units(self) -> int:
        """The sentences or documents that have the statistic, at least as many in every run.

        Older records do not have their number: it is at most that of these sentences.
        """
        return min(
            entry.get("units", min(run["inspection"]["units"], entry["sentences"]))
            for run, entry in zip(self.runs, self.entries)
        )

    def estimate(self) -> verdicts.Estimate:
        """Returns the mean over the seeds and its error.

        The part of the error that is due to the sentences is an upper bound, as if the values of
        all seeds rose and fell together.
        """
        variance = statistics.fmean(self.sentence_errors()) ** 2
        return verdicts.estimate(self.values(), variance, max(2, self._units))


def measured_runs(claim: AddressClaim, records: Sequence[Record]) -> MeasuredRuns:
    """Returns the runs of the claim's row that recorded its statistic."""
    by_seed = {}
    for record in records:
        entry = _entry(claim, record) if record["row"] == claim.row else None
        if entry is not None:
            by_seed[metrics.seed_of(record)] = record, entry
    seeds = sorted(by_seed)
    return MeasuredRuns(
        seeds, [by_seed[seed][0] for seed in seeds], [by_seed[seed][1] for seed in seeds]
    )


def evidence(claim: AddressClaim, measured: MeasuredRuns, beyond_start: tuple[float, float]) -> str:
    """Describes the numbers: of each seed, of the sentences, and of untrained weights.

    In brackets are 95% intervals over other sentences or documents.

    Args:
      claim: the claim.
      measured: the runs that it is about.
      beyond_start: their `beyond_start` of the claim's limits.
    """
    values = measured.values()
    by_seed = f" (seeds {', '.join(f'{value:.2f}' for value in values)})" * (len(values) > 1)
    parts = [
        f"{DESCRIPTIONS[claim.statistic]}: {format_mean(measured.entries)}{by_seed}",
        "the claim: "
        + (f"above {claim.above:g}" if math.isfinite(claim.above) else f"below {claim.below:g}"),
    ]
    if measured.untrained:
        low, high = beyond_start
        is_beyond = low < statistics.fmean(values) < high
        agree = claim.above < low or high < claim.below
        note = "" if is_beyond or not agree else ", which agree with the claim more"
        parts.append(f"with untrained weights {format_mean(measured.untrained)}{note}")
    inspected = measured.runs[0]["inspection"]
    units = f" in {inspected['units']} documents" * (inspected["unit"] == "document")
    of_first = {part for part in map(_first_part, measured.runs) if part}
    parts.append(
        f"{measured.entries[0]['sentences']:,} sentences{units}"
        + f", of {' or '.join(sorted(of_first))}" * bool(of_first)
        + "".join(f", of {tests}" for tests in sorted(set(map(describe_tests, measured.runs)))
                  if tests != _ONE_TEST)
    )  # fmt: skip
    return "; ".join(parts)


def format_mean(entries: Sequence[dict[str, Any]], decimals: int = 2) -> str:
    """Formats a mean over the seeds, and the means of the limits of their 95% intervals.

    These are the limits of the mean if all seeds rise and fall together, else they are wider. An
    interval that rounds to the mean is left out.
    """
    mean = _rounded([entry["mean"] for entry in entries], decimals)
    intervals = [entry["interval"] for entry in entries]
    if not all(intervals):
        return mean
    low, high = (_rounded(limits, decimals) for limits in zip(*intervals))
    return mean if low == high == mean else f"{mean} [{low}, {high}]"


def _rounded(values: Sequence[float], decimals: int) -> str:
    """Formats a mean; what rounds to zero has no sign."""
    return f"{round(statistics.fmean(values), decimals) + 0.0:.{decimals}f}"


def describe_tests(record: Record) -> str:
    """Returns which tests were measured: the only one, all of several, or the first of them."""
    tests = record["inspection"].get("tests", 1)
    if tests > 1:
        return f"{tests} test sets"
    return "the first test set" if record.get("more_tests") else _ONE_TEST


def extent(record: Record) -> tuple[int, int] | None:
    """Returns how many test sentences were measured, and of how many; None if that is unknown."""
    inspected = record.get("inspection") or {}
    if "sentences_of_file" not in inspected:
        return None
    return inspected["sentences"], inspected["sentences_of_file"]


def describe_extent(measured: int, total: int) -> str:
    """Returns `all 1,000` or, of older records, `the first 500 of 1,000`."""
    return f"all {total:,}" if measured == total else f"the first {measured:,} of {total:,}"


def _first_part(record: Record) -> str:
    """Returns which part of the test set was measured; '' if all of it, or if that is unknown."""
    measured = extent(record)
    return "" if measured is None or len(set(measured)) == 1 else describe_extent(*measured)


def _entry(claim: AddressClaim, record: Record) -> dict[str, Any] | None:
    key = claim.head, claim.phase, claim.statistic
    for entry in (record.get("inspection") or {}).get("statistics", ()):
        if (entry["head"], entry["phase"], entry["name"]) == key:
            return entry
    return None
