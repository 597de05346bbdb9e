"""The summaries of an evaluation: a sample, sharpness, and the memory at the watched sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Callable

import numpy as np

from tfmann.cells.diagnostics import VECTORS
from tfmann.data.corpus_paths import reference_paths
from tfmann.data.text_files import iter_lines
from tfmann.decoding.memory_contents import memory_contents
from tfmann.decoding.translation import Translation, without_eos
from tfmann.decoding.translator import Translator
from tfmann.evaluation.trace import Trace
from tfmann.training import sharpness
from tfmann.visualization.cache_figures import code_span, recency
from tfmann.visualization.tensorboard import Board

_WATCHED = 100  # dev sentences over which the matching of a cache is averaged


def show_sample(
    board: Board,
    log: Callable[[str], None],
    step: int,
    lines: Sequence[str],
    target: str,
    best: Sequence[Translation],
    watched: int,
) -> None:
    """Logs one dev sentence, a different one at every step, with reference and translation.

    The board also has the first ones at every step, so that each can be followed.

    Args:
      board: takes the sample as a table.
      log: takes the lines.
      step: training step; it chooses the sentence.
      lines: dev sources.
      target: path of their references.
      best: the best translations.
      watched: how many of the first sentences the board has.
    """
    index = int(np.random.Generator(np.random.PCG64(step)).integers(len(lines)))
    references = list(iter_lines(reference_paths(target)[0]))

    def rows(number: int) -> dict[str, str]:
        return {"src": lines[number], "ref": references[number], "nmt": best[number].text}

    for name, value in rows(index).items():
        log(f"  {name}: {value}")
    board.text(step, "sample", _table(rows(index)))
    for number in range(min(watched, len(lines))):
        board.text(step, f"translations/{number}", _table(rows(number)))


def _table(rows: Mapping[str, str]) -> str:
    """Returns a table of two columns in Markdown, the values as code.

    TensorBoard would show the backslash of an escaped bar, and needs none in code.
    """
    cells = {name: code_span(value) if value else "" for name, value in rows.items()}
    return "| | |\n|-|-|\n" + "\n".join(f"|{name}|{value}|" for name, value in cells.items())


def show_sharpness(
    board: Board, log: Callable[[str], None], step: int, measures: sharpness.Sharpness
) -> None:
    """Logs the sharpness of every head, and plots it as `sharpness/HEAD/MEASURE`."""
    for line in sharpness.lines(measures):
        log(line)
    curves = {f"sharpness/{head}/{name}": value
              for head, of_head in measures.items() for name, value in of_head.items()}  # fmt: skip
    board.scalars(step, curves)


def show_memory(
    board: Board,
    translator: Translator,
    step: int,
    best: Sequence[Translation],
    documents: list[int] | None,
) -> None:
    """Plots the attention, addresses and contents of the first dev sentences, as the cell has them.

    They come from a forced decoding of the translations just made: one short pass, whereas to
    record them in the search would take a second search.

    Args:
      board: takes the figures.
      translator: the translator that made the translations.
      step: training step.
      best: translations of the dev set.
      documents: the document id of each, if there are documents.
    """
    watched = best[: translator.hparams.num_attention_images]
    forced = translator.force_translations(
        watched, VECTORS, documents and documents[: len(watched)]
    )
    vocabulary = translator.languages.source.vocabulary
    for index, (translation, trace) in enumerate(zip(watched, map(Trace, forced))):
        if not translation.tokens:
            continue  # a blank line
        if "alignments" in trace:
            board.attention(step, index, trace.source_tokens, trace.tokens, trace["alignments"])
        board.addresses(step, index, trace)
        ids = vocabulary.encode(without_eos(translation.source_tokens))
        contents = memory_contents(translator.model, translator.text, ids)
        if contents is not None:
            board.contents(index, *contents)


def show_recency(
    board: Board,
    translator: Translator,
    step: int,
    best: Sequence[Translation],
    documents: list[int] | None,
) -> None:
    """Plots the matching of a cache by recency, over the sentences that begin with a full cache.

    In others fewer slots share the probability, which alone would lower the curve. Arguments as of
    `show_memory`.
    """
    best, documents = best[:_WATCHED], documents and documents[:_WATCHED]
    traces = map(Trace, translator.force_translations(best, ("cache_match",), documents))
    full = [trace for trace in traces if trace.slots and (trace.slots.ages >= 0).all()]
    if full and full[0].slots and full[0].slots.words:
        board.recency(step, recency(full))
