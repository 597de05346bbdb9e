"""The segmenters of `corpus.subword` as TensorFlow operations: the same tokens, the same text.

Tokens are strings, ragged: a row a line. Text is UTF-8; what is not may come out otherwise.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfmann.corpus.subword import (
    SEPARATOR,
    BpeSegmenter,
    Segmenter,
    SentencePieceSegmenter,
    WordSegmenter,
)

_NO_MERGE = tf.int64.max
_WORD_END = "</w>"  # subword-nmt's mark of a word's last symbol


class Words(tf.Module):
    """As `WordSegmenter`."""

    def __init__(self, segmenter: WordSegmenter):
        """Needs nothing of it."""
        super().__init__()
        del segmenter

    def segment(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Lines `[B]` to words."""
        return _words(lines)

    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """Words to lines `[B]`."""
        return tf.strings.reduce_join(tokens, axis=-1, separator=" ")


class BytePairs(tf.Module):
    """As `BpeSegmenter`: arXiv 1508.07909, algorithm 1, over the words of all lines at once."""

    def __init__(self, segmenter: BpeSegmenter):
        """Takes its merge operations."""
        super().__init__()
        self._ranks: Any = None
        if segmenter.merges:
            self._ranks = _table(
                [f"{left} {right}" for left, right in segmenter.merges],  # no symbol has a space
                tf.constant(list(segmenter.merges.values()), tf.int64),
                _NO_MERGE,
            )
        self._end_apart = segmenter.end_apart

    def segment(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Lines `[B]` to units."""
        words = _words(lines)
        if self._ranks is None:
            return words
        units = self._cut(words.values)
        return words.with_values(units).merge_dims(1, 2)

    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """Units to lines `[B]`."""
        text = tf.strings.reduce_join(tokens, axis=-1, separator=" ")
        return tf.strings.regex_replace(text, f"{SEPARATOR} |{SEPARATOR} ?$", "")

    def _cut(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Words `[N]` to their units, `[N, ...]`."""
        symbols, owners = self._symbols(words)

        def more(symbols: tf.Tensor, owners: tf.Tensor, ranks: tf.Tensor) -> tf.Tensor:
            del symbols, owners
            return tf.reduce_any(ranks != _NO_MERGE)

        def merge(symbols: tf.Tensor, owners: tf.Tensor, ranks: tf.Tensor) -> tuple:
            best = tf.gather(tf.math.segment_min(ranks, owners), owners)
            chosen = _leftmost((ranks == best) & (ranks != _NO_MERGE))
            joined = tf.strings.join([symbols, tf.roll(symbols, -1, axis=0)])
            kept = ~tf.roll(chosen, 1, axis=0)  # the last symbol of all is never chosen
            symbols = tf.boolean_mask(tf.where(chosen, joined, symbols), kept)
            owners = tf.boolean_mask(owners, kept)
            return symbols, owners, self._pair_ranks(symbols, owners)

        open_end = tf.TensorShape([None])
        symbols, owners, _ = tf.while_loop(
            more,
            merge,
            (symbols, owners, self._pair_ranks(symbols, owners)),
            shape_invariants=(open_end, open_end, open_end),
        )
        return _marked(symbols, owners, tf.size(words))

    def _symbols(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The characters of all words `[P]`, ends marked, and the word `[P]` of each."""
        split = tf.strings.split(tf.strings.regex_replace(words, "(?s)(.)", "\\1 "), " ")
        characters = tf.ragged.boolean_mask(split, split != "")
        if self._end_apart:
            ends = tf.fill([tf.size(words), 1], _WORD_END)
            characters = tf.concat([characters, ends], axis=1)
            return characters.values, characters.value_rowids()
        symbols, owners = characters.values, characters.value_rowids()
        marked = tf.where(_last(owners), tf.strings.join([symbols, _WORD_END]), symbols)
        return marked, owners

    def _pair_ranks(self, symbols: tf.Tensor, owners: tf.Tensor) -> tf.Tensor:
        """The rank `[P]` of each symbol with the next one of its word, if they may be merged."""
        pairs = tf.strings.join([symbols, tf.roll(symbols, -1, axis=0)], " ")
        return tf.where(_last(owners), _NO_MERGE, self._ranks.lookup(pairs))


class Pieces(tf.Module):
    """As `SentencePieceSegmenter`, by the same operations of tensorflow_text."""

    def __init__(self, segmenter: SentencePieceSegmenter):
        """Takes its model."""
        super().__init__()
        self._tokenizer = segmenter.tokenizer

    def segment(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Lines `[B]` to pieces."""
        return self._tokenizer.tokenize(lines)

    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """Pieces to lines `[B]`."""
        return self._tokenizer.detokenize(tokens)


def in_graph(segmenter: Segmenter) -> Words | BytePairs | Pieces:
    """The same segmenter as TensorFlow operations."""
    if isinstance(segmenter, BpeSegmenter):
        return BytePairs(segmenter)
    if isinstance(segmenter, SentencePieceSegmenter):
        return Pieces(segmenter)
    assert isinstance(segmenter, WordSegmenter)
    return Words(segmenter)


def _table(keys: Any, values: tf.Tensor, default: Any) -> tf.lookup.StaticHashTable:
    content = tf.lookup.KeyValueTensorInitializer(tf.constant(keys, tf.string), values)
    return tf.lookup.StaticHashTable(content, default)


def _words(lines: tf.Tensor) -> tf.RaggedTensor:
    """What spaces, tabs and line ends separate, and no other white space."""
    split = tf.strings.split(tf.strings.regex_replace(lines, "[ \t\r\n]", " "), " ")
    return tf.ragged.boolean_mask(split, split != "")


def _last(owners: tf.Tensor) -> tf.Tensor:
    """Whether a symbol `[P]` is the last of its word; `owners` are in order."""
    return tf.concat([owners[1:] != owners[:-1], tf.fill(tf.shape(owners[:1]), True)], axis=0)


def _leftmost(found: tf.Tensor) -> tf.Tensor:
    """Of pairs `[P]` that overlap, as the two of `x x x`, the first, the third ..."""
    places = tf.range(tf.size(found))
    runs = tf.cumsum(tf.cast(~found, tf.int32))  # each begins at a place where nothing was found
    begins = tf.concat([[-1], tf.math.segment_min(places, runs)[1:]], axis=0)
    return found & ((places - tf.gather(begins, runs)) % 2 == 1)


def _marked(symbols: tf.Tensor, owners: tf.Tensor, count: tf.Tensor) -> tf.RaggedTensor:
    """Symbols as the text shows them: without the mark of the end, with that of a joint."""
    bare = tf.strings.regex_replace(symbols, f"{_WORD_END}$", "")
    symbols = tf.where(_last(owners), bare, symbols)
    real = symbols != ""  # the mark may have stood alone
    symbols, owners = tf.boolean_mask(symbols, real), tf.boolean_mask(owners, real)
    units = tf.where(_last(owners), symbols, tf.strings.join([symbols, SEPARATOR]))
    return tf.RaggedTensor.from_value_rowids(units, owners, nrows=tf.cast(count, tf.int64))
