"""Gradients of what every step of a loop multiplies by, each as one product after the loop.

Automatic differentiation makes the whole gradient of a matrix at every step, `x_t^T d_t`, and adds
it to the sum of the steps before. Here a step puts x_t and d_t into two lists, and one product of
all of them is computed after the backward pass. `LoopGradients` replaces these matrices among the
constants of a step (gains in words/s, alternating batches, two cores):

- The keys and values of dot-product attention, one matrix per sentence. `luong` in float32: 1.15 at
  the paper's size, 1.01 at the small one; in bfloat16, small: 1.06.
- Kernels in bfloat16, in which a sum over steps loses small addends. KVMemAtt with two rounds: 1.05
  to 1.08. Kernels in float32 stay in the loop: deferred, they gained nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable

import tensorflow as tf

from tfmann.ops.gradients import custom_gradient
from tfmann.ops.step_reader import empty_list, list_with


class LoopGradients:
    """Constants of a loop's steps, with gradients that are computed after the loop.

    Attributes:
      source: the constants as they were given.
    """

    def __init__(self, source: Any, steps: tf.Tensor, fields: Mapping[Any, Sequence[str]]):
        """Prepares the matrices of a structure.

        Args:
          source: nested tuples (NamedTuples among them) of what every step reads.
          steps: T, the greatest number of steps.
          fields: for a type of NamedTuple, the names of the fields that have one matrix per
            sentence, `[B, I, O]`, by which a step multiplies `[B, n, I]`.
        """

        def convert(leaf: Any, marked: bool) -> Any:
            return _LoopMatrix(leaf, steps) if marked or is_kernel(leaf) else leaf

        self.source = source
        self._prepared = _map(convert, source, fields)

    def at(self, time: tf.Tensor) -> Any:
        """Returns the structure as the step `time` reads it, for use in that step alone."""
        return _map(
            lambda leaf, _: StepMatrix(leaf, time) if isinstance(leaf, _LoopMatrix) else leaf,
            self._prepared,
            {},
        )


class StepMatrix:
    """A matrix `[I, O]` or `[B, I, O]` as one step of a loop reads it: `values @ matrix`.

    The gradient of its first product in a step is made after the loop; any other product of that
    step is differentiated as usual.

    Attributes:
      tensor: the matrix.
    """

    def __init__(self, matrix: _LoopMatrix, time: tf.Tensor):
        """Binds a matrix to a step."""
        self._matrix, self._time, self._used = matrix, time, False
        self.tensor = matrix.tensor
        self.dtype, self.shape = self.tensor.dtype, self.tensor.shape

    def __rmatmul__(self, values: tf.Tensor) -> tf.Tensor:
        """Multiplies `[B, I]` by a kernel, or `[B, n, I]` by one matrix for each sentence."""
        if self._used:
            return tf.matmul(values, self.tensor)
        self._used = True

        @custom_gradient
        def run(values: tf.Tensor, inputs: tf.Tensor, errors: tf.Tensor):
            del inputs, errors

            def gradient(d: tf.Tensor):
                d_values = tf.matmul(d, self.tensor, transpose_b=True)
                return (d_values, *(self._matrix.list_with(v, self._time) for v in (values, d)))

            return tf.matmul(values, self.tensor), gradient

        return run(values, self._matrix.inputs, self._matrix.errors)


def is_kernel(leaf: Any) -> bool:
    """Tells whether a leaf is a kernel whose gradient is to be made after the loop."""
    return isinstance(leaf, tf.Tensor) and leaf.dtype == tf.bfloat16 and leaf.shape.rank == 2


class _LoopMatrix:
    """A matrix with two lists, whose gradients hold x_t and d_t of every step and make its own.

    The gradient of a list that a loop reads is the sum of its gradients at all steps, element by
    element. An element that was not set counts as nothing, so no step adds anything.
    """

    def __init__(self, tensor: tf.Tensor, steps: tf.Tensor):
        self.tensor, self._steps = tf.convert_to_tensor(tensor), steps
        rank = tensor.shape.rank
        *sentences, height, width = tf.unstack(tf.shape(tensor), rank)  # [] or [B], I, O

        @custom_gradient
        def run(tensor: tf.Tensor):
            def gradient(d_inputs: tf.Tensor, d_errors: tf.Tensor) -> tf.Tensor:
                x = self._concat(d_inputs, [*sentences, height])
                d = self._concat(d_errors, [*sentences, width])
                if rank == 2:
                    return tf.matmul(x, d, transpose_a=True)
                return tf.einsum("nbi,nbo->bio", x, d)

            return (empty_list(steps, tensor.dtype), empty_list(steps, tensor.dtype)), gradient

        self.inputs, self.errors = run(tensor)

    def list_with(self, values: tf.Tensor, time: tf.Tensor) -> tf.Tensor:
        """Returns a list with `[B, I]` of a kernel, or else `[B, n, I]`, at `time`."""
        if values.shape.rank == 3:
            values = tf.transpose(values, [1, 0, 2])  # [n, B, I], to be joined over n
        return list_with(values, time, self._steps)

    def _concat(self, handle: tf.Tensor, shape: Sequence[tf.Tensor]) -> tf.Tensor:
        """Joins the elements of all steps: `[n, *shape]`."""
        joined = tf.raw_ops.TensorListConcatV2(
            input_handle=handle,
            element_shape=tf.stack([-1, *shape]),
            leading_dims=tf.zeros([self._steps], tf.int64),  # n of an element that was not set
            element_dtype=self.tensor.dtype,
        )
        return joined.tensor


def _map(
    convert: Callable[[Any, bool], Any], source: Any, fields: Mapping[Any, Sequence[str]]
) -> Any:
    """Maps `convert(leaf, marked)` over nested tuples; `fields` are those that are marked."""
    if not isinstance(source, tuple):
        return convert(source, False)
    names = getattr(source, "_fields", None)
    if names is None:
        return tuple(_map(convert, part, fields) for part in source)
    marked = fields.get(type(source), ())
    parts = (
        convert(part, True) if name in marked else _map(convert, part, fields)
        for name, part in zip(names, source)
    )
    return type(source)(*parts)
