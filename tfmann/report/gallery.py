"""One figure of each cell's memory at work, at the same sentence: those of docs/models.md."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Callable

from tfmann import hparams as hparams_module
from tfmann.corpus.documents import beginnings
from tfmann.corpus.files import iter_parallel
from tfmann.errors import UserError
from tfmann.report import memory, plots
from tfmann.report.page.figures import Tracer

# What tells most of a cell, the first that its trace has.
_TELLING = ("cache", "rounds", "write_head_0", "read_head_0", "attention")


def write(
    runs: Mapping[str, str],
    prefix: str,
    sentence: int,
    folder: str,
    tracer: Tracer,
    log: Callable[[str], None],
) -> None:
    """Writes `CELL.png` for every run.

    Args:
      runs: folders, and the cell of each.
      prefix: of the text, `PREFIX.src`, `PREFIX.tgt` and `PREFIX.docs`.
      sentence: its line, from 0; the models are forced to say its reference.
      folder: made if it is missing.
      tracer: runs models.
      log: is told each file.

    Raises:
      UserError: there is no such sentence, or a file cannot be written.
    """
    found = list(iter_parallel(f"{prefix}.src", f"{prefix}.tgt", f"{prefix}.docs"))
    if not 0 <= sentence < len(found):
        raise UserError(f"{prefix} has the sentences 0 to {len(found) - 1}, not {sentence}")
    pairs = [(pair.source, pair.target) for pair in found]
    documents = [pair.document for pair in found]
    first = int(beginnings(documents)[sentence])
    memory.make_folder(folder)
    for run, cell in runs.items():
        begin = first if hparams_module.document_memory(cell) else sentence
        lines = slice(begin, sentence + 1)
        ids = documents[lines] if begin < sentence else None
        figures = dict(memory.sentence_figures(tracer(run, pairs[lines], ids)[-1], cell))
        path = os.path.join(folder, f"{cell}.png")
        plots.save_figure(next(figures[name] for name in _TELLING if name in figures), path)
        log(path)
