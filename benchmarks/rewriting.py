"""What rewriting the memory costs: training speed beside RNNSearch's, and what counting allows.

    python -m benchmarks.rewriting [--sizes=small,paper] [--precisions=float32,mixed_bfloat16]
        [--out=results/rewriting.jsonl]

Every variant makes updates on the same batch of random words, in turns with RNNSearch in one
process. Beside the ratio of their speeds stands the ratio of their floating-point operations
(`flops.py`): a variant that wastes nothing beside RNNSearch reaches it. `cpu_ratio` is the ratio of
processor time, which other programs disturb less; a small cost shows there. Prints JSON lines.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks import flops, lines

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
_ROOT = Path(__file__).resolve().parent.parent
EOS = {"eos_attention_weight": 1.0}
# What is timed beside RNNSearch: the row whose file it is, and what is set besides.
VARIANTS = {
    "rnnsearch_eos": ("rnnsearch", EOS),
    "mematt": ("mematt", {}),
    "kvmematt_r1": ("kvmematt_r1", {}),
    "kvmematt_r2": ("kvmematt_r2", {}),
}


class Place(NamedTuple):
    """Where a size's rows are, and its batch; all sentences are of full length."""

    files: str  # what the names of its settings begin with, in hparams/
    source: int  # words of a source sentence, `</s>` included
    target: int
    vocabularies: tuple[int, int]
    updates: int  # of a turn


PLACES = {
    "tiny": Place("tiny/meng2018/", 4, 4, (60, 50), 1),  # for tests
    "small": Place("cpu/multi30k/de_en_", 14, 14, (8000, 6000), 4),
    "paper": Place("meng2018/zh_en_", 26, 26, (30000, 30000), 1),
}


class Turn(NamedTuple):
    """Some updates."""

    words_per_second: float  # of the target
    cpu_seconds: float  # of all threads


class Variant:
    """A compiled update on the batch of its size."""

    def __init__(self, place: Place, row: str, settings: dict):
        import numpy as np

        from tfmann import hparams
        from tfmann.corpus.pipeline import make_batch
        from tfmann.training.optimizer import base_rate
        from tfmann.training.step import Learner

        path = _ROOT / "hparams" / f"{place.files}{row}.json"
        self.hparams = h = hparams.make(settings, str(path))
        self.updates, self.step = place.updates, 0
        stream = np.random.default_rng(0)
        lengths = (place.source - h.append_source_eos, place.target - 1)
        words = [
            stream.integers(3, v, [h.batch_size, n]) for v, n in zip(place.vocabularies, lengths)
        ]
        none = np.full(h.batch_size, -1)
        self.batch = make_batch(*words, none, np.arange(h.batch_size), h.append_source_eos)
        self.learner, self.rate = Learner(h, *place.vocabularies), base_rate(h)
        n = flops.Lengths(place.source, place.target)
        self.operations = flops.training(h, n, place.vocabularies[1]) * h.batch_size

    def run(self) -> Turn:
        """Times some updates."""
        begin, cpu = time.perf_counter(), time.process_time()
        for _ in range(self.updates):
            update = self.learner.update(self.batch, self.step, self.rate)
            self.step += 1
        float(update.cross_entropy)  # waits
        seconds = time.perf_counter() - begin
        return Turn(self.updates * self.batch.words / seconds, time.process_time() - cpu)


def measure(size: str, precision: str, rounds: int) -> Iterator[dict]:
    """A record for each variant, which is made, timed in turns with RNNSearch, and dropped."""
    from tfmann.provenance import provenance

    place = PLACES[size]
    base = Variant(place, "rnnsearch", {"precision": precision})
    base.run()  # compiles
    for name, (row, settings) in VARIANTS.items():
        variant = Variant(place, row, {**settings, "precision": precision})
        variant.run()
        pairs = [(base.run(), variant.run()) for _ in range(rounds)]
        ratios = [own.words_per_second / beside.words_per_second for beside, own in pairs]
        cpu_ratios = [beside.cpu_seconds / own.cpu_seconds for beside, own in pairs]
        allowed = base.operations / variant.operations
        yield {
            "variant": name,
            "size": size,
            "precision": precision,
            "words_per_second": round(statistics.median(own.words_per_second for _, own in pairs)),
            "rnnsearch": round(statistics.median(one.words_per_second for one, _ in pairs)),
            "ratio": round(statistics.median(ratios), 3),
            "operations": variant.operations,
            "operations_allow": round(allowed, 3),
            "reached": round(statistics.median(ratios) / allowed, 3),
            "cpu_ratio": round(statistics.median(cpu_ratios), 3),
            "runs": [round(ratio, 3) for ratio in ratios],
            **provenance(),
        }


def main(argv: list[str] | None = None) -> None:
    """Measures what the command line asks for."""
    args = lines.arguments(__doc__.splitlines()[0], PLACES, argv)
    for size in args.sizes:
        for precision in args.precisions:
            lines.write(measure(size, precision, args.rounds), args.out)


if __name__ == "__main__":
    main()
