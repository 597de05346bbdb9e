"""Figures of each system's memory at a sentence, as PNG inside the page.

A model is loaded and forced to produce its own translation, in its document. The figures of a run
are cached in its folder, so that a page is rebuilt without loading any model.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Callable, NamedTuple

from tfmann import __version__, config
from tfmann.data import memory_files
from tfmann.data.documents import document_starts
from tfmann.data.text_files import number_lines
from tfmann.errors import UserError
from tfmann.report.runs import SystemRun, TranslatedTest
from tfmann.utils.files import write_json
from tfmann.utils.run_folder import BEST, HPARAMS

if TYPE_CHECKING:
    from tfmann.evaluation.trace import Trace

CACHE_FILE = "page_figures.json"
ALL_SENTENCES = -1  # the sentence number of a figure that averages over all of them
_AVERAGED = 300  # sentences, and the rest of their documents, in such an average

# Captions by the name of a figure, with the figure of a paper that it corresponds to.
_CAPTIONS = {
    "attention": "attention: where each word looked (Collier & Beel 2019, Figure 3)",
    "previous_sentence": "attention to the sentence before (Jean et al. 2017)",
    "coverage": "coverage: how much of each source word was translated (Tu et al. 2016)",
    "rounds": "rounds of attention, and where each wrote (Meng et al. 2018, Figure 3)",
    "write_head": "write head: its address and the address's parts (Collier & Beel 2019, Figure 4)",
    "read_head": "read head: its address and the address's parts (Collier & Beel 2019, Figure 5)",
    "steps": "numbers of each step: gates, and how far a memory moves",
    "cache": "cache: the slots that each word matched (Tu et al. 2018, Figure 4)",
    "word_memory": "word memory: its share, and the entries that proposed each word (Grave et al. "
    "2017; Khandelwal et al. 2021; Feng et al. 2017)",
    "recency": "cache: matching by how recently a slot was written (Tu et al. 2018, Figure 3)",
}

# Forces pairs of texts, in documents if the model reads them, through the model of a folder.
Tracer = Callable[[str, Sequence[tuple[str, str]], "Sequence[int] | None"], "list[Trace]"]


class Drawing(NamedTuple):
    """A figure of the page.

    Attributes:
      sentence: its number, or ALL_SENTENCES.
      caption: what the figure shows.
      png: in base64.
    """

    sentence: int
    caption: str
    png: str


def has_checkpoint(folder: str) -> bool:
    """Returns whether a run still has the model to draw from."""
    return os.path.isdir(os.path.join(folder, BEST))


def draw_run(
    test: TranslatedTest,
    run: SystemRun,
    numbers: Sequence[int],
    tracer: Tracer,
    log: Callable[[str], None],
) -> dict[int, list[Drawing]]:
    """Draws the figures of a run at some sentences, unless they are cached.

    Args:
      test: the test that the run has translated.
      run: of one system.
      numbers: the sentences.
      tracer: runs models.
      log: receives a line before slow work, and the reason if a model has no figures.

    Returns:
      the figures by sentence number, and under ALL_SENTENCES.
    """
    key = _cache_key(test, run, numbers)
    path = Path(run.folder, CACHE_FILE)
    drawings = _read_cache(path, key)
    if drawings is None:
        log(f"drawing {len(numbers)} sentences of {run.folder}")
        try:
            drawings = list(_draw_run(test, run, numbers, tracer))
        except UserError as error:
            log(f"no figures of {run.folder}: {error}")
            return {}
        try:
            write_json(path, {"key": key, "drawings": drawings}, indent=None)
        except UserError as error:  # somebody else's run, or a full disk: the page needs no cache
            log(f"the figures of {run.folder} are not kept: {error}")
    by_sentence: dict[int, list[Drawing]] = {}
    for drawing in drawings:
        by_sentence.setdefault(drawing.sentence, []).append(drawing)
    return by_sentence


def trace_figures(trace: Trace) -> Iterator[tuple[str, bytes]]:
    """Yields the figures of a sentence as PNG, by name.

    The figure of rounds shows the heads too, so theirs are left out then.
    """
    from tfmann.visualization import image_files, sentence_figures

    for name, figure in sentence_figures.sentence_figures(trace):
        if not (trace.rounds and "head" in name):
            yield name, image_files.figure_to_png(figure)


def make_drawing(sentence: int, name: str, png: bytes) -> Drawing:
    """Returns a figure for the page."""
    return Drawing(sentence, caption(name), base64.b64encode(png).decode("ascii"))


def caption(name: str) -> str:
    """Returns the caption of a figure by its name, such as `attention` or `read_head_1`."""
    kind, _, number = name.rpartition("_")
    if kind in _CAPTIONS:
        return _CAPTIONS[kind].replace(" head:", f" head {number}:")
    return _CAPTIONS.get(name, name)


def _cache_key(test: TranslatedTest, run: SystemRun, numbers: Sequence[int]) -> str:
    """Returns a hash that changes with whatever the figures show.

    The large files of a memory are recognised by their size and the time of their last change.
    """
    files = []
    for name in (os.path.join(BEST, "state.json"), HPARAMS):
        try:
            files.append(Path(run.folder, name).read_text(encoding="utf-8"))
        except OSError:
            files.append("")
    lines, ids = _traced_lines(test, run, numbers)
    texts = [(test.sources[i], run.translations[i]) for i in lines]
    contents = [
        __version__, files, _memory_state(run.folder), run.title, list(numbers), lines, ids, texts,
        list(_CAPTIONS),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()


def _memory_state(folder: str) -> list[tuple[str, int, int]]:
    """Returns the name, size and time of each file of a run's word memory."""
    state = []
    try:
        paths = memory_files.contents(config.settings_of_model(folder, {}))
    except UserError:  # drawing says what is wrong with them
        return []
    for path in paths:
        with contextlib.suppress(OSError):
            found = os.stat(path)
            state.append((path, found.st_size, found.st_mtime_ns))
    return state


