"""Text as ids and back, as in `data.text_encoder`, in TensorFlow operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from tfmann.config import HParams
from tfmann.data.text_encoder import TextEncoder
from tfmann.data.vocab import EOS_ID, UNK_ID
from tfmann.export.graph_segmentation import graph_segmenter

# a line without words for `str.strip`: the characters with `str.isspace`, in RE2's syntax
_BLANK = (
    r"[\x09-\x0d\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}"
    r"\x{205f}\x{3000}]*"
)


class EncodedLines(NamedTuple):
    """Lines as a model reads them."""

    blank: tf.Tensor  # [B] bool: a line without words
    words: tf.RaggedTensor  # [B, ...] as in the text
    ids: tf.Tensor  # [B, S] int32
    length: tf.Tensor  # [B] int32, at least 1
    tokens: tf.Tensor  # [B, S] as the model reads them, padded with ""; all "" for a blank line


class SourceText(tf.Module):
    """Encodes source lines."""

    def __init__(self, encoder: TextEncoder, hparams: HParams):
        """Builds a lookup table of the vocabulary."""
        super().__init__()
        self._segmenter = graph_segmenter(encoder.segmenter)
        self._tokens = tf.constant(encoder.vocabulary.tokens)
        ids = tf.range(len(encoder.vocabulary), dtype=tf.int64)
        self._ids = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(self._tokens, ids), UNK_ID
        )
        self._max_words = hparams.src_max_len_infer
        self._append_eos = int(hparams.append_source_eos)

    def encode(self, lines: tf.Tensor) -> EncodedLines:
        """Segments, looks up and pads lines `[B]`, as `batching.pad_sources` does.

        A line of white space alone has no words, as in `TextProcessor.source_ids`.
        """
        lines = tf.where(tf.strings.regex_full_match(lines, _BLANK), "", lines)
        words = self._segmenter.segment(lines)
        if self._max_words:
            words = words[:, : self._max_words]
        looked_up = tf.cast(self._ids.lookup(words.values), tf.int32)
        # a special symbol in the text is <unk>
        ids = words.with_values(tf.where(looked_up > EOS_ID, looked_up, UNK_ID))
        count = tf.cast(words.row_lengths(), tf.int32)
        length = tf.maximum(count + self._append_eos, 1)
        padded = pad_to(ids.to_tensor(EOS_ID), tf.reduce_max(length))
        real = tf.sequence_mask(length, tf.shape(padded)[1]) & (count > 0)[:, None]
        tokens = tf.where(real, tf.gather(self._tokens, padded), "")
        return EncodedLines(count == 0, words, padded, length, tokens)


class TargetText(tf.Module):
    """Decodes target ids."""

    def __init__(self, encoder: TextEncoder, lexicon: Mapping[str, str] | None):
        """With a `lexicon`, unknown words are replaced (`decoding.unk_replacement`)."""
        super().__init__()
        self._segmenter = graph_segmenter(encoder.segmenter)
        self._tokens = tf.constant(encoder.vocabulary.tokens)
        self._replaces = lexicon is not None
        self._lexicon = None
        if lexicon:
            content = tf.lookup.KeyValueTensorInitializer(
                tf.constant(list(lexicon)), tf.constant(list(lexicon.values()))
            )
            self._lexicon = tf.lookup.StaticHashTable(content, "")

    def tokens(self, ids: tf.Tensor) -> tf.Tensor:
        """Returns the token of each id."""
        return tf.gather(self._tokens, ids)

    def text(
        self, ids: tf.Tensor, real: tf.Tensor, source: EncodedLines, alignments: tf.Tensor | None
    ) -> tf.Tensor:
        """Returns the lines `[B, n]` that the ids spell.

        Args:
          ids: `[B, n, T]`.
          real: `[B, n, T]` bool, False for padding and `</s>`.
          source: their source lines.
          alignments: `[B, n, T, S]`, needed if unknown words are replaced.
        """
        tokens = self.tokens(ids)
        if self._replaces:
            replaced, exists = self._replacements(source, alignments)
            tokens = tf.where((ids == UNK_ID) & exists, replaced, tokens)
        width = tf.shape(ids)[2]
        rows = tf.ragged.boolean_mask(
            tf.reshape(tokens, [-1, width]), tf.reshape(real, [-1, width])
        )
        return tf.reshape(self._segmenter.join(rows), tf.shape(ids)[:2])

    def _replacements(
        self, source: EncodedLines, alignments: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns replacements of unknown words `[B, n, T]`, and whether there is one."""
        words = source.words.to_tensor("")
        weights = alignments[..., : tf.shape(words)[1]]  # without the column of </s>
        is_word = tf.sequence_mask(source.words.row_lengths(), tf.shape(words)[1])
        # One more column, of weight 0, because a batch of blank lines has no words at all.
        words = tf.pad(words, [[0, 0], [0, 1]])
        weights = tf.where(is_word[:, None, None], weights, 0.0)
        weights = tf.pad(weights, [[0, 0], [0, 0], [0, 0], [0, 1]])
        columns = tf.argmax(weights, axis=-1)  # [B, n, T]
        rows = tf.range(tf.shape(words)[0], dtype=tf.int64)[:, None, None]
        rows = tf.broadcast_to(rows, tf.shape(columns))
        chosen = tf.gather_nd(words, tf.stack([rows, columns], axis=-1))
        if self._lexicon is not None:
            translation = self._lexicon.lookup(chosen)
            chosen = tf.where(translation == "", chosen, translation)
        return chosen, tf.reduce_max(weights, axis=-1) > 0


def pad_to(ids: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Pads ids `[..., S]` with `</s>` to `width`."""
    missing = width - tf.shape(ids)[-1]
    before = [[0, 0]] * (ids.shape.rank - 1)
    return tf.pad(ids, [*before, [0, missing]], constant_values=EOS_ID)
