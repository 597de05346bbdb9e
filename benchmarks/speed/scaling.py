"""The cost of an update with targets twice as long, a memory twice as large, a corpus tenfold.

Each result is a ratio of seconds per update, from alternating pairs in one process. The tenfold
corpus is memory-mapped as a real one is, and its batches are prefetched during updates.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

from benchmarks import harness
from benchmarks.speed import cells

ROWS = ("rnnsearch", "kvmematt_r2", "luong", "ntm_attention", "ntm", "dnc")
# Cells of the kinds that are not for every cell: only some have N slots, and batches are the same.
_FOR = {"N doubled": ("ntm", "dnc"), "corpus tenfold": ("rnnsearch",)}
_PAIRS = {"tiny": 100}  # of the smaller corpus; 100,000 at other sizes
Run = Callable[[], float]


def target_doubled(row: str, size: str) -> tuple[Run, Run]:
    """Makes updates on sources of one length, with targets of the mean length and of twice that."""
    from benchmarks.speed import batches, runs

    dimensions = cells.SIZES[size]
    programs = []
    for times in (1, 2):
        h = cells.hparams(row, size)
        batch = batches.of_length(
            h, dimensions.words, times * dimensions.words, dimensions.vocabulary
        )
        programs.append(runs.Updates(h, [batch] * dimensions.updates, dimensions.vocabulary).run)
    return programs[0], programs[1]


def slots_doubled(row: str, size: str) -> tuple[Run, Run]:
    """Makes updates with half of the size's slots, and with all of them, on the same batch."""
    from benchmarks.speed import batches, runs

    dimensions = cells.SIZES[size]
    programs = []
    for slots in (dimensions.slots // 2, dimensions.slots):
        h = cells.hparams(row, size, num_memory_locations=slots)
        batch = batches.of_length(h, dimensions.words, dimensions.words, dimensions.vocabulary)
        programs.append(runs.Updates(h, [batch] * dimensions.updates, dimensions.vocabulary).run)
    return programs[0], programs[1]


def corpus_tenfold(folder: str, row: str, size: str) -> tuple[Run, Run]:
    """Makes updates on a memory-mapped corpus and on one ten times as large."""
    pairs = _PAIRS.get(size, 100_000)
    first, second = (Reading(row, size, pairs * times, folder) for times in (1, 10))
    return first.run, second.run


class Reading:
    """Updates on the batches of a corpus as they come."""

    def __init__(self, row: str, size: str, pairs: int, folder: str):
        """Writes the corpus and builds the model."""
        from benchmarks.speed import batches
        from tfmann.data.batching import Position, TrainingBatches
        from tfmann.data.prefetch import prefetch
        from tfmann.training.optimizer import base_rate
        from tfmann.training.train_step import TrainStep

        dimensions, self._hparams = cells.SIZES[size], cells.hparams(row, size)
        corpus = batches.corpus(pairs, dimensions.words, dimensions.vocabulary, folder)
        self._batches = prefetch(TrainingBatches(corpus, self._hparams).batches(Position()))
        self._learner = TrainStep(self._hparams, dimensions.vocabulary, dimensions.vocabulary)
        self._rate = base_rate(self._hparams)
        self._updates, self._step = 4 * dimensions.updates, 0  # lengths differ from batch to batch

    def run(self) -> float:
        """Returns the seconds per target word."""
        words, begin = 0, time.perf_counter()
        for _ in range(self._updates):
            batch, _ = next(self._batches)
            update = self._learner.update(batch, self._step, self._rate)
            self._step += 1
            words += batch.words
        float(update.cross_entropy)  # waits
        return (time.perf_counter() - begin) / words


def compare(kind: str, row: str, size: str, runs: tuple[Run, Run], pairs: int) -> dict[str, Any]:
    """Returns the record of a pair of runs in turns."""
    from tfmann.utils.provenance import provenance

    for run in runs:
        run()  # compiles
    turns = [(runs[0](), runs[1]()) for _ in range(pairs)]
    ratios = [second / first for first, second in turns]
    return {
        "benchmark": "scaling",
        "what": kind,
        "cell": row,
        "size": size,
        "ratio": statistics.median(ratios),
        "pairs": pairs,
        "turns": ratios,
        **provenance(),
    }


def measure(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yields a record for each kind, cell and size that the --out file lacks."""
    recorded = harness.known(args.out, "scaling", ("what", "cell", "size"))
    with tempfile.TemporaryDirectory(dir=args.work_dir) as folder:
        kinds: dict[str, Callable[[str, str], tuple[Run, Run]]] = {
            "T doubled": target_doubled,
            "N doubled": slots_doubled,
            "corpus tenfold": functools.partial(corpus_tenfold, folder),
        }
        for size in args.sizes:
            for row, kind in itertools.product(args.cells, kinds):
                rows = _FOR.get(kind)
                missing = recorded.get((kind, row, size), 0) < args.pairs
                if missing and (rows is None or row in rows):
                    yield compare(kind, row, size, kinds[kind](row, size), args.pairs)


def run(args: argparse.Namespace) -> int:
    """Runs the measurements of the command line."""
    harness.write(measure(args), args.out)
    return 0


def add_to(kinds: Any) -> None:
    """Adds the subcommand."""
    parser = kinds.add_parser("scaling", help="cost when T, N or the corpus grows")
    parser.set_defaults(run=run)
    harness.add_choice(parser, "sizes", cells.SIZES, "small")
    harness.add_choice(parser, "cells", cells.ROWS, ",".join(ROWS))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--out", type=Path, help="a file that the lines are appended to")
    parser.add_argument("--work_dir", help="where the corpora go; the system's temporary folder")
