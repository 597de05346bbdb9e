"""The arithmetic of beam search: which K continuations go on, and when a sentence is done.

K hypotheses a sentence, live and finished ones together; a finished one goes on by `</s>` at no
cost. A score is `log P / ((5 + len) / 6)^alpha + coverage` (Wu et al. 2016, arXiv:1609.08144,
section 7). As in tfa, a hypothesis's `</s>` is not counted in len at the step that chooses it and
is counted ever after.
"""

from __future__ import annotations

from typing import NamedTuple, Tuple

import tensorflow as tf

from tfmann.corpus.vocab import EOS_ID

_EPSILON = 1e-9  # coverage of a position nobody looked at, so that its logarithm is finite


class Search(NamedTuple):
    """How to search."""

    beam_width: int  # K
    length_penalty_weight: float = 0.0  # alpha
    coverage_penalty_weight: float = 0.0  # beta
    best: int = 1  # how many of the K are wanted: a sentence is done when these are certain


class Beam(NamedTuple):
    """The hypotheses of B sentences."""

    log_probs: tf.Tensor  # [B, K]
    finished: tf.Tensor  # [B, K] bool
    lengths: tf.Tensor  # [B, K] int64, with </s>
    coverage: tf.Tensor  # [B, K, S] attention summed over steps; S = 0 where not used


class Selection(NamedTuple):
    """The chosen continuations."""

    ids: tf.Tensor  # [B, K]
    parents: tf.Tensor  # [B, K]
    scores: tf.Tensor  # [B, K]


def start(batch_size: tf.Tensor, beam_width: int, source_width: tf.Tensor) -> Beam:
    """One live hypothesis a sentence; the others are impossible (log 0)."""
    first = tf.one_hot(tf.zeros([batch_size], tf.int32), beam_width, 0.0, -float("inf"))
    return Beam(
        log_probs=first,
        finished=tf.zeros([batch_size, beam_width], tf.bool),
        lengths=tf.zeros([batch_size, beam_width], tf.int64),
        coverage=tf.zeros([batch_size, beam_width, source_width]),
    )


def length_penalty(lengths: tf.Tensor, alpha: float) -> tf.Tensor:
    """`((5 + len) / 6)^alpha`."""
    return tf.pow((5.0 + tf.cast(lengths, tf.float32)) / 6.0, alpha)


def coverage_penalty(coverage: tf.Tensor, beta: float) -> tf.Tensor:
    """`beta sum_s log min(coverage_s, 1)`: `[B, K, S]` to `[B, K]`, 0 at padding by the caller."""
    inside = tf.where(coverage > 0, tf.clip_by_value(coverage, _EPSILON, 1.0), 1.0)
    return beta * tf.reduce_sum(tf.math.log(inside), axis=-1)


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


def select(
    logits: tf.Tensor,
    beam: Beam,
    alignments: tf.Tensor | None,
    time: tf.Tensor,
    limits: tf.Tensor,
    search: Search,
) -> Tuple[Selection, Beam]:
    """Chooses the K best continuations of each sentence.

    Args:
      logits: `[B, K, V]`.
      beam: the hypotheses so far.
      alignments: `[B, K, S]` attention of this step, for the coverage penalty.
      time: the step's index from 0.
      limits: `[B]` steps a sentence may take; at its last only `</s>` is allowed.
      search: how.

    Returns:
      what was chosen, and the hypotheses after it.
    """
    done = certain(beam, limits, search)
    log_probs, ids = _continuations(logits, beam, time >= limits - 1)  # [B, K, C]
    totals = beam.log_probs[..., None] + log_probs
    growing = tf.cast(~beam.finished, tf.int64)
    coverage = beam.coverage
    scores = totals
    if search.length_penalty_weight:
        counted = growing[..., None] * tf.cast(ids != EOS_ID, tf.int64)
        lengths = beam.lengths[..., None] + counted
        scores /= length_penalty(lengths, search.length_penalty_weight)
    if search.coverage_penalty_weight:
        coverage += tf.where(beam.finished[..., None], 0.0, alignments)
        scores += coverage_penalty(coverage, search.coverage_penalty_weight)[..., None]
    width, candidates = search.beam_width, ids.shape[-1]
    best, index = tf.math.top_k(_flat(scores), width)
    parents = index // candidates
    chosen = tf.gather(_flat(ids), index, batch_dims=1)

    def inherit(values: tf.Tensor) -> tf.Tensor:
        return tf.gather(values, parents, batch_dims=1)

    finished = inherit(beam.finished) | (chosen == EOS_ID)
    new = Beam(
        log_probs=tf.gather(_flat(totals), index, batch_dims=1),
        finished=finished | done[:, None],
        lengths=inherit(beam.lengths + growing),
        coverage=inherit(coverage) if search.coverage_penalty_weight else coverage,
    )
    lost = done[:, None] & ~finished  # of a sentence that is done: out of the race
    new = new._replace(log_probs=tf.where(lost, -float("inf"), new.log_probs))
    return Selection(chosen, parents, best), new


def _continuations(
    logits: tf.Tensor, beam: Beam, at_limit: tf.Tensor
) -> Tuple[tf.Tensor, tf.Tensor]:
    """The best min(K, V) words of each hypothesis: log-probabilities and ids `[B, K, C]`."""
    width = min(beam.log_probs.shape[1], logits.shape[-1])
    values, ids = tf.math.top_k(logits, width)
    greatest = values[..., :1]
    total = tf.reduce_sum(tf.exp(logits - greatest), axis=-1, keepdims=True)
    normaliser = greatest + tf.math.log(total)
    forced = beam.finished | at_limit[:, None]
    ending = tf.where(beam.finished, 0.0, (logits[..., EOS_ID : EOS_ID + 1] - normaliser)[..., 0])
    only = tf.concat(
        [ending[..., None], tf.fill(tf.shape(values[..., 1:]), -float("inf"))], axis=-1
    )
    log_probs = tf.where(forced[..., None], only, values - normaliser)
    return log_probs, tf.where(forced[..., None], EOS_ID, ids)


def _flat(values: tf.Tensor) -> tf.Tensor:
    return tf.reshape(values, [tf.shape(values)[0], values.shape[1] * values.shape[2]])
