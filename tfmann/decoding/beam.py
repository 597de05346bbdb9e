"""The arithmetic of beam search: which K continuations go on, and when a sentence is done.

K hypotheses a sentence, live and finished ones together; a finished one goes on by `</s>` at no
cost. A score is `log P / ((5 + len) / 6)^alpha + coverage` (Wu et al. 2016, arXiv:1609.08144,
section 7). As in tfa, a hypothesis's `</s>` is not counted in len at the step that chooses it and
is counted ever after.
"""

from __future__ import annotations

from typing import Callable, NamedTuple

import tensorflow as tf

from tfmann.corpus.vocab import EOS_ID, SOS_ID
from tfmann.decoding.constraints import (
    UNCONSTRAINED,
    Constraints,
    add_words,
    forbid,
    no_words,
)

BLOCK = 64  # words; rows of logits are best a multiple of it long
_EPSILON = 1e-9  # coverage of a position nobody looked at, so that its logarithm is finite


class Search(NamedTuple):
    """How to search."""

    beam_width: int  # K
    length_penalty_weight: float = 0.0  # alpha
    coverage_penalty_weight: float = 0.0  # beta
    best: int = 1  # how many of the K are wanted: a sentence is done when these are certain
    constraints: Constraints = UNCONSTRAINED


class Beam(NamedTuple):
    """The hypotheses of B sentences."""

    log_probs: tf.Tensor  # [B, K]
    finished: tf.Tensor  # [B, K] bool
    lengths: tf.Tensor  # [B, K] int64, with </s>
    coverage: tf.Tensor  # [B, K, S] attention summed over steps, 1 at padding; S = 0 if not used
    words: tf.Tensor  # [B, K, L] those chosen so far; L = 0 if not used (`constraints`)


class Continuations(NamedTuple):
    """What each hypothesis may go on with."""

    log_probs: tf.Tensor  # [B, K, C]
    ids: tf.Tensor  # [B, K, C]


class Selection(NamedTuple):
    """The chosen continuations."""

    ids: tf.Tensor  # [B, K]
    parents: tf.Tensor  # [B, K]
    scores: tf.Tensor  # [B, K]


def start(limits: tf.Tensor, coverage: tf.Tensor, search: Search) -> Beam:
    """One live hypothesis a sentence, with `coverage` `[B, S]`; the others are impossible."""
    batch_size, beam_width = tf.size(limits), search.beam_width
    first = tf.one_hot(tf.zeros([batch_size], tf.int32), beam_width, 0.0, -float("inf"))
    return Beam(
        log_probs=first,
        finished=tf.zeros([batch_size, beam_width], tf.bool),
        lengths=tf.zeros([batch_size, beam_width], tf.int64),
        coverage=tf.repeat(coverage[:, None], beam_width, axis=1),
        words=no_words([batch_size, beam_width], limits, search.constraints),
    )


def length_penalty(lengths: tf.Tensor, alpha: float) -> tf.Tensor:
    """`((5 + len) / 6)^alpha`."""
    return tf.pow((5.0 + tf.cast(lengths, tf.float32)) / 6.0, alpha)


def coverage_penalty(coverage: tf.Tensor, beta: float) -> tf.Tensor:
    """`beta sum_s log min(coverage_s, 1)`: `[B, K, S]` to `[B, K]`."""
    return beta * tf.reduce_sum(tf.math.log(tf.clip_by_value(coverage, _EPSILON, 1.0)), axis=-1)


def settled_scores(beam: Beam, search: Search) -> tf.Tensor:
    """Scores `[B, K]` with every `</s>` counted."""
    scores = beam.log_probs
    if search.length_penalty_weight:
        scores /= length_penalty(beam.lengths, search.length_penalty_weight)
    if search.coverage_penalty_weight:
        scores += coverage_penalty(beam.coverage, search.coverage_penalty_weight)
    return scores


def certain(beam: Beam, limits: tf.Tensor, search: Search) -> tf.Tensor:
    """Sentences `[B]` whose wanted hypotheses can no longer be overtaken.

    A live hypothesis only loses probability, and no length it can reach divides by more than its
    limit does; coverage is at most 0. So stopping here changes no result.
    """
    scores = settled_scores(beam, search)
    bound = beam.log_probs
    if search.length_penalty_weight:
        bound /= length_penalty(limits, search.length_penalty_weight)[:, None]
    hope = tf.reduce_max(tf.where(beam.finished, -float("inf"), bound), axis=1)
    ended = tf.where(beam.finished, scores, -float("inf"))
    wanted = tf.math.top_k(ended, search.best).values[:, -1]
    return (wanted >= hope) & (wanted > -float("inf"))


