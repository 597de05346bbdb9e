"""Dot-product attention on a source (Luong et al. 2015, arXiv:1508.04025, section 3.1).

The plain score `q . k` grows with the width of both. With embeddings of unit variance and Adam at
1e-3 it saturates the softmax within about twenty updates: one word has all of the weight, the
softmax has no gradient, and the model trains as if it had no attention (docs/recipes.md). The other
two scores start at about 1, where the softmax still has a gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tfmann.config import DotProductOptions
from tfmann.layers.beams import merge_beams, split_beams
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import product
from tfmann.memory import access

_GAIN = {"dot": 1.0, "scaled_dot": 1.0, "cosine": 5.0}  # where a learned gain starts


class AttentionSource(NamedTuple):
    """Constants of a step over B sentences."""

    keys: tf.Tensor  # [B, U, S] k_s, from `DotProductScore.prepare`
    values: tf.Tensor  # [B, S, D] v_s
    mask: tf.Tensor  # [B, 1, S], 1 at real positions


class DotProductScore(tf.keras.layers.Layer):
    """`q . k`, `g q . k / sqrt(U)`, or `g q . k / (|q| |k|)`.

    The first is the score "dot" of Luong et al. 2015, section 3.1; the second Vaswani et al. 2017,
    equation 1, with a gain; the third Henry et al. 2020, equation 2. A cell may ask for a gain in
    the first too.
    """

    def __init__(
        self,
        kind: str,
        units: int,
        weights: VariableFactory,
        gain: bool = False,
        start: float = 0.0,
    ):
        """Creates g.

        Args:
          kind: the setting `attention_score`: dot, scaled_dot or cosine.
          units: U, width of queries and keys.
          weights: makes g, `attention_scale`, in the scope of the cell.
          gain: whether `dot` has a g as well.
          start: where g starts; 0: where one of this kind does.
        """
        super().__init__(name="score")
        self.kind = kind
        self.divisor = units**0.5 if kind == "scaled_dot" else 1.0
        self.gain = None
        if gain or kind != "dot":
            self.gain = weights.constant("attention_scale", start or _GAIN[kind])

    def prepare(self, keys: tf.Tensor) -> tf.Tensor:
        """Maps keys `[B, S, U]` to `[B, U, S]`, such that a score is a plain product."""
        if self.kind == "cosine":
            keys = access.normalize(keys)
        if self.gain is not None:
            keys *= self.gain / self.divisor
        return tf.transpose(keys, [0, 2, 1])

    def scores(self, query: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
        """Scores queries `[B, n, U]` by prepared keys `[B, U, S]`: `[B, n, S]`."""
        if self.kind == "cosine":
            query = access.normalize(query)
        return query @ keys


class DotProductAttention(tf.keras.layers.Layer):
    """`alpha = softmax_s(score(q, k_s))`, `c = sum_s alpha_s v_s`."""

    def __init__(
        self,
        options: DotProductOptions,
        units: int,
        weights: VariableFactory,
        gain: bool = False,
    ):
        """Creates the score, with the arguments of `DotProductScore`."""
        super().__init__(name="attention")
        self.score = DotProductScore(
            options.attention_score, units, weights, gain, options.attention_gain_start
        )

    def prepare(self, keys: tf.Tensor, values: tf.Tensor, mask: tf.Tensor) -> AttentionSource:
        """Prepares keys `[B, S, U]`, values `[B, S, D]` and mask `[B, S]` before the steps."""
        return AttentionSource(self.score.prepare(keys), values, mask[:, None])

    def content_scores(self, query: tf.Tensor, source: AttentionSource) -> tf.Tensor:
        """Scores queries `[B, n, U]`: `[B, n, S]`."""
        return self.score.scores(query, source.keys)

    def attend(self, query: tf.Tensor, source: AttentionSource) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns alpha `[B*K, S]` and c `[B*K, D]` of K queries a sentence, `[B*K, U]`."""
        scores = self.content_scores(split_beams(query, source.mask), source)
        alignments = access.masked_softmax(scores, source.mask)  # [B, K, S]
        return merge_beams(alignments), merge_beams(alignments @ source.values)


class LuongAttention(DotProductAttention):
    """General attention: `score(h_t, h_s) = g h_t^T W_m h_s`, `c_t = sum_s alpha_s h_s`."""

    def __init__(
        self,
        options: DotProductOptions,
        annotation_width: int,
        units: int,
        weights: VariableFactory,
        gain: bool = False,
    ):
        """Creates W_m `[D, U]` (`memory_kernel`) and the score."""
        super().__init__(options, units, weights, gain)
        self.memory_kernel = weights.matrix("memory_kernel", [annotation_width, units])

    def prepare_annotations(self, annotations: tf.Tensor, mask: tf.Tensor) -> AttentionSource:
        """Projects annotations `[B, S, D]` to keys."""
        keys = product(annotations, self.memory_kernel)  # W_m h_s
        return self.prepare(keys, annotations, mask)
