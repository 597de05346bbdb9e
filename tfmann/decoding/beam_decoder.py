"""Beam search over states of any rank.

Sentences end at different steps, and one that has ended costs as much as one that goes on. So the
search runs in stretches: a stretch ends as soon as a quarter of its sentences have ended, and the
next goes on with the others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.corpus.vocab import EOS_ID
from tfmann.decoding import beam
from tfmann.decoding.adapter import BoundCell, Flat, Step
from tfmann.decoding.backend import decode


class Problem(NamedTuple):
    """What is searched, the same for every stretch."""

    bind: Callable[[tf.Tensor], Step]  # sentences [n] to the step of their hypotheses [n*K]
    project: Callable[[tf.Tensor], tf.Tensor]  # readout [M, R] to logits [M, V]
    readout_width: int  # R
    vocabulary_size: int  # V
    state: Any  # the first state, a row a sentence
    limits: tf.Tensor  # [B] steps of each sentence; the last may only be </s>
    recorded: Mapping[str, tf.Tensor]  # diagnostics to record, [B, ...]
    backend: str = "auto"  # the loop (`backend.decode`)

    def cell(self, sentences: tf.Tensor) -> BoundCell:
        """The cell over the hypotheses of some sentences."""
        return BoundCell(self.bind(sentences), self.state, self.readout_width, self.recorded)


class BeamOutput(NamedTuple):
    """What the beam search emits at a step."""

    predicted_ids: tf.Tensor  # [B, K]
    parent_ids: tf.Tensor  # [B, K]
    diagnostics: tuple[tf.Tensor, ...]  # each [B, K, n], of the selected hypotheses


class _Standing(NamedTuple):
    """Where the search stands between two stretches: n of B sentences go on."""

    time: tf.Tensor  # steps taken
    sentences: tf.Tensor  # [n]
    last_ids: tf.Tensor  # [n, K]
    hypotheses: beam.Beam  # of n sentences
    state: Flat  # rows n*K
    ended: beam.Beam  # of B sentences; true of those that have ended
    emitted: BeamOutput  # [time, B, K, ...]


class _Searched(NamedTuple):
    """The state of a stretch's loop."""

    hypotheses: beam.Beam
    state: Flat  # rows n*K


class _BeamDecoder:
    """The steps of one stretch; `decoding.beam` selects."""

    def __init__(self, problem: Problem, search: beam.Search, begin: _Standing):
        self.cell, self.beam_width = problem.cell(begin.sentences), search.beam_width
        self._problem, self._search, self._begin = problem, search, begin
        self._limits = tf.gather(problem.limits, begin.sentences)

    @property
    def batch_size(self) -> tf.Tensor:
        return tf.size(self._begin.sentences)

    @property
    def output_size(self) -> BeamOutput:
        width = tf.TensorShape([self.beam_width])
        first = self.cell.first().diagnostics
        seen = tuple(tf.concat([[self.beam_width], tf.shape(v)[1:]], 0) for v in first)
        return BeamOutput(width, width, seen)

    @property
    def output_dtype(self) -> BeamOutput:
        return BeamOutput(tf.int32, tf.int32, tuple(tf.float32 for _ in self.cell.recorded))

    def initialize(self) -> tuple[tf.Tensor, tf.Tensor, _Searched]:
        """Goes on where the last stretch ended."""
        begin = self._begin
        ids = tf.reshape(begin.last_ids, [-1])
        return begin.hypotheses.finished, ids, _Searched(begin.hypotheses, begin.state)

    def step(self, time: tf.Tensor, inputs: tf.Tensor, state: _Searched):
        old, problem = state.hypotheses, self._problem
        readout, next_state = self.cell(inputs, state.state)
        time = self._begin.time + time
        found = beam.continuations(
            problem.project,
            readout,
            old,
            time,
            self._limits,
            problem.vocabulary_size,
            self._search.constraints,
        )
        alignments = self._alignments(next_state, old)
        chosen, new = beam.select(found, old, alignments, time, self._limits, self._search)
        rows = _rows(tf.range(self.batch_size), self.beam_width, chosen.parents)
        kept = tf.nest.map_structure(lambda leaf: tf.gather(leaf, rows), next_state)
        shape = [self.batch_size, self.beam_width, -1]
        seen = tuple(tf.reshape(value, shape) for value in kept.diagnostics)
        output = BeamOutput(chosen.ids, chosen.parents, seen)
        going = tf.reduce_sum(tf.cast(_unfinished(new), tf.int32))
        over = new.finished | (4 * going <= 3 * self.batch_size)
        return output, _Searched(new, kept), tf.reshape(chosen.ids, [-1]), over

    def _alignments(self, state: Flat, hypotheses: beam.Beam) -> tf.Tensor | None:
        if not self._search.coverage_penalty_weight:
            return None
        index = list(self.cell.recorded).index("alignments")
        return tf.reshape(state.diagnostics[index], tf.shape(hypotheses.coverage))


