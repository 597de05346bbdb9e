"""Lines of text to what a model takes, and what a model gives to lines of text."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np

from tfmann import hparams as hparams_module
from tfmann.corpus.text import Languages
from tfmann.corpus.vocab import EOS
from tfmann.decoding.replacement import replace_unknown
from tfmann.errors import UserError
from tfmann.hparams import HParams


class Line(NamedTuple):
    """A source line, encoded."""

    text: str
    ids: list[int]  # without `</s>`; none of a blank line
    document: int
    history: list[list[int] | None]  # ids of the P lines before it, the nearest last


class Translation(NamedTuple):
    """One translation of one line."""

    text: str  # with unknown words replaced, where that is asked for
    score: float
    source_tokens: list[str]  # as the model saw them, with </s> where it stands
    tokens: list[str]  # as the model chose them, with </s>
    attention: np.ndarray | None  # [len(tokens), len(source_tokens)]


class Slots(NamedTuple):
    """What a cache held when a sentence began, in the order of `cache_match`."""

    words: list[str]  # [I], "" of an empty slot
    ages: np.ndarray  # [I] writes of the document since the slot's own: 0 is the latest; -1 empty


class Forced(NamedTuple):
    """What a model says of a given pair."""

    log_prob: float  # natural logarithm, </s> counted
    source_tokens: list[str]
    tokens: list[str]
    word_log_probs: np.ndarray  # [len(tokens)]
    diagnostics: dict[str, np.ndarray]  # by name, [source_steps + len(tokens), ...]
    source_steps: int  # len(source_tokens) where the cell reads the source itself, else 0
    slots: Slots | None = None  # of a cell with a cache


class Lines:
    """Both languages of a model, and how lines pass in and out."""

    def __init__(
        self, languages: Languages, hparams: HParams, lexicon: Mapping[str, str] | None
    ):
        """With a `lexicon`, unknown words of translations are replaced."""
        self.languages, self.hparams, self.lexicon = languages, hparams, lexicon
        self.history_size = hparams_module.history_size(hparams.cell)

    def read(
        self, lines: Iterable[str], documents: Iterable[int] | None = None
    ) -> Iterator[Line]:
        """Encodes lines; a blank one ends a document where there are no `documents`.

        Raises:
          UserError: there are not as many documents as lines.
        """
        numbered = _numbered(lines, documents)
        encoded = ((line, self.source_ids(line), document) for line, document in numbered)
        return self._with_history(encoded, documents is not None)

    def _with_history(
        self, encoded: Iterable[tuple[str, list[int], int]], blank_too: bool
    ) -> Iterator[Line]:
        size = self.history_size
        before: deque = deque([None] * size, maxlen=size)
        last = None
        for text, ids, document in encoded:
            if document != last:
                before.extend([None] * size)
                last = document
            yield Line(text, ids, document, list(before))
            if ids or blank_too:  # a blank line that ends a document is no part of it
                before.append(ids)

    def source_ids(self, line: str) -> list[int]:
        """Ids of a source line, cut to what the model reads."""
        ids = self.languages.source.encode(line)
        cap = self.hparams.src_max_len_infer
        return ids[:cap] if cap else ids

    def source_tokens(self, ids: list[int]) -> list[str]:
        """Tokens as the model sees them."""
        tokens = self.languages.source.vocabulary.decode(ids)
        return [*tokens, EOS] if self.hparams.append_source_eos or not tokens else tokens

    def again(
        self, translations: Sequence[Translation], documents: Iterable[int] | None
    ) -> list[tuple[Line, list[int]]]:
        """Translations as pairs again, token by token; `documents` as in `read`.

        Their text would not do: it need not fall into the same subwords.
        """
        texts = (" ".join(one.source_tokens) for one in translations)
        sides = []
        for side, name in zip(self.languages, ("source_tokens", "tokens")):
            tokens = (without_end(getattr(one, name)) for one in translations)
            sides.append([side.vocabulary.encode(one) for one in tokens])
        numbered = zip(_numbered(texts, documents), sides[0])
        encoded = ((text, ids, document) for (text, document), ids in numbered)
        return list(zip(self._with_history(encoded, documents is not None), sides[1]))

    def blank(self) -> list[Translation]:
        """The translations of a blank line."""
        return [Translation("", 0.0, [], [], None)] * self.hparams.num_translations_per_input

    def n_best(
        self,
        line: Line,
        ids: np.ndarray,
        lengths: np.ndarray,
        scores: np.ndarray,
        alignments: np.ndarray | None,
        *,
        with_attention: bool,
    ) -> list[Translation]:
        """One sentence's hypotheses: ids `[n, T]`, lengths and scores `[n]`, `[n, T, S]`."""
        side, translations = self.languages.target, []
        source_tokens = self.source_tokens(line.ids)
        for rank in range(len(ids)):
            score = float(scores[rank])
            if rank and score == -math.inf:
                break  # there are no more: a tiny vocabulary, or a limit of few words
            words = ids[rank, : lengths[rank]].tolist()
            attention = None
            if alignments is not None:
                attention = alignments[rank, : len(words), : len(source_tokens)]
            tokens = side.vocabulary.decode(words)
            one = Translation(side.decode(words), score, source_tokens, tokens, attention)
            if self.lexicon is not None:
                one = self._without_unknown(one, line.text)
            translations.append(one if with_attention else one._replace(attention=None))
        return translations

    def _without_unknown(self, translation: Translation, line: str) -> Translation:
        """The source words are taken from the line: those that the model saw may be `<unk>`."""
        assert self.lexicon is not None and translation.attention is not None
        words = self.languages.source.segmenter.segment(line)
        if self.hparams.src_max_len_infer:
            words = words[: self.hparams.src_max_len_infer]
        tokens = without_end(translation.tokens)
        replaced = replace_unknown(tokens, translation.attention, words, self.lexicon)
        return translation._replace(text=self.languages.target.segmenter.join(replaced))

    def forced(
        self,
        ids: tuple[list[int], list[int]],
        log_probs: np.ndarray,
        read: Mapping[str, np.ndarray],
        seen: Mapping[str, np.ndarray],
    ) -> Forced:
        """One pair: log-probabilities `[T]`, `read` `[S, ...]` of the source, `seen` `[T, ...]`."""
        source_tokens = self.source_tokens(ids[0])
        tokens = [*self.languages.target.vocabulary.decode(ids[1]), EOS]
        steps, width = len(tokens), len(source_tokens)
        arrays = {name: value[:steps] for name, value in seen.items()}
        for name, value in read.items():
            arrays[name] = np.concatenate([value[:width], arrays[name]])
        if "alignments" in arrays:
            arrays["alignments"] = arrays["alignments"][:, :width]
        words = log_probs[:steps]
        source_steps = width if read else 0
        return Forced(float(words.sum()), source_tokens, tokens, words, arrays, source_steps)

    def slots(self, words: np.ndarray, written: np.ndarray) -> Slots:
        """A document's slots: ids `[I]` and when they were written `[I]`, below 0 where empty."""
        filled = written >= 0
        latest = written.max(initial=0)
        known = self.languages.target.vocabulary.decode(words[filled].tolist())
        texts = iter(known)
        return Slots(
            words=[next(texts) if one else "" for one in filled],
            ages=np.where(filled, latest - written, -1),
        )


def _numbered(
    lines: Iterable[str], documents: Iterable[int] | None
) -> Iterator[tuple[str, int]]:
    """Each line with its document's id."""
    if documents is None:
        number = 0
        for line in lines:
            yield line, number
            number += not line.strip()
        return
    ids: Any = chain(documents, repeat(None))
    count = 0
    for count, (line, document) in enumerate(zip(lines, ids), start=1):
        if document is None:
            raise UserError(f"there is no document id for line {count}: each line needs one")
        yield line, document
    if next(ids) is not None:
        raise UserError(f"there are more document ids than lines, of which there are {count}")


def without_end(tokens: Sequence[str]) -> Sequence[str]:
    """Tokens without the last `</s>`."""
    return tokens[:-1] if tokens and tokens[-1] == EOS else tokens
