"""The best next words of each hypothesis of a beam search."""

from __future__ import annotations

from typing import Callable

import tensorflow as tf

from tfmann.data.vocab import EOS_ID, SOS_ID
from tfmann.decoding.beam import Beam, Continuations, StepRules
from tfmann.decoding.lexical_constraints import NO_TOKEN, Phrases, add_tokens, next_tokens
from tfmann.decoding.restrictions import UNRESTRICTED, forbid
from tfmann.decoding.target_prefix import ANY_WORD

BLOCK = 64  # words; `top_words` is fast where a row of logits is a multiple of it long


def best_continuations(
    project: Callable[[tf.Tensor], tf.Tensor],
    readout: tf.Tensor,
    beam: Beam,
    vocabulary_size: int,
    rules: StepRules,
) -> Continuations:
    """Finds the best C = min(K + 1, V - 1) words after each hypothesis; projects only live ones.

    C is one more than K, because `</s>` alone has a length penalty of its own: it may be among the
    K most probable words and yet not among the K best. `<s>` is never chosen.

    Args:
      project: `[M, R]` to logits `[M, V]`, or more columns, of impossible words.
      readout: `[B*K, R]`, of all hypotheses.
      beam: the hypotheses so far.
      vocabulary_size: V.
      rules: what may be chosen; the next tokens of phrases are added to the C words.
    """
    width = min(beam.log_probs.shape[1] + 1, vocabulary_size - 1)
    live = tf.where(tf.reshape(~beam.finished, [-1]))  # [M, 1]
    logits = project(tf.gather(readout, live[:, 0]))
    values, ids, normaliser = _best_words(logits, live, beam, width, vocabulary_size, rules)
    sentences = live // beam.log_probs.shape[1]  # [M, 1]
    if rules.widths is not None:
        is_counted = tf.range(width) <= tf.gather(rules.widths, sentences)
        values = tf.where(is_counted, values, -float("inf"))
    if rules.phrases is not None:
        required = _required_tokens(logits, live, beam, rules, rules.phrases)
        values, ids = add_tokens((values, ids), required, logits)
        width += tf.shape(required)[1]
    impossible = tf.fill(tf.shape(values[:, 1:]), -float("inf"))
    ending = tf.concat([logits[:, EOS_ID : EOS_ID + 1] - normaliser, impossible], axis=-1)
    at_limit = tf.gather(rules.time >= rules.limits - 1, sentences)
    log_probs = tf.where(at_limit, ending, values - normaliser)
    ids = tf.where(at_limit, EOS_ID, ids)
    if rules.given_words is not None:
        words = tf.gather(rules.given_words, sentences)
        is_forced = tf.not_equal(words, ANY_WORD)
        logit = tf.gather(logits, tf.where(is_forced, words, EOS_ID), batch_dims=1)
        alone = tf.concat([logit - normaliser, impossible], axis=-1)
        log_probs = tf.where(is_forced, alone, log_probs)
        ids = tf.where(is_forced, words, ids)
    return _of_all(log_probs, ids, live, beam, width)


def _of_all(
    log_probs: tf.Tensor, ids: tf.Tensor, live: tf.Tensor, beam: Beam, width: int | tf.Tensor
) -> Continuations:
    """Adds finished hypotheses, free to end, to the C = `width` continuations of the live ones."""
    rows = tf.size(beam.finished)
    free = tf.concat([tf.zeros([rows, 1]), tf.fill([rows, width - 1], -float("inf"))], axis=-1)
    shape = [tf.shape(beam.finished)[0], beam.log_probs.shape[1], width]
    return Continuations(
        log_probs=tf.reshape(tf.tensor_scatter_nd_update(free, live, log_probs), shape),
        ids=tf.reshape(
            tf.tensor_scatter_nd_update(tf.fill([rows, width], EOS_ID), live, ids), shape
        ),
    )


