"""kNN-MT and SK-MT for one query, entry by entry.

Khandelwal et al. 2021 ("Nearest Neighbor Machine Translation", section 2) and Dai et al. 2023
("Simple and Scalable Nearest Neighbor Machine Translation", section 3). A datastore holds pairs
(k_j, v_j): the state from which a word of a translation was predicted, and that word. N_k are the k
entries with the least distances d_j = |q - k_j|^2 to the query q, of equal ones the first.

    p_kNN(w) = sum_{j in N_k} 1[w = v_j] exp(-d_j / T) / sum_{j in N_k} exp(-d_j / T)
    p(w) = (1 - lambda) p_model(w) + lambda p_kNN(w)

Of kNN-MT lambda is a number; of SK-MT it is max(0, 1 - d_1 / tau), d_1 the least distance, and T
is tau. Without an entry lambda is 0. Unlike SK-MT, lambda is at most 1 - 1e-6, so that every word
keeps a finite logarithm.
"""

from __future__ import annotations

import numpy as np

GREATEST_LAMBDA = 1 - 1e-6


def nearest(query, entries, k: int) -> list[tuple[float, int]]:
    """The k pairs (d_j, v_j) with the least distances; `entries` are pairs (k_j [R], v_j)."""
    distances = []
    for key, word in entries:
        difference = np.asarray(query, np.float64) - np.asarray(key, np.float64)
        distances.append((float(np.sum(difference * difference)), word))
    order = sorted(range(len(entries)), key=lambda j: (distances[j][0], j))
    return [distances[j] for j in order[:k]]


def p_nearest(neighbors, tau: float, vocabulary_size: int) -> np.ndarray:
    """The distribution [V] of at least one neighbour."""
    least = neighbors[0][0]
    shares = np.zeros(vocabulary_size)
    for distance, word in neighbors:
        shares[word] += np.exp(-(distance - least) / tau)
    return shares / shares.sum()


def mixture(p_model, query, entries, k: int, tau: float, weight: float | None) -> np.ndarray:
    """p [V] from p_model [V]; `weight` is a fixed lambda, or None for that of SK-MT."""
    p_model = np.asarray(p_model, np.float64)
    neighbors = nearest(query, entries, k)
    if not neighbors:
        return p_model
    if weight is None:
        weight = max(0.0, 1 - neighbors[0][0] / tau)
    weight = min(weight, GREATEST_LAMBDA)
    return (1 - weight) * p_model + weight * p_nearest(neighbors, tau, len(p_model))