def continuations(
    project: Callable[[tf.Tensor], tf.Tensor],
    readout: tf.Tensor,
    beam: Beam,
    time: tf.Tensor,
    limits: tf.Tensor,
    vocabulary_size: int,
    constraints: Constraints = UNCONSTRAINED,
) -> Continuations:
    """The best C = min(K + 1, V - 1) words after each hypothesis; only live ones are projected.

    One more than K, because `</s>` alone has a length penalty of its own: it may stand among the
    K most probable words and yet not be among the K best. `<s>` is never said.

    Args:
      project: `[M, R]` to logits `[M, V]`, or more columns, whose words are impossible.
      readout: `[B*K, R]`, of all hypotheses.
      beam: the hypotheses so far.
      time: the step's index from 0.
      limits: `[B]` steps a sentence may take; at its last only `</s>` is allowed.
      vocabulary_size: V.
      constraints: words that may not be chosen.
    """
    width = min(beam.log_probs.shape[1] + 1, vocabulary_size - 1)
    live = tf.where(tf.reshape(~beam.finished, [-1]))  # [M, 1]
    logits = project(tf.gather(readout, live[:, 0]))
    values, ids, normaliser = _best_words(logits, live, beam, time, width, constraints)
    rest = tf.fill(tf.shape(values[:, 1:]), -float("inf"))
    ending = tf.concat([logits[:, EOS_ID : EOS_ID + 1] - normaliser, rest], axis=-1)
    at_limit = tf.gather(time >= limits - 1, live // beam.log_probs.shape[1])  # [M, 1]
    log_probs = tf.where(at_limit, ending, values - normaliser)
    ids = tf.where(at_limit, EOS_ID, ids)
    rows = tf.size(beam.finished)
    free = tf.concat([tf.zeros([rows, 1]), tf.fill([rows, width - 1], -float("inf"))], axis=-1)
    shape = [tf.shape(limits)[0], beam.log_probs.shape[1], width]
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
    time: tf.Tensor,
    count: int,
    constraints: Constraints,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Logits and ids `[M, count]` of the best words allowed, and the logsumexp `[M, 1]` of all."""
    if constraints == UNCONSTRAINED:
        values, ids = top_words(logits, count + 1)
        # By the greatest probability, which no softmax rounds to zero: half a logsumexp's time.
        greatest = tf.gather(tf.nn.softmax(logits), ids[:, :1], batch_dims=1)
        normaliser = values[:, :1] - tf.math.log(greatest)
        allowed = tf.where(tf.equal(ids, SOS_ID), -float("inf"), values)
        values, places = tf.math.top_k(allowed, count)
        return values, tf.gather(ids, places, batch_dims=1), normaliser
    words = tf.reshape(beam.words, [-1, tf.shape(beam.words)[2]])
    allowed = forbid(logits, tf.gather(words, live[:, 0]), time, constraints)
    values, ids = top_words(allowed, count)
    return values, ids, tf.reduce_logsumexp(logits, axis=1, keepdims=True)


def top_words(logits: tf.Tensor, count: int) -> tuple[tf.Tensor, tf.Tensor]:
    """`tf.math.top_k` of long rows, in half the time: the same values and ids, ties as well.

    The best `count` words lie in the `count` blocks whose own best are greatest: of two that are
    equal, the one that comes first, for blocks as for words. So whole rows are only passed over for
    their blocks' maxima, which is done by packets.

    Args:
      logits: `[M, V]`; where V is no multiple of `BLOCK`, or small, this is `top_k` itself.
      count: how many.

    Returns:
      values `[M, count]`, ids `[M, count]`.
    """
    blocks, rest = divmod(logits.shape[1], BLOCK)
    if rest or blocks < 2 * count:
        return tuple(tf.math.top_k(logits, count))
    split = tf.reshape(logits, [-1, blocks, BLOCK])
    chosen = tf.math.top_k(tf.reduce_max(split, axis=2), count).indices
    chosen = tf.sort(chosen, axis=1)  # words in their order, for the sake of ties
    candidates = tf.reshape(tf.gather(split, chosen, batch_dims=1), [-1, count * BLOCK])
    values, places = tf.math.top_k(candidates, count)
    return values, tf.gather(chosen, places // BLOCK, batch_dims=1) * BLOCK + places % BLOCK


def select(
    found: Continuations,
    beam: Beam,
    alignments: tf.Tensor | None,
    time: tf.Tensor,
    limits: tf.Tensor,
    search: Search,
) -> tuple[Selection, Beam]:
    """Chooses the K best continuations of each sentence.

    Args:
      found: what each hypothesis may go on with.
      beam: the hypotheses so far.
      alignments: `[B, K, S]` attention of this step, for the coverage penalty.
      time: the step's index from 0.
      limits: `[B]` steps a sentence may take.
      search: how.

    Returns:
      what was chosen, and the hypotheses after it.
    """
    done = certain(beam, limits, search)
    totals = beam.log_probs[..., None] + found.log_probs
    growing = tf.cast(~beam.finished, tf.int64)
    coverage = beam.coverage
    scores = totals
    if search.length_penalty_weight:
        counted = growing[..., None] * tf.cast(found.ids != EOS_ID, tf.int64)
        lengths = beam.lengths[..., None] + counted
        scores /= length_penalty(lengths, search.length_penalty_weight)
    if search.coverage_penalty_weight:
        coverage += tf.where(beam.finished[..., None], 0.0, alignments)
        scores += coverage_penalty(coverage, search.coverage_penalty_weight)[..., None]
    best, index = tf.math.top_k(_flat(scores), search.beam_width)
    parents = index // found.ids.shape[-1]
    chosen = tf.gather(_flat(found.ids), index, batch_dims=1)

    def inherit(values: tf.Tensor) -> tf.Tensor:
        return tf.gather(values, parents, batch_dims=1)

    finished = inherit(beam.finished) | (chosen == EOS_ID)
    new = Beam(
        log_probs=tf.gather(_flat(totals), index, batch_dims=1),
        finished=finished | done[:, None],
        lengths=inherit(beam.lengths + growing),
        coverage=inherit(coverage) if search.coverage_penalty_weight else coverage,
        words=beam.words,
    )
    if search.constraints.history:
        new = new._replace(words=add_words(inherit(beam.words), chosen, time))
    lost = done[:, None] & ~finished  # of a sentence that is done: out of the race
    new = new._replace(log_probs=tf.where(lost, -float("inf"), new.log_probs))
    return Selection(chosen, parents, best), new


def _flat(values: tf.Tensor) -> tf.Tensor:
    return tf.reshape(values, [tf.shape(values)[0], values.shape[1] * values.shape[2]])
