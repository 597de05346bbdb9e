"""The description of a table: its rows, its corpus, and the settings that rebuild it."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfmann.synthetic.style import PLAIN, Style


class SearchGrid(NamedTuple):
    """Settings of a search, of which a row without training takes those that are best on dev.

    Attributes:
      fixed: settings that all choices share, with their values.
      varied: settings that are chosen, each with the values to choose from.
      memorize: flags of `tfmann memorize`, which learns a lexical memory for the search; none if it
        needs no such memory.
    """

    fixed: tuple[tuple[str, float], ...]
    varied: tuple[tuple[str, tuple[float, ...]], ...]
    memorize: tuple[tuple[str, int], ...] = ()

    @property
    def reads_documents(self) -> bool:
        """True if a sentence's translation depends on the sentences before it."""
        return "neural_cache_size" in dict(self.fixed)

    def choices(self) -> list[dict[str, Any]]:
        """Returns all combinations of settings; the values of the last change first."""
        names = [name for name, _ in self.varied]
        combinations = itertools.product(*(values for _, values in self.varied))
        return [{**dict(self.fixed), **dict(zip(names, values))} for values in combinations]


class Row(NamedTuple):
    """One system of a table, with the figures that the paper prints.

    A row with `weights` is not trained: it translates with the weights of another row, and with
    those settings of `search` that are best on dev.
    """

    name: str
    title: str
    paper_dev: float | None = None
    paper_test: float | None = None
    note: str = ""
    start: str = ""  # the row whose best checkpoint it starts from
    settings: str = ""  # file of its settings, without .json; empty: named like the row
    paper_aer: float | None = None  # percent
    paper_parameters: float | None = None  # millions
    paper_speed: tuple[float, float] | None = None  # words/s of training and of decoding
    paper_adequacy: tuple[float, float] | None = None  # % under- and over-translated words
    weights: str = ""  # the row whose weights it has, without training
    search: SearchGrid | None = None  # of a row without training
    closest: str = ""  # the baseline that differs from it least; empty: the last of the table
    # whether it is trained on only to have as many updates as the rows that are compared with it
    equal_updates: bool = False


def with_settings(rows: Iterable[Row], name: str, settings: str = "") -> tuple[Row, ...]:
    """Returns the rows; the one of that name has those settings, or its own if none are named."""
    return tuple(row._replace(settings=settings) if row.name == name else row for row in rows)


class LiteratureRow(NamedTuple):
    """A system of other authors that the paper lists for comparison.

    It is shown with the paper's figure; it cannot be trained here, and no claim can name it.
    """

    title: str  # with its authors
    paper_test: float


class Table(NamedTuple):
    """A table and the corpus of its runs.

    A table with `bpe_merges`, by scale, starts from raw text: it is tokenised, then segmented by a
    BPE with so many merges that is learned on it, and the translations are also scored detokenised.
    A table without a manifest uses the synthetic corpus. If the manifest has more tests, scores are
    averaged over all of them; if it has alignments, models are scored by these too. Each row is
    trained with each of the `seeds` and tested for significance against each of the `baselines` and
    the rows that a claim compares it with. The attention of each row is compared with that of the
    row `attention_base`, if the table has one (`tfmann.papers.agreements`). `paper_pairs` is the
    size of the paper's corpus, or 0 if the table is in no paper.
    """

    title: str
    manifest: str | None  # below data/
    folder: str  # below hparams/, hparams/gpu/ and hparams/cpu/
    prefix: str
    dev: str  # names of the sets, for the heading
    test: str
    rows: tuple[Row, ...]
    bpe_merges: Mapping[str, int] = {}
    scales: tuple[str, ...] = ("paper", "cpu")  # the sizes at which it can be rebuilt
    reverse: bool = False  # translates from the manifest's target to its source
    seeds: tuple[int, ...] = (1,)
    stand_in: Mapping[str, Table] = {}  # tables of another corpus or of other rows, by scale
    baselines: tuple[str, ...] = ()  # rows; each is compared with those before it
    attention_base: str = ""
    paper_pairs: int = 0
    literature: tuple[LiteratureRow, ...] = ()
    style: Style = PLAIN  # of a synthetic corpus

    def at(self, scale: str) -> Table:
        """Returns the table at a scale: itself, unless it has a stand-in for it."""
        return self.stand_in.get(scale, self)

    def settings_file(self, row: Row, scale: str) -> Path:
        """Returns the path of a row's JSON file below hparams/."""
        folder = Path(scale, self.folder) if scale in ("gpu", "cpu") else Path(self.folder)
        return folder / f"{self.prefix}{row.settings or row.name}.json"

    def compared_with(self, row: str, rivals: Collection[str]) -> list[str]:
        """Returns the rows that a row is tested against, so that each pair is tested once.

        These are the baselines above a baseline; for any other row, all baselines, those of
        `rivals` that are above it, and the row whose weights it has.
        """
        if row in self.baselines:
            return list(self.baselines[: self.baselines.index(row)])
        names = (other.name for other in self.rows)
        above = itertools.takewhile(lambda name: name != row, names)
        weights = {other.weights for other in self.rows if other.name == row}
        rivals = {*rivals, *weights} - {*self.baselines}
        further_rivals = [name for name in above if name in rivals]
        return [*self.baselines, *further_rivals]

    def shown_rivals(self, row: str) -> list[str]:
        """Returns the rows that tables and figures compare a row with, the baselines first.

        A row without training is compared with the row whose weights it has and with those that
        start from there: from any other it differs by those weights, too.
        """
        by_name = {other.name: other for other in self.rows}
        weights = by_name[row].weights if row in by_name else ""
        rivals = self.compared_with(row, ())
        if not weights:
            return rivals
        return [
            rival
            for rival in rivals
            if weights in (rival, by_name[rival].start if rival in by_name else "")
        ]

    @property
    def shown_baselines(self) -> list[str]:
        """The rows that any row is compared with: the baselines, and rows with shared weights."""
        shared = [row.weights for row in self.rows if row.weights]
        return [*dict.fromkeys([*self.baselines, *shared])]

    def with_starts(self, rows: Sequence[Row]) -> list[Row]:
        """Returns the rows and those that they start from, each after the row it starts from.

        Rows without training are the last.
        """
        by_name = {row.name: row for row in self.rows}
        ordered: list[Row] = []
        for row in rows:
            if row.start:
                ordered += self.with_starts([by_name[row.start]])
            ordered.append(row)
        return sorted(dict.fromkeys(ordered), key=lambda row: bool(row.weights))
