"""Our cells at tfa.seq2seq's door; the only file that imports tensorflow_addons.

tfa's decoders take states of rank 2 and keep nothing read-only. So a state is flattened here, and
what a step reads (the source, the weights' casts) is bound into a throw-away layer made for each
trace. Diagnostics ride in the state's last slot and leave as outputs: tfa's own way to hand out
alignments is one re-ordering late under beam search.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

import tensorflow as tf

from tfmann.cells.base import StepOutput
from tfmann.corpus.vocab import EOS_ID
from tfmann.decoding import beam

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the notice that tfa is no longer developed
    import tensorflow_addons as tfa
    from tensorflow_addons.seq2seq.beam_search_decoder import (
        BeamSearchDecoderState,
        gather_tree_from_array,
    )

tfa.options.disable_custom_kernel()  # gather_tree in plain TensorFlow: exports load anywhere

Step = Callable[[tf.Tensor, Any], StepOutput]  # inputs [B, I], state -> StepOutput


class Flat(NamedTuple):
    """A state as tfa sees it: every leaf `[B, n]`, and the last step's diagnostics."""

    leaves: tuple[tf.Tensor, ...]
    diagnostics: tuple[tf.Tensor, ...]


class BoundCell(tf.keras.layers.Layer):
    """A step function over any-rank states, as a cell over rank-2 states.

    Attributes:
      recorded: names and shapes (without batch) of the diagnostics that leave a step.
    """

    def __init__(
        self,
        step: Step,
        state: Any,
        output_width: int,
        recorded: Mapping[str, tf.Tensor] | None = None,
    ):
        """Binds `step`.

        Args:
          step: one step in logical shapes.
          state: the first state, a structure of float tensors `[B, ...]`.
          output_width: width of `StepOutput.output`.
          recorded: what to record: name to a tensor `[B, ...]` of the diagnostic's shape.
        """
        super().__init__(name="bound_cell")
        self._step, self._structure = step, state
        leaves = tf.nest.flatten(state)
        if any(not leaf.dtype.is_floating for leaf in leaves):
            raise TypeError("every leaf of a cell's state must be a float tensor")
        self._shapes = [tf.shape(leaf)[1:] for leaf in leaves]
        self._static = [leaf.shape[1:] for leaf in leaves]
        self.recorded = dict(recorded or {})
        self.output_size = tf.TensorShape([output_width])
        self.state_size = Flat(
            leaves=tuple(_flat_shape(shape) for shape in self._static),
            diagnostics=tuple(_flat_shape(v.shape[1:]) for v in self.recorded.values()),
        )

    def first(self) -> Flat:
        """The first state, flattened."""
        empty = tuple(_flatten(tf.zeros_like(value)) for value in self.recorded.values())
        return Flat(tuple(_flatten(leaf) for leaf in tf.nest.flatten(self._structure)), empty)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None):
        """As Keras wants it."""
        del inputs, batch_size, dtype
        return self.first()

    def call(self, inputs: tf.Tensor, state: Flat, training: bool | None = None):
        """One step: output and the new flattened state."""
        del training
        leaves = []
        for leaf, shape, static in zip(state.leaves, self._shapes, self._static):
            if static.rank > 1:
                leaf = tf.reshape(leaf, tf.concat([[-1], shape], axis=0))
                leaf = tf.ensure_shape(leaf, tf.TensorShape([None]).concatenate(static))
            leaves.append(leaf)
        out = self._step(inputs, tf.nest.pack_sequence_as(self._structure, leaves))
        flat = tuple(_flatten(leaf) for leaf in tf.nest.flatten(out.state))
        seen = tuple(_flatten(out.diagnostics[name]) for name in self.recorded)
        return out.output, Flat(flat, seen)

    def restore(self, seen: tuple[tf.Tensor, ...], lead: int) -> dict[str, tf.Tensor]:
        """Undoes the flattening of recorded diagnostics that have `lead` axes before it."""
        return {
            name: tf.reshape(value, tf.concat([tf.shape(value)[:lead], tf.shape(like)[1:]], 0))
            for (name, like), value in zip(self.recorded.items(), seen)
        }


def _flat_shape(shape: tf.TensorShape) -> tf.TensorShape:
    return tf.TensorShape([shape.num_elements()])


def _flatten(leaf: tf.Tensor) -> tf.Tensor:
    if leaf.shape.rank == 2:
        return leaf
    width = leaf.shape[1:].num_elements()
    if width is not None:
        return tf.reshape(leaf, [-1, width])
    return tf.reshape(leaf, [tf.shape(leaf)[0], tf.reduce_prod(tf.shape(leaf)[1:])])


class _Recorded(NamedTuple):
    """What a basic decoder emits at a step."""

    output: tf.Tensor
    ids: tf.Tensor
    diagnostics: tuple[tf.Tensor, ...]


class _RecordingDecoder(tfa.seq2seq.BasicDecoder):
    """A BasicDecoder that also emits the recorded diagnostics."""

    @property
    def output_size(self) -> _Recorded:
        seen = tuple(tf.shape(value)[1:] for value in self.cell.first().diagnostics)
        return _Recorded(self.cell.output_size, self.sampler.sample_ids_shape, seen)

    @property
    def output_dtype(self) -> _Recorded:
        seen = tuple(tf.float32 for _ in self.cell.recorded)
        return _Recorded(tf.float32, self.sampler.sample_ids_dtype, seen)

    def step(self, time, inputs, state, training=None):
        output, state = self.cell(inputs, state, training=training)
        ids = self.sampler.sample(time, output, state)
        finished, next_inputs, state = self.sampler.next_inputs(time, output, state, ids)
        return _Recorded(output, ids, state.diagnostics), state, next_inputs, finished