def _read_cache(path: Path, key: str) -> list[Drawing] | None:
    try:
        cache = json.loads(path.read_text(encoding="utf-8"))
        if cache["key"] == key:
            return [Drawing(*fields) for fields in cache["drawings"]]
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _draw_run(
    test: TranslatedTest, run: SystemRun, numbers: Sequence[int], tracer: Tracer
) -> Iterator[Drawing]:
    lines, ids = _traced_lines(test, run, numbers)
    pairs = [(test.sources[i], run.translations[i]) for i in lines]
    traces = dict(zip(lines, tracer(run.folder, pairs, ids)))
    for i in numbers:
        for name, png in trace_figures(traces[i]):
            yield make_drawing(i, name, png)
    yield from _draw_recency(run, list(traces.values()))


def _traced_lines(
    test: TranslatedTest, run: SystemRun, numbers: Sequence[int]
) -> tuple[list[int], list[int] | None]:
    """Returns the lines that go through the model, and their documents if it reads these."""
    if not run.reads_documents:
        return list(numbers), None
    # Without ids a blank line ends a document, as in the translation.
    documents = test.documents or [number for _, number in number_lines(test.sources, None)]
    averaged = range(_AVERAGED) if config.cell_spec(run.cell).has_cache else ()
    starts = document_starts(documents).tolist()  # ids may come again in other documents
    lines = _whole_documents(starts, [*numbers, *averaged])
    return lines, [starts[i] for i in lines]


def _whole_documents(starts: Sequence[int], numbers: Sequence[int]) -> list[int]:
    """Returns all lines of the documents of these sentences, by the first line of each one's."""
    chosen = {starts[i] for i in numbers if i < len(starts)}
    return [i for i, start in enumerate(starts) if start in chosen]


def _draw_recency(run: SystemRun, traces: Sequence[Trace]) -> Iterator[Drawing]:
    import numpy as np

    from tfmann.visualization import cache_figures, image_files

    if not traces or traces[0].slots is None:
        return
    averages = cache_figures.recency(traces)
    if np.isfinite(averages).any():
        label = f"{run.title}, {len(traces)} sentences"
        figure = cache_figures.recency_figure(averages, label)
        yield make_drawing(ALL_SENTENCES, "recency", image_files.figure_to_png(figure))
