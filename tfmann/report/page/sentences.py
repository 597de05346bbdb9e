"""A few sentences of a test set as all systems of a table translate them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfmann.corpus.documents import beginnings
from tfmann.corpus.files import iter_documents, iter_lines
from tfmann.corpus.inputs import reference_paths
from tfmann.errors import UserError
from tfmann.evaluation.adequacy import judge
from tfmann.evaluation.alignment import GoldAlignment, read_pharaoh
from tfmann.evaluation.gold import words_of
from tfmann.report.page.differences import Piece, closest, differences
from tfmann.report.records import finished
from tfmann.report.table import Row, Table

SHORTEST, LONGEST = 4, 18  # words of a reference: what can be taken in at once


class Run(NamedTuple):
    """A finished run of a row: its folder and its translations of the test."""

    row: Row
    folder: str
    translations: list[str]


class Test(NamedTuple):
    """A test set and what a table's systems made of it."""

    sources: list[str]
    references: list[list[str]]  # sets of references
    documents: list[int] | None
    gold: list[GoldAlignment] | None
    lowercase: bool  # case does not count in the table
    runs: list[Run]


class System(NamedTuple):
    """One system's translation of a sentence.

    Attributes:
      title: of the row.
      name: of the row.
      to_reference: how it differs from the reference that is closest to it.
      to_baseline: and from the first system's translation; None of that system itself.
      left_out: source words of which nothing is found in it, where there are gold links.
      too_often: source words that it says again.
    """

    title: str
    name: str
    to_reference: list[Piece]
    to_baseline: list[Piece] | None
    left_out: list[str]
    too_often: list[str]


class Sentence(NamedTuple):
    """A sentence of the test and its translations."""

    number: int  # from 0
    source: str
    references: list[str]
    before: list[tuple[str, str]]  # sources and references before it in its document
    systems: list[System]


def find(table: Table, place: str) -> Test | None:
    """The test of a table and the finished runs of it in a folder; None where there are none.

    Runs of the first seed are taken. Runs of another test, or of text that is gone, are left out.

    Args:
      table: which.
      place: OUT_DIR/TABLE/SCALE.
    """
    found: Test | None = None
    for row in table.rows:
        folder = os.path.join(place, row.name)
        results = finished(folder)
        output = Path(folder, "output_test")
        if results is None or not output.exists():
            continue
        try:
            found = found or _read_test(results["hparams"])
            translations = list(iter_lines(output))
        except UserError:
            continue
        if len(translations) == len(found.sources):
            found.runs.append(Run(row, folder, translations))
    return found if found and found.runs else None


def _read_test(settings: dict[str, Any]) -> Test:
    prefix = settings["test_prefix"] or ""
    sources = list(iter_lines(f"{prefix}.{settings['src']}"))
    references = [
        list(iter_lines(path)) for path in reference_paths(f"{prefix}.{settings['tgt']}")
    ]
    documents, gold = f"{prefix}.docs", f"{prefix}.align"
    return Test(
        sources,
        references,
        list(iter_documents(documents)) if os.path.exists(documents) else None,
        read_pharaoh(gold) if os.path.exists(gold) else None,
        settings["bleu_lowercase"],
        [],
    )


def choose(test: Test, count: int) -> list[int]:
    """So many sentences, evenly over the test: of a length to look at, differently translated.

    Where there are documents, not the first of one: the others show what a memory is for.
    """
    first = set() if test.documents is None else set(beginnings(test.documents).tolist())
    fit = [
        i for i, reference in enumerate(test.references[0])
        if SHORTEST <= len(reference.split()) <= LONGEST and i not in first
    ] or list(range(len(test.sources)))  # fmt: skip
    varied = [i for i in fit if len({run.translations[i] for run in test.runs}) > 1]
    fit = varied if len(varied) >= count else fit
    count = min(count, len(fit))
    return [fit[k * len(fit) // count] for k in range(count)]


def sentences(test: Test, numbers: Sequence[int]) -> list[Sentence]:
    """Those sentences, with the two before each in its document."""
    begin = beginnings(test.documents).tolist() if test.documents is not None else None
    frequency = Counter(
        word for references in test.references for words in words_of(references) for word in words
    )
    found = []
    for i in numbers:
        earliest = i if begin is None else max(begin[i], i - 2)
        before = [(test.sources[j], test.references[0][j]) for j in range(earliest, i)]
        references = [lines[i] for lines in test.references]
        systems = [_system(test, run, i, frequency) for run in test.runs]
        found.append(Sentence(i, test.sources[i], references, before, systems))
    return found


def _system(test: Test, run: Run, i: int, frequency: Counter[str]) -> System:
    text, baseline = run.translations[i], test.runs[0]
    reference = closest(text, [lines[i] for lines in test.references], test.lowercase)
    left_out: list[str] = []
    too_often: list[str] = []
    if test.gold is not None:
        source, target, words = words_of([test.sources[i], test.references[0][i], text])
        found = judge(target, words, test.gold[i].sure, frequency)
        left_out = [source[k] for k in found.under]
        too_often = [source[k] for k in found.over]
    return System(
        run.row.title,
        run.row.name,
        differences(text, reference, test.lowercase),
        None
        if run is baseline
        else differences(text, baseline.translations[i], test.lowercase),
        left_out,
        too_often,
    )
