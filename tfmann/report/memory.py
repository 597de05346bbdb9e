"""All that can be drawn of one sentence's memory, and of a cache over many, written to a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Callable

import numpy as np

from tfmann.corpus.files import replacing
from tfmann.errors import UserError
from tfmann.report import cache_figures, memory_figures, plots, round_figures
from tfmann.report.cache_table import cache_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tfmann.evaluation.trace import Trace


def sentence_figures(trace: Trace, title: str = "") -> Iterator[tuple[str, Figure]]:
    """Draws what a trace has, each with a name for its file.

    That is `attention`; `rounds` of a cell that rewrites the source's keys; of each head, called as
    in `trace.heads`; `cache`, unless it was empty.
    """
    if "alignments" in trace:
        words = trace.source_tokens, trace.tokens
        yield "attention", plots.attention_figure(trace["alignments"], *words, title=title)
    if trace.rounds:
        yield "rounds", round_figures.rounds_of_trace(trace, title)
    yield from memory_figures.head_figures(trace, title)
    cache = cache_figures.cache_of_trace(trace, title)
    if cache is not None:
        yield "cache", cache


def write_sentence(
    trace: Trace, number: int, folder: str, log: Callable[[str], None] = print
) -> None:
    """Writes `sentence_NUMBER_FIGURE.png` for every figure, and `sentence_NUMBER_cache.md`.

    Args:
      trace: of the sentence.
      number: which it is.
      folder: made if it is missing.
      log: is told each file, and what of a cache is not there.

    Raises:
      UserError: a file cannot be written.
    """
    make_folder(folder)
    start = os.path.join(folder, f"sentence_{number}")
    for name, figure in sentence_figures(trace, f"sentence {number}"):
        plots.save_figure(figure, f"{start}_{name}.png")
        log(f"{start}_{name}.png")
    if trace.slots is None:
        log("the model has no cache: no cache matching, no recency and no table")
        return
    if not len(cache_figures.by_recency(trace.slots)):
        log(f"the cache is empty when sentence {number} begins: no cache matching")
    with replacing(f"{start}_cache.md") as stream:
        stream.write(cache_table(trace.slots).encode())
    log(f"{start}_cache.md")


def write_recency(
    traces: Sequence[Trace], name: str, folder: str, log: Callable[[str], None] = print
) -> None:
    """Writes `recency.png` of the traces of a model with a cache, or tells `log` why not.

    Args:
      traces: of all sentences.
      name: what the legend calls them.
      folder: made if it is missing.
      log: is told the file.

    Raises:
      UserError: it cannot be written.
    """
    make_folder(folder)
    values = cache_figures.recency(traces)
    if not np.isfinite(values).any():
        log("no sentence begins with anything in the cache: no recency")
        return
    path = os.path.join(folder, "recency.png")
    plots.save_figure(cache_figures.recency_figure({name: values}), path)
    log(path)


def make_folder(folder: str) -> None:
    """Makes a folder that may be there already.

    Raises:
      UserError: it cannot be made.
    """
    try:
        os.makedirs(folder, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UserError(f"cannot make the folder {folder}: {error}") from None
