"""Beam search over states of any rank.

Sentences end at different steps, and one that has ended costs as much as one that continues. So the
search runs in stages: a stage ends as soon as a quarter of its sentences have ended, and the next
continues with the others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.data.vocab import EOS_ID
from tfmann.decoding import beam_scoring
from tfmann.decoding.backend import decode
from tfmann.decoding.beam import Beam, BeamOptions, StepRules, first_beam
from tfmann.decoding.beam_outputs import BeamOutput, append_outputs, trace_back
from tfmann.decoding.bound_cell import BoundCell, FlatState, StepFunction
from tfmann.decoding.lexical_constraints import Phrases
from tfmann.decoding.next_words import best_continuations
from tfmann.decoding.restrictions import UNRESTRICTED, Restrictions
from tfmann.decoding.target_prefix import given_words


class BeamProblem(NamedTuple):
    """The model's side of a beam search, and what its translations must satisfy."""

    bind: Callable[[tf.Tensor], StepFunction]  # sentences [n] to the step of their rows [n*K]
    project: Callable[[tf.Tensor], tf.Tensor]  # readout [M, R] to logits [M, V]
    readout_width: int  # R
    vocabulary_size: int  # V
    state: Any  # the first state, a row a sentence
    limits: tf.Tensor  # [B] steps of each sentence; the last may only be </s>
    recorded: Mapping[str, tf.Tensor]  # diagnostics to record, [B, ...]
    restrictions: Restrictions = UNRESTRICTED
    backend: str = "auto"  # the loop (`backend.decode`)
    prefix: tf.Tensor | None = None  # [B, P] given first words, fewer than the limits
    phrases: Phrases | None = None  # that translations contain; the limits have room for them
    # [B] int32 widths of the sentences' beams, with phrases, at most K; None: K
    widths: tf.Tensor | None = None

    def cell(self, sentences: tf.Tensor) -> BoundCell:
        """Returns the cell over the hypotheses of some sentences."""
        return BoundCell(self.bind(sentences), self.state, self.readout_width, self.recorded)


class _SearchState(NamedTuple):
    """The search between two stages: n of B sentences have not ended."""

    time: tf.Tensor  # steps taken
    sentences: tf.Tensor  # [n]
    last_ids: tf.Tensor  # [n, K]
    beam: Beam  # of n sentences
    state: FlatState  # rows n*K
    final_beam: Beam  # of B sentences; valid for those that have ended
    outputs: BeamOutput  # [time, B, K, ...]


class _StageState(NamedTuple):
    """The state of a stage's loop."""

    beam: Beam
    state: FlatState  # rows n*K


