"""The pairs that a model reads for `--document_history`."""

from __future__ import annotations

from typing import Any

from tfmann import api
from tfmann.data.text_files import iter_documents, iter_lines
from tfmann.decoding import document_history
from tfmann.decoding.translation import HistoryPair


def read(model: api.Model, values: Any) -> list[HistoryPair] | None:
    """Returns the history that the flags `values` name; None for the document's own."""
    if values.document_history in (None, "own"):
        return None
    lines = list(iter_lines(values.inference_input_file))
    if values.document_history == "reference":
        references = list(iter_lines(values.inference_ref_file))
        return document_history.reference_history(lines, references)
    path, seed = values.inference_document_file, values.document_history_seed
    return document_history.other_history(
        model,
        lines,
        None if path is None else list(iter_documents(path)),
        document_history.SEED if seed is None else seed,
    )
