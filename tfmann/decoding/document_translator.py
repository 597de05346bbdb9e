"""Translation of documents with a cache: one sentence of each, then their caches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.config import HParams
from tfmann.data.batching import chunks
from tfmann.data.documents import sentences_by_document
from tfmann.data.text_encoder import LanguagePair
from tfmann.decoding.document_stores import DocumentStore
from tfmann.decoding.search import Hypotheses
from tfmann.decoding.teacher_forcing import forced_log_probs
from tfmann.decoding.translation import (
    EncodedPair,
    Forced,
    LineRequirements,
    SourceLine,
    Translation,
)
from tfmann.decoding.translator import LastDocument, Pair, Translator
from tfmann.models.seq2seq import BATCH_SIGNATURE, Prepared, Seq2Seq

_LINES_PER_DOCUMENT = 1024  # read before the first is answered, for each document of a batch
_ROWS, _STARTS = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.bool)


class DocumentRound(NamedTuple):
    """The next sentence of each of n documents."""

    sentences: list[int]  # [n] indexes
    previous_rows: np.ndarray  # [n] int32, each document's row in the round before
    starts: np.ndarray  # [n] bool: the document begins here and has no row in the round before


def rounds(
    documents: Sequence[Sequence[int]], width: int, first_has_begun: bool
) -> Iterator[DocumentRound]:
    """Yields the sentences of several documents in parallel; a new one replaces one that has ended.

    Args:
      documents: the sentences of each, at least one.
      width: documents at once.
      first_has_begun: the first document was also in the round before, as its only row.
    """
    waiting = deque(deque(sentences) for sentences in documents)
    rows: list[tuple[deque, int, bool]] = []  # sentences left, row in the round before, has begun
    if first_has_begun:
        rows.append((waiting.popleft(), 0, True))
    while rows or waiting:
        while waiting and len(rows) < width:
            rows.append((waiting.popleft(), 0, False))
        yield DocumentRound(
            [left.popleft() for left, _, _ in rows],
            np.array([row for _, row, _ in rows], np.int32),
            np.array([not has_begun for _, _, has_begun in rows]),
        )
        rows = [(left, row, True) for row, (left, _, _) in enumerate(rows) if left]


class DocumentTranslator(Translator):
    """A `Translator` with a cache: its model's own, or a neural cache.

    A document's translation does not depend on the other documents of its batch. A blank line adds
    nothing to a cache.
    """

    def __init__(
        self,
        model: Seq2Seq,
        languages: LanguagePair,
        hparams: HParams,
        lexicon: Mapping[str, str] | None,
        store: DocumentStore,
    ):
        """Takes the store of the documents' caches; other arguments as of `Translator`."""
        super().__init__(model, languages, hparams, lexicon)
        self._store = store

    def _chunk_size(self) -> int:
        return _LINES_PER_DOCUMENT * self.hparams.infer_batch_size

    def _translate_chunk(
        self, lines: Sequence[SourceLine], with_attention: bool, last: LastDocument
    ) -> list[list[Translation]]:
        results = [self.text.blank_translations() for _ in lines]
        documents, numbers = _documents(lines), [line.document for line in lines]
        if not documents:
            last.number = last.number if set(numbers) <= {last.number} else None
            return results
        self._require_search_room(len(documents), lines)
        run = self._search_function(with_attention, lines)
        first, final = documents[0][0], documents[-1][-1]
        continues = set(numbers[: first + 1]) == {last.number}
        cache = last.cache if continues else self._store.empty(1)
        for current in rounds(documents, self.hparams.infer_batch_size, continues):
            batch = [lines[index] for index in current.sentences]
            before = cache, current.previous_rows, current.starts
            hypotheses, cache = run(*self._search_inputs(batch, lines), *before)
            if batch[0].history_pair is not None:
                cache = self._write_history_pairs(batch, *before)
            for index, n_best in zip(
                current.sentences, self._decode(hypotheses, batch, with_attention)
            ):
                results[index] = n_best
            if final in current.sentences:  # its document may continue in the next chunk
                row = current.sentences.index(final)
                last.cache = _row(cache, row)
        last.number = numbers[final] if len(set(numbers[final:])) == 1 else None
        return results

    def _write_history_pairs(self, batch: Sequence[SourceLine], *before: Any) -> Any:
        """Returns the caches of a round after the pairs that replace its lines in the history."""
        replacements = [line.history_pair or EncodedPair([], []) for line in batch]
        pairs = [
            (line._replace(ids=pair.source), pair.target) for line, pair in zip(batch, replacements)
        ]
        run = self._force_function(())
        *_, unchanged, after = run(*self._pair_batch(pairs), self._document_inputs(batch), *before)
        return _select_rows([bool(pair.source) for pair in replacements], after, unchanged)

    def begin_document(self) -> Any:
        """Returns the empty cache of a document, and the source sentences before it."""
        return self._store.empty(1), super().begin_document()

    def resume(
        self,
        documents: Sequence[Sequence[str]],
        states: Sequence[Any],
        required: Sequence[Sequence[LineRequirements]] | None = None,
    ) -> tuple[list[list[list[Translation]]], list[Any]]:
        """Translates as `Translator.resume` does; a cache in a state has one row."""
        lines, histories, caches = [], [], []
        for number, (texts, (cache, history)) in enumerate(zip(documents, states)):
            of_lines = None if required is None else required[number]
            document_lines, history = self._resumed_lines(texts, history, number, of_lines)
            lines.append(document_lines)
            histories.append(history)
            caches.append(cache)
        results = [[self.text.blank_translations() for _ in texts] for texts in documents]
        every_line = list(chain.from_iterable(lines))
        self._require_search_room(len(documents), every_line)
        run = self._search_function(False, every_line)
        for step in range(max(map(len, documents), default=0)):
            continuing = [
                n for n, document in enumerate(lines) if step < len(document) and document[step].ids
            ]
            for numbers in chunks(continuing, self.hparams.infer_batch_size):
                self.before_batch()
                batch = [lines[n][step] for n in numbers]
                before = tf.nest.map_structure(
                    lambda *parts: tf.concat(parts, 0), *(caches[n] for n in numbers)
                )
                rows = np.arange(len(numbers), dtype=np.int32)
                starts = np.zeros(len(numbers), bool)
                hypotheses, after = run(
                    *self._search_inputs(batch, every_line), before, rows, starts
                )
                for row, (n, n_best) in enumerate(
                    zip(numbers, self._decode(hypotheses, batch, False))
                ):
                    results[n][step] = n_best
                    caches[n] = _row(after, row)
        return results, list(zip(caches, histories))

    def prepare_line(self, text: str, state: Any) -> Prepared:
        """Prepares a line as `Translator.prepare_line` does."""
        cache, history = state
        lines, _ = self._resumed_lines([text], history, 0)
        document = self._store.document(cache, self._document_inputs(lines))
        return self.model.prepare(*self._source_batch(lines), document=document)

    def _documents_signature(self) -> list[Any]:
        return [*super()._documents_signature(), self._store.signature(), _ROWS, _STARTS]

    def _search_documents(
        self,
        search: Callable[..., tuple[Prepared, Hypotheses]],
        history: Any,
        *caches: Any,
    ) -> tuple[Hypotheses, Any]:
        """Returns the hypotheses of a round, and the caches after them."""
        cache = self._select_caches(*caches)
        document = self._store.document(cache, history)
        prepared, hypotheses = search(document=document, record=self._store.record)
        after = self._store.write_best(cache, prepared, hypotheses)
        return hypotheses._replace(diagnostics=None), after

    def _force_ids(self, pairs: Sequence[Pair], record: tuple[str, ...]) -> list[Forced]:
        results: list[Any] = [None] * len(pairs)
        run = self._force_function(record)
        lines = [line for line, _ in pairs]
        blank = [[index] for index, line in enumerate(lines) if not line.ids]  # of no document
        cache = self._store.empty(1)
        for current in rounds(_documents(lines) + blank, self._force_size(record), False):
            batch = [pairs[index] for index in current.sentences]
            *outputs, before, cache = run(
                *self._pair_batch(batch),
                self._document_inputs([line for line, _ in batch]),
                cache,
                current.previous_rows,
                current.starts,
            )
            if any(line.history_pair is not None for line, _ in batch):
                cache = _select_rows(
                    [line.history_pair is None for line, _ in batch], cache, before
                )
            slots = self._store.slots(before)
            for row, forced in enumerate(self._decode_forced(batch, outputs)):
                if slots:
                    words, written = slots
                    forced = forced._replace(slots=self.text.slots(words[row], written[row]))
                results[current.sentences[row]] = forced
        return results

    def _entry_origins(self, line: SourceLine) -> list[str]:
        """Returns how many words ago each entry of a neural cache was written; the newest is 1."""
        del line
        slots = self.hparams.neural_cache_size
        return [f"{age} word{'s' if age > 1 else ''} ago" for age in range(slots, 0, -1)]

    def _force_function(self, record: tuple[str, ...]) -> tf.types.experimental.GenericFunction:
        """Compiles the forced decoding of a round, with the caches before and after it."""

        def run(source, source_length, target_in, target_out, target_length, history, *caches):
            cache = self._select_caches(*caches)
            document = self._store.document(cache, history)
            prepared = self.model.prepare(source, source_length, record=record, document=document)
            log_probs, recorded, entries = forced_log_probs(
                self.model, prepared, target_in, target_out, target_length, record
            )
            after = self._store.write_forced(cache, entries, target_out, target_length)
            return log_probs, prepared.diagnostics, recorded, cache, after

        signature = [*BATCH_SIGNATURE, *self._documents_signature()]
        return self._compile(("force", record), run, signature)

    def _select_caches(self, cache: Any, previous_rows: tf.Tensor, starts: tf.Tensor) -> Any:
        """Returns the caches of a round's documents, from those of the round before."""
        rows = tf.nest.map_structure(lambda part: tf.gather(part, previous_rows), cache)
        return self._store.begin(rows, starts)


def _documents(lines: Sequence[SourceLine]) -> list[list[int]]:
    """Returns the indexes of each document's lines, without blank ones."""
    return sentences_by_document([line.document for line in lines], [line.ids for line in lines])


def _select_rows(chosen: Sequence[bool], new: Any, old: Any) -> Any:
    """Returns `new` caches in the chosen rows, `old` ones in the others."""
    rows = tf.constant(chosen)

    def select(new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
        return tf.where(tf.reshape(rows, [-1, *[1] * (len(new.shape) - 1)]), new, old)

    return tf.nest.map_structure(select, new, old)


def _row(cache: Any, row: int) -> Any:
    """Returns a copy of one row: a slice would keep the caches of the whole batch in memory."""
    return tf.nest.map_structure(lambda part: tf.gather(part, [row]), cache)
