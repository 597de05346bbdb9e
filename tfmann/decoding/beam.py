"""The hypotheses of a beam search, and what a step proposes and chooses."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.decoding.lexical_constraints import Phrases, first_progress
from tfmann.decoding.restrictions import UNRESTRICTED, Restrictions, no_words


class BeamOptions(NamedTuple):
    """The width of a beam search, and how it scores."""

    beam_width: int  # K
    length_penalty_weight: float = 0.0  # alpha
    coverage_penalty_weight: float = 0.0  # beta
    num_best: int = 1  # of the K, to be returned: a sentence is done when these are certain


class StepRules(NamedTuple):
    """The words that a step of a beam search may choose for B sentences."""

    time: tf.Tensor  # the step's index, from 0
    limits: tf.Tensor  # [B] steps that a sentence may take; at its last only </s> is allowed
    restrictions: Restrictions = UNRESTRICTED
    phrases: Phrases | None = None  # that the translations must contain
    widths: tf.Tensor | None = None  # [B] of the sentences' beams, in place of K; None: K
    given_words: tf.Tensor | None = None  # [B] the only word, or `ANY_WORD`; None: any for all


class Beam(NamedTuple):
    """The hypotheses of B sentences."""

    log_probs: tf.Tensor  # [B, K]
    finished: tf.Tensor  # [B, K] bool
    lengths: tf.Tensor  # [B, K] int64, with </s>
    coverage: tf.Tensor  # [B, K, S] attention summed over steps, 1 at padding; S = 0 if not used
    words: tf.Tensor  # [B, K, L] chosen so far; L = 0 if not used (`restrictions`)
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
    restrictions: Restrictions = UNRESTRICTED,
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
        words=no_words([batch_size, beam_width], limits, restrictions),
        progress=() if phrases is None else first_progress(phrases, beam_width),
    )
