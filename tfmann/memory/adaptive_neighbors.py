"""A network that chooses how many neighbours of a readout to use: adaptive kNN-MT.

Zheng et al. 2021 (arXiv:2105.13022, section 3). The K nearest entries of a readout have the
distances d_1 <= ... <= d_K and the words v_1, ..., v_K. c_i is the number of distinct words among
the first i. The meta-k network has these 2K numbers as its input, and a share for each number of
neighbours k, 0 among them, as its output:

    x = [d_1 / T, ..., d_K / T, c_1, ..., c_K]
    m = softmax(W_2 tanh(W_1 x + b_1) + b_2)                 for k in 0, 1, 2, 4, ..., K
    p_kNN^k(w) ~ sum over j <= k of 1[w = v_j] exp(-d_j / T)
    p(w) = m_0 p_model(w) + sum over k > 0 of m_k p_kNN^k(w)

So lambda is 1 - m_0, and p_kNN has the share m_k / (1 - m_0) of each p_kNN^k. The paper has d_i in
place of d_i / T. Here a readout may have n < K neighbours: those that are missing have the
distance and the count of the last one, p_kNN^k of k > n is p_kNN^n, and with n = 0 p is p_model.
lambda is at most 1 - 1e-6, as in `nearest_neighbors`.

Letters: K neighbours, C = 2 + log2 K choices of k, H hidden units, n queries per sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.memory import access, nearest_neighbors
from tfmann.memory.nearest_neighbors import LEAST_REST
from tfmann.memory.word_mixture import NEVER, NO_WORD, Proposals

HIDDEN = 32  # H of the paper's code
_GREATEST_GATE = math.log((1 - LEAST_REST) / LEAST_REST)
_COUNT_GAIN = 0.1  # of the initial weights of counts, which are greater than distances


class MetaNetwork(NamedTuple):
    """The weights of the network, or with a further axis B in front, those for B sentences."""

    w_1: tf.Tensor  # [2K, H]
    b_1: tf.Tensor  # [1, H]
    w_2: tf.Tensor  # [H, C]
    b_2: tf.Tensor  # [1, C]


def neighbor_counts(greatest: int) -> list[int]:
    """Returns 0, 1, 2, 4, ..., K for K = `greatest`, a power of 2."""
    return [0, *(1 << power for power in range(greatest.bit_length()))]


def features(distances: tf.Tensor, words: tf.Tensor, temperature: tf.Tensor) -> tf.Tensor:
    """Computes x `[..., 2K]`.

    Args:
      distances: `[..., K]`, from the least.
      words: int32 `[..., K]`, NO_WORD where there are fewer neighbours.
      temperature: T, broadcast against the distances.
    """
    exists = words != NO_WORD
    last = tf.reduce_max(tf.where(exists, distances, 0), axis=-1, keepdims=True)
    filled = tf.where(exists, distances, last)
    is_before = np.tri(words.shape[-1], k=-1, dtype=bool)  # [i, j]: j < i
    is_known = tf.reduce_any((words[..., None] == words[..., None, :]) & is_before, axis=-1)
    is_new = tf.cast(exists & ~is_known, distances.dtype)
    return tf.concat([filled / temperature, tf.cumsum(is_new, axis=-1)], axis=-1)


def share_logits(x: tf.Tensor, network: MetaNetwork) -> tf.Tensor:
    """Computes `[..., n, C]`, whose softmax is m, from x `[..., n, 2K]`."""
    hidden = tf.tanh(tf.matmul(x, network.w_1) + network.b_1)
    return tf.matmul(hidden, network.w_2) + network.b_2


def propose(
    distances: tf.Tensor, words: tf.Tensor, temperature: tf.Tensor, network: MetaNetwork
) -> Proposals:
    """Returns lambda and p_kNN of the K nearest entries; all have leading axes `[..., n]`."""
    logits = share_logits(features(distances, words, temperature), network)
    exists = words != NO_WORD
    counts = np.array(neighbor_counts(words.shape[-1])[1:])
    is_used = np.arange(words.shape[-1]) < counts[:, None]  # [C - 1, K]
    mask = tf.cast(exists[..., None, :] & is_used, distances.dtype)
    of_each = access.softmax_over_filled((-distances / temperature)[..., None, :], mask)  # p_kNN^k
    rest = tf.nn.softmax(logits[..., 1:])  # m_k / (1 - m_0)
    shares = tf.reduce_sum(rest[..., None] * of_each, axis=-2)
    gates = tf.reduce_logsumexp(logits[..., 1:], axis=-1, keepdims=True) - logits[..., :1]
    gates = tf.where(exists[..., :1], tf.minimum(gates, _GREATEST_GATE), NEVER)
    return Proposals(gates, shares, words)


def word_log_probs(proposals: Proposals, words: tf.Tensor, model_log_probs: tf.Tensor) -> tf.Tensor:
    """Computes log p(w) `[n]` of one word each, for training.

    `word_mixture.mix` has the same result, but its gradient would count a word that is proposed
    twice two times.

    Args:
      proposals: `[n, ...]`, with shares above 0 in every row.
      words: int32 `[n]` w.
      model_log_probs: `[n]` log p_model(w).
    """
    is_word = proposals.words == words[:, None]
    proposed = tf.reduce_sum(tf.where(is_word, proposals.shares, 0), axis=-1)
    gates = proposals.gates[:, 0]
    is_proposed = proposed > 0
    from_proposer = tf.math.log(tf.where(is_proposed, proposed, 1)) - tf.nn.softplus(-gates)
    from_model = model_log_probs - tf.nn.softplus(gates)
    gain = tf.nn.softplus(tf.where(is_proposed, from_proposer - from_model, NEVER))
    return from_model + gain


class AdaptiveSource(NamedTuple):
    """The datastores of B sentences, and the network that weighs their entries."""

    keys: tf.Tensor  # [B, M, R], M at least K
    words: tf.Tensor  # [B, M] int32, NO_WORD where there is no entry
    temperature: tf.Tensor  # [B, 1] T
    network: MetaNetwork  # [B, ...] the same weights for every sentence

    @property
    def proposals(self) -> int:
        """The number of neighbours K: each proposes its word."""
        return self.network.w_1.shape[1] // 2

    def of_sentences(self, sentences: tf.Tensor) -> AdaptiveSource:
        """Returns the constants of the sentences `[n]`."""
        return tf.nest.map_structure(lambda part: tf.gather(part, sentences), self)

    def propose(self, readouts: tf.Tensor) -> Proposals:
        """Returns p_kNN and lambda for readouts `[B, n, R]`."""
        found = nearest_neighbors.nearest(readouts, self.keys, self.words, self.proposals)
        return propose(*found, self.temperature[:, None], self.network)

    def places(self, readouts: tf.Tensor) -> tf.Tensor:
        """Returns the entries of the proposals, `[B, n, K]`."""
        return nearest_neighbors.nearest_places(readouts, self.keys, self.words, self.proposals)[1]


def source(
    keys: np.ndarray, words: np.ndarray, temperature: float, network: MetaNetwork
) -> AdaptiveSource:
    """Returns what steps read, as NumPy arrays: keys `[B, M, R]`, words `[B, M]` as `fill_up`."""
    rows = len(words)
    return AdaptiveSource(
        *nearest_neighbors.fill_up(keys, words, len(network.w_1) // 2),
        np.full([rows, 1], temperature, np.float32),
        MetaNetwork(*(np.repeat(part[None], rows, axis=0) for part in network)),
    )


def signature(neighbors: int, width: int) -> AdaptiveSource:
    """Returns the shapes and types of what `source` returns for readouts of `width`."""
    network = (tf.TensorSpec([None, *shape]) for shape in network_shapes(neighbors).values())
    return AdaptiveSource(
        tf.TensorSpec([None, None, width]),
        tf.TensorSpec([None, None], tf.int32),
        tf.TensorSpec([None, 1]),
        MetaNetwork(*network),
    )


def network_shapes(neighbors: int) -> Mapping[str, tuple[int, int]]:
    """Returns the shapes of the weights of a network for K = `neighbors`, by their names."""
    classes = len(neighbor_counts(neighbors))
    shapes = (2 * neighbors, HIDDEN), (1, HIDDEN), (HIDDEN, classes), (1, classes)
    return dict(zip(MetaNetwork._fields, shapes))


def initial_network(neighbors: int, seed: int) -> MetaNetwork:
    """Draws the first weights for K = `neighbors`, as NumPy arrays.

    They are from Glorot's normal distribution; biases are 0. The weights of counts are a tenth of
    that, as in the paper's code, which also scales down those of distances: here the distances are
    divided by T instead.
    """
    stream = np.random.default_rng(seed)
    arrays = {}
    for name, shape in network_shapes(neighbors).items():
        scale = math.sqrt(2 / sum(shape)) if name.startswith("w") else 0.0
        arrays[name] = stream.normal(scale=scale, size=shape).astype(np.float32)
    arrays["w_1"][neighbors:] *= _COUNT_GAIN
    return MetaNetwork(**arrays)
