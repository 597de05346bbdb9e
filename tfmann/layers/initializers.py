"""Creation of weights, each from its own stream of random numbers: (seed, its name).

Adding or removing a weight therefore never changes how another one starts.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfmann.config import TrainingSettings
from tfmann.utils.memory_limits import WeightBudget


class VariableFactory:
    """Makes the variables of one part of a model, under a scope that gives them their names."""

    def __init__(self, hparams: TrainingSettings, scope: str, budget: WeightBudget | None = None):
        """Stores the settings (`init_op`, `embedding_init_op`, ...), the scope and the budget."""
        self._hparams = hparams
        self._scope = scope
        self._budget = budget or WeightBudget()

    def scope(self, name: str) -> VariableFactory:
        """Returns a factory whose names begin with `scope/name`."""
        return VariableFactory(self._hparams, f"{self._scope}/{name}", self._budget)

    def matrix(
        self, name: str, shape: Sequence[int], plus: np.ndarray | float = 0.0
    ) -> tf.Variable:
        """Creates a matrix, or a vector that is no bias, by `init_op`; `plus` is added to it."""
        h = self._hparams
        self._count(name, shape)
        return self._make(name, plus + draw(h.init_op, h.init_weight, shape, self._stream(name)))

    def normal(self, name: str, shape: Sequence[int], deviation: float) -> tf.Variable:
        """Creates a weight from a normal distribution, whatever `init_op` is."""
        self._count(name, shape)
        return self._make(name, self._stream(name).normal(0.0, deviation, shape))

    def recurrent(self, name: str, units: int, gates: int) -> tf.Variable:
        """Creates a kernel `[U, G*U]` of states, by `recurrent_init_op`, gate by gate."""
        if self._hparams.recurrent_init_op == "same":
            return self.matrix(name, [units, gates * units])
        self._count(name, [units, gates * units])
        stream = self._stream(name)
        blocks = [_orthogonal(units, stream) for _ in range(gates)]
        return self._make(name, np.concatenate(blocks, axis=1))

    def embedding(self, name: str, vocabulary_size: int, width: int) -> tf.Variable:
        """Creates an embedding table `[V, E]` from `embedding_init_op`."""
        h = self._hparams
        shape = [vocabulary_size, width]
        self._count(name, shape)
        stream = self._stream(name)
        return self._make(name, draw(h.embedding_init_op, h.embedding_init_weight, shape, stream))

    def constant(self, name: str, values: np.ndarray | float) -> tf.Variable:
        """Creates a weight with these start values (biases, gains)."""
        self._count(name, np.shape(values))
        return self._make(name, np.asarray(values))

    def _count(self, name: str, shape: Sequence[int]) -> None:
        self._budget.add(f"{self._scope}/{name}", shape)

    def _make(self, name: str, values: np.ndarray) -> tf.Variable:
        full_name = f"{self._scope}/{name}"
        with np.errstate(over="ignore"):  # training reports weights that are not finite
            values = values.astype(np.float32)  # frees the larger array, which nobody else holds
        return tf.Variable(values, name=full_name, trainable=True)

    def _stream(self, name: str) -> np.random.Generator:
        key = zlib.crc32(f"{self._scope}/{name}".encode())
        return np.random.Generator(np.random.PCG64([self._hparams.random_seed, key]))


def draw(
    init_op: str, weight: float, shape: Sequence[int], stream: np.random.Generator
) -> np.ndarray:
    """Draws start values: uniform in +-weight, normal with deviation weight, or Glorot's."""
    fan_in, fan_out = shape[0], shape[-1]
    if init_op == "uniform":
        return stream.uniform(-weight, weight, shape)
    if init_op == "normal":
        return stream.normal(0.0, weight, shape)
    variance = 2.0 / (fan_in + fan_out)
    if init_op == "glorot_normal":
        return stream.normal(0.0, variance**0.5, shape)
    return stream.uniform(-((3 * variance) ** 0.5), (3 * variance) ** 0.5, shape)


def _orthogonal(units: int, stream: np.random.Generator) -> np.ndarray:
    q, r = np.linalg.qr(stream.normal(size=(units, units)))
    return q * np.sign(np.diag(r))  # makes the distribution uniform over rotations
