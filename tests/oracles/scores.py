"""Scores of a query against keys, before the softmax: one number a key.

`dot` is Luong et al. 2015, section 3.1 (their "general" score, the keys being W h_s). `scaled_dot`
is Vaswani et al. 2017, equation 1, with a gain; `cosine` is Henry et al. 2020, equation 2
(query-key normalisation), with a gain. `bahdanau` is Bahdanau et al. 2015, section A.1.2;
`normed_bahdanau` is that with weight normalisation (Salimans & Kingma 2016), as tensorflow/nmt
names it: g v / |v| . tanh(W q + k + b).
"""

from __future__ import annotations

import numpy as np


def dot(query, keys, kind: str = "dot", gain: float = 1.0) -> np.ndarray:
    """Scores [S] of a query [U] against keys [S, U] by a product, times the gain."""
    query = np.asarray(query, dtype=np.float64)
    scores = []
    for key in np.asarray(keys, dtype=np.float64):
        product = float(np.sum(query * key))
        if kind == "scaled_dot":
            product /= len(query) ** 0.5
        elif kind == "cosine":
            product /= float(np.linalg.norm(query) * np.linalg.norm(key))
        elif kind != "dot":
            raise ValueError(f"kind {kind!r}: expected dot, scaled_dot or cosine")
        scores.append(gain * product)
    return np.array(scores)


def additive(query, keys, vector, gain: float | None = None, bias=None) -> np.ndarray:
    """Scores [S] of a projected query [A] against keys [S, A]: v . tanh(q + k).

    With a gain g the vector is g v / |v|, and the bias [A] is inside the tanh.
    """
    vector = np.asarray(vector, dtype=np.float64)
    if gain is not None:
        vector = gain * vector / np.linalg.norm(vector)
    shift = np.zeros(len(vector)) if bias is None else bias
    return np.array([np.sum(vector * np.tanh(query + key + shift)) for key in keys])
