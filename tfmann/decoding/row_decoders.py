"""Decoders that follow one hypothesis a row: given words, or samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

import tensorflow as tf

from tfmann.cells.base import StepOutput
from tfmann.data.vocab import EOS_ID
from tfmann.decoding.backend import decode
from tfmann.decoding.bound_cell import BoundCell, FlatState, StepFunction
from tfmann.decoding.restrictions import UNRESTRICTED, Restrictions, add_words, forbid, no_words
from tfmann.decoding.target_prefix import ANY_WORD, given_words
from tfmann.layers.luong_attention import AttentionSource
from tfmann.ops.loop_gradients import LoopGradients
from tfmann.ops.step_reader import StepReader

# fields whose gradients are made after the loop
_MATRICES = {AttentionSource: ("keys", "values")}


class _RowOutput(NamedTuple):
    """The outputs of a step."""

    output: tf.Tensor  # [B, O]
    ids: tf.Tensor  # [B]
    diagnostics: tuple[tf.Tensor, ...]  # each [B, n]


class _RowDecoder:
    """A decoder of one hypothesis a row, which records its diagnostics; two subclasses step it."""

    beam_width = 0

    def __init__(self, cell: BoundCell, limits: tf.Tensor):
        self.cell, self._limits = cell, limits

    @property
    def batch_size(self) -> tf.Tensor:
        return tf.shape(self._limits)[0]

    @property
    def output_size(self) -> _RowOutput:
        shapes = tuple(tf.shape(value)[1:] for value in self.cell.first_state().diagnostics)
        return _RowOutput(self.cell.output_size, tf.TensorShape([]), shapes)

    @property
    def output_dtype(self) -> _RowOutput:
        return _RowOutput(tf.float32, tf.int32, tuple(tf.float32 for _ in self.cell.recorded))


class _TeacherDecoder(_RowDecoder):
    """Reads given inputs; the gradients of what every step reads are made after the loop."""

    def __init__(self, cell: BoundCell, lengths: tf.Tensor, inputs: tf.Tensor, constants: Any):
        super().__init__(cell, lengths)
        self._inputs = StepReader(inputs)
        self._constants = LoopGradients(constants, tf.shape(inputs)[0], _MATRICES)

    def initialize(self) -> tuple[tf.Tensor, tf.Tensor, FlatState]:
        """Returns which rows have no steps, inputs that nothing reads, and the first state."""
        return tf.equal(self._limits, 0), tf.zeros_like(self._limits), self.cell.first_state()

    def step(self, time: tf.Tensor, inputs: tf.Tensor, state: FlatState):
        constants = self._constants.at(time)
        output, state = self.cell.run(self._inputs.read(time), state, constants)
        row_output = _RowOutput(output, tf.zeros_like(self._limits), state.diagnostics)
        return row_output, state, inputs, time + 1 >= self._limits


class _ChoosingDecoder(_RowDecoder):
    """Feeds back the chosen ids; the cell's output is `[id, log-probability]`."""

    def __init__(self, cell: BoundCell, limits: tf.Tensor, start: tf.Tensor):
        super().__init__(cell, limits)
        self._start = start

    def initialize(self) -> tuple[tf.Tensor, tf.Tensor, FlatState]:
        """Returns that no row has finished, the first ids and the first state."""
        return tf.zeros_like(self._limits, tf.bool), self._start, self.cell.first_state()

    def step(self, time: tf.Tensor, inputs: tf.Tensor, state: FlatState):
        del time
        output, state = self.cell(inputs, state)
        ids = tf.cast(output[:, 0], tf.int32)
        return _RowOutput(output, ids, state.diagnostics), state, ids, tf.equal(ids, EOS_ID)


