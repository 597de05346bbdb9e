"""The machine's rate of matrix products in TensorFlow, the best of several shapes."""

from __future__ import annotations

import time
from typing import NamedTuple

import tensorflow as tf


class Rate(NamedTuple):
    """Operations per second, and the shape that reached them."""

    operations: float
    shape: tuple[int, int, int]  # rows, inner, columns


class Products:
    """Products of several shapes in one type, which can be timed repeatedly."""

    def __init__(self, shapes: tuple[tuple[int, int, int], ...], dtype: tf.DType):
        """Draws the matrices and multiplies them once."""
        self._pairs = {
            shape: (
                tf.cast(tf.random.stateless_normal([shape[0], shape[1]], [1, 2]), dtype),
                tf.cast(tf.random.stateless_normal([shape[1], shape[2]], [3, 4]), dtype),
            )
            for shape in shapes
        }
        self._multiply = tf.function(tf.matmul, autograph=False)
        self.measure()

    def measure(self) -> Rate:
        """Times each shape twice; returns the best."""
        rates = []
        for shape, pair in self._pairs.items():
            rows, inner, columns = shape
            for _ in range(2):
                begin = time.perf_counter()
                self._multiply(*pair)[0, 0].numpy()  # waits
                seconds = time.perf_counter() - begin
                rates.append(Rate(2 * rows * inner * columns / seconds, shape))
        return max(rates)
