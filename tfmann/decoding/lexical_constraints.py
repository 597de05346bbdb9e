"""Phrases that translations must contain: lexically constrained decoding.

The beam search is that of Post & Vilar 2018 (arXiv:1804.06609), section 3, dynamic beam allocation.
To the best tokens of each hypothesis it adds the next token of each phrase that the hypothesis
lacks; it shares the beam among hypotheses with more and with fewer tokens of the phrases
(`beam_banks`); and a hypothesis ends only if it has every phrase. Three things differ. Phrases may
overlap, because a token counts for every phrase that it belongs to. A phrase is matched at every
token at which it may begin (shift-and, Baeza-Yates & Gonnet 1992), not at the first alone. And a
hypothesis without room for the missing phrases, one after another before its limit, is dropped, so
that no translation lacks one.

A phrase consists of whole words: `wo@@ man` does not contain the phrase `man`.

Letters: B sentences, K hypotheses, C continuations of each, M live hypotheses, V tokens of the
vocabulary, P phrases of at most L tokens, n tokens of a sentence's phrases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.data.vocab import EOS_ID

NO_TOKEN = -1  # in place of an id

SIGNATURE = tf.TensorSpec([None, None, None], tf.int32)


class Phrases(NamedTuple):
    """The phrases of B sentences, in ids without `<s>`, `</s>` and `<unk>`.

    The first token of a phrase does not continue a word, and its last token ends one.
    """

    ids: tf.Tensor  # [B, P, L] filled with NO_TOKEN, as is a phrase that a sentence does not have
    # [V] bool, or None where no token is a part of a word
    is_open: tf.Tensor | None = None  # the next token belongs to the same word
    joins: tf.Tensor | None = None  # it belongs to the word of the token before it

    @property
    def lengths(self) -> tf.Tensor:
        """`[B, P]`."""
        return tf.reduce_sum(tf.cast(tf.not_equal(self.ids, NO_TOKEN), tf.int32), axis=-1)

    @property
    def total(self) -> tf.Tensor:
        """The n of each sentence `[B]`."""
        return tf.reduce_sum(self.lengths, axis=-1)

    def of_sentences(self, sentences: tf.Tensor) -> Phrases:
        """Returns the phrases of some of the sentences."""
        return self._replace(ids=tf.gather(self.ids, sentences))


class Progress(NamedTuple):
    """Phrases found in hypotheses so far; the first axes are `[B, K]`, or `[B, K, C]`."""

    matched: tf.Tensor  # [..., P, L] bool: the last j + 1 tokens are the first j + 1 of the phrase
    included: tf.Tensor  # [..., P] bool: the phrase ends before the last token
    is_open: tf.Tensor  # [...] bool: the next token belongs to the word of the last


def pad_phrases(phrases: Sequence[Sequence[Sequence[int]]]) -> np.ndarray:
    """Returns the ids of the phrases of B sentences `[B, P, L]`; a sentence may have none."""
    most = max(map(len, phrases), default=0)
    longest = max((len(ids) for sentence in phrases for ids in sentence), default=0)
    padded = np.full([len(phrases), most, longest], NO_TOKEN, np.int32)
    for row, sentence in enumerate(phrases):
        for number, ids in enumerate(sentence):
            padded[row, number, : len(ids)] = ids
    return padded


def first_progress(phrases: Phrases, beam_width: int) -> Progress:
    """Returns the progress of `[B, K]` hypotheses without tokens."""
    matched = tf.zeros_like(phrases.ids, tf.bool)[:, None]
    included = tf.equal(phrases.lengths, 0)[:, None]  # padding is never missing
    return Progress(
        matched=tf.repeat(matched, beam_width, axis=1),
        included=tf.repeat(included, beam_width, axis=1),
        is_open=tf.zeros([tf.shape(phrases.ids)[0], beam_width], tf.bool),
    )


def advance(phrases: Phrases, progress: Progress, tokens: tf.Tensor) -> Progress:
    """Returns the progress `[B, K, C, ...]` after each of the continuations `[B, K, C]`.

    A match of j tokens becomes one of j + 1 if the token is the phrase's next; a match of one token
    begins wherever a word begins. A phrase whose last word the token makes longer is not included.
    """
    begins = tf.broadcast_to(
        ~progress.is_open[..., None, None], tf.shape(progress.matched[..., :1])
    )
    before = tf.concat([begins, progress.matched[..., :-1]], axis=-1)
    is_same = tf.equal(tokens[..., None, None], _align(phrases.ids, 2))
    included = _ends_here(phrases, progress)[:, :, None]
    if phrases.joins is not None:
        included &= ~tf.gather(phrases.joins, tokens)[..., None]
    else:
        included = tf.broadcast_to(included, tf.shape(is_same)[:-1])
    is_open = tf.zeros_like(tokens, tf.bool)
    if phrases.is_open is not None:
        is_open = tf.gather(phrases.is_open, tokens)
    return Progress(is_same & before[:, :, None], progress.included[:, :, None] | included, is_open)


def is_complete(phrases: Phrases, progress: Progress) -> tf.Tensor:
    """Returns which hypotheses `[...]` have every phrase, and so may end."""
    return tf.reduce_all(_is_present(phrases, progress), axis=-1)


def tokens_present(phrases: Phrases, progress: Progress) -> tf.Tensor:
    """Returns the bank `[...]`: tokens of complete phrases, and of one incomplete at the end.

    Of several incomplete phrases the one with the most tokens counts, because the next token rarely
    continues two of them.
    """
    is_present = _is_present(phrases, progress)
    complete = tf.reduce_sum(tf.where(is_present, _lengths(phrases, progress), 0), axis=-1)
    return complete + _largest(tf.where(is_present, 0, _longest_match(progress)))


def tokens_left(phrases: Phrases, progress: Progress) -> tf.Tensor:
    """Returns how many tokens are enough `[...]` to continue one phrase and append the others.

    Before a phrase begins, an open word ends by one more token.
    """
    lengths, is_present = _lengths(phrases, progress), _is_present(phrases, progress)
    lacking = tf.reduce_sum(tf.where(is_present, 0, lengths), axis=-1)
    matched, lost = _continued(phrases, progress)
    extra = lost - matched
    if phrases.is_open is not None:
        extra = tf.where(matched > 0, extra, tf.cast(progress.is_open[..., None], tf.int32))
    least = tf.reduce_min(tf.where(is_present, tf.int32.max, extra), axis=-1)
    return tf.where(lacking > 0, lacking + least, 0)


def next_tokens(phrases: Phrases, progress: Progress) -> tf.Tensor:
    """Returns the next token of each phrase `[..., P]`; NO_TOKEN where the phrase is complete."""
    following = _ids_at(phrases, _continued(phrases, progress)[0])
    return tf.where(_is_present(phrases, progress), NO_TOKEN, following)


def add_tokens(
    best: tuple[tf.Tensor, tf.Tensor], wanted: tf.Tensor, logits: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Adds wanted tokens to the best ones of each hypothesis, if they are not among them.

    Args:
      best: logits and ids `[M, C]`; a token with -inf may not be chosen.
      wanted: ids `[M, W]`, or NO_TOKEN.
      logits: `[M, V]` of all tokens.

    Returns:
      logits and ids `[M, C + W]`.
    """
    values, ids = best
    is_there = tf.equal(wanted[..., None], ids[:, None]) & (values > -float("inf"))[:, None]
    columns = tf.range(tf.shape(wanted)[1])
    is_repeated = tf.equal(wanted[..., None], wanted[:, None]) & (columns[None] < columns[:, None])
    is_new = ~tf.reduce_any(is_there, axis=-1) & ~tf.reduce_any(is_repeated, axis=-1)
    is_new &= tf.not_equal(wanted, NO_TOKEN)
    added = tf.gather(logits, tf.maximum(wanted, 0), batch_dims=1)
    values = tf.concat([values, tf.where(is_new, added, -float("inf"))], axis=-1)
    return values, tf.concat([ids, tf.where(is_new, wanted, EOS_ID)], axis=-1)


