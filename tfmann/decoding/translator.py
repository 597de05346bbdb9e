"""Translation of text: batches of lines through a model, answered in input order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from tfmann.cells.diagnostics import EVERYTHING, VECTORS
from tfmann.config import HParams
from tfmann.data.batching import chunks, pad_histories, pad_pairs, pad_sources
from tfmann.data.shortlist_lexicon import TranslationLists
from tfmann.data.text_encoder import LanguagePair
from tfmann.data.vocab import EOS_ID
from tfmann.decoding import target_requirements
from tfmann.decoding.search import Hypotheses
from tfmann.decoding.searcher import Searcher
from tfmann.decoding.teacher_forcing import forced_log_probs
from tfmann.decoding.text_processor import TextProcessor
from tfmann.decoding.translation import (
    Forced,
    HistoryPair,
    LineRequirements,
    SourceLine,
    Translation,
)
from tfmann.decoding.word_memory_entries import collect, take_votes
from tfmann.models import history_encoder
from tfmann.models.seq2seq import BATCH_SIGNATURE, IDS, LENGTHS, Prepared, Seq2Seq
from tfmann.ops.gradients import without_gradients

_BATCHES_PER_CHUNK = 64  # their lines are sorted by length together
Pair = tuple[SourceLine, list[int]]  # a source line and the target's ids, without `</s>`


@dataclass
class LastDocument:
    """The document in which the last chunk of one call ended; the next chunk may continue it."""

    number: int | None = None
    cache: Any = None  # one row


class Translator:
    """A model with its languages and search settings.

    Attributes:
      searcher: finds hypotheses for encoded lines.
      text: encodes lines and decodes translations.
      lists: what the shortlist of a sentence is made of, which `make_translator` reads; None:
        translations may have any word.
      before_batch: is called before each batch of `resume`; an error that it raises ends the call.
    """

    lists: TranslationLists | None = None

    def __init__(
        self,
        model: Seq2Seq,
        languages: LanguagePair,
        hparams: HParams,
        lexicon: Mapping[str, str] | None = None,
    ):
        """Compiles nothing yet.

        Args:
          model: the model.
          languages: its vocabularies and segmenters.
          hparams: the settings of the search.
          lexicon: source words to target words; it makes translations have their unknown words
            replaced (`unk_replacement`). The cell then has alignments.
        """
        self.model, self.languages, self.hparams = model, languages, hparams
        self.searcher = Searcher(model, hparams)
        self.text = TextProcessor(languages, hparams, lexicon)
        self.before_batch: Callable[[], None] = lambda: None
        self._compiled: dict[tuple, tf.types.experimental.GenericFunction] = {}

    def translate(
        self,
        lines: Iterable[str],
        with_attention: bool = False,
        chunk: int = 0,
        documents: Iterable[int] | None = None,
        history: Iterable[HistoryPair] | None = None,
        prefixes: Iterable[str] | None = None,
        constraints: Iterable[Sequence[str]] | None = None,
    ) -> Iterator[list[Translation]]:
        """Translates lines; yields the n best of each, in input order.

        Args:
          lines: text, one sentence each; a blank one comes back blank.
          with_attention: also return the attention of every translation.
          chunk: lines read before the first is answered; 0 = enough for full batches of sentences
            of similar length.
          documents: the id of each line's document, for models that read other sentences; without
            it a blank line ends a document.
          history: for each line, the pair that replaces it and its translation in the history of
            the next lines of its document, e.g. a pair of another document; by default nothing.
          prefixes: for each line the words that its translation must begin with; blank: any. A
            prefix that is longer than `tgt_max_len_infer` is followed to its end.
          constraints: for each line the phrases that its translation must contain, in beam search
            and greedy search. There is room for them, whatever `tgt_max_len_infer` is.
        """
        chunk = chunk or self._chunk_size()
        last = LastDocument()  # of this call: others may run at the same time
        waiting: list[SourceLine] = []
        for line in self.text.encode_lines(lines, documents, history, prefixes, constraints):
            waiting.append(line)
            if len(waiting) == chunk:
                yield from self._translate_chunk(waiting, with_attention, last)
                waiting = []
        yield from self._translate_chunk(waiting, with_attention, last)

    def _chunk_size(self) -> int:
        return _BATCHES_PER_CHUNK * self.hparams.infer_batch_size

    def _translate_chunk(
        self, lines: Sequence[SourceLine], with_attention: bool, last: LastDocument
    ) -> list[list[Translation]]:
        """Returns the n best of each line; changes `last` if the translator carries documents."""
        del last
        results = [self.text.blank_translations() for _ in lines]
        for order in self._group_by_width(lines):
            group = [lines[index] for index in order]
            self._require_search_room(len(order), group)
            run = self._search_function(with_attention, group)
            for indexes in chunks(order, self.hparams.infer_batch_size):
                self.before_batch()
                batch = [lines[index] for index in indexes]
                hypotheses = run(*self._search_inputs(batch, group))
                for index, n_best in zip(indexes, self._decode(hypotheses, batch, with_attention)):
                    results[index] = n_best
        return results

    def _group_by_width(self, lines: Sequence[SourceLine]) -> list[list[int]]:
        """Groups the indexes of lines that are not blank by their hypotheses, sorted by length.

        So a line with long phrases, which greedy search gives many, does not slow down the others.
        """
        real = (index for index, line in enumerate(lines) if line.ids)
        groups: dict[int, list[int]] = {}
        for index in sorted(real, key=lambda index: len(lines[index].ids)):
            groups.setdefault(self._hypotheses([lines[index]]), []).append(index)
        return list(groups.values())

    def _hypotheses(self, lines: Sequence[SourceLine]) -> int:
        """Returns the hypotheses of each of the lines."""
        return self.searcher.hypotheses(target_requirements.most_phrase_tokens(lines))

    def _require_search_room(self, sentences: int, lines: Sequence[SourceLine]) -> None:
        """Raises UsageError if a search for so many of the lines at once does not fit in memory."""
        longest = max((len(line.ids) for line in lines), default=0)
        self.searcher.require_room(sentences, self._hypotheses(lines), longest + 1)  # </s>

    def begin_document(self) -> Any:
        """Returns the state of a document before its first line, as `resume` takes it."""
        return [None] * self.text.history_size

    def resume(
        self,
        documents: Sequence[Sequence[str]],
        states: Sequence[Any],
        required: Sequence[Sequence[LineRequirements]] | None = None,
    ) -> tuple[list[list[list[Translation]]], list[Any]]:
        """Translates the next lines of several documents together.

        Args:
          documents: the lines of each, none of them blank.
          states: the state of each, from `begin_document` or an earlier `resume`.
          required: what the translations of the lines of each must begin with, and contain.

        Returns:
          for each document the n best of each line, and its state after them.
        """
        lines, states_after = [], []
        for number, (texts, state) in enumerate(zip(documents, states)):
            of_lines = None if required is None else required[number]
            document_lines, history = self._resumed_lines(texts, state, number, of_lines)
            lines += document_lines
            states_after.append(history)
        results = iter(self._translate_chunk(lines, False, LastDocument()))
        return [[next(results) for _ in texts] for texts in documents], states_after

    def prepare_line(self, text: str, state: Any) -> Prepared:
        """Prepares one line for decoding, after the document whose `state` `resume` returned."""
        lines, _ = self._resumed_lines([text], state, 0)
        return self.model.prepare(*self._source_batch(lines), document=self._document_inputs(lines))

    def _resumed_lines(
        self,
        texts: Sequence[str],
        before: Sequence[Any],
        document: int,
        required: Sequence[LineRequirements] | None = None,
    ) -> tuple[list[SourceLine], list[Any]]:
        """Encodes lines, each with the ids of those before it; returns the last of these too."""
        size, lines = self.text.history_size, []
        history = list(before)
        for number, text in enumerate(texts):
            ids = self.text.source_ids(text)
            line = SourceLine(text, ids, document, history)
            if required is not None:
                line = self.text.add_requirements(line, *required[number], f"line {number + 1}")
            lines.append(line)
            if size and ids:  # a line without tokens is no sentence, as in `TextProcessor`
                history = [*history, ids][-size:]
        return lines, history

    def _decode(
        self, hypotheses: Hypotheses, lines: Sequence[SourceLine], with_attention: bool
    ) -> Iterator[list[Translation]]:
        """Yields the translations of a batch of lines."""
        arrays: Any = [None if part is None else part.numpy() for part in hypotheses[:4]]
        for row, line in enumerate(lines):
            row_arrays: Any = (None if array is None else array[row] for array in arrays)
            yield self.text.decode_n_best(line, *row_arrays, with_attention=with_attention)

    def _source_batch(self, lines: Sequence[SourceLine]) -> tuple[np.ndarray, np.ndarray]:
        """Returns ids `[B, S]` and lengths `[B]`."""
        return pad_sources([line.ids for line in lines], self.hparams.append_source_eos)

    def _document_inputs(self, lines: Sequence[SourceLine]) -> Any:
        """Returns the sentences before the lines, as `Seq2Seq.prepare` takes them."""
        if not self.text.history_size:
            return ()
        return history_encoder.History(*pad_histories([line.history for line in lines]))

    def _document_signature(self) -> Any:
        size = self.text.history_size
        return history_encoder.signature(size) if size else ()

    def _search_inputs(
        self, batch: Sequence[SourceLine], lines: Sequence[SourceLine]
    ) -> tuple[Any, ...]:
        """Returns ids, lengths, requirements and document inputs of a batch of `lines`."""
        required = target_requirements.requirements(
            batch, lines, self.lists, self._hypotheses(lines)
        )
        return (*self._source_batch(batch), required, self._document_inputs(batch))

    def _search_function(
        self, with_attention: bool, lines: Sequence[SourceLine]
    ) -> tf.types.experimental.GenericFunction:
        """Compiles the search that `lines` need: `_search_inputs` to `_search_documents`."""
        attends = with_attention or self.text.lexicon is not None
        width = self._hypotheses(lines)

        def run(source: tf.Tensor, length: tf.Tensor, required: Any, *document: Any) -> Any:
            arguments = required.search_arguments(self.text.word_boundaries)
            search = partial(
                self.searcher.search,
                source,
                length,
                with_attention=attends,
                width=width,
                **arguments,
            )
            return self._search_documents(search, *document)

        required = target_requirements.signature(lines, self.lists)
        signature = [IDS, LENGTHS, required, *self._documents_signature()]
        kinds = target_requirements.kinds(lines)
        return self._compile(("search", attends, kinds, width), run, signature)

    def _documents_signature(self) -> list[Any]:
        """Returns the types of what is known of the documents of a batch."""
        return [self._document_signature()]

    def _search_documents(
        self, search: Callable[..., tuple[Prepared, Hypotheses]], document: Any
    ) -> Any:
        """Runs `Searcher.search`, which has its other arguments, in the documents of a batch."""
        _, hypotheses = search(document=document)
        return hypotheses

    def _compile(
        self, key: tuple, run: Any, signature: list
    ) -> tf.types.experimental.GenericFunction:
        if key not in self._compiled:
            self._compiled[key] = tf.function(
                without_gradients(run),
                autograph=False,  # nothing here needs it, and it takes seconds
                input_signature=signature,
            )
        return self._compiled[key]

    def force(
        self,
        pairs: Iterable[tuple[str, str]],
        record: tuple[str, ...] = (),
        documents: Iterable[int] | None = None,
        remembered: Iterable[bool] | None = None,
    ) -> list[Forced]:
        """Runs the decoder over given translations.

        Args:
          pairs: source and target lines.
          record: diagnostics to return (`cells.diagnostics`), those of reading the source among
            them if the cell does that.
          documents: as in `translate`.
          remembered: whether each pair is in the history of the next pairs of its document; None:
            all are.

        Returns:
          one `Forced` a pair, in order.
        """
        pairs = list(pairs)
        lines = (source for source, _ in pairs)
        sources = self.text.encode_lines(lines, documents, remembered=remembered)
        encode = self.languages.target.encode
        encoded = [(line, encode(target)) for line, (_, target) in zip(sources, pairs)]
        return self._force_ids(encoded, record)

    def force_translations(
        self,
        translations: Sequence[Translation],
        record: tuple[str, ...] = (),
        documents: Iterable[int] | None = None,
    ) -> list[Forced]:
        """Runs `force` over this translator's own translations, token by token."""
        return self._force_ids(self.text.encode_translations(translations, documents), record)

    def _force_ids(self, pairs: Sequence[Pair], record: tuple[str, ...]) -> list[Forced]:
        results: list[Any] = [None] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][1]), len(pairs[i][0].ids)))
        run = self._force_function(record)
        for indexes in chunks(order, self._force_size(record)):
            batch = [pairs[index] for index in indexes]
            document = self._document_inputs([line for line, _ in batch])
            outputs = run(*self._pair_batch(batch), document)
            for index, forced in zip(indexes, self._decode_forced(batch, outputs)):
                results[index] = forced
        return results

    def _force_size(self, record: tuple[str, ...]) -> int:
        # Some diagnostics run along the source and some do not; a pair alone has no padding to cut.
        return 1 if record in (EVERYTHING, VECTORS) else self.hparams.infer_batch_size

    def _pair_batch(self, pairs: Sequence[Pair]) -> tuple[np.ndarray, ...]:
        """Returns source, source_length, target_in, target_out and target_length."""
        sources, targets = zip(*((line.ids, target) for line, target in pairs))
        return pad_pairs(sources, targets, self.hparams.append_source_eos)

    def _force_function(self, record: tuple[str, ...]) -> tf.types.experimental.GenericFunction:
        """Compiles the forced decoding of a batch; the result is that of `_decode_forced`."""

        def run(source, source_length, target_in, target_out, target_length, document):
            prepared = self.model.prepare(source, source_length, record=record, document=document)
            log_probs, recorded, _ = forced_log_probs(
                self.model, prepared, target_in, target_out, target_length, record
            )
            return log_probs, prepared.diagnostics, recorded

        signature = [*BATCH_SIGNATURE, self._document_signature()]
        return self._compile(("force", record), run, signature)

    def _decode_forced(self, pairs: Sequence[Pair], outputs: Any) -> Iterator[Forced]:
        """Yields the rows of a batch.

        Args:
          pairs: the batch.
          outputs: log-probabilities `[B, T]`; diagnostics of the source `[S, B, ...]` and of the
            target `[B, T, ...]`.
        """
        log_probs, of_source, of_target = tf.nest.map_structure(lambda part: part.numpy(), outputs)
        for row, (line, target) in enumerate(pairs):
            of_row = {name: value[row] for name, value in of_target.items()}
            votes = take_votes(of_row, len(target) + 1)
            forced = self.text.forced(
                line,
                target,
                log_probs[row],
                {name: value[:, row] for name, value in of_source.items()},
                of_row,
            )
            if votes is not None:
                ids, decode = [*target, EOS_ID], self.languages.target.vocabulary.decode
                memory = collect(votes, ids, self._entry_origins(line), decode)
                forced = forced._replace(word_memory=memory)
            yield forced

    def _entry_origins(self, line: SourceLine) -> list[str]:
        """Returns where the entries of the line's word memory are from, in their order."""
        raise NotImplementedError(f"{type(self).__name__} has no word memory")
