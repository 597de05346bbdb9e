"""Reading a source with the decoder's own cell: the pure MANN (Collier & Beel 2019, 3.3)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tfmann.cells import diagnostics
from tfmann.cells.base import DecoderCell


def read_source(
    cell: DecoderCell,
    inputs: tf.Tensor,
    length: tf.Tensor,
    state: Any,
    source: Any,
    record: tuple[str, ...] = (),
) -> tuple[Any, dict[str, tf.Tensor]]:
    """Runs the cell over a source; padding does not change the state.

    Args:
      cell: the cell.
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
    words = tf.TensorArray(tf.float32, steps, element_shape=inputs.shape[1:]).unstack(inputs)
    names: list[str] = []
    shapes: list[tf.Tensor] = []
    if record:
        outputs = cell.step(inputs[0], state, source).diagnostics  # for names and shapes alone
        outputs = diagnostics.select(outputs, record)
        names, shapes = list(outputs), [outputs[name] for name in outputs]
    arrays = tuple(
        tf.TensorArray(tf.float32, steps, element_shape=tf.TensorShape([None, *s.shape[1:]]))
        for s in shapes
    )
    all_real = tf.reduce_min(length)  # up to here no sentence has ended

    def body(time: tf.Tensor, state: Any, arrays: tuple) -> tuple:
        out = cell.step(words.read(time), state, source)

        def carry() -> Any:
            def select(new: tf.Tensor, old: tf.Tensor) -> tf.Tensor:
                is_real = tf.reshape(time < length, [-1] + [1] * (new.shape.rank - 1))
                return tf.where(is_real, new, old)

            return tf.nest.map_structure(select, out.state, state)

        after = tf.cond(time < all_real, lambda: out.state, carry)
        after = tf.nest.map_structure(
            lambda new, old: tf.ensure_shape(new, old.shape), after, state
        )
        new_arrays = tuple(a.write(time, out.diagnostics[n]) for a, n in zip(arrays, names))
        return time + 1, after, new_arrays

    state = tf.nest.map_structure(_any_batch, state)
    _, state, arrays = tf.while_loop(
        lambda time, *_: time < steps, body, (tf.constant(0), state, arrays)
    )
    return state, {name: array.stack() for name, array in zip(names, arrays)}


def _any_batch(leaf: tf.Tensor) -> tf.Tensor:
    """Hides the batch size of a tensor from the graph, because loop variables keep their shape."""
    shape = tf.TensorShape([None, *leaf.shape[1:]])
    if tf.executing_eagerly():
        return leaf
    return tf.compat.v1.placeholder_with_default(leaf, shape)
