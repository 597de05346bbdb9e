"""What a run shows of itself at an evaluation: a sample, and memory at the watched sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable

import numpy as np

from tfmann.cells.diagnostics import VECTORS
from tfmann.corpus.files import iter_lines
from tfmann.corpus.inputs import reference_paths
from tfmann.decoding.contents import contents
from tfmann.decoding.lines import Translation, without_end
from tfmann.decoding.translator import Translator
from tfmann.evaluation.trace import Trace
from tfmann.report.cache_figures import recency
from tfmann.report.tensorboard import Board
from tfmann.training import sharpness

_WATCHED = 100  # dev sentences over which the matching of a cache is averaged


def show_sample(
    board: Board,
    log: Callable[[str], None],
    step: int,
    lines: Sequence[str],
    target: str,
    best: Sequence[Translation],
) -> None:
    """Logs one dev sentence, another at every step, with its reference and its translation.

    Args:
      board: takes the same as a table.
      log: takes the lines.
      step: training step; it chooses the sentence.
      lines: dev sources.
      target: path of their translations.
      best: what the model says.
    """
    index = int(np.random.Generator(np.random.PCG64(step)).integers(len(lines)))
    reference = list(iter_lines(reference_paths(target)[0]))[index]
    for name, value in (("src", lines[index]), ("ref", reference), ("nmt", best[index].text)):
        log(f"  {name}: {value}")
    table = f"| | |\n|-|-|\n|src|{lines[index]}|\n|ref|{reference}|\n|nmt|{best[index].text}|"
    board.text(step, "sample", table)


def show_sharpness(
    board: Board, log: Callable[[str], None], step: int, found: sharpness.Sharpness
) -> None:
    """Logs how sharply every head addresses, and draws it as `sharpness/HEAD/MEASURE`."""
    for line in sharpness.lines(found):
        log(line)
    curves = {f"sharpness/{head}/{name}": value
              for head, measures in found.items() for name, value in measures.items()}  # fmt: skip
    board.scalars(step, curves)


def show_memory(
    board: Board,
    translator: Translator,
    step: int,
    best: Sequence[Translation],
    documents: list[int] | None,
) -> None:
    """Draws attention, addresses and contents, as the cell has them, at the first dev sentences.

    They are those of forcing the translations that were just made: one short pass, where recording
    them in the search would be a second search.

    Args:
      board: takes the figures.
      translator: has made the translations.
      step: training step.
      best: translations of the dev set.
      documents: a number for the document of each, if there are any.
    """
    watched = best[: translator.hparams.num_attention_images]
    seen = translator.force_again(watched, VECTORS, documents and documents[: len(watched)])
    vocabulary = translator.languages.source.vocabulary
    for index, (translation, trace) in enumerate(zip(watched, map(Trace, seen))):
        if not translation.tokens:
            continue  # a blank line has nothing to show
        if "alignments" in trace:
            board.attention(step, index, trace.source_tokens, trace.tokens, trace["alignments"])
        board.addresses(step, index, trace)
        ids = vocabulary.encode(without_end(translation.source_tokens))
        board.contents(index, *contents(translator.model, translator.lines, ids))


def show_recency(
    board: Board,
    translator: Translator,
    step: int,
    best: Sequence[Translation],
    documents: list[int] | None,
) -> None:
    """Draws how a cache was matched, by recency, at the sentences that found it full.

    At others fewer slots share the probability, and a curve would fall for that alone. Arguments
    as of `show_memory`.
    """
    best, documents = best[:_WATCHED], documents and documents[:_WATCHED]
    seen = map(Trace, translator.force_again(best, ("cache_match",), documents))
    full = [trace for trace in seen if trace.slots and (trace.slots.ages >= 0).all()]
    if full and full[0].slots and full[0].slots.words:
        board.recency(step, {"dev": recency(full)})
