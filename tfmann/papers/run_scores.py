"""Scores that a run does not compute itself, from its translations and its best checkpoint.

Decoding happens in a process of its own, which frees its memory at the end, and once: the outputs
stay in the run's folder.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tfmann import config
from tfmann.data.text_files import iter_documents, iter_lines, write_lines
from tfmann.datasets import catalog, tokenization
from tfmann.evaluation import bleu, significance
from tfmann.evaluation.gold_alignments import words_of
from tfmann.evaluation.repetition import Repetition, repetition
from tfmann.evaluation.sense_consistency import Senses, sense_accuracy
from tfmann.evaluation.tense_consistency import Tense, tense_accuracy
from tfmann.papers import (
    consistency_scores,
    history_scores,
    length_scores,
    metrics,
    output_scores,
    processes,
    resampled_shares,
)
from tfmann.papers.output_scores import Output
from tfmann.papers.table_corpus import Corpus, gold_files
from tfmann.synthetic import Style
from tfmann.utils.run_folder import is_of_last_training

Settings = Mapping[str, Any]


def all_scores(corpus: Corpus, out_dir: str, settings: Settings) -> dict[str, Any]:
    """Returns all scores that this corpus allows, by their keys in a record.

    Args:
      corpus: that the run was trained on.
      out_dir: folder of the run.
      settings: of the run.

    Raises:
      UserError: the model could not be used.
    """
    manifest = corpus.report.manifest
    scores: dict[str, Any] = {}
    translate_more_tests(corpus.report, out_dir, settings)
    outputs = output_scores.read(corpus, out_dir)
    if manifest.more_tests:
        scores["more_tests"] = {
            name: output_scores.evaluate(outputs[f"output_{name}"], settings)
            for name in manifest.more_tests
        }
    if corpus.preparation is not None:
        scores["preparation"] = corpus.preparation
        scores["detokenised"] = score_detokenised(corpus.report, out_dir)
    resampled = {}
    documents = outputs["output_test"].documents
    if manifest.alignments:
        by_links = scores_by_gold_links(corpus.report, out_dir, settings)
        resampled = resampled_shares.take(by_links, documents)
        scores.update(by_links)
    repeated = _repetition(outputs["output_test"])
    scores["repetition"] = [
        {"order": n, "repeated": int(counts.repeated.sum()), "ngrams": int(counts.ngrams.sum())}
        for n, counts in repeated.items()
    ]
    bigrams = repeated[metrics.REPEATED_ORDER]
    resampled["repetition"] = resampled_shares.of_sentences(
        "repetition", {"repeated": bigrams.repeated, "ngrams": bigrams.ngrams}, documents
    )
    scores["by_length"] = _by_length(corpus, outputs, settings)
    if not manifest.more_tests:  # an interval of a mean over tests would be another one
        scores["interval"] = _interval(outputs["output_test"], settings)
    unseen = output_scores.unseen_sentences(corpus)
    scores.update(output_scores.more_scores(outputs, unseen, settings))
    dev = output_scores.read_dev(corpus, out_dir)
    scores["resampled"].update(dev=output_scores.resample([dev], settings), **resampled)
    histories = history_scores.scores(corpus, out_dir, settings, unseen)
    if histories:
        scores["histories"] = histories
    consistency, resamples = consistency_scores.scores(corpus, out_dir)
    if consistency:
        scores["lexical_consistency"] = consistency
    if resamples:
        scores["resampled"]["lexical_consistency"] = resamples
    return scores


def significance_tests(
    corpus: Corpus, out_dir: str, baselines: Mapping[str, tuple[str, Settings]], settings: Settings
) -> list[dict[str, Any]]:
    """Compares a run's translations of the tests with those of other runs.

    Args:
      corpus: that all of them were trained on.
      out_dir: folder of the run.
      baselines: folder and settings of the others, by row.
      settings: of the run.

    Returns:
      for each baseline, in their order: `baseline`, the `difference` in BLEU (for several tests, in
      its mean) and in percent of the baseline's (`percent`), `bootstrap_p`, `sign_p`, `wins` and
      `losses` (sentences, from the sign test), `signature` (of the bootstrap).
    """
    tests, outputs = [], output_scores.read(corpus, out_dir)
    for name, (folder, baseline_settings) in baselines.items():
        translate_more_tests(corpus.report, folder, baseline_settings)
        others = output_scores.read(corpus, folder)
        texts = [
            (others[test].translations, output.translations, output.references)
            for test, output in outputs.items()
        ]
        comparison = significance.compare_over_tests(
            texts, settings["bleu_tokenize"], settings["bleu_lowercase"]
        )
        baseline_bleu = comparison.baseline_bleu
        difference = comparison.system_bleu - baseline_bleu
        tests.append({
            "baseline": name,
            "difference": difference,
            "percent": 100 * difference / baseline_bleu if baseline_bleu else None,
            "bootstrap_p": comparison.bootstrap_p,
            "sign_p": comparison.sign_test_p,
            "wins": comparison.better,
            "losses": comparison.worse,
            "signature": comparison.bootstrap_signature,
        })  # fmt: skip
    return tests


def translate_more_tests(report: catalog.Report, out_dir: str, settings: Settings) -> None:
    """Translates those of the manifest's further tests that a run has not translated yet."""
    for name in report.manifest.more_tests:
        prefix = os.path.join(report.directory, name)
        flags = {"inference_input_file": f"{prefix}.{report.manifest.source}"}
        if config.reads_documents(settings):
            flags["inference_document_file"] = f"{prefix}.docs"
        processes.translate(os.path.join(out_dir, f"output_{name}"), out_dir, flags, name)


