"""The cost of rewriting the memory: training speed relative to RNNSearch's.

    python -m benchmarks.rewriting [--sizes=small,paper] [--precisions=float32,mixed_bfloat16]
        [--out=results/rewriting.jsonl]

Every variant trains on the same batch of random words, in turns with RNNSearch in one process. A
record has the ratio of their speeds and the ratio of their floating-point operations (`flops.py`),
which a variant as efficient as RNNSearch reaches. `cpu_ratio` is the ratio of processor time, which
other programs disturb less, so that it shows small costs. Prints JSON lines.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks import flops, harness

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
_ROOT = Path(__file__).resolve().parent.parent
EOS = {"eos_attention_weight": 1.0}
# The variants: the row whose settings they have, and additional settings.
VARIANTS = {
    "rnnsearch_eos": ("rnnsearch", EOS),
    "mematt": ("mematt", {}),
    "kvmematt_r1": ("kvmematt_r1", {}),
    "kvmematt_r1_eos": ("kvmematt_r1_eos", {}),
    "kvmematt_r2": ("kvmematt_r2", {}),
    "kvmematt_r2_eos": ("kvmematt_r2_eos", {}),
}


class Size(NamedTuple):
    """The settings files of a size and its batch; all sentences have full length."""

    files: str  # prefix of its settings in hparams/
    source: int  # words of a source sentence, `</s>` included
    target: int
    vocabularies: tuple[int, int]
    updates: int  # in a turn


SIZES = {
    "tiny": Size("tiny/meng2018/", 4, 4, (60, 50), 1),  # for tests
    "small": Size("cpu/multi30k/de_en_", 14, 14, (8000, 6000), 4),
    "paper": Size("meng2018/zh_en_", 26, 26, (30000, 30000), 1),
}


class Turn(NamedTuple):
    """The timing of some updates."""

    words_per_second: float  # of the target
    cpu_seconds: float  # of all threads


class Variant:
    """A compiled update on the batch of its size."""

    def __init__(self, size: Size, row: str, settings: dict):
        import numpy as np

        from tfmann import config
        from tfmann.data.batching import make_batch
        from tfmann.training.optimizer import base_rate
        from tfmann.training.train_step import TrainStep

        path = _ROOT / "hparams" / f"{size.files}{row}.json"
        self.hparams = h = config.make(settings, str(path))
        self.updates, self.step = size.updates, 0
        stream = np.random.default_rng(0)
        lengths = (size.source - h.append_source_eos, size.target - 1)
        words = [
            stream.integers(3, v, [h.batch_size, n]) for v, n in zip(size.vocabularies, lengths)
        ]
        none = np.full(h.batch_size, -1)
        self.batch = make_batch(
            words[0], words[1], none, np.arange(h.batch_size), h.append_source_eos
        )
        self.learner, self.rate = TrainStep(h, *size.vocabularies), base_rate(h)
        n = flops.Lengths(size.source, size.target)
        self.operations = flops.training(h, n, size.vocabularies[1]) * h.batch_size

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
    """Yields a record for each variant, which exists only while it is timed."""
    from tfmann.utils.provenance import provenance

    base = Variant(SIZES[size], "rnnsearch", {"precision": precision})
    base.run()  # compiles
    for name, (row, settings) in VARIANTS.items():
        variant = Variant(SIZES[size], row, {**settings, "precision": precision})
        variant.run()
        pairs = [(base.run(), variant.run()) for _ in range(rounds)]
        ratios = [new.words_per_second / old.words_per_second for old, new in pairs]
        cpu_ratios = [old.cpu_seconds / new.cpu_seconds for old, new in pairs]
        allowed = base.operations / variant.operations
        yield {
            "variant": name,
            "size": size,
            "precision": precision,
            "words_per_second": round(statistics.median(new.words_per_second for _, new in pairs)),
            "rnnsearch": round(statistics.median(old.words_per_second for old, _ in pairs)),
            "ratio": round(statistics.median(ratios), 3),
            "operations": variant.operations,
            "operations_allow": round(allowed, 3),
            "reached": round(statistics.median(ratios) / allowed, 3),
            "cpu_ratio": round(statistics.median(cpu_ratios), 3),
            "runs": [round(ratio, 3) for ratio in ratios],
            **provenance(),
        }


def main(argv: list[str] | None = None) -> None:
    """Runs the measurements of the command line."""
    args = harness.arguments(__doc__.splitlines()[0], SIZES, argv)
    for size in args.sizes:
        for precision in args.precisions:
            harness.write(measure(size, precision, args.rounds), args.out)


if __name__ == "__main__":
    main()
