"""Dot-product scores of a query against keys: as printed, scaled, or as a cosine.

A printed score `q . k` grows with the width of both. With embeddings of unit variance and Adam at
1e-3 it saturates the softmax within some twenty updates: one word has all of the weight, the
softmax has no gradient, and the model trains as if it had no attention (docs/recipes.md). The two
other kinds begin with scores of about 1 and so with an attention that can learn.
"""

from __future__ import annotations

import tensorflow as tf

from tfmann.cells.weights import Weights
from tfmann.memory import addressing, attention

HPARAMS = {
    "attention_score": {
        "default": "dot",
        "choices": ["dot", "scaled_dot", "cosine"],
        "help": "Scores that are dot products: dot, as printed; scaled_dot, divided by the square "
        "root of the width, with a learned gain that starts at 1; cosine, with a learned gain that "
        "starts at 5.",
    },
}

_GAIN = {"dot": 1.0, "scaled_dot": 1.0, "cosine": 5.0}  # where a learned gain starts


class DotProduct(tf.keras.layers.Layer):
    """`q . k` (Luong et al. 2015, eq 8), `g q . k / sqrt(U)`, or `g q . k / (|q| |k|)`.

    The second is Vaswani et al. 2017, equation 1, with a gain; the third Henry et al. 2020,
    equation 2. `q . k` has a gain g where a cell asks for one.
    """

    def __init__(self, kind: str, width: int, weights: Weights, gain: bool = False):
        """Creates g.

        Args:
          kind: `attention_score`.
          width: U, of queries and keys.
          weights: makes g, `attention_scale`, in the scope of the cell.
          gain: whether `dot` has a g as well.
        """
        super().__init__(name="attention_score")
        self.kind = kind
        self.divisor = width**0.5 if kind == "scaled_dot" else 1.0
        self.gain = None
        if gain or kind != "dot":
            self.gain = weights.constant("attention_scale", _GAIN[kind])

    def prepare(self, keys: tf.Tensor) -> tf.Tensor:
        """Keys `[B, S, U]` such that `scores` is a plain product; once a sentence."""
        if self.kind == "cosine":
            keys = addressing.unit(keys)
        return keys if self.gain is None else keys * (self.gain / self.divisor)

    def scores(self, query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        """Queries `[B, K, U]` and prepared keys `[B, S, U]` to `[B, K, S]`."""
        if self.kind == "cosine":
            query = addressing.unit(query)
        return attention.dot_scores(query, keys)
