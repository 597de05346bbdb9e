"""Creation of weights: each starts from its own stream of numbers, named by (seed, its name).

Adding or removing a weight therefore never changes how another one starts.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfmann.hparams import HParams
from tfmann.size import Room


class Weights:
    """Makes the variables of one part of a model, under a scope that gives them their names."""

    def __init__(self, hparams: HParams, scope: str, room: Room | None = None):
        """Remembers the scheme (`init_op`, `embedding_init_op`, ...), the scope and the room."""
        self._hparams = hparams
        self._scope = scope
        self._room = room or Room()

    def scope(self, name: str) -> Weights:
        """Returns a maker whose names begin `scope/name`."""
        return Weights(self._hparams, f"{self._scope}/{name}", self._room)

    def matrix(
        self, name: str, shape: Sequence[int], plus: np.ndarray | float = 0.0
    ) -> tf.Variable:
        """A weight started by `init_op`, and `plus`; a rank-1 shape is a vector that is no bias."""
        h = self._hparams
        self._take(name, shape)
        return self._make(name, plus + draw(h.init_op, h.init_weight, shape, self._stream(name)))

    def recurrent(self, name: str, units: int, gates: int) -> tf.Variable:
        """A kernel from state to gates `[U, G*U]`; orthogonal gate by gate where asked for."""
        if self._hparams.recurrent_init_op == "same":
            return self.matrix(name, [units, gates * units])
        self._take(name, [units, gates * units])
        stream = self._stream(name)
        blocks = [_orthogonal(units, stream) for _ in range(gates)]
        return self._make(name, np.concatenate(blocks, axis=1))

    def embedding(self, name: str, vocabulary_size: int, width: int) -> tf.Variable:
        """An embedding table `[V, E]` started by `embedding_init_op`."""
        h = self._hparams
        shape = [vocabulary_size, width]
        self._take(name, shape)
        values = draw(h.embedding_init_op, h.embedding_init_weight, shape, self._stream(name))
        return self._make(name, values)

    def constant(self, name: str, values: np.ndarray | float) -> tf.Variable:
        """A weight with given start values (biases, gains)."""
        self._take(name, np.shape(values))
        return self._make(name, np.asarray(values))

    def _take(self, name: str, shape: Sequence[int]) -> None:
        self._room.take(f"{self._scope}/{name}", shape)

    def _make(self, name: str, values: np.ndarray) -> tf.Variable:
        full_name = f"{self._scope}/{name}"
        with np.errstate(over="ignore"):  # a deviation near the greatest float: training says so
            numbers = values.astype(np.float32)
        return tf.Variable(numbers, name=full_name, trainable=True)

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
