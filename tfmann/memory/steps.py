"""What a loop reads a step at a time, its gradient gathered without a sum at each step.

TensorFlow adds up the gradient of a list that a loop reads as it does any other: the list begins as
zeros, and at each step one is added to it that holds the step's part. The elements of a list that
were never set are read as zeros too, but nothing is added to them: a step's part is put in as it
is, and all parts are stacked after the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple

import tensorflow as tf


class Sink(NamedTuple):
    """Zeros that a loop reads at each step; what comes back to them makes a tensor's gradient."""

    handle: tf.Tensor  # a list of T elements, none of them set
    shape: tf.Tensor  # of an element
    static: tf.TensorShape  # what is known of it

    def read(self, time: tf.Tensor) -> tf.Tensor:
        """A step's zeros."""
        zeros = tf.raw_ops.TensorListGetItem(
            input_handle=self.handle,
            index=time,
            element_shape=self.shape,
            element_dtype=tf.float32,
        )
        return tf.ensure_shape(zeros, self.static)


def sink(
    tensor: tf.Tensor,
    steps: tf.Tensor,
    shape: Sequence[Any],
    gradient: Callable[[tf.Tensor], tf.Tensor],
) -> Sink:
    """A sink of `steps` elements.

    Args:
      tensor: whose gradient it makes.
      steps: T.
      shape: of an element, numbers or scalar tensors.
      gradient: makes the tensor's from what came back, `[T, *shape]`, zeros where nothing did.
    """
    whole = tf.stack(shape)

    @tf.custom_gradient
    def run(tensor: tf.Tensor):
        del tensor

        def back(d: tf.Tensor) -> tf.Tensor:
            parts = tf.raw_ops.TensorListStack(
                input_handle=d, element_shape=whole, element_dtype=tf.float32
            )
            return gradient(tf.ensure_shape(parts, [None, *static]))

        handle = tf.raw_ops.TensorListReserve(
            element_shape=whole, num_elements=steps, element_dtype=tf.float32
        )
        return handle, back

    static = tf.TensorShape([tf.get_static_value(size) for size in shape])
    return Sink(run(tensor), whole, static)


class Steps:
    """Reads `values [T, ...]` a step at a time."""

    def __init__(self, values: tf.Tensor):
        """Takes them apart."""
        shape = tf.shape(values)
        array = tf.TensorArray(values.dtype, shape[0], element_shape=values.shape[1:])
        self._array = array.unstack(tf.stop_gradient(values))
        sizes = [
            shape[axis] if size is None else size for axis, size in enumerate(values.shape)
        ]
        self._sink = sink(values, shape[0], sizes[1:], lambda parts: parts)

    def read(self, time: tf.Tensor) -> tf.Tensor:
        """A step's, `[...]`."""
        return _instead(self._array.read(time), self._sink.read(time))


@tf.custom_gradient
def _instead(values: tf.Tensor, zeros: tf.Tensor):
    """The values; their gradient goes to the zeros."""
    del zeros
    return tf.identity(values), lambda d: (None, d)
