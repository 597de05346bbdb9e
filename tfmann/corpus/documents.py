"""Documents: where they begin, what stands before a sentence, and dealing them out to rows.

A document is a run of sentences with one id; a new one begins where the id changes.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfmann.corpus.files import NO_DOCUMENT


def beginnings(ids: Sequence[int] | np.ndarray) -> np.ndarray:
    """For every sentence `[n]` the index of the first one of its document.

    A sentence without a document (`NO_DOCUMENT`) is one of its own.
    """
    documents = np.asarray(ids, np.int64)
    begins = np.ones(len(documents), bool)
    begins[1:] = (documents[1:] != documents[:-1]) | (documents[1:] == NO_DOCUMENT)
    return np.maximum.accumulate(np.where(begins, np.arange(len(documents)), 0))


def deal(documents: Sequence[Any], count: int) -> list[list[Any]]:
    """Deals documents to at most `count` rows of about the same number of sentences.

    The longest first, each to the row that has least.
    """
    rows: list[list[Any]] = [[] for _ in range(min(count, len(documents)))]
    loads = [(0, row) for row in range(len(rows))]
    for document in sorted(documents, key=len, reverse=True):
        load, row = heapq.heappop(loads)
        rows[row].append(document)
        heapq.heappush(loads, (load + len(document), row))
    return rows
