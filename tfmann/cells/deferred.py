"""Gradients of the bfloat16 kernels of a loop, each as one product after the loop.

Automatic differentiation multiplies a kernel's whole gradient together at every step and adds it
to the sum of the steps before: narrow products, a pass over every kernel a step, and a sum that is
kept in bfloat16, where a small addend is lost. Here a step's product hands its own gradient to a
sink, zeros that are read at each step and added to nothing, and shows what it multiplied. When the
loop has been gone back through, what the sink has got at all steps and all that was multiplied make
one product.

Cells know nothing of it: `recurrent.product` asks here what becomes of a product. Kernels in
float32 stay as they are: nothing is lost there, and it gained no time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Optional

import tensorflow as tf

_BITS = {tf.float32: tf.int32, tf.bfloat16: tf.int16}  # integers of a loop have no gradient
_Take = Callable[[tf.Tensor, tf.Tensor], Optional[tf.Tensor]]
_tracing = threading.local()  # replicas are traced in threads of their own


def product(values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor | None:
    """`values [B, I]` times `kernel [I, O]`, if a loop is being traced that defers it, or None."""
    take: _Take | None = getattr(_tracing, "take", None)
    return take(values, kernel) if take else None


class Deferred:
    """The products of a loop's step with kernels that are the same at every step.

    Attributes:
      types: of the kernels that are looked for.
      inputs: what each product has multiplied, `[T, B, I]`, as bits: to be set after the loop.
    """

    types: tuple[tf.DType, ...] = (tf.bfloat16,)

    def __init__(self, step: Callable[[], Any], constant: Any):
        """Finds them in a call of `step` whose result is not used.

        Args:
          step: one step.
          constant: a structure of what is the same at every step, the kernels among it.
        """
        leaves = tf.nest.flatten(constant)  # what a cell has no use for is None
        self._constant = {id(t) for t in leaves if t is not None and t.dtype in self.types}
        self._kernels: list[tf.Tensor] = []
        self.inputs: Sequence[tf.Tensor] = ()

        def listen(values: tf.Tensor, kernel: tf.Tensor) -> None:
            del values
            if id(kernel) in self._constant:
                self._kernels.append(tf.convert_to_tensor(kernel))  # a weight is read once

        if self._constant:
            with _taking(listen):
                step()

    @property
    def input_shapes(self) -> tuple[tf.TensorShape, ...]:
        """Of what a step's products multiply, without the batch."""
        return tuple(kernel.shape[:1] for kernel in self._kernels)

    @property
    def input_types(self) -> tuple[tf.DType, ...]:
        """Of its bits."""
        return tuple(_BITS[kernel.dtype] for kernel in self._kernels)

    def sinks(self, shape: tf.Tensor) -> tuple[tf.TensorArray, ...]:
        """One for each product, for `shape` steps and rows."""
        return tuple(
            tf.TensorArray(
                tf.float32, shape[0], element_shape=[None, kernel.shape[1]]
            ).unstack(self._sink(index, shape))
            for index, kernel in enumerate(self._kernels)
        )

    def _sink(self, index: int, shape: tf.Tensor) -> tf.Tensor:
        """Zeros `[T, B, O]`, whose gradient becomes the kernel's."""

        @tf.custom_gradient
        def run(kernel: tf.Tensor):
            def gradient(d: tf.Tensor) -> tf.Tensor:
                values = tf.bitcast(self.inputs[index], kernel.dtype)  # maybe of fewer steps
                d = tf.cast(d[: tf.shape(values)[0]], kernel.dtype)
                flat = [tf.reshape(part, [-1, part.shape[-1]]) for part in (values, d)]
                return tf.matmul(*flat, transpose_a=True)

            return tf.zeros(tf.concat([shape, kernel.shape[1:]], axis=0)), gradient

        return run(self._kernels[index])

    @contextlib.contextmanager
    def step(self, sinks: Sequence[tf.Tensor]) -> Iterator[list[tf.Tensor]]:
        """Defers the products that are made within it.

        Args:
          sinks: a step's, `[B, O]` each.

        Yields:
          a list that comes to hold what they multiplied, `[B, I]` each, as bits.
        """
        inputs: list[tf.Tensor] = []

        def take(values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor | None:
            if id(kernel) not in self._constant:
                return None
            index = len(inputs)
            values = tf.cast(values, kernel.dtype)
            inputs.append(tf.bitcast(values, _BITS[kernel.dtype]))
            return _product(values, self._kernels[index], sinks[index])

        with _taking(take):
            yield inputs


def _product(values: tf.Tensor, kernel: tf.Tensor, sink: tf.Tensor) -> tf.Tensor:
    @tf.custom_gradient
    def run(values: tf.Tensor, sink: tf.Tensor):
        del sink

        def gradient(d: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return tf.matmul(tf.cast(d, kernel.dtype), kernel, transpose_b=True), d

        return tf.cast(tf.matmul(values, kernel), tf.float32), gradient

    return run(values, sink)


@contextlib.contextmanager
def _taking(take: _Take) -> Iterator[None]:
    before = getattr(_tracing, "take", None)
    _tracing.take = take
    try:
        yield
    finally:
        _tracing.take = before