def use_of_documents(
    corpus: Corpus, out_dir: str, style: Style
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scores how a run uses documents, as far as the style of its synthetic corpus shows that.

    Args:
      corpus: that the run was trained on.
      out_dir: folder of the run, with all translations that `all_scores` needs.
      style: of the corpus.

    Returns:
      `tense` and `senses`, as far as the style has them; their resamples.
    """
    scores = {}
    if style.document_tense:
        scores["tense"] = tense(corpus, out_dir)
    if style.document_topic:
        scores["senses"] = senses(corpus, out_dir)
    return scores, resampled_shares.take(scores, _test_documents(corpus)) if scores else {}


def tense(corpus: Corpus, out_dir: str) -> dict[str, Any]:
    """Counts the sentences in the right tense, also with the history of another document.

    Args:
      corpus: that the run was trained on.
      out_dir: folder of the run, with all translations that `all_scores` needs.

    Returns:
      `sentences`, those that are `right`, those that are right with the history of another
      document (`other_right`), and the former two `by_sentence`.
    """
    references, documents = _first_references(corpus), _test_documents(corpus)
    own, other = (
        tense_accuracy(translations, references, documents)
        for translations in _with_histories(out_dir)
    )
    return {**_sums(own), "other_right": int(other.right.sum())}


def senses(corpus: Corpus, out_dir: str) -> dict[str, Any]:
    """Counts the ambiguous nouns in the right sense, also with the history of another document.

    Args:
      corpus: that the run was trained on.
      out_dir: folder of the run, with all translations that `all_scores` needs.

    Returns:
      `nouns`, those that are `right`, those that are right with the history of another document
      (`other_right`), all in sentences that do not show their topic; the former two `by_sentence`.
    """
    references = _first_references(corpus)
    sources = words_of(iter_lines(f"{corpus.settings['test_prefix']}.{corpus.settings['src']}"))
    own, other = (
        sense_accuracy(sources, translations, references)
        for translations in _with_histories(out_dir)
    )
    return {**_sums(own), "other_right": int(other.right.sum())}


def _sums(counts: Senses | Tense) -> dict[str, Any]:
    """Returns the sums of counts, and the counts `by_sentence`."""
    by_sentence = counts._asdict()
    sums = {name: int(column.sum()) for name, column in by_sentence.items()}
    return {**sums, "by_sentence": by_sentence}


def _test_documents(corpus: Corpus) -> list[int]:
    """Returns the number of the document of each test sentence."""
    return list(iter_documents(f"{corpus.settings['test_prefix']}.docs"))


def _first_references(corpus: Corpus) -> list[list[str]]:
    """Returns the words of the first reference of each test sentence."""
    return words_of(iter_lines(corpus.references()[0]))


def _with_histories(out_dir: str) -> Iterator[list[list[str]]]:
    """Yields the translations of test with their own history and with that of another document."""
    other = history_scores.output_name("output_test", "other")
    if not os.path.exists(os.path.join(out_dir, other)):  # the cell reads no other sentence
        other = "output_test"
    for output in ("output_test", other):
        yield words_of(iter_lines(os.path.join(out_dir, output)))


def score_detokenised(report: catalog.Report, out_dir: str) -> dict[str, Any]:
    """Scores detokenised translations of dev and test by mteval-v13a against the raw references.

    Their text is written next to the tokens, to `output_dev.detok` and `output_test.detok`.
    """
    scores = {}
    for name in ("dev", "test"):
        tokens = os.path.join(out_dir, f"output_{name}")
        translations = f"{tokens}.detok"
        write_lines(translations, map(tokenization.detokenise, iter_lines(tokens)))
        references = f"{report.splits[name].prefix}.{report.manifest.target}"
        (score,) = bleu.evaluate_files(translations, [references], tokenize="13a")
        scores[name] = dataclasses.asdict(score)
    return scores


def scores_by_gold_links(
    report: catalog.Report, out_dir: str, settings: Settings
) -> dict[str, Any]:
    """Returns `adequacy` and, for a cell with alignments, `alignment`."""
    flags = gold_files(report)
    if config.reads_documents(settings):
        flags["inference_document_file"] = f"{report.splits['test'].prefix}.docs"
    scores = _evaluate(out_dir, "gold", flags)
    return {key: scores[key] for key in ("alignment", "adequacy") if key in scores}


def _repetition(output: Output) -> dict[int, Repetition]:
    """Counts the n-grams that translations repeat, by n."""
    counts = repetition(words_of(output.translations), list(map(words_of, output.references)))
    return {of_order.order: of_order for of_order in counts}


def _by_length(
    corpus: Corpus, outputs: Mapping[str, Output], settings: Settings
) -> list[dict[str, Any]]:
    """Scores the translations of all tests by the number of words in the source."""
    sources = corpus.test_sources()
    tests = [(list(iter_lines(path)), outputs[name]) for name, path in sources.items()]
    return length_scores.measure(tests, settings["bleu_tokenize"], settings["bleu_lowercase"])


def _interval(output: Output, settings: Settings) -> dict[str, Any]:
    """Returns the mean of BLEU over resampled sentences, and half its 95% interval (`ci`)."""
    metric = bleu.bleu_metric(settings["bleu_tokenize"], settings["bleu_lowercase"])
    score = metric.corpus_score(
        output.translations, output.references, n_bootstrap=significance.RESAMPLES
    )
    return {"mean": score._mean, "ci": score._ci, "signature": str(metric.get_signature())}


def _evaluate(out_dir: str, name: str, flags: Mapping[str, str]) -> dict[str, Any]:
    """Returns the output of `--mode=eval` for the best checkpoint."""
    path = Path(out_dir, f"scores_{name}.json")
    if not is_of_last_training(path, out_dir):
        processes.decode("eval", out_dir, {**flags, "inference_output_file": str(path)}, name)
    return json.loads(path.read_text(encoding="utf-8"))