def run_given_inputs(
    cell: BoundCell,
    inputs: tf.Tensor,
    lengths: tf.Tensor,
    constants: Any,
    backend: str = "auto",
) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Runs the cell over given inputs.

    Args:
      cell: the cell, whose step function takes inputs, state and constants.
      inputs: of all steps, `[T, B, I]`.
      lengths: `[B]` steps of each row.
      constants: nested tuples of what every step reads; the gradients of matrices in them are
        made after the loop (`ops.loop_gradients`).
      backend: the loop (`backend.decode`).

    Returns:
      outputs `[T', B, O]`, T' the greatest length; recorded diagnostics `[T', B, ...]`.
    """
    outputs, _, _ = decode(_TeacherDecoder(cell, lengths, inputs, constants), backend)
    return outputs.output, cell.restore(outputs.diagnostics, leading_axes=2)


class _Progress(NamedTuple):
    """The cell's state and the words chosen so far."""

    time: tf.Tensor  # [B, 1] steps taken
    words: tf.Tensor  # [B, L], or [B, 0] where no restriction needs them
    state: Any


def choose_step_by_step(
    step_logits: StepFunction,
    choose: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    state: Any,
    start: tf.Tensor,
    limits: tf.Tensor,
    recorded: Mapping[str, tf.Tensor],
    restrictions: Restrictions = UNRESTRICTED,
    backend: str = "auto",
    prefix: tf.Tensor | None = None,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, dict[str, tf.Tensor]]:
    """Decodes one hypothesis a sentence, word by word as `choose` says.

    Args:
      step_logits: ids `[B]` and state to a StepOutput whose output is logits `[B, V]`.
      choose: logits `[B, V]` and time to ids `[B]`.
      state: first state.
      start: `[B]` first ids.
      limits: `[B]` steps of each sentence; the last may only be `</s>`.
      recorded: diagnostics to record, tensors `[B, ...]` of their shapes by name.
      restrictions: words that may not be chosen.
      backend: the loop (`backend.decode`).
      prefix: `[B, P]` given first words (`target_prefix`), fewer than the limits.

    Returns:
      ids `[B, T]`, lengths `[B]` with `</s>`, log-probabilities `[B, T]`, diagnostics `[B, T, ..]`.
    """
    # Ids pass through tfa as floats, exact below 2**24.
    words = tf.cast(no_words(tf.shape(start), limits, restrictions), tf.float32)
    first = _Progress(tf.zeros([tf.shape(start)[0], 1]), words, state)

    def step(ids: tf.Tensor, progress: _Progress) -> StepOutput:
        result = step_logits(ids, progress.state)
        time = tf.cast(progress.time[:, 0], tf.int32)
        allowed = forbid(result.output, tf.cast(progress.words, tf.int32), time[0], restrictions)
        chosen = tf.where(time >= limits - 1, EOS_ID, choose(allowed, time[0]))
        if prefix is not None:
            prefix_word = given_words(prefix, time[0])
            chosen = tf.where(tf.equal(prefix_word, ANY_WORD), chosen, prefix_word)
        scores = tf.gather(tf.nn.log_softmax(result.output), chosen, batch_dims=1)
        output = tf.stack([tf.cast(chosen, tf.float32), scores], axis=-1)
        words = add_words(progress.words, output[:, 0], time[0])
        after = _Progress(progress.time + 1, words, result.state)
        return StepOutput(output, after, result.diagnostics)

    cell = BoundCell(step, first, 2, recorded)
    decoder = _ChoosingDecoder(cell, limits, start)
    outputs, _, lengths = decode(decoder, backend, tf.reduce_max(limits))
    ids, chosen, diagnostics = tf.nest.map_structure(
        swap_batch_and_time, (outputs.ids, outputs.output, outputs.diagnostics)
    )
    return ids, lengths, chosen[..., 1], cell.restore(diagnostics, leading_axes=2)


def swap_batch_and_time(value: tf.Tensor) -> tf.Tensor:
    """Swaps the axes of `[T, B, ...]`."""
    return tf.transpose(value, [1, 0, *range(2, value.shape.rank)])