def _is_present(phrases: Phrases, progress: Progress) -> tf.Tensor:
    """Returns which phrases `[..., P]` the hypotheses have, if no token follows."""
    return progress.included | _ends_here(phrases, progress)


def _ends_here(phrases: Phrases, progress: Progress) -> tf.Tensor:
    """Returns which phrases `[..., P]` end at the last token."""
    length = tf.shape(phrases.ids)[-1]
    last = tf.one_hot(phrases.lengths - 1, length, on_value=True, off_value=False)
    last = _align(last, len(progress.included.shape) - 2)
    return tf.reduce_any(progress.matched & last, axis=-1)


def _longest_match(progress: Progress) -> tf.Tensor:
    """Returns how many tokens of each phrase `[..., P]` the hypotheses end in."""
    counts = tf.range(1, tf.shape(progress.matched)[-1] + 1)
    return _largest(tf.where(progress.matched, counts, 0))


def _continued(phrases: Phrases, progress: Progress) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns how many tokens of each phrase to continue `[..., P]`, and what that loses.

    A continuation that joins the last word costs the phrases that end there: `▁man` where `▁man
    kind` is continued. Where they are longer than the match, the phrase begins anew instead.
    """
    matched = _longest_match(progress)
    if phrases.joins is None:
        return matched, tf.zeros_like(matched)
    last = _ends_here(phrases, progress) & ~progress.included
    ending = tf.reduce_sum(tf.where(last, _lengths(phrases, progress), 0), axis=-1)[..., None]
    joins = tf.gather(phrases.joins, tf.maximum(_ids_at(phrases, matched), 0))
    lost = tf.where(joins, ending, 0)
    begins_anew = lost > matched
    return tf.where(begins_anew, 0, matched), tf.where(begins_anew, 0, lost)


def _ids_at(phrases: Phrases, places: tf.Tensor) -> tf.Tensor:
    """Returns the ids `[..., P]` at places of the phrases; NO_TOKEN after a phrase's last."""
    ids = _align(phrases.ids, len(places.shape) - 2)
    is_place = tf.one_hot(places, tf.shape(ids)[-1], on_value=True, off_value=False)
    return _largest(tf.where(is_place, ids, NO_TOKEN), NO_TOKEN)


def _lengths(phrases: Phrases, progress: Progress) -> tf.Tensor:
    """Returns the lengths of the phrases `[B, 1, ..., P]`."""
    return _align(phrases.lengths, len(progress.included.shape) - 2)


def _largest(values: tf.Tensor, least: int = 0) -> tf.Tensor:
    """Returns the greatest of the last axis, and `least` if that is empty."""
    return tf.maximum(tf.reduce_max(values, axis=-1), least)


def _align(values: tf.Tensor, axes: int) -> tf.Tensor:
    """Puts axes of 1 after the first of `[B, ...]`, for hypotheses and their continuations."""
    for _ in range(axes):
        values = tf.expand_dims(values, 1)
    return values
