"""The arithmetic of beam search: the choice of K continuations, and when a sentence is done.

A sentence has K hypotheses, live and finished ones together; a finished one is continued by `</s>`
at no cost. A score is `log P / ((5 + len) / 6)^alpha + coverage` (Wu et al. 2016, arXiv:1609.08144,
section 7). As in tfa, a hypothesis's `</s>` is not counted in len at the step that chooses it and
is counted ever after.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import tensorflow as tf

from tfmann.data.vocab import EOS_ID, SOS_ID
from tfmann.decoding.beam_banks import best_of_banks
from tfmann.decoding.constraints import UNCONSTRAINED, Constraints, add_words, forbid, no_words
from tfmann.decoding.lexical_constraints import (
    NO_TOKEN,
    Phrases,
    Progress,
    add_tokens,
    advance,
    first_progress,
    next_tokens,
    tokens_left,
    tokens_present,
)
from tfmann.decoding.target_prefix import ANY_WORD

BLOCK = 64  # words; `top_words` is fast where a row of logits is a multiple of it long
_EPSILON = 1e-9  # the least coverage of a position, so that its logarithm is finite


class BeamOptions(NamedTuple):
    """The width of a beam search, and how it scores."""

    beam_width: int  # K
    length_penalty_weight: float = 0.0  # alpha
    coverage_penalty_weight: float = 0.0  # beta
    num_best: int = 1  # of the K, to be returned: a sentence is done when these are certain


class Beam(NamedTuple):
    """The hypotheses of B sentences."""

    log_probs: tf.Tensor  # [B, K]
    finished: tf.Tensor  # [B, K] bool
    lengths: tf.Tensor  # [B, K] int64, with </s>
    coverage: tf.Tensor  # [B, K, S] attention summed over steps, 1 at padding; S = 0 if not used
    words: tf.Tensor  # [B, K, L] chosen so far; L = 0 if not used (`constraints`)
    progress: Any = ()  # `Progress` with given phrases


class Continuations(NamedTuple):
    """The C best next words of each hypothesis."""

    log_probs: tf.Tensor  # [B, K, C]
    ids: tf.Tensor  # [B, K, C]


class Selection(NamedTuple):
    """The chosen continuations."""

    ids: tf.Tensor  # [B, K]
    parents: tf.Tensor  # [B, K]
    scores: tf.Tensor  # [B, K]


def first_beam(
    limits: tf.Tensor,
    coverage: tf.Tensor,
    beam_width: int,
    constraints: Constraints = UNCONSTRAINED,
    phrases: Phrases | None = None,
) -> Beam:
    """Returns one live hypothesis per sentence, with `coverage` `[B, S]`; others are impossible."""
    batch_size = tf.size(limits)
    first = tf.one_hot(tf.zeros([batch_size], tf.int32), beam_width, 0.0, -float("inf"))
    return Beam(
        log_probs=first,
        finished=tf.zeros([batch_size, beam_width], tf.bool),
        lengths=tf.zeros([batch_size, beam_width], tf.int64),
        coverage=tf.repeat(coverage[:, None], beam_width, axis=1),
        words=no_words([batch_size, beam_width], limits, constraints),
        progress=() if phrases is None else first_progress(phrases, beam_width),
    )


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


def best_continuations(
    project: Callable[[tf.Tensor], tf.Tensor],
    readout: tf.Tensor,
    beam: Beam,
    time: tf.Tensor,
    limits: tf.Tensor,
    vocabulary_size: int,
    constraints: Constraints = UNCONSTRAINED,
    forced_word: tf.Tensor | None = None,
    phrases: Phrases | None = None,
) -> Continuations:
    """Finds the best C = min(K + 1, V - 1) words after each hypothesis; projects only live ones.

    C is one more than K, because `</s>` alone has a length penalty of its own: it may be among the
    K most probable words and yet not among the K best. `<s>` is never chosen.

    Args:
      project: `[M, R]` to logits `[M, V]`, or more columns, of impossible words.
      readout: `[B*K, R]`, of all hypotheses.
      beam: the hypotheses so far.
      time: the step's index from 0.
      limits: `[B]` steps a sentence may take; at its last only `</s>` is allowed.
      vocabulary_size: V.
      constraints: words that may not be chosen.
      forced_word: `[B]`, the only word of this step, or `ANY_WORD` (`target_prefix`).
      phrases: what translations must contain; the next tokens are added to the C.
    """
    width = min(beam.log_probs.shape[1] + 1, vocabulary_size - 1)
    live = tf.where(tf.reshape(~beam.finished, [-1]))  # [M, 1]
    logits = project(tf.gather(readout, live[:, 0]))
    values, ids, normaliser = _best_words(logits, live, beam, time, width, constraints)
    if phrases is not None:
        required = _required_tokens(logits, live, beam, time, constraints, phrases)
        values, ids = add_tokens((values, ids), required, logits)
        width += tf.shape(required)[1]
    impossible = tf.fill(tf.shape(values[:, 1:]), -float("inf"))
    ending = tf.concat([logits[:, EOS_ID : EOS_ID + 1] - normaliser, impossible], axis=-1)
    sentences = live // beam.log_probs.shape[1]  # [M, 1]
    at_limit = tf.gather(time >= limits - 1, sentences)
    log_probs = tf.where(at_limit, ending, values - normaliser)
    ids = tf.where(at_limit, EOS_ID, ids)
    if forced_word is not None:
        words = tf.gather(forced_word, sentences)
        is_forced = tf.not_equal(words, ANY_WORD)
        logit = tf.gather(logits, tf.where(is_forced, words, EOS_ID), batch_dims=1)
        alone = tf.concat([logit - normaliser, impossible], axis=-1)
        log_probs = tf.where(is_forced, alone, log_probs)
        ids = tf.where(is_forced, words, ids)
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
    """Finds the best allowed words: logits and ids `[M, count]`, and the logsumexp `[M, 1]`."""
    if constraints == UNCONSTRAINED:
        values, ids = top_words(logits, count + 1)
        # from the greatest probability, which no softmax rounds to zero: half a logsumexp's time
        greatest = tf.gather(tf.nn.softmax(logits), ids[:, :1], batch_dims=1)
        normaliser = values[:, :1] - tf.math.log(greatest)
        allowed = tf.where(tf.equal(ids, SOS_ID), -float("inf"), values)
        values, columns = tf.math.top_k(allowed, count)
        return values, tf.gather(ids, columns, batch_dims=1), normaliser
    words = tf.reshape(beam.words, [-1, tf.shape(beam.words)[2]])
    allowed = forbid(logits, tf.gather(words, live[:, 0]), time, constraints)
    values, ids = top_words(allowed, count)
    return values, ids, tf.reduce_logsumexp(logits, axis=1, keepdims=True)


def _required_tokens(
    logits: tf.Tensor,
    live: tf.Tensor,
    beam: Beam,
    time: tf.Tensor,
    constraints: Constraints,
    phrases: Phrases,
) -> tf.Tensor:
    """Finds the ids `[M, P]`, or NO_TOKEN, by which live hypotheses come nearer to their phrases.

    With parts of words they are `[M, P + 1]`: the last is the best token to end an open word.
    """
    following = next_tokens(phrases, beam.progress)
    following = tf.gather(tf.reshape(following, [-1, tf.shape(following)[2]]), live[:, 0])
    if phrases.is_open is None:
        return following
    words = tf.reshape(beam.words, [-1, tf.shape(beam.words)[2]])
    allowed = forbid(logits, tf.gather(words, live[:, 0]), time, constraints)
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


def select(
    continuations: Continuations,
    beam: Beam,
    alignments: tf.Tensor | None,
    time: tf.Tensor,
    limits: tf.Tensor,
    options: BeamOptions,
    constraints: Constraints = UNCONSTRAINED,
    phrases: Phrases | None = None,
) -> tuple[Selection, Beam]:
    """Chooses the K best continuations of each sentence; with phrases, of its banks.

    Args:
      continuations: the best words after each hypothesis.
      beam: the hypotheses so far.
      alignments: `[B, K, S]` attention of this step, for the coverage penalty.
      time: the step's index from 0.
      limits: `[B]` steps a sentence may take.
      options: how hypotheses are scored.
      constraints: those of `continuations`.
      phrases: those of `continuations`.

    Returns:
      the chosen continuations, and the hypotheses after them.
    """
    is_done = certain(beam, limits, options)
    totals = beam.log_probs[..., None] + continuations.log_probs
    progress: Any = ()
    if phrases is not None:
        progress = advance(phrases, beam.progress, continuations.ids)
        is_possible = _is_possible(phrases, progress, continuations.ids, time, limits)
        is_possible &= (~is_done[:, None] | beam.finished)[..., None]
        totals = tf.where(is_possible, totals, -float("inf"))
    growing = tf.cast(~beam.finished, tf.int64)
    scores, coverage = _scores(totals, continuations.ids, beam, alignments, growing, options)
    best, index = _best(scores, phrases, progress, options.beam_width)
    parents = index // _size(continuations.ids, 2)
    chosen = tf.gather(_flat(continuations.ids), index, batch_dims=1)

    def inherit(values: tf.Tensor) -> tf.Tensor:
        return tf.gather(values, parents, batch_dims=1)

    finished = inherit(beam.finished) | (chosen == EOS_ID)
    new = Beam(
        log_probs=tf.gather(_flat(totals), index, batch_dims=1),
        finished=finished | is_done[:, None],
        lengths=inherit(beam.lengths + growing),
        coverage=inherit(coverage) if options.coverage_penalty_weight else coverage,
        words=beam.words,
        progress=tf.nest.map_structure(
            lambda value: tf.gather(_flat(value), index, batch_dims=1), progress
        ),
    )
    if constraints.need_words:
        new = new._replace(words=add_words(inherit(beam.words), chosen, time))
    dropped = is_done[:, None] & ~finished  # live hypotheses of a sentence that is done
    new = new._replace(log_probs=tf.where(dropped, -float("inf"), new.log_probs))
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
    scores: tf.Tensor, phrases: Phrases | None, progress: Any, width: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the K best of scores `[B, K, C]`: the scores, and their indexes into the K * C."""
    if phrases is None:
        return tf.math.top_k(_flat(scores), width)
    banks = tokens_present(phrases, progress)
    return best_of_banks(_flat(scores), _flat(banks), phrases.total, width)


def _is_possible(
    phrases: Phrases, progress: Progress, ids: tf.Tensor, time: tf.Tensor, limits: tf.Tensor
) -> tf.Tensor:
    """Finds the continuations `[B, K, C]` that can have all phrases before their limits `[B]`."""
    room = (limits - 2 - time)[:, None, None]  # after the step, and before </s>
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
