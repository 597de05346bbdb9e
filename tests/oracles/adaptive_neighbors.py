"""Adaptive kNN-MT for one query, neighbour by neighbour.

Zheng et al. 2021 ("Adaptive Nearest Neighbor Machine Translation", section 3). The K nearest
entries of a query have the distances d_1 <= ... <= d_K and the words v_1, ..., v_K. c_i is the
number of distinct words among the first i. A small network chooses how many of them to use:

    x = [d_1 / T, ..., d_K / T, c_1, ..., c_K]
    m = softmax(W_2 tanh(W_1 x + b_1) + b_2)        one share for each k in 0, 1, 2, 4, ..., K
    p(w) = m_0 p_model(w) + sum_{k > 0} m_k p_kNN^k(w)

p_kNN^k is the distribution of the first k neighbours alone, with the temperature T. The paper has
d_i in place of d_i / T. Its datastore always has K neighbours. Here a query with n < K of them has
the distance and the count of the last one in the places that are left, p_kNN^k of k > n is
p_kNN^n, and with n = 0 p is p_model. m_0 is at least 1e-6, and the other shares are scaled to sum
to the rest, so that every word keeps a finite logarithm.
"""

from __future__ import annotations

import numpy as np

from oracles.nearest_neighbors import nearest, p_nearest

LEAST_MODEL_SHARE = 1e-6


def neighbor_counts(greatest: int) -> list[int]:
    """0, 1, 2, 4, ..., K."""
    counts = [0, 1]
    while counts[-1] < greatest:
        counts.append(2 * counts[-1])
    return counts


def features(neighbors, greatest: int, temperature: float) -> np.ndarray:
    """x [2K] of at least one neighbour (d_j, v_j)."""
    distances, counts = [], []
    for i in range(greatest):
        first = neighbors[: i + 1]
        distances.append(first[-1][0] / temperature)
        counts.append(len({word for _, word in first}))
    return np.array(distances + counts, np.float64)


def shares(x, weights) -> np.ndarray:
    """m [2 + log2 K]; `weights` are W_1 [H, 2K], b_1 [H], W_2 [2 + log2 K, H] and b_2."""
    w_1, b_1, w_2, b_2 = (np.asarray(weight, np.float64) for weight in weights)
    scores = w_2 @ np.tanh(w_1 @ x + b_1) + b_2
    masses = np.exp(scores - scores.max())
    return masses / masses.sum()


def mixture(p_model, query, entries, greatest: int, temperature: float, weights) -> np.ndarray:
    """p [V] from p_model [V] and the entries, pairs (k_j [R], v_j)."""
    p_model = np.asarray(p_model, np.float64)
    neighbors = nearest(query, entries, greatest)
    if not neighbors:
        return p_model
    m = shares(features(neighbors, greatest, temperature), weights)
    model_share = max(m[0], LEAST_MODEL_SHARE)
    p = model_share * p_model
    for k, share in zip(neighbor_counts(greatest)[1:], m[1:]):
        rest = share * (1 - model_share) / (1 - m[0])
        p = p + rest * p_nearest(neighbors[:k], temperature, len(p_model))
    return p
