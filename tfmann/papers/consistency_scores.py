"""Lexical consistency of a run's translations of the tests, where their documents are known.

The lexicon is IBM Model 1's, learned once from the words of the training text, so all systems of a
table and the references are measured alike, whatever their attention.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any

from tfmann.data import shortlist_lexicon
from tfmann.data.subword import WordSegmenter
from tfmann.data.text_files import iter_documents, iter_lines, iter_parallel
from tfmann.evaluation.gold_alignments import words_of
from tfmann.evaluation.lexical_consistency import Consistency, Lexicon, measure, translations
from tfmann.papers import resampled_shares
from tfmann.papers.table_corpus import Corpus

_TRANSLATIONS = 20  # of a word, in the lexicon


def scores(corpus: Corpus, out_dir: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Counts repeated words and those that are translated alike, over all tests.

    Args:
      corpus: that the run was trained on.
      out_dir: folder of the run, with its translations of the tests.

    Returns:
      `pairs` of occurrences within a document, those of them that are `alike`, `other_pairs` in two
      documents and `other_alike`; `reference` has the same of the first reference. Then the share
      of those alike within documents on the resamples of test, as `resampled_shares.of_documents`.
      Both are empty if a test has no documents.
    """
    documents = corpus.test_documents()
    if not all(documents.values()):
        return {}, {}
    lexicon = _lexicon(
        corpus.settings["train_prefix"], corpus.settings["src"], corpus.settings["tgt"]
    )
    measured: dict[str, list[Consistency]] = {"run": [], "reference": []}
    numbers = {name: list(iter_documents(str(path))) for name, path in documents.items()}
    for name, source in corpus.test_sources().items():
        sources = words_of(iter_lines(source))
        for key, path in (
            ("run", os.path.join(out_dir, name)),
            ("reference", corpus.test_references()[name][0]),
        ):
            lines = words_of(iter_lines(path))
            measured[key].append(measure(sources, lines, numbers[name], lexicon))
    counts = [{"pairs": test.pairs, "alike": test.alike} for test in measured["run"]]
    return (
        {**_sums(measured["run"]), "reference": _sums(measured["reference"])},
        resampled_shares.of_documents("lexical_consistency", counts, list(numbers.values())),
    )


@functools.lru_cache(maxsize=1)
def _lexicon(prefix: str, source: str, target: str) -> Lexicon:
    """Learns the translations of words from the training text."""
    print("learning a lexicon for lexical consistency")
    segment = WordSegmenter().segment
    pairs = (
        (segment(pair.source), segment(pair.target))
        for pair in iter_parallel(f"{prefix}.{source}", f"{prefix}.{target}")
    )
    return translations(shortlist_lexicon.learn_words(pairs, _TRANSLATIONS))


def _sums(measured: Iterable[Consistency]) -> dict[str, int]:
    """Returns the counts of several tests."""
    sums = dict.fromkeys(("pairs", "alike", "other_pairs", "other_alike"), 0)
    for counts in measured:
        for key in sums:
            value = getattr(counts, key)
            sums[key] += int(value.sum()) if key in ("pairs", "alike") else value
    return sums
