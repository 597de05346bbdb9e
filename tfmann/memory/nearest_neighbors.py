"""The nearest entries of a datastore, and the words that they propose: kNN-MT and SK-MT.

Khandelwal et al. 2021 (arXiv:2010.00710, section 2) and Dai et al. 2023 (arXiv:2302.12188, section
3). An entry is a pair (k_j, v_j): the readout at a position of a translation, and its word. With
d_j = |q - k_j|^2 and the k nearest entries N_k of a readout q:

    p_kNN(w) ~ sum over j in N_k of 1[w = v_j] exp(-d_j / tau)
    lambda_t = relu(1 - d_1 / tau)              of SK-MT, d_1 the least distance
    p(w) = (1 - lambda) p_model(w) + lambda p_kNN(w)

kNN-MT has a fixed lambda, and tau is then its temperature T. The search is exact. Nothing is
trained; `word_mixture` has the last equation. Unlike the papers, lambda is at most 1 - 1e-6: every
word keeps a finite logarithm.

Letters: M entries and n queries per sentence, k neighbours, R the width of readouts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.memory import access
from tfmann.memory.word_mixture import NEVER, NO_WORD, Proposals

BY_DISTANCE = -1.0  # the `weight` of a lambda that follows the least distance
LEAST_REST = 1e-6  # the least 1 - lambda
_FAR = 1e30  # the distance of an entry that does not exist


class NearestSource(NamedTuple):
    """The datastores of B sentences, and how they are read."""

    keys: tf.Tensor  # [B, M, R] k_j, M at least k
    words: tf.Tensor  # [B, M] int32 v_j, NO_WORD where there is no entry
    tau: tf.Tensor  # [B, k] the same number in every column; the width says k
    weight: tf.Tensor  # [B, 1] a fixed lambda, or BY_DISTANCE

    @property
    def proposals(self) -> int:
        """The number of neighbours k: each proposes its word."""
        return self.tau.shape[1]

    def of_sentences(self, sentences: tf.Tensor) -> NearestSource:
        """Returns the constants of the sentences `[n]`."""
        return tf.nest.map_structure(lambda part: tf.gather(part, sentences), self)

    def propose(self, readouts: tf.Tensor) -> Proposals:
        """Returns p_kNN and lambda for readouts `[B, n, R]`."""
        distances, words = nearest(readouts, self.keys, self.words, self.proposals)
        is_entry = tf.cast(words != NO_WORD, tf.float32)
        shares = access.softmax_over_filled(-distances / self.tau[:, None], is_entry)
        return Proposals(self._gates(distances[..., :1], is_entry[..., :1]), shares, words)

    def places(self, readouts: tf.Tensor) -> tf.Tensor:
        """Returns the entries of the proposals, `[B, n, k]`."""
        return nearest_places(readouts, self.keys, self.words, self.proposals)[1]

    def _gates(self, least: tf.Tensor, is_entry: tf.Tensor) -> tf.Tensor:
        """Computes log(lambda / (1 - lambda)) from the least distances `[B, n, 1]`."""
        weight = self.weight[:, None]
        # 1 - lambda, not lambda: near 1, float32 has too few digits
        rest = tf.where(weight < 0, least / self.tau[:, None, :1], 1.0 - weight)
        is_open = (rest < 1.0) & (is_entry > 0)
        safe = tf.where(is_open, tf.maximum(rest, LEAST_REST), 0.5)
        return tf.where(is_open, tf.math.log1p(-safe) - tf.math.log(safe), NEVER)


def nearest(
    queries: tf.Tensor, keys: tf.Tensor, words: tf.Tensor, count: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the entries with the least distances, of equal ones the first.

    Args:
      queries: `[B, n, R]`.
      keys: `[B, M, R]`, M at least `count`.
      words: int32 `[B, M]`, NO_WORD where there is no entry.
      count: k.

    Returns:
      distances d_1 to d_k and words, both `[B, n, k]`; NO_WORD, and a distance of no meaning, where
      there are fewer entries.
    """
    distances, places = nearest_places(queries, keys, words, count)
    return distances, tf.gather(words, places, batch_dims=1)


def nearest_places(
    queries: tf.Tensor, keys: tf.Tensor, words: tf.Tensor, count: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the distances of the entries that `nearest` finds and their indices, `[B, n, k]`.

    `squared_distances` finds the entries, with rounding errors of up to about a thousandth. Then
    their distances are computed exactly: 1 - lambda is the least of them divided by tau.
    """
    distances = squared_distances(queries, keys)  # [B, n, M]
    distances = tf.where((words != NO_WORD)[:, None], distances, _FAR)
    places = tf.math.top_k(-distances, count).indices
    exact = tf.gather(keys, places, batch_dims=1) - queries[:, :, None]  # [B, n, k, R]
    is_entry = tf.gather(words, places, batch_dims=1) != NO_WORD
    distances = tf.where(is_entry, tf.reduce_sum(tf.square(exact), axis=-1), _FAR)
    order = tf.argsort(distances, stable=True)
    return tf.gather(distances, order, batch_dims=2), tf.gather(places, order, batch_dims=2)


def squared_distances(queries: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """Returns |q - k|^2 of queries `[B, n, R]` and keys `[B, M, R]`: `[B, n, M]`.

    By |q|^2 - 2 q.k + |k|^2, without an array `[B, n, M, R]`; rounding could make it negative.
    """
    products = tf.matmul(queries, keys, transpose_b=True)
    of_queries = tf.reduce_sum(tf.square(queries), axis=-1)[:, :, None]
    of_keys = tf.reduce_sum(tf.square(keys), axis=-1)[:, None]
    return tf.nn.relu(of_queries - 2.0 * products + of_keys)


def source(
    keys: np.ndarray, words: np.ndarray, neighbors: int, tau: float, weight: float | None
) -> NearestSource:
    """Returns what the steps of sentences read, as NumPy arrays.

    Args:
      keys: `[B, M, R]`.
      words: int32 `[B, M]`, NO_WORD where there is no entry.
      neighbors: k; fewer entries are filled up to it.
      tau: above 0.
      weight: a fixed lambda from 0 to below 1, or None: by the least distance.
    """
    rows = len(words)
    return NearestSource(
        *fill_up(keys, words, neighbors),
        np.full([rows, neighbors], tau, np.float32),
        np.full([rows, 1], BY_DISTANCE if weight is None else weight, np.float32),
    )


def fill_up(keys: np.ndarray, words: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns keys `[B, M, R]` and words `[B, M]` with M at least `count`."""
    missing = max(count - words.shape[1], 0)
    return (
        np.pad(keys, [(0, 0), (0, missing), (0, 0)]),
        np.pad(words, [(0, 0), (0, missing)], constant_values=NO_WORD),
    )


def signature(neighbors: int, width: int) -> NearestSource:
    """Returns the shapes and types of what `source` returns for readouts of `width`."""
    return NearestSource(
        tf.TensorSpec([None, None, width]),
        tf.TensorSpec([None, None], tf.int32),
        tf.TensorSpec([None, neighbors]),
        tf.TensorSpec([None, 1]),
    )
