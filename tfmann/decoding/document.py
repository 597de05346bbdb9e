"""Documents through a model with a cache: sentence i of many, then their caches, then i + 1."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.corpus.text import Languages
from tfmann.decoding import search
from tfmann.decoding.lines import Forced, Line, Translation
from tfmann.decoding.translator import IDS, LENGTHS, Pair, Translator
from tfmann.hparams import HParams
from tfmann.memory.cache import Cache
from tfmann.models import document
from tfmann.models.seq2seq import Prepared, Seq2Seq

_CHUNK = 1024  # lines read before the first is answered, a document of a batch
_FROM, _STARTS = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.bool)


class Round(NamedTuple):
    """The next sentence of each of n documents."""

    sentences: list[int]  # [n] which
    came_from: np.ndarray  # [n] int32, each document's row in the round before
    starts: np.ndarray  # [n] bool: in none, the document begins here


def rounds(documents: Sequence[Sequence[int]], width: int, going_on: bool) -> Iterator[Round]:
    """Takes documents side by side, in order; where one ends, the next takes its place.

    Args:
      documents: the sentences of each, at least one.
      width: documents at once.
      going_on: the first document has begun before, as the only row of the round before.
    """
    waiting = deque(deque(sentences) for sentences in documents)
    rows: list[tuple[deque, int, bool]] = []  # what is left, row in the round before, begun
    if going_on:
        rows.append((waiting.popleft(), 0, True))
    while rows or waiting:
        while waiting and len(rows) < width:
            rows.append((waiting.popleft(), 0, False))
        yield Round(
            [left.popleft() for left, _, _ in rows],
            np.array([row for _, row, _ in rows], np.int32),
            np.array([not begun for _, _, begun in rows]),
        )
        rows = [(left, row, True) for row, (left, _, _) in enumerate(rows) if left]


class DocumentTranslator(Translator):
    """A `Translator` whose model keeps a cache.

    What it says of a document does not depend on which documents go beside it.
    """

    _kept: Cache  # of the document that the last chunk ended in: one row
    _last: int | None = None  # its id

    def translate(
        self,
        lines: Iterable[str],
        with_attention: bool = False,
        chunk: int = 0,
        documents: Iterable[int] | None = None,
    ) -> Iterator[list[Translation]]:
        """As `Translator.translate`; a blank line adds nothing to a cache."""
        self._last = None
        yield from super().translate(lines, with_attention, chunk, documents)

    def _chunk(self) -> int:
        return _CHUNK * self.hparams.infer_batch_size

    def _translate_chunk(
        self, lines: Sequence[Line], with_attention: bool
    ) -> list[list[Translation]]:
        results = [self.lines.blank() for _ in lines]
        run = self._search(with_attention or self.lines.lexicon is not None)
        documents = _documents(lines)
        if not documents:
            return results
        going_on = lines[documents[0][0]].document == self._last
        kept = self._kept if going_on else document.nothing_kept(self.model, 1)
        final = documents[-1][-1]
        for now in rounds(documents, self.hparams.infer_batch_size, going_on):
            source, length, _ = self._sources([lines[i] for i in now.sentences])
            found, kept = run(source, length, kept, now.came_from, now.starts)
            read = self._read(found, lines, now.sentences, with_attention)
            for index, n_best in zip(now.sentences, read):
                results[index] = n_best
            if final in now.sentences:  # its document may go on in the next chunk
                row = now.sentences.index(final)
                self._kept = Cache(*(part[row : row + 1] for part in kept))
        self._last = lines[final].document
        return results

    def _search(self, with_attention: bool) -> tf.types.experimental.GenericFunction:
        def run(source, length, kept, came_from, starts):
            kept = _of_round(kept, came_from, starts)
            record = self.model.cell.written_from
            prepared, found = self.find(source, length, kept, with_attention, record)
            after = keep_best(self.model, kept, prepared, found, None)
            return found._replace(diagnostics=None), after

        signature = [IDS, LENGTHS, document.signature(self.model), _FROM, _STARTS]
        return self._compile(("search", with_attention), run, signature)

    def _force_ids(self, pairs: Sequence[Pair], record: tuple[str, ...]) -> list[Forced]:
        results: list[Any] = [None] * len(pairs)
        run = self._force(record)
        lines = [line for line, _ in pairs]
        blank = [[index] for index, line in enumerate(lines) if not line.ids]  # of no document
        kept = document.nothing_kept(self.model, 1)
        for now in rounds(_documents(lines) + blank, self._force_size(record), False):
            chosen = [pairs[i] for i in now.sentences]
            batch = self._batch(chosen)
            *found, before, kept = run(*batch, kept, now.came_from, now.starts)
            words, written = before.words.numpy(), before.written.numpy()
            for row, forced in enumerate(self._read_forced(chosen, found)):
                slots = self.lines.slots(words[row], written[row])
                results[now.sentences[row]] = forced._replace(slots=slots)
        return results

    def _force(self, record: tuple[str, ...]) -> tf.types.experimental.GenericFunction:
        def run(source, source_length, target_in, target_out, target_length, *rest):
            kept = _of_round(*rest)
            prepared = self.model.prepare(source, source_length, document=kept)
            log_probs, seen, raw = search.forced_log_probs(
                self.model, prepared, target_in, target_out, target_length, record
            )
            after = document.keep(self.model, kept, raw, target_out, target_length)
            return log_probs, prepared.diagnostics, seen, kept, after

        kept = document.signature(self.model)
        signature = [IDS, LENGTHS, IDS, IDS, LENGTHS, kept, _FROM, _STARTS]
        return self._compile(("force", record), run, signature)


def keep_best(
    model: Seq2Seq,
    kept: Cache,
    prepared: Prepared,
    found: search.Hypotheses,
    blank: tf.Tensor | None,
) -> Cache:
    """What documents keep after the best translations that a search has found.

    Args:
      model: keeps a cache.
      kept: what they have kept so far.
      prepared: the sources.
      found: of the search, with what the cell is written from.
      blank: `[B]` bool, lines that add nothing; None: there are none.
    """
    best = {name: value[:, 0] for name, value in (found.diagnostics or {}).items()}
    lengths = tf.cast(found.lengths[:, 0], tf.int32)
    if blank is not None:
        lengths = tf.where(blank, 0, lengths)
    return document.keep_found(model, kept, prepared.encoded, best, found.ids[:, 0], lengths)


def _documents(lines: Sequence[Line]) -> list[list[int]]:
    """The lines of each document, blank ones left out."""
    real = (index for index, line in enumerate(lines) if line.ids)
    return [list(group) for _, group in itertools.groupby(real, lambda i: lines[i].document)]


def make_translator(
    model: Seq2Seq, languages: Languages, hparams: HParams, lexicon: Mapping[str, str] | None
) -> Translator:
    """The translator that the model needs; arguments as of `Translator`."""
    kind = DocumentTranslator if document.keeps(model) else Translator
    return kind(model, languages, hparams, lexicon)


def _of_round(kept: Cache, came_from: tf.Tensor, starts: tf.Tensor) -> Cache:
    """What the documents of a round have kept, by those of the round before."""
    return document.begin(Cache(*(tf.gather(part, came_from) for part in kept)), starts)
