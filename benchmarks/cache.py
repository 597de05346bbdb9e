"""What a cache costs, and what freezing the model beneath it saves, in turns in one process.

    python -m benchmarks.cache [--sizes=small,paper] [--rounds=5] [--out=F]

Training: target words/s of the second stage (the gate alone) over those of the first (RNNSearch),
on the same batch. Decoding: beam 10, target words/s of the model with a full cache, which is
written after every sentence, over those of RNNSearch; nothing ends before the limit, so that both
take the same steps.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from typing import Callable, NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from benchmarks import lines
from tfmann.corpus.pipeline import make_batch
from tfmann.corpus.vocab import EOS_ID
from tfmann.decoding import search
from tfmann.decoding.beam import Search
from tfmann.hparams import HParams
from tfmann.memory.cache import Cache
from tfmann.models import document
from tfmann.provenance import provenance
from tfmann.training.optimizer import base_rate
from tfmann.training.step import Learner

_RATIOS = {"train": "second stage / first", "decode": "with cache / without"}


class Place(NamedTuple):
    """A size of model and batch."""

    settings: dict
    vocabulary: int
    words: int  # of a sentence, on either side
    decoded: int  # sentences decoded together


PLACES = {
    "tiny": Place({"num_units": 8, "embedding_size": 8, "batch_size": 4}, 60, 4, 2),  # for tests
    "small": Place({"num_units": 256, "embedding_size": 256, "batch_size": 64}, 10_000, 14, 32),
    "paper": Place({"num_units": 1000, "embedding_size": 620, "batch_size": 80}, 30_000, 22, 32),
}
_COMMON = {
    "unit_type": "gru", "encoder_type": "bi", "num_layers": 2, "projection_bias": True,
    "readout_dropout": 0.5, "dropout": 0.0, "optimizer": "adam", "learning_rate": 1e-4,
    "max_gradient_norm": 1.0,
}  # fmt: skip


def training(place: Place, precision: str) -> tuple[Callable[[], float], Callable[[], float]]:
    """Runs of the first and of the second stage: target words/s over some updates."""
    stream = np.random.default_rng(1)
    rows = place.settings["batch_size"]
    sides = (stream.integers(3, place.vocabulary, [rows, place.words]) for _ in range(2))
    batch = make_batch(*sides, np.zeros(rows), np.arange(rows), True)
    updates = 6 if place.vocabulary < 20_000 else 2

    def run_of(**changes: object) -> Callable[[], float]:
        h = HParams(**{**_COMMON, **place.settings, "precision": precision, **changes})
        learner = Learner(h, place.vocabulary, place.vocabulary)

        def run() -> float:
            begin = time.perf_counter()
            for step in range(updates):
                told = learner.update(batch, step, base_rate(h))
            float(told.cross_entropy)  # waits
            return updates * batch.words / (time.perf_counter() - begin)

        return run

    return run_of(cell="rnnsearch"), run_of(cell="cache", trainable_parameters="cell/gate_*")


def decoding(place: Place, precision: str) -> tuple[Callable[[], float], Callable[[], float]]:
    """Runs without and with a cache: target words/s of beam search over one batch."""
    del precision  # decoding is float32
    stream = np.random.default_rng(2)
    rows, steps = place.decoded, place.words
    source = tf.constant(stream.integers(3, place.vocabulary, [rows, steps]), tf.int32)
    length = tf.fill([rows], steps)
    base, cached = (_endless(place, cell) for cell in ("rnnsearch", "cache"))
    how = Search(beam_width=10)

    @tf.function(autograph=False)
    def plain() -> tf.Tensor:
        return search.beam_search(base, base.prepare(source, length), how, steps).ids

    held = [document.nothing_kept(cached, rows)]

    @tf.function(autograph=False, input_signature=[document.signature(cached)])
    def kept(cache: Cache) -> tuple[tf.Tensor, Cache]:
        prepared = cached.prepare(source, length, document=cache)
        found = search.beam_search(
            cached, prepared, how, steps, record=cached.cell.written_from
        )
        best = {name: value[:, 0] for name, value in found.diagnostics.items()}
        words, lengths = found.ids[:, 0], tf.cast(found.lengths[:, 0], tf.int32)
        kept_now = document.keep_found(cached, cache, prepared.encoded, best, words, lengths)
        return found.ids, kept_now

    def with_cache() -> tf.Tensor:
        ids, held[0] = kept(held[0])
        return ids

    def timed(once: Callable[[], tf.Tensor]) -> Callable[[], float]:
        def run() -> float:
            begin = time.perf_counter()
            assert once().shape[-1] == steps
            return rows * steps / (time.perf_counter() - begin)

        return run

    return timed(plain), timed(with_cache)


def _endless(place: Place, cell: str) -> object:
    """A model that ends no sentence by itself."""
    h = HParams(**{**_COMMON, **place.settings, "cell": cell})
    model = Learner(h, place.vocabulary, place.vocabulary).model
    bias = np.zeros(place.vocabulary)
    bias[EOS_ID] = -1e9
    model.projection_bias.assign(bias)
    return model


def measure(sizes: list[str], precisions: list[str], rounds: int) -> Iterator[dict]:
    """A record for each size and kind of work."""
    for size in sizes:
        for what, make in (("train", training), ("decode", decoding)):
            for precision in precisions if what == "train" else ["float32"]:
                one, other = make(PLACES[size], precision)
                for run in (one, other, other):  # compiles, and fills the cache
                    run()
                pairs = [(one(), other()) for _ in range(rounds)]
                ratios = [with_cache / base for base, with_cache in pairs]
                yield {
                    "what": what,
                    "size": size,
                    "precision": precision,
                    "ratio_of": _RATIOS[what],
                    "ratio": round(statistics.median(ratios), 3),
                    "base": round(statistics.median(base for base, _ in pairs)),
                    "words_per_second": round(statistics.median(own for _, own in pairs)),
                    "runs": [round(ratio, 3) for ratio in ratios],
                    **provenance(),
                }


def main(argv: list[str] | None = None) -> None:
    """Measures what the command line asks for."""
    args = lines.arguments(__doc__.splitlines()[0], PLACES, argv)
    lines.write(measure(args.sizes, args.precisions, args.rounds), args.out)


if __name__ == "__main__":
    main()
