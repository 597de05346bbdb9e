"""Dropout with masks that depend on (seed, update, name) alone, drawn for all steps at once."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import tensorflow as tf


class DropoutMasks:
    """The random numbers of one update: the same name in the same update draws the same mask."""

    def __init__(self, seed: tf.Tensor | None, scope: str = ""):
        """Stores the seed, an int32 pair (of the run, update); None: no dropout."""
        self._seed = seed
        self._scope = scope

    @classmethod
    def none(cls) -> DropoutMasks:
        """Returns masks that drop nothing."""
        return cls(None)

    @property
    def training(self) -> bool:
        """True if anything can be dropped."""
        return self._seed is not None

    def scope(self, name: str) -> DropoutMasks:
        """Returns the masks of a part of the model, independent of those of other parts."""
        return DropoutMasks(self._seed, f"{self._scope}/{name}")

    def mask(self, name: str, rate: float, shape: Sequence | tf.Tensor) -> tf.Tensor | None:
        """Draws a mask of 0 and 1/(1-rate), or None where nothing is dropped."""
        if self._seed is None or rate == 0.0:
            return None
        return tf.cast(self.uniform(name, shape) >= rate, tf.float32) * (1.0 / (1.0 - rate))

    def uniform(self, name: str, shape: Sequence | tf.Tensor) -> tf.Tensor:
        """Draws numbers in [0, 1); needs a seed."""
        key = zlib.crc32(f"{self._scope}/{name}".encode()) & 0x7FFFFFFF
        seed = tf.random.experimental.stateless_fold_in(self._seed, key)
        return tf.random.stateless_uniform(shape, seed, alg="philox")

    def dropout(self, name: str, rate: float, values: tf.Tensor) -> tf.Tensor:
        """Returns `values` with a share `rate` of them zero and the rest scaled up."""
        mask = self.mask(name, rate, tf.shape(values))
        return values if mask is None else values * mask
