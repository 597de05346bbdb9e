"""Documents of a corpus: where they start, and how they are assigned to the rows of batches.

A document is a run of sentences with the same id; a new one starts where the id changes.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfmann.data.text_files import NO_DOCUMENT


def document_starts(ids: Sequence[int] | np.ndarray) -> np.ndarray:
    """Returns for every sentence `[n]` the index of the first sentence of its document.

    A sentence with the id `NO_DOCUMENT` is a document of its own.
    """
    documents = np.asarray(ids, np.int64)
    starts = np.ones(len(documents), bool)
    starts[1:] = (documents[1:] != documents[:-1]) | (documents[1:] == NO_DOCUMENT)
    return np.maximum.accumulate(np.where(starts, np.arange(len(documents)), 0))


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
