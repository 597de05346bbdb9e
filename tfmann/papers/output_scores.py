"""Scores of translations of a table's tests: whole, resampled, and of unseen sentences alone."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from tfmann.data.text_files import iter_documents, iter_lines
from tfmann.evaluation import bleu, significance
from tfmann.papers import metrics
from tfmann.papers.table_corpus import Corpus

Settings = Mapping[str, Any]

_FEW_SEEN = 0.05  # share of the test pairs that may be in training without a score of the others


class Output(NamedTuple):
    """Translations of a test set.

    Attributes:
      translations: one for each sentence.
      references: a list for each reference set.
      documents: the number of each sentence's document; None if unknown.
    """

    translations: Sequence[str]
    references: Sequence[Sequence[str]]
    documents: Sequence[int] | None

    def select(self, sentences: Sequence[int]) -> Output:
        """Returns the translations of some sentences, by their indexes."""

        def pick(items: Sequence[Any]) -> list[Any]:
            return [items[index] for index in sentences]

        documents = None if self.documents is None else pick(self.documents)
        return Output(pick(self.translations), list(map(pick, self.references)), documents)


def read(corpus: Corpus, out_dir: str, suffix: str = "") -> dict[str, Output]:
    """Returns a run's translations of all tests by the name of their files, without `suffix`."""
    documents = corpus.test_documents()
    return {
        name: Output(
            list(iter_lines(os.path.join(out_dir, f"{name}{suffix}"))),
            [list(iter_lines(path)) for path in paths],
            _documents(documents[name]),
        )
        for name, paths in corpus.test_references().items()
    }


def read_dev(corpus: Corpus, out_dir: str) -> Output:
    """Returns a run's translations of the development set."""
    return Output(
        list(iter_lines(os.path.join(out_dir, "output_dev"))),
        [list(iter_lines(path)) for path in corpus.references("dev")],
        _documents(corpus.documents("dev")),
    )


def evaluate(output: Output, settings: Settings) -> list[dict[str, Any]]:
    """Scores a test by all metrics; `settings` of the run have the tokeniser and the case."""
    tokenize, lowercase = settings["bleu_tokenize"], settings["bleu_lowercase"]
    scores = bleu.evaluate(
        output.translations, output.references, bleu.METRICS, tokenize, lowercase
    )
    return [dataclasses.asdict(score) for score in scores]


def resample(outputs: Sequence[Output], settings: Settings) -> dict[str, Any]:
    """Scores the resamples that all runs share, in hundredths of BLEU; the mean over the tests.

    Documents are resampled rather than sentences if every test has enough of them: sentences of a
    document have their topic and their history in common, so that they do not err independently.

    Returns:
      `sentences`; `documents`, their number, if these are resampled, or `few_documents` if they are
      known but too few; `seed`; `bleu`.
    """
    by_document, entry = documents_entry([output.documents for output in outputs])
    tokenize, lowercase = settings["bleu_tokenize"], settings["bleu_lowercase"]
    scores = [
        significance.resampled_bleu(
            output.translations,
            output.references,
            tokenize,
            lowercase,
            seed=significance.seed_of_test(number),
            documents=output.documents if by_document else None,
        )
        for number, output in enumerate(outputs)
    ]
    return {
        "sentences": sum(len(output.translations) for output in outputs),
        **entry,
        "seed": significance.RESAMPLES_SEED,
        "bleu": [round(metrics.RESAMPLED_UNITS * fmean(values)) for values in zip(*scores)],
    }


def documents_entry(documents: Sequence[Sequence[int] | None]) -> tuple[bool, dict[str, int]]:
    """Returns whether the documents of all tests are resampled, and what `resample` says of it."""
    numbers = [significance.count_documents(of_test) for of_test in documents]
    by_document = min(numbers) >= significance.ENOUGH_DOCUMENTS
    key = "documents" if by_document else "few_documents"
    return by_document, {key: sum(numbers)} if sum(numbers) else {}


def score(
    outputs: Mapping[str, Output], unseen: Mapping[str, Sequence[int]], settings: Settings
) -> dict[str, Any]:
    """Scores translations of all tests by all metrics.

    Args:
      outputs: as `read` returns them.
      unseen: from `unseen_sentences`.
      settings: of the run.

    Returns:
      the scores of `test` and, of further tests, `more_tests`; what `more_scores` returns.
    """
    scores = {name: evaluate(output, settings) for name, output in outputs.items()}
    record: dict[str, Any] = {"test": scores.pop("output_test")}
    if scores:
        record["more_tests"] = {name.partition("_")[2]: value for name, value in scores.items()}
    return {**record, **more_scores(outputs, unseen, settings)}


def more_scores(
    outputs: Mapping[str, Output], unseen: Mapping[str, Sequence[int]], settings: Settings
) -> dict[str, Any]:
    """Returns `resampled`, the resamples of `test`, and `unseen` if there are unseen sentences.

    `unseen` has `bleu`, the mean over the tests, and the number of `sentences` `of` all;
    `resampled` has their resamples too. Arguments as for `score`.
    """
    resampled = {"test": resample(list(outputs.values()), settings)}
    if not unseen:
        return {"resampled": resampled}
    selected = [output.select(unseen[name]) for name, output in outputs.items()]
    resampled["unseen"] = resample(selected, settings)
    unseen_score = {
        "bleu": fmean(evaluate(output, settings)[0]["value"] for output in selected),
        "sentences": sum(len(output.translations) for output in selected),
        "of": sum(len(output.translations) for output in outputs.values()),
    }
    return {"unseen": unseen_score, "resampled": resampled}


def unseen_sentences(corpus: Corpus) -> dict[str, list[int]]:
    """Returns the sentences of each test whose pair is not in training, by the output's name.

    A pair is in training if its source is there with one of its references. Nothing is returned if
    few pairs are (5% of all), or if a test has no other.
    """
    sources = corpus.test_sources(raw=True)
    pairs: dict[str, list[list[tuple[str, str]]]] = {}
    for name, path in sources.items():
        references = [iter_lines(file) for file in corpus.test_references(raw=True)[name]]
        pairs[name] = [
            [(source, reference) for reference in alternatives]
            for source, *alternatives in zip(iter_lines(path), *references)
        ]
    tested_pairs = {
        pair for test in pairs.values() for alternatives in test for pair in alternatives
    }
    seen_pairs = tested_pairs.intersection(zip(*map(iter_lines, corpus.training_files)))
    unseen = {
        name: [
            index for index, alternatives in enumerate(test) if seen_pairs.isdisjoint(alternatives)
        ]
        for name, test in pairs.items()
    }
    total, left = (sum(map(len, sentences.values())) for sentences in (pairs, unseen))
    return unseen if total - left > _FEW_SEEN * total and all(unseen.values()) else {}


def _documents(path: str | None) -> list[int] | None:
    return None if path is None else list(iter_documents(path))
