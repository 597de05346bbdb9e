"""One figure of each cell's memory at the same sentence: the figures of docs/models.md."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Callable

from tfmann import config
from tfmann.data.documents import document_starts
from tfmann.data.text_files import iter_parallel
from tfmann.errors import UserError
from tfmann.report.figures import Tracer
from tfmann.visualization import image_files, sentence_figures

# The figure that shows most of a cell is the first of these that its trace has.
_PREFERENCE = ("cache", "rounds", "write_head_0", "read_head_0", "coverage", "attention", "steps")


def write(
    runs: Mapping[str, str],
    prefix: str,
    sentence: int,
    folder: str,
    tracer: Tracer,
    log: Callable[[str], None],
) -> None:
    """Writes `CELL.png` for every run; of several runs of one cell, only for the first.

    Args:
      runs: the cell of each run, by the run's folder.
      prefix: of the text, `PREFIX.src`, `PREFIX.tgt` and `PREFIX.docs`.
      sentence: its line, from 0; the models are forced to produce its reference.
      folder: is created if missing.
      tracer: runs models.
      log: receives the name of each file, and why a run has none.

    Raises:
      UserError: there is no such sentence, or a file cannot be written.
    """
    text = list(iter_parallel(f"{prefix}.src", f"{prefix}.tgt", f"{prefix}.docs"))
    if not 0 <= sentence < len(text):
        raise UserError(f"{prefix} has the sentences 0 to {len(text) - 1}, not {sentence}")
    pairs = [(pair.source, pair.target) for pair in text]
    documents = [pair.document for pair in text]
    first = int(document_starts(documents)[sentence])
    sentence_figures.make_folder(folder)
    written: dict[str, str] = {}
    for run, cell in runs.items():
        if cell in written:
            log(f"{run} is left out: {written[cell]} has the cell {cell} too")
            continue
        begin = first if config.cell_spec(cell).reads_documents else sentence
        lines = slice(begin, sentence + 1)
        ids = documents[lines] if begin < sentence else None
        trace = tracer(run, pairs[lines], ids)[-1]
        figures = dict(sentence_figures.sentence_figures(trace, cell))
        path = os.path.join(folder, f"{cell}.png")
        name = next((name for name in _PREFERENCE if name in figures), None)
        if name is None:
            log(f"{run} is left out: the cell {cell} has no figure")
            continue
        image_files.save_figure(figures[name], path)
        written[cell] = run
        log(path)
