"""The corpus of a table: located, downloaded or written, and prepared for its rows."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, NamedTuple

from tfmann.data.corpus_paths import reference_paths
from tfmann.datasets import catalog
from tfmann.datasets.preparation import prepare
from tfmann.evaluation import gold_alignments
from tfmann.papers.table import Table
from tfmann.synthetic import published as synthetic
from tfmann.utils import resources

SYNTHETIC_PAIRS = {"train": 10000, "dev": 500, "test": 500}
# A greater test, because only the sentences after the first of a document count.
SYNTHETIC_DOCUMENT_PAIRS = {"train": 10000, "dev": 500, "test": 1000}


class Corpus(NamedTuple):
    """The corpus that the rows of a table are trained and tested on.

    Attributes:
      report: the corpus on disk.
      settings: the settings of a run that name its files.
      preparation: how the raw text was prepared; None if it is used as it is.
    """

    report: catalog.Report
    settings: dict[str, str]
    preparation: dict[str, Any] | None

    @property
    def target(self) -> str:
        """The suffix of target files."""
        return self.report.manifest.target

    def references(self, split: str = "test") -> list[str]:
        """Returns the reference files of dev or test."""
        return reference_paths(f"{self.settings[f'{split}_prefix']}.{self.target}")

    @property
    def training_files(self) -> list[str]:
        """The text of both sides of train as it was published."""
        manifest = self.report.manifest
        return [self._published(path) for path in manifest.sides(manifest.splits["train"])]

    def test_references(self, raw: bool = False) -> dict[str, list[str]]:
        """Returns the reference files of every test, by the name of a run's translations.

        With `raw` they are those that were published, not those that were prepared.
        """
        prefixes = self._test_prefixes(raw)
        return {name: reference_paths(f"{path}.{self.target}") for name, path in prefixes.items()}

    def test_sources(self, raw: bool = False) -> dict[str, str]:
        """Returns the source file of every test, by the name of a run's translations."""
        source = self.report.manifest.source
        return {name: f"{path}.{source}" for name, path in self._test_prefixes(raw).items()}

    def test_documents(self) -> dict[str, str | None]:
        """Returns the file with the document ids of every test, or None where there is none."""
        paths = {name: f"{path}.docs" for name, path in self._test_prefixes(raw=True).items()}
        return {name: path if os.path.exists(path) else None for name, path in paths.items()}

    def documents(self, split: str) -> str | None:
        """Returns the file with the document ids of dev or test; None if there is none."""
        path = f"{self._published(self.report.manifest.splits[split])}.docs"
        return path if os.path.exists(path) else None

    def _test_prefixes(self, raw: bool) -> dict[str, str]:
        manifest = self.report.manifest
        published = self._published(manifest.splits["test"])
        prefixes = {"output_test": published if raw else self.settings["test_prefix"]}
        for name in manifest.more_tests:
            prefixes[f"output_{name}"] = self._published(name)
        return prefixes

    def _published(self, path: str) -> str:
        return os.path.join(self.report.directory, *path.split("/"))


def find_corpus(table: Table, scale: str, corpus_dir: str | None, folder: str) -> Corpus:
    """Finds or makes the corpus of a table and prints its size.

    Args:
      table: the table at this scale.
      scale: selects the number of BPE merges.
      corpus_dir: a folder with the plain files; None downloads or writes them.
      folder: where a synthetic or prepared corpus goes.

    Raises:
      UserError: a file is missing or not as expected; also a file of gold links.
    """
    report = _report(table, corpus_dir, folder)
    for name, split in report.splits.items():
        print(f"{name}: {split.pairs} pairs, {split.empty_sided} with an empty side{split.details}")
    if report.manifest.alignments:  # checked now, not after days of training
        links = gold_alignments.read(*gold_files(report).values())
        sure, possible = (sum(map(len, part)) for part in (links.sure, links.possible))
        print(f"gold links of test: {sure} sure, {possible - sure} only possible")
    if not table.bpe_merges:
        return Corpus(report, report.hparams(), None)
    merges = table.bpe_merges[scale]
    return Corpus(report, *prepare(report, os.path.join(folder, "corpus"), merges))


def _report(table: Table, corpus_dir: str | None, folder: str) -> catalog.Report:
    if table.manifest is None:
        in_documents = table.style.document_tense or table.style.document_topic
        pairs = SYNTHETIC_DOCUMENT_PAIRS if in_documents else SYNTHETIC_PAIRS
        directory = corpus_dir or os.path.join(folder, "corpus")
        given = bool(corpus_dir)
        return synthetic.as_report(directory, **pairs, style=table.style, given=given)
    manifest = catalog.load_manifest(resources.shipped("data", table.manifest))
    if table.reverse:  # its links would have to be reversed too
        manifest = dataclasses.replace(
            manifest, source=manifest.target, target=manifest.source, alignments=None
        )
    if corpus_dir:
        return catalog.use_local(manifest, corpus_dir)
    return catalog.fetch(manifest, os.path.join("corpora", manifest.name))


def gold_files(report: catalog.Report) -> dict[str, str]:
    """Returns the files of the test set that has gold links, by the flags that take them."""
    links = report.manifest.alignments
    assert links is not None
    source, target = (
        os.path.join(report.directory, *side.split("/"))
        for side in report.manifest.sides(report.manifest.splits["test"])
    )
    return {
        "gold_file": os.path.join(report.directory, *links.split("/")),
        "inference_input_file": source,
        "inference_ref_file": target,
    }
