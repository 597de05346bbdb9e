"""`--mode=score` with `--inference_contrast_file`: right and wrong translations compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, BinaryIO

from tfmann import api
from tfmann.data.text_files import iter_documents, iter_lines, number_lines
from tfmann.errors import UserError, print_message
from tfmann.evaluation import contrastive


def write_scores(
    model: api.Model, values: Any, pairs: Sequence[tuple[str, str]], out: BinaryIO
) -> None:
    """Writes the log-probabilities of each line's reference and contrasts; prints the accuracy.

    Args:
      model: the model.
      values: the flags.
      pairs: source and reference of each line.
      out: where the scores go.
    """
    path = values.inference_contrast_file
    contrasts = contrastive.read_contrasts(list(iter_lines(path)), path)
    if len(contrasts) != len(pairs):
        raise UserError(
            f"{path} has {len(contrasts)} lines and "
            f"{values.inference_ref_file} {len(pairs)}: expected the same number"
        )
    documents_path = values.inference_document_file
    ids = None if documents_path is None else iter_documents(documents_path)
    documents = [number for _, number in number_lines([source for source, _ in pairs], ids)]

    def score(
        forced: Sequence[tuple[str, str]], numbers: Sequence[int], remembered: Sequence[bool]
    ) -> list[float]:
        return [result.log_prob for result in model.score(forced, numbers, remembered)]

    scores = contrastive.contrast_scores(score, pairs, contrasts, documents)
    for of_sentence in scores:
        fields = (f"{value:.4f}" for value in of_sentence)
        out.write(f"{contrastive.SEPARATOR.join(fields)}\n".encode())
    right, items = contrastive.accuracy(scores)
    print_message(f"contrastive accuracy {100 * right / items:.2f}%: {right} of {items} items")
