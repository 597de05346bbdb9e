"""A page of sentences through one model: its translations, and figures of its memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from tfmann.errors import UserError
from tfmann.report import figures
from tfmann.report.html import render_template
from tfmann.utils.files import atomic_write

if TYPE_CHECKING:
    from tfmann.decoding.translation import Translation
    from tfmann.evaluation.trace import Trace

PAGE = "index.html"


class TranslatedSentence(NamedTuple):
    """A sentence of the page."""

    source: str
    reference: str | None
    n_best: list[Translation]
    tokens: list[str]  # the target tokens of the figures, as the model has them
    drawings: list[figures.Drawing]
    slots: list[tuple[str, int]]  # words and ages in the initial cache, newest first


def write(
    model: Any,
    sources: Sequence[str],
    references: Sequence[str] | None,
    folder: str,
    log: Callable[[str], None],
) -> str:
    """Translates consecutive sentences and writes a page with their figures.

    Args:
      model: an `api.Model`; its `num_translations_per_input` translations are shown.
      sources: one document, for a model that reads other sentences.
      references: the target texts of the figures, instead of the best translations.
      folder: is created if missing; `index.html` contains every figure, and each is also a PNG.
      log: receives the name of each file.

    Returns:
      the path of the page.

    Raises:
      UserError: a sentence is blank, or a file cannot be written.
    """
    from tfmann.visualization import sentence_figures

    for number, source in enumerate(sources, start=1):
        if not source.strip():
            raise UserError(f"sentence {number} is blank: there is nothing to translate")
    sentence_figures.make_folder(folder)
    documents = [0] * len(sources)
    translations = list(model.translate(sources, documents=documents))
    if references:
        traces = model.traces(zip(sources, references), documents)
    else:
        traces = model.trace_translations([n_best[0] for n_best in translations], documents)
    sentences = []
    sentence_figures.remove_figures(folder)
    for number, (source, n_best, trace) in enumerate(zip(sources, translations, traces)):
        reference = references[number] if references else None
        drawings = _write_figures(trace, number, folder, log)
        sentences.append(
            TranslatedSentence(source, reference, n_best, trace.tokens, drawings, _slots(trace))
        )
    path = os.path.join(folder, PAGE)
    text = render_template(
        "sentence.html", sentences=sentences, settings=model.hparams, checkpoint=model.checkpoint
    )
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
    log(path)
    return path


def _write_figures(
    trace: Trace, number: int, folder: str, log: Callable[[str], None]
) -> list[figures.Drawing]:
    """Writes the figures of a sentence; returns them for the page."""
    drawings = []
    for name, png in figures.trace_figures(trace):
        path = os.path.join(folder, f"sentence_{number + 1}_{name}.png")
        with atomic_write(path) as file:
            file.write(png)
        log(path)
        drawings.append(figures.make_drawing(number, name, png))
    return drawings


def _slots(trace: Trace) -> list[tuple[str, int]]:
    from tfmann.evaluation.cache_statistics import by_recency

    if trace.slots is None:
        return []
    return [(trace.slots.words[i], int(trace.slots.ages[i])) for i in by_recency(trace.slots)]
