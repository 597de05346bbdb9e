"""Histories of a sentence: its own document, the references, or another document.

A model that reads other sentences may gain from any sentences, because they act as noise that
regularises (Li et al. 2020, "Does Multi-Encoder Help?", arXiv 2005.03393). Compare three histories:

    own         the sentences before it in its document, with the model's translations
    reference   the same sentences with their reference translations, which have no errors
    other       sentences of another document of similar length, with the model's translations

With `other`, sentence k of a document has before it what sentence k of the other document has: its
first k - 1 sentences, or all of them if it is shorter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from tfmann.config import HParams
from tfmann.data.documents import exchange_documents, sentences_by_document
from tfmann.data.text_files import number_lines
from tfmann.decoding.translation import HistoryPair, Translation
from tfmann.errors import UserError

SEED = 1  # of the documents that are exchanged


class DocumentModel(Protocol):
    """A model that translates documents."""

    hparams: HParams

    def translate(
        self, lines: Iterable[str], *, documents: Iterable[int] | None = None
    ) -> Iterator[list[Translation]]:
        """Translates lines as `Translator.translate` does."""


def reference_history(lines: Sequence[str], references: Sequence[str]) -> list[HistoryPair]:
    """Returns a history with the reference translations; a pair with a blank side is left out.

    Raises:
      UserError: there are more or fewer references than lines.
    """
    if len(lines) != len(references):
        raise UserError(
            f"the history of the references: {len(references)} references of {len(lines)} lines"
        )
    return [
        (line, reference) if line.strip() and reference.strip() else None
        for line, reference in zip(lines, references)
    ]


def other_history(
    model: DocumentModel, lines: Sequence[str], documents: Sequence[int] | None, seed: int = SEED
) -> list[HistoryPair]:
    """Returns a history of other documents; `data.documents.exchange_documents` chooses them.

    The other documents are translated first, with their own history, if the model reads that.

    Args:
      model: a model that reads documents.
      lines: all lines of all documents.
      documents: the id of each line's document; None: a blank line ends a document.
      seed: of the choice.

    Raises:
      UserError: there are fewer than two documents.
    """
    ids = [document for _, document in number_lines(lines, documents)]
    sentences = sentences_by_document(ids, [line.strip() for line in lines])
    if len(sentences) < 2:
        raise UserError(
            "the history of another document: expected two documents or more, and there is "
            f"{'one' if sentences else 'none'}"
        )
    pairs: list[HistoryPair] = [(line, "") for line in lines]
    if model.hparams.reads_translations:
        pairs = [n_best[0] for n_best in model.translate(lines, documents=documents)]
    history: list[HistoryPair] = [None] * len(lines)
    others = exchange_documents(list(map(len, sentences)), seed)
    for indexes, other in zip(sentences, others):
        for index, other_index in zip(indexes, sentences[other]):
            history[index] = pairs[other_index]
    return history
