"""Addressing of a memory: content, interpolation, shift, sharpening.

Graves et al. 2014 ("Neural Turing Machines"), section 3.3; as attention over a source
sentence in Collier & Beel, section 3.1, equations 12 to 15.

An address is a vector of weights over positions (or slots). Where a function takes a
`length`, only that many positions are real; the rest are padding, whose weight is 0.
"""

from __future__ import annotations

import numpy as np

SHARPENING_EPSILON = 1e-12
SIMILARITY_EPSILON = 1e-8


def softplus(x):
    """log(1 + exp(x)), for an array of any shape, without overflow."""
    return np.logaddexp(0.0, np.asarray(x, dtype=np.float64))


def masked_softmax(scores, length: int) -> np.ndarray:
    """Softmax over the first `length` entries of `scores` [S]; zeros after them."""
    scores = np.asarray(scores, dtype=np.float64)
    # The largest real score is subtracted so that no exponential overflows.
    exponentials = np.exp(scores[:length] - scores[:length].max())
    weights = np.zeros(len(scores))
    weights[:length] = exponentials / exponentials.sum()
    return weights


def softmax(scores) -> np.ndarray:
    """Softmax over a whole vector."""
    return masked_softmax(scores, len(scores))


def content_dot(strength, key, keys, length: int | None = None) -> np.ndarray:
    """Content address: softmax_s(strength * key . keys_s), Collier & Beel equation 12.

    Args:
        strength: beta, a number.
        key: [U].
        keys: [S, U], the rows that are compared with the key.
        length: how many rows are real; all of them when None.
    """
    key, keys = np.asarray(key, dtype=np.float64), np.asarray(keys, dtype=np.float64)
    scores = np.array([strength * np.sum(key * row) for row in keys])
    return masked_softmax(scores, len(keys) if length is None else length)


def cosine_similarity(u, v) -> float:
    """u.v / (|u||v| + 1e-8), Graves et al. 2014 equation 6; 0 when a vector is zero."""
    u, v = np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.float64)
    return float(np.sum(u * v) / (np.linalg.norm(u) * np.linalg.norm(v) + SIMILARITY_EPSILON))


def interpolate(gate, content_weights, previous_weights) -> np.ndarray:
    """Interpolates: g w^c_t + (1 - g) w_{t-1}, Collier & Beel equation 13."""
    content_weights = np.asarray(content_weights, dtype=np.float64)
    return gate * content_weights + (1.0 - gate) * np.asarray(previous_weights)


def circular_shift(weights, shift_kernel, length: int) -> np.ndarray:
    """Moves an address round its real positions, Collier & Beel equation 14.

    Args:
        weights: [S], zero from `length` on.
        shift_kernel: [J], J odd, ordered by offset: for J = 3 the taps -1, 0, +1.
            A weight of 1 on the tap +1 moves the address one position forward.
        length: the true length, modulo which the address goes round.
    """
    taps = len(shift_kernel)
    if taps % 2 == 0:
        raise ValueError(f"{taps} shift taps: the number must be odd")
    shifted = np.zeros(len(weights))
    for tap in range(taps):
        offset = tap - taps // 2
        for position in range(length):
            shifted[(position + offset) % length] += shift_kernel[tap] * weights[position]
    return shifted


def sharpen(weights, gamma, length: int) -> np.ndarray:
    """w^gamma / sum(w^gamma) over the real positions, Collier & Beel equation 15.

    Weights below 1e-12 count as 1e-12. At the largest gamma that the models reach, 21,
    that is 1e-252, which float64 still holds: no logarithms are needed here.
    """
    sharpened = np.zeros(len(weights))
    for position in range(length):
        sharpened[position] = max(float(weights[position]), SHARPENING_EPSILON) ** gamma
    return sharpened / sharpened.sum()
