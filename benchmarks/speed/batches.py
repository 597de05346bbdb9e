"""Batches of random words whose lengths are drawn from one fixed distribution.

The length of a target is from a gamma distribution with a standard deviation of 0.45 of its mean,
cut at three times the mean; a source is 0.8 to 1.2 times as long. Documents have eight sentences.
The batches are those that training makes of such a corpus: sorted by length in pools, with little
padding.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import flops
from tfmann import config
from tfmann.data.batching import Batch, Position, TrainingBatches
from tfmann.data.encoded_corpus import EncodedCorpus

_SHAPE = 5.0  # of the gamma distribution: its deviation is the mean divided by the root of this
_DOCUMENT = 8  # sentences


def corpus(pairs: int, words: int, vocabulary: int, folder: str | None = None) -> EncodedCorpus:
    """Makes pairs of `words` words on average, `</s>` included; memory-mapped if in a folder."""
    stream = np.random.default_rng(1)
    target = stream.gamma(_SHAPE, (words - 1) / _SHAPE, pairs).round().clip(1, 3 * words)
    source = (target * stream.uniform(0.8, 1.2, pairs)).round().clip(1)
    arrays = []
    for lengths in (source, target):
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        arrays += [stream.integers(3, vocabulary, starts[-1], dtype=np.int32), starts]
    arrays.append(np.arange(pairs) // _DOCUMENT)
    if folder is None:
        return EncodedCorpus(*arrays)
    return EncodedCorpus(*(_mapped(Path(folder, f"{pairs}.{i}"), a) for i, a in enumerate(arrays)))


def _mapped(path: Path, array: np.ndarray) -> np.ndarray:
    array.tofile(path)
    return np.memmap(path, dtype=array.dtype, mode="r")


def of_training(hparams: Any, words: int, vocabulary: int, count: int) -> list[Batch]:
    """Makes the first batches of a corpus, the same for every cell, with history if needed."""
    pairs = corpus(max(20, count) * hparams.batch_size, words, vocabulary)
    history = config.cell_spec(hparams.cell).history_size
    batches = TrainingBatches(pairs, hparams, history).batches(Position())
    return [batch for batch, _ in itertools.islice(batches, count)]


def of_length(hparams: Any, source: int, target: int, vocabulary: int) -> Batch:
    """Makes a batch whose sentences all have these lengths, `</s>` included."""
    rows, stream = hparams.batch_size, np.random.default_rng(1)
    ids = [stream.integers(3, vocabulary, rows * (n - 1), dtype=np.int32) for n in (source, target)]
    starts = [np.arange(rows + 1) * (n - 1) for n in (source, target)]
    pairs = EncodedCorpus(ids[0], starts[0], ids[1], starts[1], np.arange(rows) // _DOCUMENT)
    history = config.cell_spec(hparams.cell).history_size
    return next(TrainingBatches(pairs, hparams, history).batches(Position()))[0]


def projected(hparams: Any, batch: Batch, vocabulary: int) -> int:
    """Returns the number of words in the softmax of a batch."""
    if not hparams.num_sampled_softmax:
        return vocabulary
    real = np.arange(batch.target_out.shape[1]) < batch.target_length[:, None]
    return min(vocabulary, hparams.num_sampled_softmax + len(np.unique(batch.target_out[real])))


def lengths(batch: Batch) -> list[flops.Lengths]:
    """Returns the lengths of every sentence of a batch, for counting operations."""
    before = np.maximum(batch.history_length, 1).tolist()
    return [
        flops.Lengths(source, target, tuple(history))
        for source, target, history in zip(
            batch.source_length.tolist(), batch.target_length.tolist(), before
        )
    ]
