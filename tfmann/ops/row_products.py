"""Products of a few rows with a matrix, one per sentence: what heads do with a memory.

Shapes are `[B, H, N]` or `[B, H, W]` of rows and `[B, N, W]` of matrices, with more axes before
them if need be.

XLA multiplies single rows at the speed of reading the matrix, but a few rows at a time much more
slowly (2 rows, 80 matrices of 128 x 512, one core: 7.7 ms, the same row by row 1.8 ms), and it does
not turn a product of columns and rows into a loop that it can join with others. Therefore a
function that it compiles (`ops.compiled_step`) multiplies row by row, with the gradients below.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from tfmann.ops.gradients import custom_gradient

_ROW_BY_ROW = contextvars.ContextVar("row_by_row", default=False)


@contextlib.contextmanager
def row_by_row() -> Iterator[None]:
    """Multiplies row by row in what is traced within."""
    token = _ROW_BY_ROW.set(True)
    try:
        yield
    finally:
        _ROW_BY_ROW.reset(token)


def is_row_by_row() -> bool:
    """Tells whether this is traced within `row_by_row`."""
    return _ROW_BY_ROW.get()


def times(rows: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Multiplies `[B, H, N]` by `[B, N, W]`: `[B, H, W]`."""
    if not _ROW_BY_ROW.get():
        return tf.matmul(rows, matrix)

    @custom_gradient
    def run(rows: tf.Tensor, matrix: tf.Tensor):
        result = tf.concat([tf.matmul(row, matrix) for row in _each(rows)], axis=-2)
        return result, lambda d: (times_transposed(d, matrix), outer(rows, d))

    return run(rows, matrix)


def times_transposed(rows: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """Multiplies `[B, H, W]` by the transpose of `[B, N, W]`: `[B, H, N]`."""
    if not _ROW_BY_ROW.get():
        return tf.matmul(rows, matrix, transpose_b=True)

    @custom_gradient
    def run(rows: tf.Tensor, matrix: tf.Tensor):
        products = [tf.matmul(row, matrix, transpose_b=True) for row in _each(rows)]
        return tf.concat(products, axis=-2), lambda d: (times(d, matrix), outer(d, rows))

    return run(rows, matrix)


@custom_gradient
def squared_lengths(matrix: tf.Tensor):
    """Computes the squared lengths `[B, N]` of the rows of `[B, N, W]`.

    In one pass, where a sum of squares makes a tensor of all squares first (320 matrices of
    128 x 512, one core: 3.1 ms in place of 7.8); XLA has no such operation, and needs none. The
    gradient of a row of zeros is zero.
    """
    if control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        squares = tf.reduce_sum(tf.square(matrix), axis=-1)
    else:
        squares = tf.square(tf.math.reduce_euclidean_norm(matrix, axis=-1))
    return squares, lambda d: 2.0 * tf.expand_dims(d, -1) * matrix


def outer(columns: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """Computes `sum_h column_h row_h` `[B, N, W]` of `[B, H, N]` and `[B, H, W]`."""
    if not _ROW_BY_ROW.get():
        return tf.matmul(columns, rows, transpose_a=True)
    return tf.add_n([
        tf.linalg.matrix_transpose(column) * row for column, row in zip(_each(columns), _each(rows))
    ])  # fmt: skip


def _each(rows: tf.Tensor) -> list[tf.Tensor]:
    """Splits H rows into single ones."""
    return tf.split(rows, rows.shape[-2], axis=-2)
