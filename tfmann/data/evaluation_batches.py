"""Batches of a set that is measured, not trained on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tfmann.data.batching import Batch, Corpus, SourceHistory, chunks, cut_by_words, make_batch


def evaluation_batches(
    corpus: Corpus,
    batch_size: int,
    append_source_eos: bool,
    history_size: int = 0,
    words: int | None = None,
) -> Iterator[Batch]:
    """Yields all pairs, shortest targets first, to measure perplexity on.

    Args:
      corpus: the pairs.
      batch_size: pairs of a batch at most.
      append_source_eos: whether `</s>` ends a source sentence.
      history_size: how many source sentences before each come with it.
      words: target words of a batch at most, padding included, unless one sentence has more.
    """
    history = SourceHistory(corpus, history_size)
    target_lengths = np.diff(corpus.target_starts)
    order = np.lexsort((np.diff(corpus.source_starts), target_lengths))
    batches = chunks(order, batch_size)
    if words is not None:
        batches = (
            part for full in batches for part in cut_by_words(full, target_lengths + 1, words)
        )
    for indexes in batches:
        previous = [history.previous_sources(i) for i in indexes]
        yield whole_pairs(corpus, indexes, append_source_eos, previous)


def whole_pairs(
    corpus: Corpus,
    indexes: np.ndarray,
    append_source_eos: bool,
    previous: Sequence[list[Any]] = (),
) -> Batch:
    """Makes a batch of pairs of any length; `previous` has the source sentences before each."""
    sources, targets = zip(*((corpus.source(i), corpus.target(i)) for i in indexes))
    documents = corpus.documents[indexes]
    return make_batch(sources, targets, documents, indexes, append_source_eos, previous)
