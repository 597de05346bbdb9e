"""Our cells as decoders take them, and the decoders that follow one hypothesis.

tfa's decoders take states of rank 2 and keep nothing read-only. So a state is flattened here, and
what a step reads (the source, the weights' casts) is bound into a throw-away layer made for each
trace. Diagnostics ride in the state's last slot and leave as outputs: tfa's own way to hand out
alignments is one re-ordering late under beam search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

import tensorflow as tf

from tfmann.cells.base import StepOutput
from tfmann.corpus.vocab import EOS_ID
from tfmann.decoding.backend import decode
from tfmann.decoding.constraints import (
    UNCONSTRAINED,
    Constraints,
    add_words,
    forbid,
    no_words,
)
from tfmann.memory.deferred import Deferred
from tfmann.memory.steps import Steps

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
    multiplied: tuple[tf.Tensor, ...] = ()  # by deferred products, as bits


class _RowDecoder:
    """What the decoders share that follow one hypothesis a row, and record its diagnostics."""

    beam_width = 0

    def __init__(self, cell: BoundCell, limits: tf.Tensor):
        self.cell, self._limits = cell, limits

    @property
    def batch_size(self) -> tf.Tensor:
        return tf.shape(self._limits)[0]

    @property
    def output_size(self) -> _Recorded:
        seen = tuple(tf.shape(value)[1:] for value in self.cell.first().diagnostics)
        return _Recorded(self.cell.output_size, tf.TensorShape([]), seen)

    @property
    def output_dtype(self) -> _Recorded:
        return _Recorded(tf.float32, tf.int32, tuple(tf.float32 for _ in self.cell.recorded))


class _TeacherDecoder(_RowDecoder):
    """Reads given inputs, and leaves gradients of what stands still for after the loop."""

    def __init__(self, cell: BoundCell, lengths: tf.Tensor, inputs: tf.Tensor, deferred: Deferred):
        super().__init__(cell, lengths)
        self._inputs, self._deferred = Steps(inputs), deferred
        self._sinks = deferred.sinks(tf.shape(inputs)[:2])

    @property
    def output_size(self) -> _Recorded:
        return super().output_size._replace(multiplied=self._deferred.input_shapes)

    @property
    def output_dtype(self) -> _Recorded:
        return super().output_dtype._replace(multiplied=self._deferred.input_types)

    def initialize(self) -> tuple[tf.Tensor, tf.Tensor, Flat]:
        """No inputs go round: a step reads its own."""
        return tf.equal(self._limits, 0), tf.zeros_like(self._limits), self.cell.first()

    def step(self, time: tf.Tensor, inputs: tf.Tensor, state: Flat):
        given = self._inputs.read(time)
        with self._deferred.step([sink.read(time) for sink in self._sinks]) as multiplied:
            output, state = self.cell(given, state)
        ids = tf.zeros_like(self._limits)
        recorded = _Recorded(output, ids, state.diagnostics, tuple(multiplied))
        return recorded, state, inputs, time + 1 >= self._limits


class _ChoosingDecoder(_RowDecoder):
    """Feeds back what was chosen; the cell's output is `[id, log-probability]`."""

    def __init__(self, cell: BoundCell, limits: tf.Tensor, start: tf.Tensor):
        super().__init__(cell, limits)
        self._start = start

    def initialize(self) -> tuple[tf.Tensor, tf.Tensor, Flat]:
        """No row has finished; the first ids."""
        return tf.zeros_like(self._limits, tf.bool), self._start, self.cell.first()

    def step(self, time: tf.Tensor, inputs: tf.Tensor, state: Flat):
        del time
        output, state = self.cell(inputs, state)
        ids = tf.cast(output[:, 0], tf.int32)
        return _Recorded(output, ids, state.diagnostics), state, ids, tf.equal(ids, EOS_ID)


def teacher_forced(
    cell: BoundCell,
    inputs: tf.Tensor,
    lengths: tf.Tensor,
    constant: Any = (),
    backend: str = "auto",
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Runs the cell over given inputs `[T, B, I]`.

    Args:
      cell: the cell.
      inputs: of all steps.
      lengths: `[B]` steps of each row.
      constant: what a step reads that is the same at every step; the gradients of kernels and of
        annotations among it are made after the loop (`memory.deferred`).
      backend: the loop (`backend.decode`).

    Returns:
      outputs `[T', B, O]`, T' the greatest length; recorded diagnostics `[T', B, ...]`.
    """
    deferred = Deferred(lambda: cell.call(inputs[0], cell.first()), constant)
    decoder = _TeacherDecoder(cell, lengths, inputs, deferred)
    emitted, _, _ = decode(decoder, backend)
    deferred.inputs = emitted.multiplied
    return emitted.output, cell.restore(emitted.diagnostics, lead=2)


def choose_step_by_step(
    step_logits: Callable[[tf.Tensor, Any], StepOutput],
    choose: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    state: Any,
    start: tf.Tensor,
    limits: tf.Tensor,
    recorded: Mapping[str, tf.Tensor],
    constraints: Constraints = UNCONSTRAINED,
    backend: str = "auto",
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
    """Greedy decoding or sampling.

    Args:
      step_logits: ids `[B]` and state to a StepOutput whose output is logits `[B, V]`.
      choose: logits `[B, V]` and time to ids `[B]`.
      state: first state.
      start: `[B]` first ids.
      limits: `[B]` steps of each sentence; the last may only be `</s>`.
      recorded: diagnostics to record.
      constraints: words that may not be chosen.
      backend: the loop (`backend.decode`).

    Returns:
      ids `[B, T]`, lengths `[B]` with `</s>`, log-probabilities `[B, T]`, diagnostics `[B, T, ..]`.
    """
    # Ids pass through tfa as floats, exact below 2**24.
    words = tf.cast(no_words(tf.shape(start), limits, constraints), tf.float32)
    begun = Progress(tf.zeros([tf.shape(start)[0], 1]), words, state)

    def step(ids: tf.Tensor, state: Progress) -> StepOutput:
        out = step_logits(ids, state.state)
        time = tf.cast(state.time[:, 0], tf.int32)
        allowed = forbid(out.output, tf.cast(state.words, tf.int32), time[0], constraints)
        chosen = tf.where(time >= limits - 1, EOS_ID, choose(allowed, time[0]))
        scores = tf.gather(tf.nn.log_softmax(out.output), chosen, batch_dims=1)
        output = tf.stack([tf.cast(chosen, tf.float32), scores], axis=-1)
        words = add_words(state.words, output[:, 0], time[0])
        return StepOutput(output, Progress(state.time + 1, words, out.state), out.diagnostics)

    cell = BoundCell(step, begun, 2, recorded)
    decoder = _ChoosingDecoder(cell, limits, start)
    emitted, _, lengths = decode(decoder, backend, tf.reduce_max(limits))
    ids, chosen, seen = tf.nest.map_structure(
        swap_batch_and_time, (emitted.ids, emitted.output, emitted.diagnostics)
    )
    return ids, lengths, chosen[..., 1], cell.restore(seen, 2)


def swap_batch_and_time(value: tf.Tensor) -> tf.Tensor:
    """`[T, B, ...]` to `[B, T, ...]`, or the other way."""
    return tf.transpose(value, [1, 0, *range(2, value.shape.rank)])


class Progress(NamedTuple):
    """A state beside what has been chosen so far."""

    time: tf.Tensor  # [B, 1] steps taken
    words: tf.Tensor  # [B, L], or [B, 0] where no constraint looks at them
    state: Any
