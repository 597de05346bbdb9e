"""The models of the page: those that come with tfmann, and the user's."""

from __future__ import annotations

import itertools
import json
import threading
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tfmann.play import examples
from tfmann.serving.requests import RequestError

if TYPE_CHECKING:
    from tfmann.api import Model

SHIPPED = Path(__file__).parent / "models"
EXAMPLE = "example.json"  # a trace, so that the page has something to show at once
_LOADED = 6  # models in memory at a time
_FIRST = "ntm"  # the shipped model that the page opens with: its memory fills while one looks
# memories that need no training, on top of a shipped model: name, its model, title, settings
_WITH_MEMORY = (
    ("neural_cache", "luong", "Luong attention, neural cache", {"neural_cache_size": 100}),
)


class Entry(NamedTuple):
    """A model that the page offers."""

    name: str
    title: str
    cell: str
    folder: Path
    documents: bool  # whether it reads other sentences
    bleu: float | None  # on the synthetic test set, of shipped models
    examples: Sequence[Sequence[str]]  # documents, as lists of lines
    settings: Mapping[str, Any] = {}  # of the search, in place of the model's own
    is_invented: bool = False  # whether it translates the invented language


class Library:
    """Models by name, loaded when they are first used; thread-safe, one trace at a time."""

    def __init__(self, entries: Sequence[Entry]):
        """Loads nothing yet."""
        self._entries = {entry.name: entry for entry in entries}
        self._models: OrderedDict[str, Model] = OrderedDict()
        self._lock = threading.Lock()

    def describe(self) -> list[dict[str, Any]]:
        """Describes the models as JSON types, in order."""
        return [
            {
                "name": entry.name,
                "title": entry.title,
                "cell": entry.cell,
                "documents": entry.documents,
                "bleu": entry.bleu,
                "invented": entry.is_invented,
                "examples": [list(document) for document in entry.examples],
            }
            for entry in self._entries.values()
        ]

    def trace(self, name: str, lines: Sequence[str], prefix: Sequence[str]) -> dict[str, Any]:
        """Returns `tracing.trace_line` of a model; its shipped example is read from a file.

        Raises:
          RequestError: there is no such model.
        """
        if name not in self._entries:
            raise RequestError(404, f"there is no model {name[:60]!r}")
        example = self._example(name)
        if example and not prefix and list(lines) == example["lines"]:
            return example["trace"]
        from tfmann.play.tracing import trace_line

        with self._lock:
            return trace_line(self._load(name), lines, prefix)

    def warm_up(self) -> None:
        """Loads the first model, so that the first question is answered sooner."""
        name, entry = next(iter(self._entries.items()))
        lines = entry.examples[0] if entry.examples else ["."]
        from tfmann.play.tracing import trace_line

        with self._lock:
            trace_line(self._load(name), lines[:1])

    def _example(self, name: str) -> Mapping[str, Any] | None:
        entry = self._entries[name]
        path = entry.folder / EXAMPLE
        # A run of the user may have a file of that name, too.
        if not entry.is_invented or entry.settings or not path.exists():
            return None
        return json.loads(path.read_text(encoding="utf-8"))

    def _load(self, name: str) -> Model:
        if name not in self._models:
            from tfmann import api

            entry = self._entries[name]
            self._models[name] = api.load(str(entry.folder), **entry.settings)
            if len(self._models) > _LOADED:
                self._models.popitem(last=False)
        self._models.move_to_end(name)
        return self._models[name]


def shipped() -> list[Entry]:
    """Returns the models that come with tfmann, and those with a memory that needs no training."""
    path = SHIPPED / "models.json"
    if not path.exists():
        return []
    record = json.loads(path.read_text(encoding="utf-8"))
    trained = {
        name: Entry(
            name=name,
            title=entry["title"],
            cell=entry["cell"],
            folder=SHIPPED / name,
            documents=entry["documents"],
            bleu=round(entry["bleu"], 1),
            examples=examples.DOCUMENTS if entry["documents"] else examples.SENTENCES,
            is_invented=True,
        )
        for name, entry in sorted(record.items(), key=lambda item: item[0] != _FIRST)
        if (SHIPPED / name / "hparams.json").exists()
    }
    with_memory = [
        trained[model]._replace(
            name=name,
            title=title,
            documents=True,
            bleu=None,  # that of the model alone, because its test set has no documents
            examples=examples.REPETITIONS,
            settings=settings,
        )
        for name, model, title, settings in _WITH_MEMORY
        if model in trained
    ]
    return [*trained.values(), *with_memory]


def of_runs(
    folders: Sequence[str], reserved: Sequence[str], settings: Mapping[str, Any] | None = None
) -> list[Entry]:
    """Returns the user's models, each named after its folder.

    Args:
      folders: of the runs.
      reserved: names that none may have.
      settings: of the search, in place of the models' own.

    Raises:
      UserError: a directory holds no trained model, or its search cannot have the settings.
    """
    from tfmann.config import settings_of_command
    from tfmann.data import memory_files

    entries: list[Entry] = []
    settings = settings or {}
    for folder in folders:
        hparams = settings_of_command(folder, settings)
        memory_files.require(hparams)
        name = _free_name(Path(folder).resolve(), {*reserved, *(entry.name for entry in entries)})
        documents = hparams.reads_documents
        entries.append(Entry(name, name, hparams.cell, Path(folder), documents, None, (), settings))
    return entries


def _free_name(folder: Path, taken: Collection[str]) -> str:
    """Returns a folder's name; if it is taken, with its parent's; if need be, with a number."""
    longer = f"{folder.parent.name}/{folder.name}"
    names = itertools.chain((folder.name, longer), (f"{longer} ({i})" for i in itertools.count(2)))
    return next(name for name in names if name not in taken)