class _TeacherSampler(tfa.seq2seq.TrainingSampler):
    """Feeds the given inputs; samples nothing (tfa's takes an argmax over hidden units)."""

    def sample(self, time, outputs, state):
        del time, state
        return tf.zeros(tf.shape(outputs)[:1], tf.int32)


def teacher_forced(
    cell: BoundCell, inputs: tf.Tensor, lengths: tf.Tensor
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Runs the cell over given inputs `[T, B, I]` by tfa's BasicDecoder.

    Returns:
      outputs `[T', B, O]`, T' the greatest length; recorded diagnostics `[T', B, ...]`.
    """
    decoder = _RecordingDecoder(cell, _TeacherSampler(time_major=True), output_time_major=True)
    emitted, _, _ = decoder(inputs, initial_state=cell.first(), sequence_length=lengths)
    return emitted.output, cell.restore(emitted.diagnostics, lead=2)


class _ChoosingSampler(tfa.seq2seq.Sampler):
    """Feeds back what was chosen; the cell's output is `[id, log-probability]`."""

    def __init__(self, limits: tf.Tensor, start: tf.Tensor):
        self._limits, self._start = limits, start

    @property
    def batch_size(self):
        return tf.shape(self._limits)[0]

    @property
    def sample_ids_shape(self):
        return tf.TensorShape([])

    @property
    def sample_ids_dtype(self):
        return tf.int32

    def initialize(self, inputs, **kwargs):
        del inputs, kwargs
        return tf.zeros_like(self._limits, tf.bool), self._start

    def sample(self, time, outputs, state):
        del time, state
        return tf.cast(outputs[:, 0], tf.int32)

    def next_inputs(self, time, outputs, state, sample_ids):
        del time, outputs
        return tf.equal(sample_ids, EOS_ID), sample_ids, state


def choose_step_by_step(
    step_logits: Callable[[tf.Tensor, Any], StepOutput],
    choose: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    state: Any,
    start: tf.Tensor,
    limits: tf.Tensor,
    recorded: Mapping[str, tf.Tensor],
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
    """Greedy decoding or sampling by tfa's BasicDecoder.

    Args:
      step_logits: ids `[B]` and state to a StepOutput whose output is logits `[B, V]`.
      choose: logits `[B, V]` and time to ids `[B]`.
      state: first state.
      start: `[B]` first ids.
      limits: `[B]` steps of each sentence; the last may only be `</s>`.
      recorded: diagnostics to record.

    Returns:
      ids `[B, T]`, lengths `[B]` with `</s>`, log-probabilities `[B, T]`, diagnostics `[B, T, ..]`.
    """
    timed = Timed(tf.zeros([tf.shape(start)[0], 1]), state)

    def step(ids: tf.Tensor, state: Timed) -> StepOutput:
        out = step_logits(ids, state.state)
        time = tf.cast(state.time[:, 0], tf.int32)
        chosen = tf.where(time >= limits - 1, EOS_ID, choose(out.output, time[0]))
        scores = tf.gather(tf.nn.log_softmax(out.output), chosen, batch_dims=1)
        # ids pass as floats through tfa's one output tensor: exact below 2**24
        output = tf.stack([tf.cast(chosen, tf.float32), scores], axis=-1)
        return StepOutput(output, Timed(state.time + 1, out.state), out.diagnostics)

    cell = BoundCell(step, timed, 2, recorded)
    decoder = _RecordingDecoder(
        cell, _ChoosingSampler(limits, start), maximum_iterations=tf.reduce_max(limits)
    )
    emitted, _, lengths = decoder(None, initial_state=cell.first())
    return emitted.ids, lengths, emitted.output[..., 1], cell.restore(emitted.diagnostics, 2)


class Timed(NamedTuple):
    """A state beside the number of steps taken."""

    time: tf.Tensor  # [B, 1]
    state: Any


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
    ):
        super().__init__(cell, search.beam_width, reorder_tensor_arrays=False)
        self._project, self._vocabulary_size = project, vocabulary_size
        self._search, self._limits = search, limits
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
        start = beam.start(self._batch_size, width, self._source_width())
        begun = BeamSearchDecoderState(
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
        next_search = BeamSearchDecoderState(
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
        ids = gather_tree_from_array(outputs.predicted_ids, parents, whole)
        steps = tf.transpose(tf.sequence_mask(lengths, tf.shape(ids)[0]), [2, 0, 1])
        seen = tuple(gather_tree_from_array(v, parents, whole) for v in outputs.diagnostics)
        ids = tf.where(steps, ids, EOS_ID)
        return BeamOutput(outputs.scores, ids, outputs.parent_ids, seen), final_state

    def _alignments(self, state: Flat) -> tf.Tensor | None:
        if "alignments" not in self._cell.recorded:
            return None
        index = list(self._cell.recorded).index("alignments")
        shape = [self._batch_size, self._beam_width, self._source_width()]
        return tf.reshape(state.diagnostics[index], shape)

    def _source_width(self) -> tf.Tensor:
        alignments = self._cell.recorded.get("alignments")
        return tf.constant(0) if alignments is None else tf.shape(alignments)[1]


def beam_search(
    step: Step,
    project: Callable[[tf.Tensor], tf.Tensor],
    sizes: tuple[int, int],
    state: Any,
    start: tf.Tensor,
    limits: tf.Tensor,
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
      search: how.
      recorded: diagnostics to record.

    Returns:
      ids `[B, K, T]` filled with `</s>`, lengths `[B, K]` with the first `</s>`, scores `[B, K]`
      from best to worst, diagnostics `[B, K, T, ...]`.
    """
    readout_width, vocabulary_size = sizes
    cell = BoundCell(step, state, readout_width, recorded)
    decoder = _BeamDecoder(cell, project, vocabulary_size, search, limits)
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
