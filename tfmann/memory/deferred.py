"""Gradients of what a loop multiplies by at every step, each as one product after the loop.

Automatic differentiation multiplies the whole gradient of a kernel, or of the annotations that are
read, together at every step and adds it to the sum of the steps before: narrow products, a pass
over every such tensor a step, and of bfloat16 kernels a sum that is kept in bfloat16, where a small
addend is lost. Here a step's product hands its own gradient to a sink, zeros that are read at each
step and added to nothing, and shows what it multiplied. When the loop has been gone back through,
what the sink has got at all steps and all that was multiplied make one product.

Cells know nothing of it: `cells.recurrent.product` and `attention` ask here what becomes of a
product. Kernels in float32 stay as they are: nothing is lost there, and it gained no time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Callable, NamedTuple, Optional

import tensorflow as tf

from tfmann.memory import steps

_BITS = {tf.float32: tf.int32, tf.bfloat16: tf.int16}  # integers of a loop have no gradient
_tracing = threading.local()  # replicas are traced in threads of their own


class Factor(NamedTuple):
    """What does not change in a loop, and how it is multiplied by."""

    tensor: tf.Tensor  # a kernel [I, O], or one matrix a sentence, [B, I, O]
    rows: int = 0  # that a step multiplies by a sentence's matrix, [B, rows, I]; 0 of a kernel
    transposed: bool = False  # [B, O, I]

    def multiply(self, values: tf.Tensor) -> tf.Tensor:
        """`[B, I]` or `[B, rows, I]` in the tensor's type, times the tensor."""
        return tf.matmul(values, self.tensor, transpose_b=self.transposed)

    def back(self, d: tf.Tensor) -> tf.Tensor:
        """The gradient of what was multiplied."""
        return tf.matmul(d, self.tensor, transpose_b=not self.transposed)

    def gradient(self, values: tf.Tensor, d: tf.Tensor) -> tf.Tensor:
        """The tensor's, from all that it multiplied and what came back: `[T, B, ..]` each."""
        parts = (d, values) if self.transposed else (values, d)
        if not self.rows:
            return tf.matmul(*(tf.reshape(p, [-1, p.shape[-1]]) for p in parts), transpose_a=True)
        return tf.einsum("tbki,tbko->bio", *parts)

    @property
    def input_shape(self) -> list[Any]:
        """Of what is multiplied, without the batch: `[I]`, or `[rows, I]`."""
        return self._shape(-1 if self.transposed else -2)

    @property
    def output_shape(self) -> list[Any]:
        """Of the product: `[O]`, or `[rows, O]`."""
        return self._shape(-2 if self.transposed else -1)

    def _shape(self, axis: int) -> list[Any]:
        width = self.tensor.shape[axis]
        width = tf.shape(self.tensor)[axis] if width is None else width
        return [self.rows, width] if self.rows else [width]


_Take = Callable[[tf.Tensor, Factor], Optional[tf.Tensor]]


def product(values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor | None:
    """`values [B, I]` times `kernel [I, O]`, if a loop is being traced that defers it, or None."""
    take = _current()
    return take(values, Factor(kernel)) if take else None


def by_sentence(values: tf.Tensor, matrices: tf.Tensor, transposed: bool = False) -> tf.Tensor:
    """`values [B, K, I]` times `matrices [B, I, O]`, or `[B, O, I]` if transposed."""
    take = _current()
    factor = Factor(matrices, values.shape[1] or 0, transposed)
    found = take(values, factor) if take and factor.rows else None
    return factor.multiply(values) if found is None else found


def one_row_a_sentence() -> bool:
    """Whether the loop that is being traced has as many rows as sentences."""
    return _current() is not None


class Deferred:
    """The products of a loop's step with what is the same at every step.

    Attributes:
      types: of the kernels that are looked for, beside all matrices of sentences.
      inputs: what each product has multiplied, `[T, B, ...]`, as bits: to be set after the loop.
    """

    types: tuple[tf.DType, ...] = (tf.bfloat16,)

    def __init__(self, step: Callable[[], Any], constant: Any):
        """Finds them in a call of `step` whose result is not used.

        Args:
          step: one step.
          constant: a structure of what is the same at every step, the kernels among it.
        """
        leaves = tf.nest.flatten(constant)  # what a cell has no use for is None
        there = [leaf for leaf in leaves if leaf is not None]
        self._constant = {id(t) for t in there if t.dtype in self.types or t.shape.rank == 3}
        self._factors: list[Factor] = []
        self.inputs: Sequence[tf.Tensor] = ()

        def listen(values: tf.Tensor, factor: Factor) -> None:
            del values
            if id(factor.tensor) in self._constant:
                # a weight is read once
                self._factors.append(factor._replace(tensor=tf.convert_to_tensor(factor.tensor)))

        if self._constant:
            with _taking(listen):
                step()

    @property
    def input_shapes(self) -> tuple[tf.Tensor, ...]:
        """Of what a step's products multiply, without the batch."""
        return tuple(tf.stack(factor.input_shape) for factor in self._factors)

    @property
    def input_types(self) -> tuple[tf.DType, ...]:
        """Of its bits."""
        return tuple(_BITS[factor.tensor.dtype] for factor in self._factors)

    def sinks(self, shape: tf.Tensor) -> tuple[steps.Sink, ...]:
        """One for each product, for `shape` steps and rows."""
        return tuple(self._sink(index, shape) for index in range(len(self._factors)))

    def _sink(self, index: int, shape: tf.Tensor) -> steps.Sink:
        factor = self._factors[index]

        def gradient(parts: tf.Tensor) -> tf.Tensor:
            values = tf.bitcast(self.inputs[index], factor.tensor.dtype)  # maybe of fewer steps
            return factor.gradient(
                values, tf.cast(parts[: tf.shape(values)[0]], factor.tensor.dtype)
            )

        return steps.sink(factor.tensor, shape[0], [shape[1], *factor.output_shape], gradient)

    @contextlib.contextmanager
    def step(self, sinks: Sequence[tf.Tensor]) -> Iterator[list[tf.Tensor]]:
        """Defers the products that are made within it.

        Args:
          sinks: a step's, `[B, ...]` each.

        Yields:
          a list that comes to hold what they multiplied, `[B, ...]` each, as bits.
        """
        inputs: list[tf.Tensor] = []

        def take(values: tf.Tensor, asked: Factor) -> tf.Tensor | None:
            if id(asked.tensor) not in self._constant:
                return None
            factor, sink = self._factors[len(inputs)], sinks[len(inputs)]
            values = tf.cast(values, factor.tensor.dtype)
            inputs.append(tf.bitcast(values, _BITS[factor.tensor.dtype]))
            return _product(values, factor, sink)

        with _taking(take):
            yield inputs


def _product(values: tf.Tensor, factor: Factor, sink: tf.Tensor) -> tf.Tensor:
    @tf.custom_gradient
    def run(values: tf.Tensor, sink: tf.Tensor):
        del sink

        def gradient(d: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return factor.back(tf.cast(d, factor.tensor.dtype)), d

        return tf.cast(factor.multiply(values), tf.float32), gradient

    return run(values, sink)


def _current() -> _Take | None:
    """What takes the products of the loop that is being traced."""
    return getattr(_tracing, "take", None)


@contextlib.contextmanager
def _taking(take: _Take) -> Iterator[None]:
    before = _current()
    _tracing.take = take
    try:
        yield
    finally:
        _tracing.take = before
