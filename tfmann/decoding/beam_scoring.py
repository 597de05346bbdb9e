"""The arithmetic of beam search: the choice of K continuations, and when a sentence is done.

A sentence has K hypotheses, live and finished ones together; a finished one is continued by `</s>`
at no cost. A score is `log P / ((5 + len) / 6)^alpha + coverage` (Wu et al. 2016, arXiv:1609.08144,
section 7). As in tfa, a hypothesis's `</s>` is not counted in len at the step that chooses it and
is counted ever after.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from tfmann.data.vocab import EOS_ID
from tfmann.decoding.beam import Beam, BeamOptions, Continuations, Selection, StepRules
from tfmann.decoding.beam_banks import best_of_banks
from tfmann.decoding.lexical_constraints import (
    Phrases,
    Progress,
    advance,
    tokens_left,
    tokens_present,
)
from tfmann.decoding.restrictions import add_words

_EPSILON = 1e-9  # the least coverage of a position, so that its logarithm is finite


def length_penalty(lengths: tf.Tensor, alpha: float) -> tf.Tensor:
    """Computes `((5 + len) / 6)^alpha`."""
    return tf.pow((5.0 + tf.cast(lengths, tf.float32)) / 6.0, alpha)


def coverage_penalty(coverage: tf.Tensor, beta: float) -> tf.Tensor:
    """Computes `beta sum_s log min(coverage_s, 1)`: `[B, K, S]` to `[B, K]`."""
    return beta * tf.reduce_sum(tf.math.log(tf.clip_by_value(coverage, _EPSILON, 1.0)), axis=-1)


def final_scores(beam: Beam, options: BeamOptions) -> tf.Tensor:
    """Computes scores `[B, K]` with every `</s>` counted."""
    scores = beam.log_probs
    if options.length_penalty_weight:
        scores /= length_penalty(beam.lengths, options.length_penalty_weight)
    if options.coverage_penalty_weight:
        scores += coverage_penalty(beam.coverage, options.coverage_penalty_weight)
    return scores


def certain(beam: Beam, limits: tf.Tensor, options: BeamOptions) -> tf.Tensor:
    """Finds the sentences `[B]` whose best hypotheses no live one can overtake.

    A live hypothesis only loses probability, and no length it can reach divides by more than its
    limit does; the coverage penalty is at most 0. So stopping here changes no result.
    """
    scores = final_scores(beam, options)
    bound = beam.log_probs
    if options.length_penalty_weight:
        bound /= length_penalty(limits, options.length_penalty_weight)[:, None]
    best_live = tf.reduce_max(tf.where(beam.finished, -float("inf"), bound), axis=1)
    finished = tf.where(beam.finished, scores, -float("inf"))
    worst_returned = tf.math.top_k(finished, options.num_best).values[:, -1]
    return (worst_returned >= best_live) & (worst_returned > -float("inf"))


def select(
    continuations: Continuations,
    beam: Beam,
    alignments: tf.Tensor | None,
    rules: StepRules,
    options: BeamOptions,
) -> tuple[Selection, Beam]:
    """Chooses the K best continuations of each sentence; with phrases, of its banks.

    Args:
      continuations: the best words after each hypothesis.
      beam: the hypotheses so far.
      alignments: `[B, K, S]` attention of this step, for the coverage penalty.
      rules: those of `continuations`.
      options: how hypotheses are scored.

    Returns:
      the chosen ones, and the hypotheses after them.
    """
    phrases, widths = rules.phrases, rules.widths
    is_done = certain(beam, rules.limits, options)
    totals = beam.log_probs[..., None] + continuations.log_probs
    progress: Any = ()
    if phrases is not None:
        progress = advance(phrases, beam.progress, continuations.ids)
        is_possible = _is_possible(phrases, progress, continuations.ids, rules)
        is_possible &= (~is_done[:, None] | beam.finished)[..., None]
        totals = tf.where(is_possible, totals, -float("inf"))
    growing = tf.cast(~beam.finished, tf.int64)
    scores, coverage = _scores(totals, continuations.ids, beam, alignments, growing, options)
    best, index = _best(scores, phrases, progress, options.beam_width, widths)
    parents, choose = index // _size(continuations.ids, 2), functools.partial(_choose, index)
    chosen = choose(continuations.ids)

    def inherit(values: tf.Tensor) -> tf.Tensor:
        return tf.gather(values, parents, batch_dims=1)

    finished = inherit(beam.finished) | (chosen == EOS_ID)
    log_probs = choose(totals)
    if widths is not None:
        log_probs, finished = _end_empty_places(best, log_probs, finished)
    dropped = is_done[:, None] & ~finished  # live hypotheses of a sentence that is done
    new = Beam(
        log_probs=tf.where(dropped, -float("inf"), log_probs),
        finished=finished | is_done[:, None],
        lengths=inherit(beam.lengths + growing),
        coverage=inherit(coverage) if options.coverage_penalty_weight else coverage,
        words=beam.words,
        progress=tf.nest.map_structure(choose, progress),
    )
    if rules.restrictions.need_words:
        new = new._replace(words=add_words(inherit(beam.words), chosen, rules.time))
    return Selection(chosen, parents, best), new


def _scores(
    totals: tf.Tensor,
    ids: tf.Tensor,
    beam: Beam,
    alignments: tf.Tensor | None,
    growing: tf.Tensor,
    options: BeamOptions,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes scores `[B, K, C]` of continuations, and the coverage `[B, K, S]` of hypotheses.

    Args:
      totals: log-probabilities `[B, K, C]` of hypotheses with their continuations.
      ids: `[B, K, C]`.
      beam: the hypotheses so far.
      alignments: as of `select`.
      growing: `[B, K]` int64, 1 for a live hypothesis.
      options: how hypotheses are scored.
    """
    scores, coverage = totals, beam.coverage
    if options.length_penalty_weight:
        counted = growing[..., None] * tf.cast(ids != EOS_ID, tf.int64)
        lengths = beam.lengths[..., None] + counted
        scores /= length_penalty(lengths, options.length_penalty_weight)
    if options.coverage_penalty_weight:
        coverage += tf.where(beam.finished[..., None], 0.0, alignments)
        scores += coverage_penalty(coverage, options.coverage_penalty_weight)[..., None]
    return scores, coverage