def _best_words(
    logits: tf.Tensor,
    live: tf.Tensor,
    beam: Beam,
    count: int,
    vocabulary_size: int,
    rules: StepRules,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Finds the best allowed words: logits and ids `[M, count]`, and the logsumexp `[M, 1]`."""
    if rules.restrictions == UNRESTRICTED:
        values, ids = top_words(logits, count + 1)
        # from the greatest probability, which no softmax rounds to zero: half a logsumexp's time
        greatest = tf.gather(tf.nn.softmax(logits), ids[:, :1], batch_dims=1)
        normaliser = values[:, :1] - tf.math.log(greatest)
        allowed = tf.where(tf.equal(ids, SOS_ID), -float("inf"), values)
        values, columns = tf.math.top_k(allowed, count)
        return values, tf.gather(ids, columns, batch_dims=1), normaliser
    words = tf.reshape(beam.words, [-1, tf.shape(beam.words)[2]])
    is_word = tf.range(tf.shape(logits)[1]) < vocabulary_size  # else a column that fills a block
    logits = tf.where(is_word, logits, -float("inf"))
    allowed = forbid(logits, tf.gather(words, live[:, 0]), rules.time, rules.restrictions)
    values, ids = top_words(allowed, count)
    return values, ids, tf.reduce_logsumexp(logits, axis=1, keepdims=True)


def _required_tokens(
    logits: tf.Tensor, live: tf.Tensor, beam: Beam, rules: StepRules, phrases: Phrases
) -> tf.Tensor:
    """Finds the ids `[M, P]`, or NO_TOKEN, by which live hypotheses come nearer to their phrases.

    With parts of words they are `[M, P + 1]`: the last is the best token to end an open word.
    """
    following = next_tokens(phrases, beam.progress)
    following = tf.gather(tf.reshape(following, [-1, tf.shape(following)[2]]), live[:, 0])
    if phrases.is_open is None:
        return following
    words = tf.reshape(beam.words, [-1, tf.shape(beam.words)[2]])
    allowed = forbid(logits, tf.gather(words, live[:, 0]), rules.time, rules.restrictions)
    size = tf.size(phrases.is_open)
    ends_word = ~phrases.is_open & tf.not_equal(tf.range(size), EOS_ID)
    closing = tf.argmax(tf.where(ends_word, allowed[:, :size], -float("inf")), 1, tf.int32)
    is_open = tf.gather(tf.reshape(beam.progress.is_open, [-1]), live[:, 0])
    lacks = tf.reduce_any(tf.not_equal(following, NO_TOKEN), axis=1)
    closing = tf.where(is_open & lacks, closing, NO_TOKEN)
    return tf.concat([following, closing[:, None]], axis=1)


def top_words(logits: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes `tf.math.top_k` of long rows in half the time: the same values, ids and ties.

    The best `count` words lie in the `count` blocks with the greatest maxima; of two equal ones the
    first is taken, among blocks as among words. So whole rows are read only for their blocks'
    maxima, which vector instructions compute.

    Args:
      logits: `[M, V]`; where V is no multiple of `BLOCK`, or small, this is `top_k` itself. A V
        that is not known until the graph runs is a multiple.
      count: number of words.

    Returns:
      values `[M, count]`, ids `[M, count]`.
    """
    if logits.shape[1] is None:
        blocks = tf.shape(logits)[1] // BLOCK
        return tf.cond(
            blocks < 2 * count,
            lambda: tuple(tf.math.top_k(logits, count)),
            lambda: _top_of_blocks(logits, count, blocks),
        )
    blocks, remainder = divmod(logits.shape[1], BLOCK)
    if remainder or blocks < 2 * count:
        return tuple(tf.math.top_k(logits, count))
    return _top_of_blocks(logits, count, blocks)


def _top_of_blocks(
    logits: tf.Tensor, count: int, blocks: int | tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes `top_words` of rows with at least `count` blocks."""
    split = tf.reshape(logits, [-1, blocks, BLOCK])
    chosen = tf.math.top_k(tf.reduce_max(split, axis=2), count).indices
    chosen = tf.sort(chosen, axis=1)  # so that the lowest id wins a tie
    candidates = tf.reshape(tf.gather(split, chosen, batch_dims=1), [-1, count * BLOCK])
    values, columns = tf.math.top_k(candidates, count)
    return values, tf.gather(chosen, columns // BLOCK, batch_dims=1) * BLOCK + columns % BLOCK
