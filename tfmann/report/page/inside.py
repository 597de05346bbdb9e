"""Sentences through one model: what it says, and figures of what its memory did, as a page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from tfmann.corpus.files import replacing
from tfmann.errors import UserError
from tfmann.report.page import figures
from tfmann.report.page.build import environment

if TYPE_CHECKING:
    from tfmann.decoding.lines import Translation
    from tfmann.evaluation.trace import Trace

PAGE = "index.html"


class Shown(NamedTuple):
    """A sentence of the page."""

    source: str
    reference: str | None
    n_best: list[Translation]
    tokens: list[str]  # what the figures are of, as the model has it
    drawings: list[figures.Drawing]
    slots: list[tuple[str, int]]  # of a cache when the sentence began: word and age, newest first


def write(
    model: Any,
    sources: Sequence[str],
    references: Sequence[str] | None,
    folder: str,
    log: Callable[[str], None],
) -> str:
    """Translates sentences that follow one another, and writes page and figures of them.

    Args:
      model: an `api.Model`; its `num_translations_per_input` says how many translations are shown.
      sources: one document, for a model that looks at other sentences.
      references: what the figures are of, rather than of the best translations.
      folder: made if it is missing; `index.html` holds all, and each figure is a PNG beside it.
      log: is told each file.

    Returns:
      the path of the page.

    Raises:
      UserError: a sentence is blank, or a file cannot be written.
    """
    from tfmann.report import memory

    for number, source in enumerate(sources, start=1):
        if not source.strip():
            raise UserError(f"sentence {number} is blank: there is nothing to translate")
    memory.make_folder(folder)
    documents = [0] * len(sources)
    found = list(model.translate(sources, documents=documents))
    forced = references or [n_best[0].text for n_best in found]
    traces = model.traces(zip(sources, forced), documents)
    shown = []
    for number, (source, n_best, trace) in enumerate(zip(sources, found, traces)):
        reference = references[number] if references else None
        drawings = _draw(trace, number, folder, log)
        shown.append(Shown(source, reference, n_best, trace.tokens, drawings, _slots(trace)))
    path = os.path.join(folder, PAGE)
    text = environment().get_template("inside.html").render(
        shown=shown, settings=model.hparams, checkpoint=model.checkpoint
    )
    with replacing(path) as file:
        file.write(text.encode("utf-8"))
    log(path)
    return path


def _draw(
    trace: Trace, number: int, folder: str, log: Callable[[str], None]
) -> list[figures.Drawing]:
    """Writes the figures of a sentence; returns them for the page."""
    drawings = []
    for name, png in figures.of_trace(trace):
        path = os.path.join(folder, f"sentence_{number + 1}_{name}.png")
        with replacing(path) as file:
            file.write(png)
        log(path)
        drawings.append(figures.drawing(number, name, png))
    return drawings


def _slots(trace: Trace) -> list[tuple[str, int]]:
    from tfmann.report.cache_figures import by_recency

    if trace.slots is None:
        return []
    return [(trace.slots.words[i], int(trace.slots.ages[i])) for i in by_recency(trace.slots)]