def _best(
    scores: tf.Tensor,
    phrases: Phrases | None,
    progress: Any,
    width: int,
    widths: tf.Tensor | None,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the K best of scores `[B, K, C]`: the scores, and their indexes into the K * C."""
    if phrases is None:
        return tf.math.top_k(_flat(scores), width)
    banks = tokens_present(phrases, progress)
    return best_of_banks(_flat(scores), _flat(banks), phrases.total, width, widths)


def _choose(index: tf.Tensor, values: tf.Tensor) -> tf.Tensor:
    """Gathers from `[B, K, C, ...]` at an index `[B, K]` into the K * C."""
    return tf.gather(_flat(values), index, batch_dims=1)


def _end_empty_places(
    best: tf.Tensor, log_probs: tf.Tensor, finished: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Lets the places that narrow beams leave empty count as impossible and ended, `[B, K]`."""
    is_empty = tf.equal(best, -float("inf"))
    return tf.where(is_empty, -float("inf"), log_probs), finished | is_empty


def _is_possible(
    phrases: Phrases, progress: Progress, ids: tf.Tensor, rules: StepRules
) -> tf.Tensor:
    """Finds the continuations `[B, K, C]` that can have all phrases before their limits."""
    room = (rules.limits - 2 - rules.time)[:, None, None]  # after the step, and before </s>
    return tokens_left(phrases, progress) <= tf.where(tf.equal(ids, EOS_ID), 0, room)


def _flat(values: tf.Tensor) -> tf.Tensor:
    """Reshapes `[B, K, C, ...]` to `[B, K * C, ...]`."""
    shape = [tf.shape(values)[0], values.shape[1] * _size(values, 2)]
    return tf.reshape(
        values, [*shape, *(_size(values, axis) for axis in range(3, values.shape.rank))]
    )


def _size(values: tf.Tensor, axis: int) -> int | tf.Tensor:
    """Returns the size of an axis, as a number where it is known."""
    size = values.shape[axis]
    return tf.shape(values)[axis] if size is None else size
