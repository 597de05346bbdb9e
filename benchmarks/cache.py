"""The cost of a cache, and the gain of freezing the model beneath it, in turns in one process.

    python -m benchmarks.cache [--sizes=small,paper] [--rounds=5] [--out=F]

Training: target words/s of the second stage (the gate alone) relative to the first (RNNSearch), on
the same batch. Decoding: beam 10, target words/s of the model with a full cache, which is written
after every sentence, relative to RNNSearch; no hypothesis ends before the limit, so that both take
the same number of steps.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from benchmarks import harness
from tfmann.config import HParams
from tfmann.data.batching import make_batch
from tfmann.data.vocab import EOS_ID
from tfmann.decoding import search
from tfmann.decoding.beam import BeamOptions
from tfmann.memory.continuous_cache import Cache
from tfmann.models import document_cache
from tfmann.training.optimizer import base_rate
from tfmann.training.train_step import TrainStep
from tfmann.utils.provenance import provenance

_RATIOS = {"train": "second stage / first", "decode": "with cache / without"}


class Size(NamedTuple):
    """A size of model and batch."""

    settings: dict
    vocabulary: int
    words: int  # of a sentence, on either side
    decoded: int  # sentences decoded together


SIZES = {
    "tiny": Size({"num_units": 8, "embedding_size": 8, "batch_size": 4}, 60, 4, 2),  # for tests
    "small": Size({"num_units": 256, "embedding_size": 256, "batch_size": 64}, 10_000, 14, 32),
    "paper": Size({"num_units": 1000, "embedding_size": 620, "batch_size": 80}, 30_000, 22, 32),
}
_COMMON = {
    "unit_type": "gru", "encoder_type": "bi", "num_layers": 2, "projection_bias": True,
    "readout_dropout": 0.5, "dropout": 0.0, "optimizer": "adam", "learning_rate": 1e-4,
    "max_gradient_norm": 1.0,
}  # fmt: skip


def training(size: Size, precision: str) -> tuple[Callable[[], float], Callable[[], float]]:
    """Returns functions that time both stages: target words/s over some updates."""
    stream = np.random.default_rng(1)
    rows = size.settings["batch_size"]
    source, target = stream.integers(3, size.vocabulary, [2, rows, size.words])
    batch = make_batch(source, target, np.zeros(rows), np.arange(rows), True)
    updates = 6 if size.vocabulary < 20_000 else 2

    def run_of(**changes: object) -> Callable[[], float]:
        h = HParams(**{**_COMMON, **size.settings, "precision": precision, **changes})
        learner = TrainStep(h, size.vocabulary, size.vocabulary)

        def run() -> float:
            begin = time.perf_counter()
            for step in range(updates):
                update = learner.update(batch, step, base_rate(h))
            float(update.cross_entropy)  # waits
            return updates * batch.words / (time.perf_counter() - begin)

        return run

    return run_of(cell="rnnsearch"), run_of(cell="cache", trainable_parameters="cell/gate_*")


def decoding(size: Size, precision: str) -> tuple[Callable[[], float], Callable[[], float]]:
    """Returns functions that time beam search without and with a cache: target words/s."""
    del precision  # decoding is float32
    stream = np.random.default_rng(2)
    rows, steps = size.decoded, size.words
    source = tf.constant(stream.integers(3, size.vocabulary, [rows, steps]), tf.int32)
    length = tf.fill([rows], steps)
    base, cached = (_endless(size, cell) for cell in ("rnnsearch", "cache"))
    beam = BeamOptions(beam_width=10)
    options = search.SearchOptions(steps)
    recording = search.SearchOptions(steps, record=document_cache.entry_diagnostics(cached))

    @tf.function(autograph=False)
    def plain() -> tf.Tensor:
        return search.beam_search(base, base.prepare(source, length), beam, options).ids

    caches = [document_cache.empty(cached, rows)]

    @tf.function(autograph=False, input_signature=[document_cache.signature(cached)])
    def search_and_write(cache: Cache) -> tuple[tf.Tensor, Cache]:
        prepared = cached.prepare(source, length, document=cache)
        hypotheses = search.beam_search(cached, prepared, beam, recording)
        best = {name: value[:, 0] for name, value in (hypotheses.diagnostics or {}).items()}
        words, lengths = hypotheses.ids[:, 0], tf.cast(hypotheses.lengths[:, 0], tf.int32)
        updated = document_cache.write_translation(
            cached, cache, prepared.encoded, best, words, lengths
        )
        return hypotheses.ids, updated

    def with_cache() -> tf.Tensor:
        ids, caches[0] = search_and_write(caches[0])
        return ids

    def timed(once: Callable[[], tf.Tensor]) -> Callable[[], float]:
        def run() -> float:
            begin = time.perf_counter()
            assert once().shape[-1] == steps
            return rows * steps / (time.perf_counter() - begin)

        return run

    return timed(plain), timed(with_cache)


def _endless(size: Size, cell: str) -> Any:
    """Returns a model that ends no sentence by itself."""
    h = HParams(**{**_COMMON, **size.settings, "cell": cell})
    model: Any = TrainStep(h, size.vocabulary, size.vocabulary).model
    bias = np.zeros(size.vocabulary)
    bias[EOS_ID] = -1e9
    model.projection_bias.assign(bias)
    return model


def measure(sizes: list[str], precisions: list[str], rounds: int) -> Iterator[dict]:
    """Yields a record for each size and kind of work."""
    for size in sizes:
        for task, make in (("train", training), ("decode", decoding)):
            for precision in precisions if task == "train" else ["float32"]:
                base_run, cache_run = make(SIZES[size], precision)
                for run in (base_run, cache_run, cache_run):  # compiles, and fills the cache
                    run()
                pairs = [(base_run(), cache_run()) for _ in range(rounds)]
                ratios = [with_cache / base for base, with_cache in pairs]
                yield {
                    "what": task,
                    "size": size,
                    "precision": precision,
                    "ratio_of": _RATIOS[task],
                    "ratio": round(statistics.median(ratios), 3),
                    "base": round(statistics.median(base for base, _ in pairs)),
                    "words_per_second": round(
                        statistics.median(with_cache for _, with_cache in pairs)
                    ),
                    "runs": [round(ratio, 3) for ratio in ratios],
                    **provenance(),
                }


def main(argv: list[str] | None = None) -> None:
    """Runs the measurements of the command line."""
    args = harness.arguments(__doc__.splitlines()[0], SIZES, argv)
    harness.write(measure(args.sizes, args.precisions, args.rounds), args.out)


if __name__ == "__main__":
    main()
