"""What rewriting the memory costs: training speed beside RNNSearch's, and what counting allows.

    python -m benchmarks.rewriting [--sizes=small,paper] [--precisions=float32,mixed_bfloat16]
        [--out=results/rewriting.jsonl]

Every variant makes updates on the same batch of random words, in turns with RNNSearch in one
process. Beside the ratio of their speeds stands the ratio of their floating-point operations: a
variant that wastes nothing beside RNNSearch reaches it. Prints JSON lines.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks import lines

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

    files: str
    source: int  # words of a source sentence, `</s>` included
    target: int
    vocabularies: tuple[int, int]
    updates: int  # of a turn


PLACES = {
    "small": Place("cpu/multi30k/de_en", 14, 14, (8000, 6000), 4),
    "paper": Place("meng2018/zh_en", 26, 26, (30000, 30000), 1),
}


class Sizes(NamedTuple):
    """What the operations of a sentence follow from; letters as in the cells."""

    source: int  # S
    target: int  # T
    embedding: int  # E
    units: int  # U
    width: int  # D
    depth: int  # A
    readout: int
    vocabulary: int  # V


def _product(rows: int, inner: int, columns: int) -> int:
    """A multiplication and an addition for every term."""
    return 2 * rows * inner * columns


def _gru(inputs: int, units: int) -> int:
    return _product(1, inputs + units, 3 * units)


def _address(z: Sizes) -> int:
    """`v . tanh(W q + k_i)` of projected keys: an addition, a tanh, a product an element."""
    return _product(1, z.units, z.depth) + 4 * z.source * z.depth


def _shared(z: Sizes) -> int:
    """Both directions of the encoder, s_0, GRU1, readout and projection."""
    encoder = z.source * 2 * _gru(z.embedding, z.units)
    start = _product(1, z.width, z.units)
    readout = _product(1, z.units + z.embedding + z.width, z.readout)
    projection = _product(1, z.readout, z.vocabulary)
    return encoder + start + z.target * (_gru(z.embedding, z.units) + readout + projection)


def _round(z: Sizes) -> int:
    """What RNNSearch does once a step, and the others in every round: address, read, GRU2."""
    return _address(z) + _product(1, z.source, z.width) + _gru(z.width, z.units)


def rnnsearch(z: Sizes) -> int:
    """Forward operations of a sentence; the annotations are projected to keys once."""
    keys = _product(z.source, z.width, z.depth)
    return _shared(z) + keys + z.target * _round(z)


def rewriting(z: Sizes, rounds: int) -> int:
    """The same with a memory that every round projects twice, asks twice and rewrites.

    Forget and add are products of s~; `k + w (a - k f)` is four operations an element.
    """
    keys = 2 * _product(z.source, z.width, z.depth)
    both = _product(1, z.units, 2 * z.width) + 4 * z.source * z.width
    return _shared(z) + z.target * rounds * (keys + _round(z) + _address(z) + both)


def operations(hparams, z: Sizes) -> int:
    """Operations of a sentence in an update: backward has two products for one of forward.

    Softmaxes, gates, dropout, the EOS objective and the optimizer are not counted.
    """
    if hparams.cell == "rnnsearch":
        return 3 * rnnsearch(z)
    return 3 * rewriting(z, hparams.num_rounds)  # of mematt it is 1


def sizes(hparams, place: Place) -> Sizes:
    """Of a configuration of the RNNSearch family."""
    h = hparams
    return Sizes(
        source=place.source,
        target=place.target,
        embedding=h.embedding_width,
        units=h.num_units,
        width=h.num_units * (1 if h.annotation_merge == "sum" else 2),
        depth=h.attention_size or h.num_units,
        readout=h.readout_size or h.embedding_width,
        vocabulary=place.vocabularies[1],
    )


class Variant:
    """A compiled update on the batch of its size."""

    def __init__(self, place: Place, row: str, settings: dict):
        import numpy as np

        from tfmann import hparams
        from tfmann.corpus.pipeline import make_batch
        from tfmann.training.step import Learner

        path = _ROOT / "hparams" / f"{place.files}_{row}.json"
        self.hparams = h = hparams.make(settings, str(path))
        self.updates, self.step = place.updates, 0
        stream = np.random.default_rng(0)
        lengths = (place.source - h.append_source_eos, place.target - 1)
        words = [
            stream.integers(3, v, [h.batch_size, n]) for v, n in zip(place.vocabularies, lengths)
        ]
        none = np.full(h.batch_size, -1)
        self.batch = make_batch(*words, none, np.arange(h.batch_size), h.append_source_eos)
        self.learner = Learner(h, *place.vocabularies)
        self.operations = operations(h, sizes(h, place)) * h.batch_size

    def run(self) -> float:
        """Target words a second over some updates."""
        begin = time.perf_counter()
        for _ in range(self.updates):
            rate = self.hparams.learning_rate
            update = self.learner.update(self.batch, self.step, rate)
            self.step += 1
        float(update.cross_entropy)  # waits
        return self.updates * self.batch.words / (time.perf_counter() - begin)


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
        ratios = [own / beside for beside, own in pairs]
        allowed = base.operations / variant.operations
        yield {
            "variant": name,
            "size": size,
            "precision": precision,
            "words_per_second": round(statistics.median(own for _, own in pairs)),
            "rnnsearch": round(statistics.median(beside for beside, _ in pairs)),
            "ratio": round(statistics.median(ratios), 3),
            "operations": variant.operations,
            "operations_allow": round(allowed, 3),
            "reached": round(statistics.median(ratios) / allowed, 3),
            "runs": [round(ratio, 3) for ratio in ratios],
            **provenance(),
        }


def main() -> None:
    """Measures what the command line asks for."""
    args = lines.asked(__doc__.splitlines()[0], PLACES)
    for size in args.sizes:
        for precision in args.precisions:
            lines.write(measure(size, precision, args.rounds), args.out)


if __name__ == "__main__":
    main()