class _BeamDecoder:
    """The steps of one stage; `beam_scoring` selects."""

    def __init__(self, problem: BeamProblem, options: BeamOptions, begin: _SearchState):
        self.cell, self.beam_width = problem.cell(begin.sentences), options.beam_width
        self._problem, self._options, self._begin = problem, options, begin
        self._limits = tf.gather(problem.limits, begin.sentences)
        self._prefix = _of_sentences(problem.prefix, begin.sentences)
        self._widths = _of_sentences(problem.widths, begin.sentences)
        self._phrases = problem.phrases
        if problem.phrases is not None:
            self._phrases = problem.phrases.of_sentences(begin.sentences)

    @property
    def batch_size(self) -> tf.Tensor:
        return tf.size(self._begin.sentences)

    @property
    def output_size(self) -> BeamOutput:
        width = tf.TensorShape([self.beam_width])
        diagnostics = self.cell.first_state().diagnostics
        shapes = tuple(tf.concat([[self.beam_width], tf.shape(v)[1:]], 0) for v in diagnostics)
        return BeamOutput(width, width, shapes)

    @property
    def output_dtype(self) -> BeamOutput:
        return BeamOutput(tf.int32, tf.int32, tuple(tf.float32 for _ in self.cell.recorded))

    def initialize(self) -> tuple[tf.Tensor, tf.Tensor, _StageState]:
        """Continues from the end of the last stage."""
        begin = self._begin
        ids = tf.reshape(begin.last_ids, [-1])
        return begin.beam.finished, ids, _StageState(begin.beam, begin.state)

    def step(self, time: tf.Tensor, inputs: tf.Tensor, state: _StageState):
        beam, problem = state.beam, self._problem
        readout, next_state = self.cell(inputs, state.state)
        rules = self._rules(self._begin.time + time)
        continuations = best_continuations(
            problem.project, readout, beam, problem.vocabulary_size, rules
        )
        alignments = self._alignments(next_state, beam)
        selection, new_beam = beam_scoring.select(
            continuations, beam, alignments, rules, self._options
        )
        rows = _rows(tf.range(self.batch_size), self.beam_width, selection.parents)
        selected = tf.nest.map_structure(lambda leaf: tf.gather(leaf, rows), next_state)
        shape = [self.batch_size, self.beam_width, -1]
        diagnostics = tuple(tf.reshape(value, shape) for value in selected.diagnostics)
        output = BeamOutput(selection.ids, selection.parents, diagnostics)
        remaining = tf.reduce_sum(tf.cast(_unfinished(new_beam), tf.int32))
        stage_is_over = new_beam.finished | (4 * remaining <= 3 * self.batch_size)
        next_inputs = tf.reshape(selection.ids, [-1])
        return output, _StageState(new_beam, selected), next_inputs, stage_is_over

    def _rules(self, time: tf.Tensor) -> StepRules:
        return StepRules(
            time=time,
            limits=self._limits,
            restrictions=self._problem.restrictions,
            phrases=self._phrases,
            widths=self._widths,
            given_words=None if self._prefix is None else given_words(self._prefix, time),
        )

    def _alignments(self, state: FlatState, beam: Beam) -> tf.Tensor | None:
        if not self._options.coverage_penalty_weight:
            return None
        index = list(self.cell.recorded).index("alignments")
        return tf.reshape(state.diagnostics[index], tf.shape(beam.coverage))


