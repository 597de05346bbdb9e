"""Beam search by tfa's BeamSearchDecoder, over states of any rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tfmann.corpus.vocab import EOS_ID
from tfmann.decoding import beam
from tfmann.decoding.adapter import BoundCell, Flat, Step, tfa

_tfa_beam = tfa.seq2seq.beam_search_decoder


class BeamOutput(NamedTuple):
    """What the beam search emits at a step."""

    scores: tf.Tensor  # [B, K]
    predicted_ids: tf.Tensor  # [B, K]
    parent_ids: tf.Tensor  # [B, K]
    diagnostics: tuple[tf.Tensor, ...]  # each [B, K, n], of the selected hypotheses


class _BeamDecoder(tfa.seq2seq.BeamSearchDecoder):
    """tfa's BeamSearchDecoder with our selection (`decoding.beam`) and recorded diagnostics."""

    def __init__(
        self,
        cell: BoundCell,
        project: Callable[[tf.Tensor], tf.Tensor],
        vocabulary_size: int,
        search: beam.Search,
        limits: tf.Tensor,
        coverage: tf.Tensor,
    ):
        super().__init__(cell, search.beam_width, reorder_tensor_arrays=False)
        self._project, self._vocabulary_size = project, vocabulary_size
        self._search, self._limits, self._coverage = search, limits, coverage
        self._batch_size = tf.shape(limits)[0]
        self._end_token = EOS_ID

    @property
    def output_size(self) -> BeamOutput:
        width = tf.TensorShape([self._beam_width])
        first = self._cell.first().diagnostics
        seen = tuple(tf.concat([[self._beam_width], tf.shape(v)[1:]], 0) for v in first)
        return BeamOutput(width, width, width, seen)

    @property
    def output_dtype(self) -> BeamOutput:
        seen = tuple(tf.float32 for _ in self._cell.recorded)
        return BeamOutput(tf.float32, tf.int32, tf.int32, seen)

    def initialize(self, inputs, initial_state=None, **kwargs):
        """`inputs` are first ids `[B]`; `initial_state` is flattened, rows are sentences."""
        del kwargs
        width = self._beam_width
        state = tf.nest.map_structure(lambda leaf: tf.repeat(leaf, width, axis=0), initial_state)
        start = beam.start(self._batch_size, width, self._coverage)
        begun = _tfa_beam.BeamSearchDecoderState(
            cell_state=state,
            log_probs=start.log_probs,
            finished=start.finished,
            lengths=start.lengths,
            accumulated_attention_probs=start.coverage,
        )
        return start.finished, tf.repeat(inputs, width), begun

    def step(self, time, inputs, state, training=None, name=None):
        readout, next_state = self._cell(inputs, state.cell_state, training=training)
        old = beam.Beam(
            state.log_probs, state.finished, state.lengths, state.accumulated_attention_probs
        )
        found = beam.continuations(
            self._project, readout, old, time, self._limits, self._vocabulary_size
        )
        alignments = self._alignments(next_state)
        chosen, new = beam.select(found, old, alignments, self._limits, self._search)
        first_rows = tf.range(self._batch_size)[:, None] * self._beam_width
        rows = tf.reshape(chosen.parents + first_rows, [-1])
        kept = tf.nest.map_structure(lambda leaf: tf.gather(leaf, rows), next_state)
        seen = tuple(
            tf.reshape(v, [self._batch_size, self._beam_width, tf.shape(v)[1]])
            for v in kept.diagnostics
        )
        next_search = _tfa_beam.BeamSearchDecoderState(
            cell_state=kept,
            log_probs=new.log_probs,
            finished=new.finished,
            lengths=new.lengths,
            accumulated_attention_probs=new.coverage,
        )
        output = BeamOutput(chosen.scores, chosen.ids, chosen.parents, seen)
        return output, next_search, tf.reshape(chosen.ids, [-1]), new.finished

    def finalize(self, outputs, final_state, sequence_lengths):
        """Follows the parents: ids `[T, B, K]` and diagnostics `[T, B, K, ...]` of each path.

        From the last step of all: a sentence that is done goes on beside the others, and its
        hypotheses change places then (tfa begins at a sentence's own greatest length).
        """
        del sequence_lengths
        parents, lengths = outputs.parent_ids, final_state.lengths
        whole = tf.fill(tf.shape(lengths), tf.shape(parents)[0])
        follow = _tfa_beam.gather_tree_from_array
        ids = follow(outputs.predicted_ids, parents, whole)
        steps = tf.transpose(tf.sequence_mask(lengths, tf.shape(ids)[0]), [2, 0, 1])
        seen = tuple(follow(value, parents, whole) for value in outputs.diagnostics)
        ids = tf.where(steps, ids, EOS_ID)
        return BeamOutput(outputs.scores, ids, outputs.parent_ids, seen), final_state

    def _alignments(self, state: Flat) -> tf.Tensor | None:
        if not self._search.coverage_penalty_weight:
            return None
        index = list(self._cell.recorded).index("alignments")
        shape = [self._batch_size, self._beam_width, tf.shape(self._coverage)[1]]
        return tf.reshape(state.diagnostics[index], shape)


def beam_search(
    step: Step,
    project: Callable[[tf.Tensor], tf.Tensor],
    sizes: tuple[int, int],
    state: Any,
    start: tf.Tensor,
    limits: tf.Tensor,
    mask: tf.Tensor,
    search: beam.Search,
    recorded: Mapping[str, tf.Tensor],
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
    """Beam search by tfa's BeamSearchDecoder.

    Args:
      step: ids `[B*K]` and state to a StepOutput whose output is a readout `[B*K, R]`.
      project: readout `[M, R]` to logits `[M, V]`.
      sizes: R and V.
      state: first state, a row a sentence.
      start: `[B]` first ids.
      limits: `[B]` steps of each sentence; the last may only be `</s>`.
      mask: `[B, S]`, 1 at real source positions.
      search: how.
      recorded: diagnostics to record; with a coverage penalty, `alignments` among them.

    Returns:
      ids `[B, K, T]` filled with `</s>`, lengths `[B, K]` with the first `</s>`, scores `[B, K]`
      from best to worst, diagnostics `[B, K, T, ...]`.
    """
    readout_width, vocabulary_size = sizes
    cell = BoundCell(step, state, readout_width, recorded)
    coverage = 1.0 - mask if search.coverage_penalty_weight else mask[:, :0]
    decoder = _BeamDecoder(cell, project, vocabulary_size, search, limits, coverage)
    emitted, final, _ = tfa.seq2seq.dynamic_decode(
        decoder,
        output_time_major=True,
        maximum_iterations=tf.reduce_max(limits),
        decoder_init_input=start,
        decoder_init_kwargs={"initial_state": cell.first()},
    )
    ended = beam.Beam(
        final.log_probs, final.finished, final.lengths, final.accumulated_attention_probs
    )
    scores, order = tf.math.top_k(beam.settled_scores(ended, search), search.beam_width)
    ids = tf.gather(tf.transpose(emitted.predicted_ids, [1, 2, 0]), order, batch_dims=1)
    seen = cell.restore(emitted.diagnostics, lead=3)
    seen = {
        name: tf.gather(
            tf.transpose(v, tf.concat([[1, 2, 0], tf.range(3, tf.rank(v))], 0)), order, batch_dims=1
        )
        for name, v in seen.items()
    }
    return ids, tf.gather(ended.lengths, order, batch_dims=1), scores, seen
