"""Figures of what each system's memory did at a sentence, as PNG inside the page.

A model is loaded and forced to say what it has said: its own translation, in its document. The
figures of a run are kept in its folder, so that a page is built anew without loading anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from tfmann import hparams as hparams_module
from tfmann.corpus.files import replacing
from tfmann.errors import UserError
from tfmann.report.page.sentences import Run, Test
from tfmann.report.records import finished

if TYPE_CHECKING:
    from tfmann.evaluation.trace import Trace

KEPT = "page_figures.json"
_MANY = 300  # sentences, and the rest of their document, for what is a mean over sentences
RECENCY = -1  # instead of a sentence: of all that were drawn

# What is drawn, by the name of a figure, and the figure of a paper that it answers.
_MEANINGS = {
    "attention": "attention: where each word looked (Collier & Beel 2019, Figure 3)",
    "rounds": "rounds of attention, and where each wrote (Meng et al. 2018, Figure 3)",
    "write_head": "write head: its address and what it is made of (Collier & Beel 2019, Figure 4)",
    "read_head": "read head: its address and what it is made of (Collier & Beel 2019, Figure 5)",
    "cache": "cache: the slots that each word was matched with (Tu et al. 2018, Figure 4)",
    "recency": "cache: how much is matched with slots written how recently (Tu et al. 2018, "
    "Figure 3)",
}

# Forces pairs of texts, in documents if the model looks at them, through the model of a folder.
Tracer = Callable[[str, Sequence[tuple[str, str]], "Sequence[int] | None"], "list[Trace]"]


class Drawing(NamedTuple):
    """A figure.

    Attributes:
      sentence: its number; RECENCY of all sentences together.
      meaning: what it shows.
      png: in base64.
    """

    sentence: int
    meaning: str
    png: str


def draw(
    test: Test, run: Run, numbers: Sequence[int], tracer: Tracer, log: Callable[[str], None]
) -> list[Drawing]:
    """The figures of a run at some sentences, drawn now unless they are kept.

    Args:
      test: the test that the run has translated.
      run: of which system.
      numbers: the sentences.
      tracer: runs models.
      log: is told what takes time, and why there are no figures of a model.
    """
    key = _key(run, numbers)
    kept = Path(run.folder, KEPT)
    try:
        found = json.loads(kept.read_text(encoding="utf-8"))
        if found["key"] == key:
            return [Drawing(*one) for one in found["drawings"]]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    log(f"drawing {len(numbers)} sentences of {run.folder}")
    try:
        drawings = list(_drawn(test, run, numbers, tracer))
    except UserError as error:
        log(f"no figures of {run.folder}: {error}")
        return []
    with replacing(kept) as file:
        file.write(json.dumps({"key": key, "drawings": drawings}).encode())
    return drawings


def _key(run: Run, numbers: Sequence[int]) -> str:
    """Changes with the model's results and with what is to be drawn."""
    results = finished(run.folder) or {}
    drawn = [(i, run.translations[i]) for i in numbers]
    about = [results.get("date"), results.get("best_step"), _MANY, drawn]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _drawn(
    test: Test, run: Run, numbers: Sequence[int], tracer: Tracer
) -> Iterator[Drawing]:
    results: dict[str, Any] = finished(run.folder) or {}
    looks = hparams_module.document_memory(results["hparams"]["cell"])
    lines = list(numbers)
    if looks and test.documents:
        lines = _with_documents(test, [*numbers, *(range(_MANY) if looks == "cache" else ())])
    pairs = [(test.sources[i], run.translations[i]) for i in lines]
    ids = [test.documents[i] for i in lines] if looks and test.documents else None
    traces = dict(zip(lines, tracer(run.folder, pairs, ids)))
    for i in numbers:
        for name, png in of_trace(traces[i]):
            yield drawing(i, name, png)
    yield from _recency(run, list(traces.values()))


def of_trace(trace: Trace) -> Iterator[tuple[str, bytes]]:
    """The figures of a sentence as PNG, by name; of rounds no heads, which they show already."""
    from tfmann.report import memory, plots

    for name, figure in memory.sentence_figures(trace):
        if not (trace.rounds and "head" in name):
            yield name, plots.figure_to_png(figure)


def drawing(sentence: int, name: str, png: bytes) -> Drawing:
    """A figure for the page."""
    return Drawing(sentence, _meaning(name), base64.b64encode(png).decode("ascii"))


def _with_documents(test: Test, numbers: Sequence[int]) -> list[int]:
    """All lines of the documents in which those sentences stand."""
    assert test.documents is not None
    wanted = {test.documents[i] for i in numbers if i < len(test.documents)}
    return [i for i, document in enumerate(test.documents) if document in wanted]


def _recency(run: Run, traces: Sequence[Trace]) -> Iterator[Drawing]:
    import numpy as np

    from tfmann.report import cache_figures, plots

    if not traces or traces[0].slots is None:
        return
    values = cache_figures.recency(traces)
    if np.isfinite(values).any():
        about = f"{run.row.title}, {len(traces)} sentences"
        figure = cache_figures.recency_figure({about: values})
        yield drawing(RECENCY, "recency", plots.figure_to_png(figure))


def _meaning(name: str) -> str:
    kind, _, number = name.rpartition("_")
    if kind in _MEANINGS:  # read_head_1
        text = _MEANINGS[kind]
        return text if number == "0" else text.replace(" head:", f" head {int(number) + 1}:")
    return _MEANINGS.get(name, name)


def by_sentence(drawings: Sequence[Drawing]) -> dict[int, list[Drawing]]:
    """The figures of each sentence, and of RECENCY."""
    found: dict[int, list[Drawing]] = {}
    for one in drawings:
        found.setdefault(one.sentence, []).append(one)
    return found


def has_figures(folder: str) -> bool:
    """Whether a run's model is there to draw from."""
    return os.path.isdir(os.path.join(folder, "best_bleu"))
