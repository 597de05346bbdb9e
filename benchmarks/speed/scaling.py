"""What an update costs when a target is twice as long, a memory twice as large, the corpus tenfold.

Each is a ratio of seconds an update, by alternating pairs in one process. The tenfold corpus is
memory-mapped as a real one is, and its batches are made while updates run.
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
# Where a kind is not for every cell: a memory of N slots; batches are made alike for all.
_FOR = {"N doubled": ("ntm", "dnc"), "corpus tenfold": ("rnnsearch",)}
_PAIRS = {"tiny": 100}  # of the smaller corpus; 100,000 at other sizes
Run = Callable[[], float]


def target_doubled(row: str, size: str) -> tuple[Run, Run]:
    """Sources of the same length, targets of the mean length and of twice that."""
    from benchmarks.speed import batches, runs

    place = cells.SIZES[size]
    made = []
    for times in (1, 2):
        h = cells.hparams(row, size)
        batch = batches.of_length(h, place.words, times * place.words, place.vocabulary)
        made.append(runs.Updates(h, [batch] * place.updates, place.vocabulary).run)
    return made[0], made[1]


def slots_doubled(row: str, size: str) -> tuple[Run, Run]:
    """Half of the size's slots, and all of them; the same batch."""
    from benchmarks.speed import batches, runs

    place = cells.SIZES[size]
    made = []
    for slots in (place.slots // 2, place.slots):
        h = cells.hparams(row, size, num_memory_locations=slots)
        batch = batches.of_length(h, place.words, place.words, place.vocabulary)
        made.append(runs.Updates(h, [batch] * place.updates, place.vocabulary).run)
    return made[0], made[1]


def corpus_tenfold(folder: str, row: str, size: str) -> tuple[Run, Run]:
    """A memory-mapped corpus and one ten times as large; batches come as in training."""
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

        place, self._hparams = cells.SIZES[size], cells.hparams(row, size)
        corpus = batches.corpus(pairs, place.words, place.vocabulary, folder)
        self._batches = prefetch(TrainingBatches(corpus, self._hparams).batches(Position()))
        self._learner = TrainStep(self._hparams, place.vocabulary, place.vocabulary)
        self._rate = base_rate(self._hparams)
        self._updates, self._step = 4 * place.updates, 0  # lengths differ from batch to batch

    def run(self) -> float:
        """Seconds a target word."""
        words, begin = 0, time.perf_counter()
        for _ in range(self._updates):
            batch, _ = next(self._batches)
            told = self._learner.update(batch, self._step, self._rate)
            self._step += 1
            words += batch.words
        float(told.cross_entropy)  # waits
        return (time.perf_counter() - begin) / words


def compared(what: str, row: str, size: str, runs: tuple[Run, Run], pairs: int) -> dict[str, Any]:
    """The record of a pair of runs in turns."""
    from tfmann.utils.provenance import provenance

    for run in runs:
        run()  # compiles
    turns = [(runs[0](), runs[1]()) for _ in range(pairs)]
    ratios = [second / first for first, second in turns]
    return {
        "benchmark": "scaling",
        "what": what,
        "cell": row,
        "size": size,
        "ratio": statistics.median(ratios),
        "pairs": pairs,
        "turns": ratios,
        **provenance(),
    }


def measure(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """A record for each kind, cell and size that the --out file does not have."""
    done = harness.known(args.out, "scaling", ("what", "cell", "size"))
    with tempfile.TemporaryDirectory(dir=args.work_dir) as folder:
        kinds: dict[str, Callable[[str, str], tuple[Run, Run]]] = {
            "T doubled": target_doubled,
            "N doubled": slots_doubled,
            "corpus tenfold": functools.partial(corpus_tenfold, folder),
        }
        for size in args.sizes:
            for row, what in itertools.product(args.cells, kinds):
                made_for = _FOR.get(what)
                missing = done.get((what, row, size), 0) < args.pairs
                if missing and (made_for is None or row in made_for):
                    yield compared(what, row, size, kinds[what](row, size), args.pairs)


def run(args: argparse.Namespace) -> int:
    """Measures what the command line asks for."""
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
