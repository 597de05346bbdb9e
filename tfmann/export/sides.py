"""Both sides' text as ids and back, as `corpus.text.Side` has them, in TensorFlow operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from tfmann.corpus.text import Side
from tfmann.corpus.vocab import EOS_ID, UNK_ID
from tfmann.export.segmentation import in_graph
from tfmann.hparams import HParams


class Asked(NamedTuple):
    """Lines as a model takes them."""

    blank: tf.Tensor  # [B] bool: nothing is translated
    words: tf.RaggedTensor  # [B, ...] as they stand in the text
    ids: tf.Tensor  # [B, S] int32
    length: tf.Tensor  # [B] int32, at least 1
    tokens: tf.Tensor  # [B, S] as the model sees them, "" after them and of a blank line


class Source(tf.Module):
    """Lines to ids."""

    def __init__(self, side: Side, hparams: HParams):
        """Puts the vocabulary into a table."""
        super().__init__()
        self._segmenter = in_graph(side.segmenter)
        self._tokens = tf.constant(side.vocabulary.tokens)
        ids = tf.range(len(side.vocabulary), dtype=tf.int64)
        self._ids = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(self._tokens, ids), UNK_ID
        )
        self._cap = hparams.src_max_len_infer
        self._append_eos = int(hparams.append_source_eos)

    def read(self, lines: tf.Tensor) -> Asked:
        """Cuts, looks up and pads lines `[B]`, as `Lines.read` and `pad_sources` do."""
        words = self._segmenter.segment(lines)
        if self._cap:
            words = words[:, : self._cap]
        found = tf.cast(self._ids.lookup(words.values), tf.int32)
        # a special symbol written out in the text is <unk>
        ids = words.with_values(tf.where(found > EOS_ID, found, UNK_ID))
        count = tf.cast(words.row_lengths(), tf.int32)
        length = tf.maximum(count + self._append_eos, 1)
        padded = pad_to(ids.to_tensor(EOS_ID), tf.reduce_max(length))
        real = tf.sequence_mask(length, tf.shape(padded)[1]) & (count > 0)[:, None]
        tokens = tf.where(real, tf.gather(self._tokens, padded), "")
        return Asked(count == 0, words, padded, length, tokens)


class Target(tf.Module):
    """Ids to tokens and text."""

    def __init__(self, side: Side, lexicon: Mapping[str, str] | None):
        """With a `lexicon`, unknown words are replaced (`decoding.replacement`)."""
        super().__init__()
        self._segmenter = in_graph(side.segmenter)
        self._tokens = tf.constant(side.vocabulary.tokens)
        self._replaces = lexicon is not None
        self._lexicon = None
        if lexicon:
            content = tf.lookup.KeyValueTensorInitializer(
                tf.constant(list(lexicon)), tf.constant(list(lexicon.values()))
            )
            self._lexicon = tf.lookup.StaticHashTable(content, "")

    def tokens(self, ids: tf.Tensor) -> tf.Tensor:
        """The token of each id."""
        return tf.gather(self._tokens, ids)

    def text(
        self, ids: tf.Tensor, real: tf.Tensor, asked: Asked, alignments: tf.Tensor | None
    ) -> tf.Tensor:
        """The lines `[B, n]` that ids spell.

        Args:
          ids: `[B, n, T]`.
          real: `[B, n, T]` bool, the words: neither padding nor `</s>` are.
          asked: their sources.
          alignments: `[B, n, T, S]` where unknown words are replaced.
        """
        tokens = self.tokens(ids)
        if self._replaces:
            replaced, found = self._replacements(asked, alignments)
            tokens = tf.where((ids == UNK_ID) & found, replaced, tokens)
        width = tf.shape(ids)[2]
        rows = tf.ragged.boolean_mask(
            tf.reshape(tokens, [-1, width]), tf.reshape(real, [-1, width])
        )
        return tf.reshape(self._segmenter.join(rows), tf.shape(ids)[:2])

    def _replacements(self, asked: Asked, alignments: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """What stands for an unknown word at each step `[B, n, T]`, and whether anything does."""
        words = asked.words.to_tensor("")
        weights = alignments[..., : tf.shape(words)[1]]  # without that of a batch's longest </s>
        there = tf.sequence_mask(asked.words.row_lengths(), tf.shape(words)[1])
        # One column more, of no weight: a batch of blank lines has no words at all.
        words = tf.pad(words, [[0, 0], [0, 1]])
        weights = tf.where(there[:, None, None], weights, 0.0)
        weights = tf.pad(weights, [[0, 0], [0, 0], [0, 0], [0, 1]])
        places = tf.argmax(weights, axis=-1)  # [B, n, T]
        rows = tf.range(tf.shape(words)[0], dtype=tf.int64)[:, None, None]
        rows = tf.broadcast_to(rows, tf.shape(places))
        chosen = tf.gather_nd(words, tf.stack([rows, places], axis=-1))
        if self._lexicon is not None:
            known = self._lexicon.lookup(chosen)
            chosen = tf.where(known == "", chosen, known)
        return chosen, tf.reduce_max(weights, axis=-1) > 0


def pad_to(ids: tf.Tensor, width: tf.Tensor) -> tf.Tensor:
    """Ids `[B, S]` with `</s>` up to `width`."""
    more = width - tf.shape(ids)[-1]
    before = [[0, 0]] * (ids.shape.rank - 1)
    return tf.pad(ids, [*before, [0, more]], constant_values=EOS_ID)