def beam_search(
    problem: Problem, start: tf.Tensor, mask: tf.Tensor, search: beam.Search
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
    """Beam search.

    Args:
      problem: what is searched; with a coverage penalty it records `alignments`.
      start: `[B]` first ids.
      mask: `[B, S]`, 1 at real source positions.
      search: how.

    Returns:
      the n = `search.best` best, from best to worst: ids `[B, n, T]` filled with `</s>`, lengths
      `[B, n]` with the first `</s>`, scores `[B, n]`, diagnostics `[B, n, T, ...]`.
    """
    first = _begin(problem, start, mask, search)
    (last,) = tf.while_loop(
        lambda now: tf.size(now.sentences) > 0,
        lambda now: (_stretch(problem, search, now),),
        (first,),
        shape_invariants=(_any_count(first),),
    )
    scores, ranks = tf.math.top_k(beam.settled_scores(last.ended, search), search.best)
    lengths = tf.gather(last.ended.lengths, ranks, batch_dims=1)
    ids, seen = _follow(last.emitted, ranks)
    real = tf.sequence_mask(lengths, tf.shape(ids)[2])
    diagnostics = problem.cell(first.sentences).restore(seen, lead=3)
    return tf.where(real, ids, EOS_ID), lengths, scores, diagnostics


def _begin(
    problem: Problem, start: tf.Tensor, mask: tf.Tensor, search: beam.Search
) -> _Standing:
    """Before the first step: one hypothesis a sentence, all sentences going on."""
    batch, width = tf.size(start), search.beam_width
    sentences = tf.range(batch)
    coverage = 1.0 - mask if search.coverage_penalty_weight else mask[:, :0]
    hypotheses = beam.start(problem.limits, coverage, search)
    state = tf.nest.map_structure(
        lambda leaf: tf.repeat(leaf, width, axis=0), problem.cell(sentences).first()
    )
    nothing = tf.zeros([0, batch, width], tf.int32)
    seen = tuple(
        tf.zeros(tf.concat([[0, batch, width], tf.shape(value)[1:]], axis=0))
        for value in state.diagnostics
    )
    return _Standing(
        time=tf.constant(0),
        sentences=sentences,
        last_ids=tf.repeat(start[:, None], width, axis=1),
        hypotheses=hypotheses,
        state=state,
        ended=hypotheses,
        emitted=BeamOutput(nothing, nothing, seen),
    )


def _stretch(problem: Problem, search: beam.Search, now: _Standing) -> _Standing:
    """Searches until enough sentences have ended, and takes them out."""
    limits = tf.gather(problem.limits, now.sentences)
    decoder, steps = _BeamDecoder(problem, search, now), tf.reduce_max(limits) - now.time
    emitted, (hypotheses, state), _ = decode(decoder, problem.backend, steps)
    going = tf.where(_unfinished(hypotheses))[:, 0]
    width = search.beam_width
    rows = _rows(going, width, tf.range(width, dtype=tf.int64)[None])
    batch, count = tf.size(problem.limits), tf.size(now.sentences)
    places = tf.tensor_scatter_nd_update(
        tf.range(batch), now.sentences[:, None], batch + tf.range(count)
    )
    return _Standing(
        time=now.time + tf.shape(emitted.predicted_ids)[0],
        sentences=tf.gather(now.sentences, going),
        last_ids=tf.gather(emitted.predicted_ids[-1], going),
        hypotheses=tf.nest.map_structure(lambda v: tf.gather(v, going), hypotheses),
        state=tf.nest.map_structure(lambda v: tf.gather(v, rows), state),
        ended=tf.nest.map_structure(
            lambda old, new: tf.gather(tf.concat([old, new], axis=0), places), now.ended, hypotheses
        ),
        emitted=_lengthen(now.emitted, emitted, places),
    )


def _lengthen(old: BeamOutput, new: BeamOutput, places: tf.Tensor) -> BeamOutput:
    """What was emitted before and in a stretch.

    Where nothing was searched, every hypothesis goes on by `</s>` in its place.

    Args:
      old: `[time, B, K, ...]`.
      new: `[steps, n, K, ...]`.
      places: `[B]`, where among B sentences without a search and n with one each is found.
    """
    steps, batch = tf.shape(new.parent_ids)[0], tf.size(places)

    def append(old: tf.Tensor, new: tf.Tensor, idle: Any) -> tf.Tensor:
        still = tf.broadcast_to(idle, tf.concat([[steps, batch], tf.shape(new)[2:]], axis=0))
        return tf.concat([old, tf.gather(tf.concat([still, new], axis=1), places, axis=1)], axis=0)

    return BeamOutput(
        append(old.predicted_ids, new.predicted_ids, EOS_ID),
        append(old.parent_ids, new.parent_ids, tf.range(new.parent_ids.shape[2])),
        tuple(append(*values, 0.0) for values in zip(old.diagnostics, new.diagnostics)),
    )


def _any_count(standing: _Standing) -> _Standing:
    """The shapes, open to other numbers of steps, sentences and rows."""

    def open_axes(structure: Any, count: int) -> Any:
        return tf.nest.map_structure(
            lambda v: tf.TensorShape([None] * count).concatenate(v.shape[count:]), structure
        )

    return _Standing(
        time=tf.TensorShape([]),
        sentences=tf.TensorShape([None]),
        last_ids=open_axes(standing.last_ids, 1),
        hypotheses=open_axes(standing.hypotheses, 1),
        state=open_axes(standing.state, 1),
        ended=open_axes(standing.ended, 1),
        emitted=open_axes(standing.emitted, 2),
    )


def _follow(
    emitted: BeamOutput, ranks: tf.Tensor
) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
    """Follows the parents of the hypotheses that are `ranks` `[B, n]` at the end.

    From the last step of all: a sentence that is done goes on beside the others, and its
    hypotheses change places then (tfa begins at a sentence's own greatest length). What was emitted
    is moved once, and only where a path leads.

    Returns:
      ids `[B, n, T]`, diagnostics `[B, n, T, width]`.
    """
    before = tf.scan(
        lambda rank, parents: tf.gather(parents, rank, batch_dims=1),
        emitted.parent_ids,
        initializer=ranks,
        reverse=True,
    )  # [T, B, n], the ranks that each step began with
    paths = tf.transpose(tf.concat([before[1:], ranks[None]], axis=0), [1, 2, 0])  # [B, n, T]
    times, sentences = tf.range(tf.shape(before)[0]), tf.range(tf.shape(ranks)[0])
    places = tf.stack(
        [
            tf.broadcast_to(times, tf.shape(paths)),
            tf.broadcast_to(sentences[:, None, None], tf.shape(paths)),
            paths,
        ],
        axis=-1,
    )
    ids = tf.gather_nd(emitted.predicted_ids, places)
    return ids, tuple(tf.gather_nd(value, places) for value in emitted.diagnostics)


def _unfinished(hypotheses: beam.Beam) -> tf.Tensor:
    """Sentences with a hypothesis that goes on."""
    return tf.reduce_any(~hypotheses.finished, axis=1)


def _rows(sentences: tf.Tensor, width: int, ranks: tf.Tensor) -> tf.Tensor:
    """Rows of the state: the hypotheses `ranks` `[n or 1, K]` of sentences `[n]`."""
    return tf.reshape(sentences[:, None] * width + ranks, [-1])
