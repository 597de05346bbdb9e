"""Documents of a corpus: where they start, and how they are assigned to the rows of batches.

A document is a run of sentences with the same id; a new one starts where the id changes.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfmann.data.text_files import NO_DOCUMENT

_GROUP_SIZE = 4  # at least so many documents are exchanged among each other


def document_starts(ids: Sequence[int] | np.ndarray) -> np.ndarray:
    """Returns for every sentence `[n]` the index of the first sentence of its document.

    A sentence with the id `NO_DOCUMENT` is a document of its own.
    """
    documents = np.asarray(ids, np.int64)
    starts = np.ones(len(documents), bool)
    starts[1:] = (documents[1:] != documents[:-1]) | (documents[1:] == NO_DOCUMENT)
    return np.maximum.accumulate(np.where(starts, np.arange(len(documents)), 0))


def later_sentences(ids: Sequence[int]) -> list[int]:
    """Returns the indices of the sentences that are not the first of their document."""
    return np.flatnonzero(document_starts(ids) != np.arange(len(ids))).tolist()


def assign_to_rows(documents: Sequence[Any], count: int) -> list[list[Any]]:
    """Assigns documents to at most `count` rows of about equal numbers of sentences.

    Each document, the longest first, goes to the row with the fewest sentences.
    """
    rows: list[list[Any]] = [[] for _ in range(min(count, len(documents)))]
    loads = [(0, row) for row in range(len(rows))]
    for document in sorted(documents, key=len, reverse=True):
        load, row = heapq.heappop(loads)
        rows[row].append(document)
        heapq.heappush(loads, (load + len(document), row))
    return rows


def sentences_by_document(ids: Sequence[int], present: Sequence[Any]) -> list[list[int]]:
    """Returns the indexes of each document's sentences, without those that are not `present`."""
    groups = itertools.groupby(range(len(present)), lambda index: ids[index])
    documents = ([index for index in group if present[index]] for _, group in groups)
    return [document for document in documents if document]


def exchange_documents(lengths: Sequence[int], seed: int) -> list[int]:
    """Assigns to each document another one of similar length.

    Documents are sorted by length and cut into groups of four to seven neighbours. In each group
    they form a circle, in an order drawn by the seed, and each document is assigned the next.

    Args:
      lengths: sentences of each document, at least two documents.
      seed: of the order in a circle, and of documents of the same length.

    Returns:
      for each document the number of another; each number occurs once.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    order = random.permutation(len(lengths))
    by_length = order[np.argsort(np.asarray(lengths)[order], kind="stable")]
    successors = np.empty(len(lengths), np.int64)
    for group in np.array_split(by_length, max(1, len(lengths) // _GROUP_SIZE)):
        circle = random.permutation(group)
        successors[circle] = np.roll(circle, -1)
    return successors.tolist()