def beam_search(
    problem: BeamProblem, start: tf.Tensor, mask: tf.Tensor, options: BeamOptions
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
    """Searches for the n = `options.num_best` best hypotheses of each sentence.

    Args:
      problem: the model's side; with a coverage penalty it records `alignments`.
      start: `[B]` first ids.
      mask: `[B, S]`, 1 at real source positions.
      options: width and scores.

    Returns:
      from best to worst: ids `[B, n, T]` filled with `</s>`, lengths `[B, n]` with the first
      `</s>`, scores `[B, n]`, diagnostics `[B, n, T, ...]`.
    """
    first = _first_search_state(problem, start, mask, options)
    shapes = _open_shapes(first)
    # TensorFlow's graph optimizer folds a known first shape into the loop, invariants or not.
    first = tf.nest.map_structure(tf.compat.v1.placeholder_with_default, first, shapes)
    (last,) = tf.while_loop(
        lambda current: tf.size(current.sentences) > 0,
        lambda current: (_run_until_shrunk(problem, options, current),),
        (first,),
        shape_invariants=(shapes,),
    )
    scores, ranks = tf.math.top_k(
        beam_scoring.final_scores(last.final_beam, options), options.num_best
    )
    lengths = tf.gather(last.final_beam.lengths, ranks, batch_dims=1)
    ids, flat_diagnostics = trace_back(last.outputs, ranks)
    real = tf.sequence_mask(lengths, tf.shape(ids)[2])
    diagnostics = problem.cell(first.sentences).restore(flat_diagnostics, leading_axes=3)
    return tf.where(real, ids, EOS_ID), lengths, scores, diagnostics


def _first_search_state(
    problem: BeamProblem, start: tf.Tensor, mask: tf.Tensor, options: BeamOptions
) -> _SearchState:
    """Returns the state before the first step: one live hypothesis for each sentence."""
    batch, width = tf.size(start), options.beam_width
    sentences = tf.range(batch)
    coverage = 1.0 - mask if options.coverage_penalty_weight else mask[:, :0]
    beam = first_beam(problem.limits, coverage, width, problem.restrictions, problem.phrases)
    state = tf.nest.map_structure(
        lambda leaf: tf.repeat(leaf, width, axis=0), problem.cell(sentences).first_state()
    )
    no_ids = tf.zeros([0, batch, width], tf.int32)
    no_diagnostics = tuple(
        tf.zeros(tf.concat([[0, batch, width], tf.shape(value)[1:]], axis=0))
        for value in state.diagnostics
    )
    return _SearchState(
        time=tf.constant(0),
        sentences=sentences,
        last_ids=tf.repeat(start[:, None], width, axis=1),
        beam=beam,
        state=state,
        final_beam=beam,
        outputs=BeamOutput(no_ids, no_ids, no_diagnostics),
    )


def _run_until_shrunk(
    problem: BeamProblem, options: BeamOptions, begin: _SearchState
) -> _SearchState:
    """Runs one stage: searches until enough sentences have ended, and removes these."""
    limits = tf.gather(problem.limits, begin.sentences)
    decoder = _BeamDecoder(problem, options, begin)
    outputs, (beam, state), _ = decode(decoder, problem.backend, tf.reduce_max(limits) - begin.time)
    remaining = tf.where(_unfinished(beam))[:, 0]
    width = options.beam_width
    rows = _rows(remaining, width, tf.range(width, dtype=tf.int64)[None])
    batch, count = tf.size(problem.limits), tf.size(begin.sentences)
    # for each of the B sentences: its old value's index, or B plus its index in this stage
    sources = tf.tensor_scatter_nd_update(
        tf.range(batch), begin.sentences[:, None], batch + tf.range(count)
    )

    def merge(old: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
        return tf.gather(tf.concat([old, new], axis=0), sources)

    return _SearchState(
        time=begin.time + tf.shape(outputs.predicted_ids)[0],
        sentences=tf.gather(begin.sentences, remaining),
        last_ids=tf.gather(outputs.predicted_ids[-1], remaining),
        beam=tf.nest.map_structure(lambda v: tf.gather(v, remaining), beam),
        state=tf.nest.map_structure(lambda v: tf.gather(v, rows), state),
        final_beam=tf.nest.map_structure(merge, begin.final_beam, beam),
        outputs=append_outputs(begin.outputs, outputs, sources),
    )


def _open_shapes(state: _SearchState) -> _SearchState:
    """Returns shapes that allow any number of steps, sentences and rows."""

    def open_axes(structure: Any, count: int) -> Any:
        return tf.nest.map_structure(
            lambda v: tf.TensorShape([None] * count).concatenate(v.shape[count:]), structure
        )

    return _SearchState(
        time=tf.TensorShape([]),
        sentences=tf.TensorShape([None]),
        last_ids=open_axes(state.last_ids, 1),
        beam=open_axes(state.beam, 1),
        state=open_axes(state.state, 1),
        final_beam=open_axes(state.final_beam, 1),
        outputs=open_axes(state.outputs, 2),
    )


def _of_sentences(values: tf.Tensor | None, sentences: tf.Tensor) -> tf.Tensor | None:
    """Returns the rows of `values` `[B, ...]` of some sentences."""
    return None if values is None else tf.gather(values, sentences)


def _unfinished(beam: Beam) -> tf.Tensor:
    """Returns which sentences `[B]` have a live hypothesis."""
    return tf.reduce_any(~beam.finished, axis=1)


def _rows(sentences: tf.Tensor, width: int, ranks: tf.Tensor) -> tf.Tensor:
    """Returns the state's rows of the hypotheses `ranks` `[n or 1, K]` of sentences `[n]`."""
    return tf.reshape(sentences[:, None] * width + ranks, [-1])
