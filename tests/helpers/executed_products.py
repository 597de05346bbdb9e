"""The matrix products that TensorFlow executes, counted as they run: no formula, no static shape.

Every product's result waits for a stateless call of Python that is shown operands and result. So
what the graph prunes is not counted, and the body of a loop once an iteration.
"""

import contextlib
import math

import tensorflow as tf
from tensorflow.python.framework import op_callbacks

PRODUCTS = ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum")


def _operations(kind, attributes, first, second, result):
    """A multiplication and an addition for every term."""
    if kind == "Einsum":
        operands = attributes["equation"].s.decode().split("->")[0].split(",")
        sizes = dict(zip("".join(operands), (*first, *second)))
        assert "." not in sizes
        return 2 * math.prod(sizes.values())
    transposed = attributes["transpose_a" if kind == "MatMul" else "adj_x"].b
    return 2 * math.prod(result) * first[-2 if transposed else -1]


@contextlib.contextmanager
def products():
    """Yields a list; what is traced inside adds to it, whenever it runs, a product's operations."""
    done = []

    # an Einsum of one operand only sums or moves
    def watch(kind, inputs, attributes, outputs, op_name=None, graph=None):
        del op_name
        if kind not in PRODUCTS or len(inputs) < 2 or graph is None:
            return None
        values_of_attributes = dict(zip(attributes[::2], attributes[1::2]))

        def note(*values):
            done.append(_operations(kind, values_of_attributes, *(value.shape for value in values)))
            return True

        (result,) = outputs
        with graph.as_default():
            is_noted = tf.numpy_function(note, [*inputs, result], tf.bool, stateful=False)
            is_noted.set_shape([])
            return [tf.where(is_noted, result, tf.zeros_like(result))]

    op_callbacks.add_op_callback(watch)
    try:
        yield done
    finally:
        op_callbacks.remove_op_callback(watch)
