"""What a table is: its rows, the corpus it is measured on, the settings that rebuild it."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """One system of a table."""

    name: str  # of its settings too: `Table.settings_file`
    title: str
    paper_dev: float | None = None
    paper_test: float | None = None
    note: str = ""
    start: str = ""  # the row whose best checkpoint it starts from
    paper_aer: float | None = None  # in percent
    paper_parameters: float | None = None  # in millions
    paper_speed: tuple[float, float] | None = None  # words/s, of training and of decoding
    paper_adequacy: tuple[float, float] | None = None  # % under- and over-translated words


class Table(NamedTuple):
    """A table and the corpus it is measured on.

    A table with `bpe_merges`, by scale, is of raw text: tokenised first, then cut by a BPE of so
    many merges that is learned on it; its translations are scored detokenised too. One without a
    manifest is of the synthetic corpus. Where the manifest has more tests, the scores of all tests
    are averaged; where it has alignments, those of the models are scored by them. Every row is
    trained once for each of the `seeds`, and compared with each of the `baselines` by significance
    tests, and with other rows that a claim sets beside it. The paper trained on `paper_pairs`; 0
    where there is no paper's table.
    """

    title: str
    manifest: str | None  # below data/
    folder: str  # below hparams/ and hparams/cpu/
    prefix: str
    dev: str  # names of the sets, for the heading
    test: str
    rows: tuple[Row, ...]
    bpe_merges: Mapping[str, int] = {}
    scales: tuple[str, ...] = ("paper", "cpu")  # at which sizes it can be rebuilt
    reverse: bool = False  # from the manifest's target to its source
    seeds: tuple[int, ...] = (1,)
    stand_in: Mapping[str, Table] = {}  # at scales at which its corpus or its rows are others
    baselines: tuple[str, ...] = ()  # rows; each of them is compared with those before it
    paper_pairs: int = 0
    document_tense: bool = False  # of a synthetic corpus whose documents tell tense once

    def at(self, scale: str) -> Table:
        """The table at a scale: itself, unless another corpus or fewer rows have to do."""
        return self.stand_in.get(scale, self)

    def settings_file(self, row: Row, scale: str) -> Path:
        """A row's JSON, below hparams/."""
        folder = Path("cpu", self.folder) if scale == "cpu" else Path(self.folder)
        return folder / f"{self.prefix}{row.name}.json"

    def beside(self, row: str, rivals: Collection[str]) -> list[str]:
        """The rows that a row is tested against: baselines before it, and of `rivals` rows above.

        With a baseline a rival is compared as any row is; so each pair is tested once.
        """
        if row in self.baselines:
            return list(self.baselines[: self.baselines.index(row)])
        above = itertools.takewhile(lambda name: name != row, (one.name for one in self.rows))
        others = [one for one in above if one in rivals and one not in self.baselines]
        return [*self.baselines, *others]

    def with_starts(self, rows: Sequence[Row]) -> list[Row]:
        """The rows, every one after the row that it starts from."""
        known = {row.name: row for row in self.rows}
        ordered: list[Row] = []
        for row in rows:
            if row.start:
                ordered += self.with_starts([known[row.start]])
            ordered.append(row)
        return list(dict.fromkeys(ordered))
