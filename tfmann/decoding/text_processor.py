"""Lines of text to the ids that a model reads, and its ids to lines of text."""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tfmann import config
from tfmann.config import HParams
from tfmann.data.text_encoder import LanguagePair
from tfmann.data.text_files import number_lines
from tfmann.data.vocab import EOS, UNK_ID
from tfmann.data.word_boundaries import WordBoundaries, word_boundaries
from tfmann.decoding.translation import (
    EncodedPair,
    Forced,
    HistoryPair,
    Prefix,
    Slots,
    SourceLine,
    Translation,
    without_eos,
)
from tfmann.decoding.unk_replacement import replace_unknown
from tfmann.errors import UsageError, UserError

_END = object()  # of an iterator


class TextProcessor:
    """Encodes and decodes text in both languages of a model."""

    def __init__(
        self, languages: LanguagePair, hparams: HParams, lexicon: Mapping[str, str] | None
    ):
        """Replaces unknown words of translations if there is a `lexicon`."""
        self.languages, self.hparams, self.lexicon = languages, hparams, lexicon
        self.history_size = config.cell_spec(hparams.cell).history_size

    def encode_lines(
        self,
        lines: Iterable[str],
        documents: Iterable[int] | None = None,
        history: Iterable[HistoryPair] | None = None,
        prefixes: Iterable[str] | None = None,
        constraints: Iterable[Sequence[str]] | None = None,
        remembered: Iterable[bool] | None = None,
    ) -> Iterator[SourceLine]:
        """Encodes lines; without `documents`, a blank line ends a document.

        Args:
          lines: text.
          documents: the id of each line's document.
          history: what replaces each line in the history of the next lines; by default nothing.
          prefixes: what each line's translation must begin with; blank: anything.
          constraints: phrases that each line's translation must contain; there may be none.
          remembered: instead of `history`, whether each line is in the history of the next lines.

        Raises:
          UserError: `documents`, `history`, `prefixes`, `constraints` or `remembered` has more or
            fewer entries than there are lines; or no translation can contain a phrase.
          UsageError: a `history` for a model that translates every sentence by itself.
        """
        if history is not None and not self.hparams.reads_documents:
            raise UsageError(
                f"a history has no effect: the cell {self.hparams.cell!r} translates every "
                "sentence by itself"
            )
        numbered = number_lines(lines, documents)
        encoded = ((line, self.source_ids(line), document) for line, document in numbered)
        pairs: Iterator[EncodedPair | None] | None = None
        if history is not None:
            pairs = map(self._encode_pair, history)
        elif remembered is not None:
            pairs = (None if remember else EncodedPair([], []) for remember in remembered)
        name = "remembered" if history is None else "history"
        with_history = self._with_history(encoded, documents is not None, pairs, name)
        if prefixes is None and constraints is None:
            return with_history
        return self._with_requirements(with_history, prefixes, constraints)

    def _with_requirements(
        self,
        lines: Iterator[SourceLine],
        prefixes: Iterable[str] | None,
        constraints: Iterable[Sequence[str]] | None,
    ) -> Iterator[SourceLine]:
        count = 0
        prefixes = None if prefixes is None else iter(prefixes)
        constraints = None if constraints is None else iter(constraints)
        for count, line in enumerate(lines, start=1):
            prefix = "" if prefixes is None else next(prefixes, None)
            if prefix is None:
                raise UserError(
                    f"line {count} has no prefix: expected one for each line, blank for none"
                )
            phrases = () if constraints is None else next(constraints, None)
            if phrases is None:
                raise UserError(
                    f"line {count} has no constraints: expected an entry for each line, empty for "
                    "none"
                )
            yield self.add_requirements(line, prefix, phrases, f"line {count}")
        if prefixes is not None and next(prefixes, None) is not None:
            raise UserError(f"there are more prefixes than lines: expected {count}")
        if constraints is not None and next(constraints, None) is not None:
            raise UserError(f"there are more constraints than lines: expected {count}")

    def add_requirements(
        self, line: SourceLine, prefix: str, phrases: Sequence[str], where: str
    ) -> SourceLine:
        """Returns a line with what its translation must begin with, and contain.

        Args:
          line: the line.
          prefix: its translation's first words; blank: any.
          phrases: words that its translation contains; blank ones are left out.
          where: names the line in a message.

        Raises:
          UserError: a phrase cannot be a part of a translation.
          UsageError: there is one, and the search draws samples.
        """
        target, prefix = self.languages.target, prefix if prefix.strip() else ""
        encoded = Prefix(target.segmenter.segment(prefix), target.encode(prefix))
        ids = self.encode_phrases(phrases, where)
        if ids:
            self.require_phrase_search(where)
        return line._replace(prefix=encoded, phrases=ids)

    def require_phrase_search(self, where: str) -> None:
        """Raises UsageError where there are phrases, and the search draws samples."""
        if self.hparams.infer_mode == "sample":
            raise UsageError(
                f"{where}: samples cannot be drawn with constraints: set infer_mode=beam_search or "
                "infer_mode=greedy"
            )

    def encode_phrases(self, phrases: Sequence[str], where: str) -> list[list[int]]:
        """Returns the ids of phrases, each once, without blank ones.

        Raises:
          UserError: the vocabulary lacks a word, or the phrase is a part of a word; the message
            begins with `where`.
        """
        target, encoded = self.languages.target, {}
        for phrase in filter(str.strip, phrases):
            ids = target.encode(phrase)
            if UNK_ID in ids:
                token = target.segmenter.segment(phrase)[ids.index(UNK_ID)]
                raise UserError(
                    f"{where}: no translation can contain {phrase!r}, because the target "
                    f"vocabulary lacks {token!r}: leave the phrase out or change it"
                )
            if ids and not self.word_boundaries.are_words(ids):
                raise UserError(
                    f"{where}: the phrase {phrase!r} does not consist of whole words of the model"
                )
            if ids:
                encoded[tuple(ids)] = ids
        return list(encoded.values())

    @functools.cached_property
    def word_boundaries(self) -> WordBoundaries:
        """The boundaries of words among the target's tokens."""
        return word_boundaries(self.languages.target)

    def _with_history(
        self,
        encoded: Iterable[tuple[str, list[int], int]],
        blank_lines_count: bool,
        pairs: Iterator[EncodedPair | None] | None = None,
        name: str = "history",
    ) -> Iterator[SourceLine]:
        size = self.history_size
        before: deque = deque([None] * size, maxlen=size)
        last_document, count = None, 0
        for count, (text, ids, document) in enumerate(encoded, start=1):
            if document != last_document:
                before.extend([None] * size)
                last_document = document
            try:
                pair = None if pairs is None else next(pairs)
            except StopIteration:
                raise UserError(
                    f"line {count} has no entry in {name}: expected one for each line"
                ) from None
            yield SourceLine(text, ids, document, list(before), pair)
            if pair is not None and ids:
                before.extend([pair.source] if pair.source else [])
            elif ids or blank_lines_count:  # a blank line that ends a document is no part of it
                before.append(ids)
        if pairs is not None and next(pairs, _END) is not _END:
            raise UserError(f"there are more entries in {name} than lines: expected {count}")

    def _encode_pair(self, pair: HistoryPair) -> EncodedPair:
        if pair is None:
            return EncodedPair([], [])
        if isinstance(pair, Translation):
            return EncodedPair(*self._token_ids(pair))
        source, target = pair
        return EncodedPair(self.source_ids(source), self.languages.target.encode(target))

    def source_ids(self, line: str) -> list[int]:
        """Encodes a source line, cut to `src_max_len_infer`; one of white space alone is blank."""
        ids = self.languages.source.encode(line) if line.strip() else []
        cap = self.hparams.src_max_len_infer
        return ids[:cap] if cap else ids

    def source_tokens(self, ids: list[int]) -> list[str]:
        """Returns the source tokens as the model reads them, with its `</s>`."""
        tokens = self.languages.source.vocabulary.decode(ids)
        return [*tokens, EOS] if self.hparams.append_source_eos or not tokens else tokens

    def encode_translations(
        self, translations: Sequence[Translation], documents: Iterable[int] | None
    ) -> list[tuple[SourceLine, list[int]]]:
        """Encodes translations as pairs, token by token; `documents` as in `encode_lines`.

        Their text will not do: it need not be segmented into the same subwords.
        """
        texts = (" ".join(translation.source_tokens) for translation in translations)
        ids = [self._token_ids(translation) for translation in translations]
        numbered = zip(number_lines(texts, documents), ids)
        encoded = ((text, source, document) for (text, document), (source, _) in numbered)
        lines = self._with_history(encoded, documents is not None)
        return [(line, target) for line, (_, target) in zip(lines, ids)]

    def _token_ids(self, translation: Translation) -> tuple[list[int], list[int]]:
        """Returns the ids of source and target, without `</s>`."""
        source, target = (side.vocabulary for side in self.languages)
        return (
            source.encode(without_eos(translation.source_tokens)),
            target.encode(without_eos(translation.tokens)),
        )

    def blank_translations(self) -> list[Translation]:
        """Returns the translations of a blank line."""
        return [Translation("", 0.0, [], [], None)] * self.hparams.num_translations_per_input

    def decode_n_best(
        self,
        line: SourceLine,
        ids: np.ndarray,
        lengths: np.ndarray,
        scores: np.ndarray,
        alignments: np.ndarray | None,
        *,
        with_attention: bool,
    ) -> list[Translation]:
        """Decodes a sentence's hypotheses: ids `[n, T]`, lengths and scores `[n]`, `[n, T, S]`."""
        target, translations = self.languages.target, []
        source_tokens = self.source_tokens(line.ids)
        for rank in range(len(ids)):
            score = float(scores[rank])
            if rank and score == -math.inf:
                break  # no more hypotheses: a tiny vocabulary, or a limit of few words
            words = ids[rank, : lengths[rank]].tolist()
            attention = None
            if alignments is not None:
                attention = alignments[rank, : len(words), : len(source_tokens)]
            tokens = target.vocabulary.decode(words)
            text = target.decode(words)
            text_tokens = tokens
            if line.prefix.ids:  # its words stay as they were given, even where they are <unk>
                text_tokens = [*line.prefix.tokens, *tokens[len(line.prefix.ids) :]]
                text = target.segmenter.join(without_eos(text_tokens))
            if self.lexicon is not None:
                assert attention is not None, "unknown words are replaced by the attention"
                text = self._replace_unknown(text_tokens, attention, line, self.lexicon)
            attention = attention if with_attention else None
            translations.append(Translation(text, score, source_tokens, tokens, attention))
        return translations

    def _replace_unknown(
        self, tokens: list[str], attention: np.ndarray, line: SourceLine, lexicon: Mapping[str, str]
    ) -> str:
        """Joins the tokens to text; the source words come from the line, where none is `<unk>`.

        The words of the line's prefix stay, also an `<unk>` among them.
        """
        words = self.languages.source.segmenter.segment(line.text)
        if self.hparams.src_max_len_infer:
            words = words[: self.hparams.src_max_len_infer]
        given, own = line.prefix.tokens, without_eos(tokens)[len(line.prefix.tokens) :]
        replaced = replace_unknown(own, attention[len(given) :], words, lexicon)
        return self.languages.target.segmenter.join([*given, *replaced])

    def forced(
        self,
        line: SourceLine,
        target: Sequence[int],
        log_probs: np.ndarray,
        source_diagnostics: Mapping[str, np.ndarray],
        target_diagnostics: Mapping[str, np.ndarray],
    ) -> Forced:
        """Cuts one pair's padding off.

        Args:
          line: the source.
          target: ids, without `</s>`.
          log_probs: `[T]`.
          source_diagnostics: `[S, ...]`, of a cell that reads the source itself.
          target_diagnostics: `[T, ...]`.
        """
        source_tokens = self.source_tokens(line.ids)
        tokens = [*self.languages.target.vocabulary.decode(target), EOS]
        steps, width = len(tokens), len(source_tokens)
        arrays = {name: value[:steps] for name, value in target_diagnostics.items()}
        for name, value in source_diagnostics.items():
            arrays[name] = np.concatenate([value[:width], arrays[name]])
        if "alignments" in arrays:
            arrays["alignments"] = arrays["alignments"][:, :width]
        words = log_probs[:steps]
        source_steps = width if source_diagnostics else 0
        ids = line.history[-1] if line.history else None
        previous = () if ids is None else [*self.languages.source.vocabulary.decode(ids), EOS]
        return Forced(
            float(words.sum()), source_tokens, tokens, words, arrays, source_steps,
            previous_tokens=previous,
        )  # fmt: skip

    def slots(self, words: np.ndarray, written: np.ndarray) -> Slots:
        """Returns the slots of ids `[I]` and times of writing `[I]`, below 0 if empty."""
        filled = written >= 0
        latest = written.max(initial=0)
        tokens = iter(self.languages.target.vocabulary.decode(words[filled].tolist()))
        return Slots(
            words=[next(tokens) if is_filled else "" for is_filled in filled],
            ages=np.where(filled, latest - written, -1),
        )
