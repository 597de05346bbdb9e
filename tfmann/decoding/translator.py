"""Text in, text out: batches of lines through a model, in input order, whatever they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfmann import size
from tfmann.cells.diagnostics import EVERYTHING, VECTORS
from tfmann.corpus.pipeline import make_batch, pad_histories, pad_sources
from tfmann.corpus.text import Languages
from tfmann.decoding import search
from tfmann.decoding.constraints import Constraints
from tfmann.decoding.lines import Forced, Line, Lines, Translation
from tfmann.hparams import HParams
from tfmann.models import history
from tfmann.models.seq2seq import Prepared, Seq2Seq, compute_dtype

_CHUNK = 64  # batches whose lines are sorted by length together
IDS, LENGTHS = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)
Pair = tuple[Line, list[int]]  # a source line and the target's ids, without `</s>`


class Translator:
    """A model with its languages and search settings."""

    def __init__(
        self,
        model: Seq2Seq,
        languages: Languages,
        hparams: HParams,
        lexicon: Mapping[str, str] | None = None,
    ):
        """Compiles nothing yet; `hparams` says how to search.

        With a `lexicon`, words of text to words of text, unknown words of translations are
        replaced (`decoding.replacement`); the cell has alignments then.
        """
        self.model, self.languages, self.hparams = model, languages, hparams
        self.lines = Lines(languages, hparams, lexicon)
        self._compiled: dict[tuple, tf.types.experimental.GenericFunction] = {}

    def translate(
        self,
        lines: Iterable[str],
        with_attention: bool = False,
        chunk: int = 0,
        documents: Iterable[int] | None = None,
    ) -> Iterator[list[Translation]]:
        """Translates lines; yields the n best of each, in input order.

        Args:
          lines: text, one sentence each; a blank one comes back blank.
          with_attention: also return the attention of every translation.
          chunk: lines read before the first is answered; 0 = as many as make full batches of
            sentences of like length.
          documents: the id of each line's document, for models that look at other sentences; a
            blank line ends one if this is not given.
        """
        chunk = chunk or self._chunk()
        waiting: list[Line] = []
        for line in self.lines.read(lines, documents):
            waiting.append(line)
            if len(waiting) == chunk:
                yield from self._translate_chunk(waiting, with_attention)
                waiting = []
        yield from self._translate_chunk(waiting, with_attention)

    def _chunk(self) -> int:
        return _CHUNK * self.hparams.infer_batch_size

    def _translate_chunk(
        self, lines: Sequence[Line], with_attention: bool
    ) -> list[list[Translation]]:
        results = [self.lines.blank() for _ in lines]
        real = (i for i, line in enumerate(lines) if line.ids)
        order = sorted(real, key=lambda i: len(lines[i].ids))
        self.require_room(len(order))
        run = self._search(with_attention or self.lines.lexicon is not None)
        for rows in _cut(order, self.hparams.infer_batch_size):
            found = run(*self._sources([lines[i] for i in rows]))
            for index, n_best in zip(rows, self._read(found, lines, rows, with_attention)):
                results[index] = n_best
        return results

    def require_room(self, sentences: int) -> None:
        """Raises UsageError where a batch of so many has no room in memory."""
        h = self.hparams
        rows = min(sentences, h.infer_batch_size)
        widths = {"beam_search": h.beam_width, "sample": h.num_translations_per_input}
        width = widths.get(h.infer_mode, 1)
        size.require_on_device(
            rows * width * (self.model.target_size + self.model.cell.memory_numbers),
            f"a search for {rows} sentences with {width} hypotheses each",
            "give a smaller infer_batch_size, beam_width or memory",
        )

    def _read(
        self,
        found: search.Hypotheses,
        lines: Sequence[Line],
        rows: Sequence[int],
        with_attention: bool,
    ) -> Iterator[list[Translation]]:
        """The translations of the lines `rows`, of which `found` is a batch."""
        arrays: Any = [None if part is None else part.numpy() for part in found[:4]]
        for row, index in enumerate(rows):
            own: Any = (None if array is None else array[row] for array in arrays)
            yield self.lines.n_best(lines[index], *own, with_attention=with_attention)

    def _sources(self, lines: Sequence[Line]) -> tuple[np.ndarray, np.ndarray, Any]:
        """Ids, lengths and what stands around the sentences."""
        source, length = pad_sources([line.ids for line in lines], self.hparams.append_source_eos)
        return source, length, self._around(lines)

    def _around(self, lines: Sequence[Line]) -> Any:
        if not self.lines.history_size:
            return ()
        return history.History(*pad_histories([line.history for line in lines]))

    def _around_signature(self) -> Any:
        size = self.lines.history_size
        return history.signature(size) if size else ()

    def _search(self, with_attention: bool) -> tf.types.experimental.GenericFunction:
        """Ids, lengths and what stands around the sentences to `search.Hypotheses`."""

        def run(source: tf.Tensor, length: tf.Tensor, around: Any) -> search.Hypotheses:
            return self.find(source, length, around, with_attention)[1]

        return self._compile(
            ("search", with_attention), run, [IDS, LENGTHS, self._around_signature()]
        )

    def _compile(
        self, key: tuple, run: Any, signature: list
    ) -> tf.types.experimental.GenericFunction:
        if key not in self._compiled:
            self._compiled[key] = tf.function(
                run,
                autograph=False,  # nothing here needs it, and it takes seconds
                input_signature=signature,
            )
        return self._compiled[key]

    def find(
        self,
        source: tf.Tensor,
        length: tf.Tensor,
        document: Any,
        with_attention: bool,
        record: tuple[str, ...] = (),
    ) -> tuple[Prepared, search.Hypotheses]:
        """Searches as the settings say; returns the sources made ready, and what was found."""
        h = self.hparams
        asked = (h.tgt_max_len_infer, with_attention, record, compute_dtype(h.infer_precision))
        limited = Constraints(h.tgt_min_len_infer, h.no_repeat_ngram_size)
        prepared = self._prepare(source, length, document)
        if h.infer_mode == "beam_search":
            how = search.Search(
                h.beam_width,
                h.length_penalty_weight,
                h.coverage_penalty_weight,
                best=h.num_translations_per_input,
                constraints=limited,
            )
            return prepared, search.beam_search(self.model, prepared, how, *asked)
        if h.infer_mode == "greedy":
            return prepared, search.greedy(self.model, prepared, *asked, limited)
        return prepared, self._sample(source, length, document, (*asked, limited))

    def _prepare(self, source: tf.Tensor, length: tf.Tensor, document: Any) -> Prepared:
        dtype = compute_dtype(self.hparams.infer_precision)
        return self.model.prepare(source, length, dtype=dtype, document=document)

    def _sample(
        self, source: tf.Tensor, length: tf.Tensor, document: Any, asked: tuple
    ) -> search.Hypotheses:
        """Draws the translations of a sentence side by side."""
        h, count = self.hparams, self.hparams.num_translations_per_input
        several, lengths, documents = tf.nest.map_structure(
            lambda part: tf.repeat(part, count, axis=0), (source, length, document)
        )
        content = tf.reduce_sum(source)  # so that another batch draws other numbers
        found = search.sample(
            self.model,
            self._prepare(several, lengths, documents),
            h.sampling_temperature,
            tf.stack([h.random_seed, content]),
            *asked,
        )
        return tf.nest.map_structure(
            lambda part: part if part is None else _group(part, count), found
        )

    def force(
        self,
        pairs: Iterable[tuple[str, str]],
        record: tuple[str, ...] = (),
        documents: Iterable[int] | None = None,
    ) -> list[Forced]:
        """Runs the decoder over given translations.

        Args:
          pairs: source and target lines.
          record: diagnostics to return (`cells.diagnostics`), those of reading the source among
            them where the cell does that.
          documents: as in `translate`.

        Returns:
          one `Forced` a pair, in order.
        """
        pairs = list(pairs)
        sources = self.lines.read((source for source, _ in pairs), documents)
        encode = self.languages.target.encode
        return self._force_ids([(s, encode(t)) for s, (_, t) in zip(sources, pairs)], record)

    def force_again(
        self,
        translations: Sequence[Translation],
        record: tuple[str, ...] = (),
        documents: Iterable[int] | None = None,
    ) -> list[Forced]:
        """As `force`, over translations that this translator has made, token by token."""
        return self._force_ids(self.lines.again(translations, documents), record)

    def _force_ids(self, pairs: Sequence[Pair], record: tuple[str, ...]) -> list[Forced]:
        results: list[Any] = [None] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][1]), len(pairs[i][0].ids)))
        for rows in _cut(order, self._force_size(record)):
            chosen = [pairs[i] for i in rows]
            around = self._around([line for line, _ in chosen])
            found = self._force(record)(*self._batch(chosen), around)
            for index, forced in zip(rows, self._read_forced(chosen, found)):
                results[index] = forced
        return results

    def _force_size(self, record: tuple[str, ...]) -> int:
        # What else a cell shows may lie along the source or not; alone, it has no padding to cut.
        return 1 if record in (EVERYTHING, VECTORS) else self.hparams.infer_batch_size

    def _batch(self, pairs: Sequence[Pair]) -> tuple[np.ndarray, ...]:
        """Source, source_length, target_in, target_out, target_length."""
        nowhere = np.full([len(pairs)], -1)
        sources, targets = zip(*((line.ids, target) for line, target in pairs))
        eos = self.hparams.append_source_eos
        return make_batch(sources, targets, nowhere, nowhere, eos)[:5]

    def _force(self, record: tuple[str, ...]) -> tf.types.experimental.GenericFunction:
        def run(source, source_length, target_in, target_out, target_length, around):
            prepared = self.model.prepare(
                source, source_length, record=record, document=around
            )
            log_probs, seen, _ = search.forced_log_probs(
                self.model, prepared, target_in, target_out, target_length, record
            )
            return log_probs, prepared.diagnostics, seen

        signature = [IDS, LENGTHS, IDS, IDS, LENGTHS, self._around_signature()]
        return self._compile(("force", record), run, signature)

    def _read_forced(self, pairs: Sequence[Pair], found: Any) -> Iterator[Forced]:
        """The rows of a batch: log-probabilities, the source phase `[S, B, ...]`, `[B, T, ...]`."""
        log_probs, read, seen = tf.nest.map_structure(lambda part: part.numpy(), found)
        for row, (line, target) in enumerate(pairs):
            yield self.lines.forced(
                (line.ids, target),
                log_probs[row],
                {name: value[:, row] for name, value in read.items()},
                {name: value[row] for name, value in seen.items()},
            )


def _cut(order: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]


def _group(part: tf.Tensor, count: int) -> tf.Tensor:
    """`[B*n, 1, ...]` to `[B, n, ...]`."""
    return tf.reshape(part, tf.concat([[-1, count], tf.shape(part)[2:]], axis=0))
