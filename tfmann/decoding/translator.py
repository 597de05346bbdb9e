"""Text in, text out: batches of lines through a model, in input order, whatever they hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.diagnostics import EVERYTHING, VECTORS
from tfmann.corpus.pipeline import make_batch, pad_sources
from tfmann.corpus.text import Languages
from tfmann.corpus.vocab import EOS
from tfmann.decoding import search
from tfmann.decoding.replacement import replace_unknown
from tfmann.hparams import HParams
from tfmann.models.seq2seq import Seq2Seq

_CHUNK = 64  # batches whose lines are sorted by length together
_IDS, _LENGTHS = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.int32)


class Translation(NamedTuple):
    """One translation of one line."""

    text: str  # with unknown words replaced, where that is asked for
    score: float
    source_tokens: list[str]  # as the model saw them, with </s> where it stands
    tokens: list[str]  # as the model chose them, with </s>
    attention: np.ndarray | None  # [len(tokens), len(source_tokens)]


class Forced(NamedTuple):
    """What a model says of a given pair."""

    log_prob: float  # natural logarithm, </s> counted
    source_tokens: list[str]
    tokens: list[str]
    word_log_probs: np.ndarray  # [len(tokens)]
    diagnostics: dict[str, np.ndarray]  # by name, [source_steps + len(tokens), ...]
    source_steps: int  # len(source_tokens) where the cell reads the source itself, else 0


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
        self.lexicon = lexicon
        self._searches: dict[bool, tf.types.experimental.GenericFunction] = {}
        self._forced: dict[tuple, tf.types.experimental.GenericFunction] = {}

    def translate(
        self, lines: Iterable[str], with_attention: bool = False, chunk: int = 0
    ) -> Iterator[list[Translation]]:
        """Translates lines; yields the n best of each, in input order.

        Args:
          lines: text, one sentence each; a blank one comes back blank.
          with_attention: also return the attention of every translation.
          chunk: lines read before the first is answered; 0 = as many as make full batches of
            sentences of like length.
        """
        chunk = chunk or _CHUNK * self.hparams.infer_batch_size
        waiting: list[str] = []
        for line in lines:
            waiting.append(line)
            if len(waiting) == chunk:
                yield from self._translate_chunk(waiting, with_attention)
                waiting = []
        yield from self._translate_chunk(waiting, with_attention)

    def _translate_chunk(
        self, lines: Sequence[str], with_attention: bool
    ) -> list[list[Translation]]:
        ids = [self._source_ids(line) for line in lines]
        blank = Translation("", 0.0, [], [], None)
        results = [[blank] * self.hparams.num_translations_per_input for _ in lines]
        order = sorted((i for i in range(len(lines)) if ids[i]), key=lambda i: len(ids[i]))
        size = self.hparams.infer_batch_size
        for begin in range(0, len(order), size):
            rows = order[begin : begin + size]
            source, length = pad_sources([ids[i] for i in rows], self.hparams.append_source_eos)
            attended = with_attention or self.lexicon is not None
            found = self._search(attended)(source, length)
            arrays: Any = [None if part is None else part.numpy() for part in found]
            for row, index in enumerate(rows):
                n_best = self._read(row, self._source_tokens(ids[index]), *arrays)
                if self.lexicon is not None:
                    n_best = [self._without_unknown(one, lines[index]) for one in n_best]
                    if not with_attention:
                        n_best = [one._replace(attention=None) for one in n_best]
                results[index] = n_best
        return results

    def _without_unknown(self, translation: Translation, line: str) -> Translation:
        """The source words are taken from the line: those that the model saw may be `<unk>`."""
        assert self.lexicon is not None and translation.attention is not None
        words = self.languages.source.segmenter.segment(line)
        if self.hparams.src_max_len_infer:
            words = words[: self.hparams.src_max_len_infer]
        tokens = _without_end(translation.tokens)
        replaced = replace_unknown(tokens, translation.attention, words, self.lexicon)
        return translation._replace(text=self.languages.target.segmenter.join(replaced))

    def _read(
        self,
        row: int,
        source_tokens: list[str],
        ids: np.ndarray,
        lengths: np.ndarray,
        scores: np.ndarray,
        alignments: np.ndarray | None,
    ) -> list[Translation]:
        side, translations = self.languages.target, []
        for rank in range(ids.shape[1]):
            score = float(scores[row, rank])
            if rank and score == -math.inf:
                break  # there are no more: a tiny vocabulary, or a limit of few words
            words = ids[row, rank, : lengths[row, rank]].tolist()
            attention = None
            if alignments is not None:
                attention = alignments[row, rank, : len(words), : len(source_tokens)]
            tokens = side.vocabulary.decode(words)
            text = side.decode(words)
            translations.append(Translation(text, score, source_tokens, tokens, attention))
        return translations

    def _search(self, with_attention: bool) -> tf.types.experimental.GenericFunction:
        if with_attention not in self._searches:
            self._searches[with_attention] = tf.function(
                lambda source, length: self._run(source, length, with_attention),
                autograph=False,  # nothing here needs it, and it takes seconds
                input_signature=[_IDS, _LENGTHS],
            )
        return self._searches[with_attention]

    def _run(
        self, source: tf.Tensor, length: tf.Tensor, with_attention: bool
    ) -> search.Hypotheses:
        h, count = self.hparams, self.hparams.num_translations_per_input
        cap = h.tgt_max_len_infer
        if h.infer_mode == "beam_search":
            how = search.Search(
                h.beam_width, h.length_penalty_weight, h.coverage_penalty_weight, best=count
            )
            prepared = self.model.prepare(source, length)
            return search.beam_search(self.model, prepared, how, cap, with_attention)
        if h.infer_mode == "greedy":
            prepared = self.model.prepare(source, length)
            return search.greedy(self.model, prepared, cap, with_attention)
        prepared = self.model.prepare(tf.repeat(source, count, 0), tf.repeat(length, count))
        content = tf.reduce_sum(source)  # so that another batch draws other numbers
        seed = tf.stack([h.random_seed, content])
        drawn = search.sample(
            self.model, prepared, h.sampling_temperature, seed, cap, with_attention
        )
        return search.Hypotheses(
            *(part if part is None else _group(part, count) for part in drawn)
        )

    def force(
        self, pairs: Iterable[tuple[str, str]], record: tuple[str, ...] = ()
    ) -> list[Forced]:
        """Runs the decoder over given translations.

        Args:
          pairs: source and target lines.
          record: diagnostics to return (`cells.diagnostics`), those of reading the source among
            them where the cell does that.

        Returns:
          one `Forced` a pair, in order.
        """
        source, target = self.languages
        return self._force_ids([(self._source_ids(s), target.encode(t)) for s, t in pairs], record)

    def force_again(
        self, translations: Iterable[Translation], record: tuple[str, ...] = ()
    ) -> list[Forced]:
        """As `force`, over translations that this translator has made, token by token.

        Their text would not do: it need not fall into the same subwords again.
        """
        ids = []
        for one in translations:
            both = zip(self.languages, (one.source_tokens, one.tokens))
            source, target = (side.vocabulary.encode(_without_end(t)) for side, t in both)
            ids.append((source, target))
        return self._force_ids(ids, record)

    def _force_ids(
        self, ids: Sequence[tuple[list[int], list[int]]], record: tuple[str, ...]
    ) -> list[Forced]:
        """Forces ids of source and target, both without `</s>`."""
        results: list[Forced | None] = [None] * len(ids)
        order = sorted(range(len(ids)), key=lambda i: (len(ids[i][1]), len(ids[i][0])))
        # What else a cell shows may lie along the source or not; alone, it has no padding to cut.
        size = 1 if record in (EVERYTHING, VECTORS) else self.hparams.infer_batch_size
        for begin in range(0, len(order), size):
            rows = order[begin : begin + size]
            batch = make_batch(
                [ids[i][0] for i in rows],
                [ids[i][1] for i in rows],
                np.full([len(rows)], -1),
                np.asarray(rows),
                self.hparams.append_source_eos,
            )
            found = self._force(record)(*batch[:5])
            log_probs, read, seen = tf.nest.map_structure(lambda part: part.numpy(), found)
            for row, index in enumerate(rows):
                results[index] = self._read_forced(ids[index], log_probs[row], read, seen, row)
        return [result for result in results if result is not None]

    def _force(self, record: tuple[str, ...]) -> tf.types.experimental.GenericFunction:
        if record not in self._forced:

            def run(source, source_length, target_in, target_out, target_length):
                prepared = self.model.prepare(source, source_length, record=record)
                log_probs, seen = search.forced_log_probs(
                    self.model, prepared, target_in, target_out, target_length, record
                )
                return log_probs, prepared.diagnostics, seen

            signature = [_IDS, _LENGTHS, _IDS, _IDS, _LENGTHS]
            self._forced[record] = tf.function(run, autograph=False, input_signature=signature)
        return self._forced[record]

    def _read_forced(
        self,
        ids: tuple[list[int], list[int]],
        log_probs: np.ndarray,
        read: dict[str, np.ndarray],
        seen: dict[str, np.ndarray],
        row: int,
    ) -> Forced:
        """One row of a batch: `read` `[S, B, ...]` of the source phase, `seen` `[B, T, ...]`."""
        source_tokens = self._source_tokens(ids[0])
        tokens = [*self.languages.target.vocabulary.decode(ids[1]), EOS]
        steps, width = len(tokens), len(source_tokens)
        arrays = {name: value[row, :steps] for name, value in seen.items()}
        for name, value in read.items():
            arrays[name] = np.concatenate([value[:width, row], arrays[name]])
        if "alignments" in arrays:
            arrays["alignments"] = arrays["alignments"][:, :width]
        words = log_probs[:steps]
        source_steps = width if read else 0
        return Forced(float(words.sum()), source_tokens, tokens, words, arrays, source_steps)

    def _source_ids(self, line: str) -> list[int]:
        ids = self.languages.source.encode(line)
        cap = self.hparams.src_max_len_infer
        return ids[:cap] if cap else ids

    def _source_tokens(self, ids: list[int]) -> list[str]:
        tokens = self.languages.source.vocabulary.decode(ids)
        return [*tokens, EOS] if self.hparams.append_source_eos or not tokens else tokens


def _without_end(tokens: Sequence[str]) -> Sequence[str]:
    return tokens[:-1] if tokens and tokens[-1] == EOS else tokens


def _group(part: tf.Tensor, count: int) -> tf.Tensor:
    """`[B*n, 1, ...]` to `[B, n, ...]`."""
    return tf.reshape(part, tf.concat([[-1, count], tf.shape(part)[2:]], axis=0))
