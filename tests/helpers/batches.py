"""Encoded corpora in memory, and the comparison of their batches."""

import numpy as np

from tfmann.data.encoded_corpus import EncodedCorpus


def encoded(lengths, documents=None):
    """Pairs of these (source, target) lengths; the ids of pair i are i + 3, so each is known."""
    source, target = np.array(lengths).reshape(-1, 2).T

    def side(counts):
        ids = np.repeat(np.arange(len(counts)) + 3, counts).astype(np.int32)
        return ids, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    if documents is None:
        documents = np.full(len(lengths), -1)
    return EncodedCorpus(*side(source), *side(target), np.asarray(documents, np.int64))


def random_lengths(count, seed=0, low=1, high=30):
    stream = np.random.default_rng(seed)
    target = stream.integers(low, high, count)
    source = np.maximum(1, target + stream.integers(-3, 4, count))
    return np.stack([source, target], axis=1)


def are_same(batch, expected):
    return all(np.array_equal(a, b) for a, b in zip(batch, expected))
