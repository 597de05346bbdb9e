"""The segmenters of `data.subword` as TensorFlow operations, with the same results for UTF-8.

Tokens are ragged strings, one row for each line.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfmann.data.subword import (
    SEPARATOR,
    BpeSegmenter,
    Segmenter,
    SentencePieceSegmenter,
    WordSegmenter,
)

_NO_MERGE = tf.int64.max
_WORD_END = "</w>"  # subword-nmt's mark of a word's last symbol


class GraphWords(tf.Module):
    """`WordSegmenter` in TensorFlow operations; it has no parameters."""

    def segment(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Splits lines `[B]` into tokens."""
        return _words(lines)

    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """Joins tokens to lines `[B]`."""
        return tf.strings.reduce_join(tokens, axis=-1, separator=" ")


class GraphBpe(tf.Module):
    """`BpeSegmenter` in a graph: arXiv 1508.07909, algorithm 1, on all words at once."""

    def __init__(self, segmenter: BpeSegmenter):
        """Takes its merge operations."""
        super().__init__()
        self._ranks: Any = None
        if segmenter.merges:
            pairs = [f"{left} {right}" for left, right in segmenter.merges]  # no symbol has a space
            ranks = tf.constant(list(segmenter.merges.values()), tf.int64)
            content = tf.lookup.KeyValueTensorInitializer(tf.constant(pairs), ranks)
            self._ranks = tf.lookup.StaticHashTable(content, _NO_MERGE)
        self._end_apart = segmenter.end_apart

    def segment(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Splits lines `[B]` into tokens."""
        words = _words(lines)
        if self._ranks is None:
            return words
        units = self._cut(words.values)
        return words.with_values(units).merge_dims(1, 2)

    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """Joins tokens to lines `[B]`."""
        text = tf.strings.reduce_join(tokens, axis=-1, separator=" ")
        return tf.strings.regex_replace(text, f"{SEPARATOR} |{SEPARATOR} ?$", "")

    def _cut(self, words: tf.Tensor) -> tf.RaggedTensor:
        """Segments words `[N]` into units `[N, ...]`."""
        symbols, owners = self._symbols(words)

        def can_merge(symbols: tf.Tensor, owners: tf.Tensor, ranks: tf.Tensor) -> tf.Tensor:
            del symbols, owners
            return tf.reduce_any(ranks != _NO_MERGE)

        def merge(symbols: tf.Tensor, owners: tf.Tensor, ranks: tf.Tensor) -> tuple:
            best = tf.gather(tf.math.segment_min(ranks, owners), owners)
            chosen = _leftmost((ranks == best) & (ranks != _NO_MERGE))
            joined = tf.strings.join([symbols, tf.roll(symbols, -1, axis=0)])
            remains = ~tf.roll(chosen, 1, axis=0)  # the very last symbol is never chosen
            symbols = tf.boolean_mask(tf.where(chosen, joined, symbols), remains)
            owners = tf.boolean_mask(owners, remains)
            return symbols, owners, self._pair_ranks(symbols, owners)

        any_length = tf.TensorShape([None])
        symbols, owners, _ = tf.while_loop(
            can_merge,
            merge,
            (symbols, owners, self._pair_ranks(symbols, owners)),
            shape_invariants=(any_length, any_length, any_length),
        )
        return _marked(symbols, owners, tf.size(words))

    def _symbols(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the characters of all words `[P]`, ends marked, and each one's word."""
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
        """Returns the rank `[P]` of merging each symbol with the next one of its word."""
        pairs = tf.strings.join([symbols, tf.roll(symbols, -1, axis=0)], " ")
        return tf.where(_last(owners), _NO_MERGE, self._ranks.lookup(pairs))


class GraphSentencePiece(tf.Module):
    """`SentencePieceSegmenter` in a graph, by the same operations of tensorflow_text."""

    def __init__(self, segmenter: SentencePieceSegmenter):
        """Takes its model."""
        super().__init__()
        self._tokenizer = segmenter.tokenizer

    def segment(self, lines: tf.Tensor) -> tf.RaggedTensor:
        """Splits lines `[B]` into tokens."""
        return self._tokenizer.tokenize(lines)

    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """Joins tokens to lines `[B]`."""
        return tf.strings.regex_replace(self._tokenizer.detokenize(tokens), "[\r\n]", " ")


def graph_segmenter(segmenter: Segmenter) -> GraphWords | GraphBpe | GraphSentencePiece:
    """Returns the same segmenter as TensorFlow operations."""
    if isinstance(segmenter, BpeSegmenter):
        return GraphBpe(segmenter)
    if isinstance(segmenter, SentencePieceSegmenter):
        return GraphSentencePiece(segmenter)
    assert isinstance(segmenter, WordSegmenter)
    return GraphWords()


def _words(lines: tf.Tensor) -> tf.RaggedTensor:
    """Splits lines at spaces, tabs and line ends, and at no other white space."""
    split = tf.strings.split(tf.strings.regex_replace(lines, "[ \t\r\n]", " "), " ")
    return tf.ragged.boolean_mask(split, split != "")


def _last(owners: tf.Tensor) -> tf.Tensor:
    """Returns for each symbol `[P]` whether it is the last of its word; `owners` are ascending."""
    return tf.concat([owners[1:] != owners[:-1], tf.fill(tf.shape(owners[:1]), True)], axis=0)


def _leftmost(matches: tf.Tensor) -> tf.Tensor:
    """Selects of pairs `[P]` that overlap, as the two in `x x x`, the first, the third ..."""
    positions = tf.range(tf.size(matches))
    runs = tf.cumsum(tf.cast(~matches, tf.int32))  # each begins at a position without a match
    starts = tf.concat([[-1], tf.math.segment_min(positions, runs)[1:]], axis=0)
    return matches & ((positions - tf.gather(starts, runs)) % 2 == 1)


def _marked(symbols: tf.Tensor, owners: tf.Tensor, count: tf.Tensor) -> tf.RaggedTensor:
    """Returns units as in segmented text: without end marks, and with separators inside words."""
    bare = tf.strings.regex_replace(symbols, f"{_WORD_END}$", "")
    symbols = tf.where(_last(owners), bare, symbols)
    real = symbols != ""  # the mark may have been a symbol of its own
    symbols, owners = tf.boolean_mask(symbols, real), tf.boolean_mask(owners, real)
    units = tf.where(_last(owners), symbols, tf.strings.join([symbols, SEPARATOR]))
    return tf.RaggedTensor.from_value_rowids(units, owners, nrows=tf.cast(count, tf.int64))
