"""Writes the figures of the memory at one sentence, and of a cache over many, to a folder."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Callable

import numpy as np

from tfmann.errors import UserError
from tfmann.utils.files import atomic_write
from tfmann.visualization import (
    attention_figures,
    cache_figures,
    coverage_figures,
    head_figures,
    image_files,
    round_figures,
    step_figures,
    word_memory_figures,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfmann.evaluation.trace import Trace


_NAMES = (
    "attention|previous_sentence|coverage|rounds|(read|write)_head_[0-9]+|steps|cache|word_memory"
)


def sentence_figures(trace: Trace, title: str = "") -> Iterator[tuple[str, Figure]]:
    """Yields the figures of a trace, each with a name for its file.

    These are `attention`; `previous_sentence`, the attention to it; `coverage` for a cell that has
    one; `rounds` for a cell that rewrites source keys; one for each head, with the name that it has
    in `trace.heads`; `steps`, numbers of each step that belong to no head; `cache` and
    `word_memory`, unless they were empty.
    """
    for name, weights, words in (
        ("attention", "alignments", trace.source_tokens),
        ("previous_sentence", "previous_alignments", trace.previous_tokens),
    ):
        if weights in trace and words:
            yield (
                name,
                attention_figures.attention_figure(trace[weights], words, trace.tokens, title),
            )
    if "coverage" in trace:
        yield "coverage", coverage_figures.coverage_figure(trace, title)
    if trace.rounds:
        yield "rounds", round_figures.rounds_figure(trace, title)
    yield from head_figures.head_figures(trace, title)
    steps = step_figures.steps_figure(trace, title)
    if steps is not None:
        yield "steps", steps
    cache = cache_figures.cache_figure(trace, title)
    if cache is not None:
        yield "cache", cache
    word_memory = word_memory_figures.word_memory_of_trace(trace, title)
    if word_memory is not None:
        yield "word_memory", word_memory


def write_sentence(
    trace: Trace, number: int, folder: str, log: Callable[[str], None] = print
) -> None:
    """Writes `sentence_NUMBER_FIGURE.png` for every figure, and tables of what a memory has.

    These are `sentence_NUMBER_cache.md` and `sentence_NUMBER_word_memory.md`.

    Args:
      trace: of the sentence.
      number: of the sentence.
      folder: is created if missing.
      log: receives the name of each file, and what is missing of a cache.

    Raises:
      UserError: a file cannot be written.
    """
    make_folder(folder)
    remove_figures(folder, str(number))
    start = os.path.join(folder, f"sentence_{number}")
    for name, figure in sentence_figures(trace, f"sentence {number}"):
        image_files.save_figure(figure, f"{start}_{name}.png")
        log(f"{start}_{name}.png")
    if trace.word_memory is not None:
        if not trace.word_memory.entries:
            log(f"the word memory is empty at sentence {number}: no votes")
        table = word_memory_figures.word_memory_table(trace.word_memory, trace.tokens)
        with atomic_write(f"{start}_word_memory.md") as stream:
            stream.write(table.encode())
        log(f"{start}_word_memory.md")
        return
    if trace.slots is None:
        log("the model has no cache: no matching, no recency and no table")
        return
    if not len(cache_figures.by_recency(trace.slots)):
        log(f"the cache is empty when sentence {number} begins: no matching")
    with atomic_write(f"{start}_cache.md") as stream:
        stream.write(cache_figures.cache_table(trace.slots).encode())
    log(f"{start}_cache.md")


def write_recency(
    traces: Sequence[Trace], name: str, folder: str, log: Callable[[str], None] = print
) -> None:
    """Writes `recency.png` from the traces of a model with a cache, or logs why not.

    Args:
      traces: of all sentences.
      name: of the curve, in the legend.
      folder: is created if missing.
      log: receives the name of the file.

    Raises:
      UserError: the file cannot be written.
    """
    make_folder(folder)
    path = os.path.join(folder, "recency.png")
    averages = cache_figures.recency(traces)
    if not np.isfinite(averages).any():
        with contextlib.suppress(FileNotFoundError):  # of an earlier call
            os.unlink(path)
        log("the cache is empty when every sentence begins: no recency")
        return
    image_files.save_figure(cache_figures.recency_figure(averages, name), path)
    log(path)


def remove_figures(folder: str, number: str = "[0-9]+") -> None:
    """Removes what an earlier call has written of the sentence `number`, or of all sentences."""
    written = re.compile(f"sentence_{number}_({_NAMES})[.](png|md)")
    for name in filter(written.fullmatch, os.listdir(folder)):
        os.unlink(os.path.join(folder, name))


def make_folder(folder: str) -> None:
    """Creates a folder unless it exists.

    Raises:
      UserError: it cannot be created.
    """
    try:
        os.makedirs(folder, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UserError(f"cannot create the folder {folder}: {error}") from None
