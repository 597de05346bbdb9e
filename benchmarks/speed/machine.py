"""How fast the machine multiplies matrices: the best of several shapes, as TensorFlow has it."""

from __future__ import annotations

import time
from typing import NamedTuple

import tensorflow as tf


class Rate(NamedTuple):
    """Operations a second, and the shape that reached them."""

    operations: float
    shape: tuple[int, int, int]  # rows, inner, columns


class Products:
    """Products of several shapes in one type, ready to be timed again and again."""

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
        """Each shape twice; the best."""
        found = []
        for shape, pair in self._pairs.items():
            rows, inner, columns = shape
            for _ in range(2):
                begin = time.perf_counter()
                self._multiply(*pair)[0, 0].numpy()  # waits
                seconds = time.perf_counter() - begin
                found.append(Rate(2 * rows * inner * columns / seconds, shape))
        return max(found)
