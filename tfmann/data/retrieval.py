"""The sentences of a collection that are most like a sentence: BM25, then edit similarity.

SK-MT (Dai et al. 2023, arXiv:2302.12188, section 3.1). Sentences are ids of tokens; `<unk>` equals
no token, not even itself.

    score(x, i) = sum over w in x of idf(w) f_i(w) (k1 + 1) / (f_i(w) + k1 (1 - b + b |x_i| / mean))
    idf(w) = ln(1 + (N - n(w) + 1/2) / (n(w) + 1/2))
    sim(x, x_i) = 1 - edit(x, x_i) / max(|x|, |x_i|)

Only NumPy is used: the arrays of the index are files that can be mapped into memory, ties are
resolved as documented, and nothing has to be installed. `rank-bm25` scores every sentence in a
Python loop; `bm25s` has its own files and leaves the order of ties to a partial sort.

Letters: N sentences, h hits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfmann.data.vocab import UNK_ID

_K1, _B = 1.2, 0.75  # as in Lucene
_NOTHING = -1  # an id that equals no other, in place of `<unk>` and of padding
_BLOCK = 64  # sentences
_DIGITS = 9  # of a score; its last bits depend on the order of a sum


class Sentences(NamedTuple):
    """Sentences in a row, `ids[starts[i] : starts[i + 1]]` each."""

    ids: np.ndarray  # int32
    starts: np.ndarray  # int64 [N + 1]

    @property
    def size(self) -> int:
        """The number of sentences N."""
        return len(self.starts) - 1

    def sentence(self, i: int) -> np.ndarray:
        """Returns the ids of sentence i."""
        return self.ids[self.starts[i] : self.starts[i + 1]]


class Index(NamedTuple):
    """The inverted index of a collection: for each token the sentences that have it."""

    starts: np.ndarray  # int64 [V + 1]: token w has the entries starts[w] to starts[w + 1]
    sentences: np.ndarray  # int32, ascending for each token
    scores: np.ndarray  # float64, what the token adds to the score of its sentence


def pack(sentences: Sequence[Sequence[int]]) -> Sentences:
    """Puts lists of ids into one array."""
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.fromiter((i for sentence in sentences for i in sentence), np.int32, int(starts[-1]))
    return Sentences(ids, starts)


def build_index(collection: Sentences, vocabulary_size: int) -> Index:
    """Builds the index of at least one sentence; ids are below `vocabulary_size`."""
    count, lengths = collection.size, np.diff(collection.starts)
    sentence_of = np.repeat(np.arange(count), lengths)
    known = collection.ids != UNK_ID
    pairs = collection.ids[known].astype(np.int64) * count + sentence_of[known]
    pairs, frequencies = np.unique(pairs, return_counts=True)  # by token, then by sentence
    tokens, sentences = pairs // count, pairs % count
    numbers = np.bincount(tokens, minlength=vocabulary_size)  # n(w)
    idf = np.log1p((count - numbers + 0.5) / (numbers + 0.5))
    norms = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1.0))
    scores = idf[tokens] * frequencies * (_K1 + 1) / (frequencies + norms[sentences])
    starts = np.concatenate([[0], np.cumsum(numbers)])
    return Index(starts, sentences.astype(np.int32), scores)


def hits(query: Sequence[int], index: Index, count: int, limit: int) -> np.ndarray:
    """Returns the sentences with the highest scores, at most `limit` of them.

    Args:
      query: ids; one that occurs twice counts twice.
      index: of N sentences.
      count: N.
      limit: h.

    Returns:
      int64 `[h']`, from best to worst; of equal ones the lower index first. Sentences without a
      token of the query are not among them.
    """
    scores = np.zeros(count)
    for token, times in Counter(query).items():
        if token != UNK_ID:
            entries = slice(index.starts[token], index.starts[token + 1])
            scores[index.sentences[entries]] += times * index.scores[entries]
    least = _least_hit(scores, limit) - 2 * 10**-_DIGITS  # rounded, others may equal it
    sharing = np.flatnonzero(scores > max(least, 0))
    rounded = np.round(scores[sharing], _DIGITS)
    best = np.lexsort((sharing, -rounded))[:limit]
    return sharing[best[rounded[best] > 0]]


def _least_hit(scores: np.ndarray, limit: int) -> float:
    """Returns a score that at least `limit` scores reach, often not much below the last of these.

    It is found among the greatest scores of blocks, which are fewer numbers: with 500,000
    sentences, finding the hits takes half the time.
    """
    blocks = scores[: len(scores) // _BLOCK * _BLOCK].reshape(-1, _BLOCK)
    if len(blocks) <= limit:
        return 0.0
    return float(np.partition(blocks.max(axis=1), -limit)[-limit])


def edit_distances(query: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """Returns Levenshtein's distances of ids to each of h other sentences, int64 `[h]`.

    A row of the table is a minimum over the tokens before, of which `minimum.accumulate` makes one
    operation for all sentences together.
    """
    lengths = np.fromiter(map(len, others), np.int64, len(others))
    width = int(lengths.max(initial=0))
    padded = np.full([len(others), width], _NOTHING)
    for i, other in enumerate(others):
        padded[i, : len(other)] = np.where(other == UNK_ID, _NOTHING, other)
    positions = np.arange(width + 1)
    table = np.broadcast_to(positions, [len(others), width + 1])
    for step, token in enumerate(query, start=1):
        row = np.full([len(others), width + 1], step)
        row[:, 1:] = np.minimum(table[:, 1:] + 1, table[:, :-1] + (padded != token))
        table = np.minimum.accumulate(row - positions, axis=1) + positions
    return table[np.arange(len(others)), lengths]


def similarities(query: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """Returns sim(x, x_i) from 0 to 1, `[h]`; the query is not empty."""
    lengths = np.fromiter(map(len, others), np.int64, len(others))
    return 1.0 - edit_distances(query, others) / np.maximum(lengths, len(query))


def retrieve(
    query: Sequence[int], collection: Sentences, index: Index, count: int, limit: int
) -> list[int]:
    """Returns the `count` sentences that are most similar to `query` among the `limit` best hits.

    From best to worst; of equally similar ones the better hit is first. There are fewer where fewer
    sentences share a token with the query.
    """
    best = hits(query, index, collection.size, limit)
    similar = similarities(np.asarray(query), [collection.sentence(i) for i in best])
    return best[np.argsort(-similar, kind="stable")][:count].tolist()
