"""Reading a source with the decoder's own cell: the pure MANN (Collier & Beel 2019, 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tfmann.cells import contract
from tfmann.cells.base import DecoderCell, StepOutput
from tfmann.layers.compute_weights import with_weights
from tfmann.ops.loop_gradients import LoopGradients


def read_source(
    cell: DecoderCell,
    weights: Sequence[tf.Tensor],
    inputs: tf.Tensor,
    length: tf.Tensor,
    state: Any,
    source: Any,
    record: tuple[str, ...] = (),
) -> tuple[Any, dict[str, tf.Tensor]]:
    """Runs the cell over a source; padding does not change the state.

    The gradients of kernels in bfloat16 are made after the loop (`ops.loop_gradients`).

    Args:
      cell: the cell.
      weights: what it computes with in the place of its variables (`layers.compute_weights`).
      inputs: prepared inputs `[S, B, I]`.
      length: `[B]` real positions, at least 1.
      state: the state before the first word.
      source: what `cell.prepare` returned.
      record: diagnostics to record at every position (`cells.diagnostics`).

    Returns:
      each sentence's state after its last word; diagnostics by name `[S, B, ...]`,
      undefined at padding.
    """
    steps = tf.shape(inputs)[0]
    constants = LoopGradients((tuple(weights), source), steps, fields={})

    def step(word: tf.Tensor, state: Any, constants: Any = constants.source) -> StepOutput:
        weights, source = constants
        result = with_weights(cell, weights).step(word, state, source)
        contract.require_step(result, state, cell.output_width)
        return result

    words = tf.TensorArray(tf.float32, steps, element_shape=inputs.shape[1:]).unstack(inputs)
    recorded = contract.recorded_shapes(step, inputs[0], state, record)
    arrays = tuple(
        tf.TensorArray(tf.float32, steps, element_shape=tf.TensorShape([None, *first.shape[1:]]))
        for first in recorded.values()
    )
    all_real = tf.reduce_min(length)  # up to here no sentence has ended

    def body(time: tf.Tensor, state: Any, arrays: tuple) -> tuple:
        out = step(words.read(time), state, constants.at(time))
        is_real = time < length
        after = tf.cond(
            time < all_real, lambda: out.state, lambda: _choose(is_real, out.state, state)
        )
        after = tf.nest.map_structure(
            lambda new, old: tf.ensure_shape(new, old.shape), after, state
        )
        new_arrays = tuple(a.write(time, out.diagnostics[n]) for a, n in zip(arrays, recorded))
        return time + 1, after, new_arrays

    state = tf.nest.map_structure(_any_batch, state)
    _, state, arrays = tf.while_loop(
        lambda time, *_: time < steps, body, (tf.constant(0), state, arrays)
    )
    return state, {name: array.stack() for name, array in zip(recorded, arrays)}


def _choose(is_real: tf.Tensor, after: Any, before: Any) -> Any:
    """Returns the states `after` a step in the rows `[B]` where it is real, else those `before`."""

    def select(new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
        return tf.where(tf.reshape(is_real, [-1] + [1] * (new.shape.rank - 1)), new, old)

    return tf.nest.map_structure(select, after, before)


def _any_batch(leaf: tf.Tensor) -> tf.Tensor:
    """Hides the batch size of a tensor from the graph, because loop variables keep their shape."""
    shape = tf.TensorShape([None, *leaf.shape[1:]])
    if tf.executing_eagerly():
        return leaf
    return tf.compat.v1.placeholder_with_default(leaf, shape)
