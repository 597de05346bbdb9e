"""Scores with other histories than a document's own, also as records of runs of their own.

`tfmann.decoding.document_history` says what the histories are. A row with such a history is called
ROW:HISTORY, such as `cache:other`; claims compare it with ROW as they compare two rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfmann import config
from tfmann.data.text_files import iter_documents
from tfmann.evaluation import significance
from tfmann.papers import output_scores, processes
from tfmann.papers.metrics import Record
from tfmann.papers.table_corpus import Corpus

_OWN_KEYS = (
    "adequacy", "agreement", "alignment", "average", "by_length", "detokenised", "histories",
    "inspection", "interval", "lexical_consistency", "repetition", "resampled", "senses",
    "significance", "tense", "unseen",
)  # fmt: skip


def scores(
    corpus: Corpus,
    out_dir: str,
    settings: Mapping[str, Any],
    unseen: Mapping[str, Sequence[int]],
) -> dict[str, Any]:
    """Scores the tests with each history that the run can read; what was translated once stays.

    Args:
      corpus: that the run was trained on.
      out_dir: folder of the run.
      settings: of the run.
      unseen: from `output_scores.unseen_sentences`.

    Returns:
      by history what `output_scores.score` returns; empty for a run that reads no other sentence.

    Raises:
      UserError: the model could not be used.
    """
    scores = {}
    for history in _histories(corpus, settings):
        for name in corpus.test_sources():
            _translate(corpus, out_dir, name, history)
        outputs = output_scores.read(corpus, out_dir, output_name("", history))
        scores[history] = output_scores.score(outputs, unseen, settings)
    return scores


def output_name(name: str, history: str) -> str:
    """Returns the name of the translations of a test with a history."""
    return f"{name}.{history}"


def row_name(row: str, history: str) -> str:
    """Returns the name by which a claim compares a row with a history."""
    return f"{row}:{history}"


def with_histories(records: Iterable[Record]) -> list[Record]:
    """Returns records, and one more for each history that a run was also decoded with."""
    expanded = []
    for record in records:
        expanded.append(record)
        for history, scores in record.get("histories", {}).items():
            changed = {key: value for key, value in record.items() if key not in _OWN_KEYS}
            changed.update({key: value for key, value in scores.items() if key != "test"})
            changed["best"] = {**record["best"], "test": scores["test"]}
            changed["row"] = row_name(record["row"], history)
            expanded.append(changed)
    return expanded


def _histories(corpus: Corpus, settings: Mapping[str, Any]) -> list[str]:
    if not config.reads_documents(settings):
        return []
    documents = [
        significance.count_documents(list(iter_documents(path)) if path else None)
        for path in corpus.test_documents().values()
    ]
    reference = ["reference"] if config.reads_translations(settings) else []
    return reference + ["other"] * (min(documents) > 1)


def _translate(corpus: Corpus, out_dir: str, name: str, history: str) -> None:
    flags = {
        "inference_input_file": corpus.test_sources()[name],
        "inference_document_file": str(corpus.test_documents()[name]),
        "document_history": history,
    }
    if history == "reference":
        flags["inference_ref_file"] = corpus.test_references()[name][0]
    output = os.path.join(out_dir, output_name(name, history))
    processes.translate(output, out_dir, flags, f"{name} with the history {history}")
