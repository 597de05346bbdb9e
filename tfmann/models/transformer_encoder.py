"""The Transformer's encoder: source words to annotations (Vaswani et al. 2017, pre-norm)."""

from __future__ import annotations

import tensorflow as tf

from tfmann.cells.base import EncoderOutput
from tfmann.config import HParams
from tfmann.layers.compute_weights import compute_weights, with_weights
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import product
from tfmann.layers.transformer import (
    FeedForward,
    LayerNorm,
    WordScale,
    attention_scores,
    positions,
    read_values,
    split_heads,
)


class TransformerEncoderLayer(tf.Module):
    """`x <- x + SelfAttention(LN(x))`, `x <- x + FFN(LN(x))`; every word sees all words."""

    def __init__(self, hparams: HParams, weights: VariableFactory):
        """Creates the kernel of q, k and v `[U, 3U]`, W_o `[U, U]`, and the FFN."""
        super().__init__(name="layer")
        units, self._heads = hparams.num_units, hparams.transformer_heads
        self._rate = hparams.dropout
        self.self_norm = LayerNorm(units, weights, "self")
        self.self_kernel = weights.matrix("self_kernel", [units, 3 * units])
        self.self_output_kernel = weights.matrix("self_output_kernel", [units, units])
        self.feed_norm = LayerNorm(units, weights, "feed")
        self.feed_forward = FeedForward(hparams, weights)

    def __call__(self, values: tf.Tensor, source_mask: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Maps x `[B, S, U]` to the next x; the source mask is `[B, 1, 1, S]`."""
        joined = product(self.self_norm(values), self.self_kernel)
        query, keys, read = (split_heads(p, self._heads) for p in tf.split(joined, 3, axis=-1))
        _, context = read_values(attention_scores(query, keys), read, source_mask)
        attended = product(context, self.self_output_kernel)
        values += masks.dropout("self", self._rate, attended)
        fed = self.feed_forward(self.feed_norm(values))
        return values + masks.dropout("feed", self._rate, fed)


class TransformerEncoder(tf.Module):
    """`encoder_type` transformer: L layers of self-attention over sinusoidal positions.

    Unlike the paper: pre-norm (`layers.transformer`), and no dropout of attention weights. It has
    no final states: an RNN decoder begins at zero, or at what its cell makes of the annotations.
    """

    annotation_width: int  # U

    def __init__(self, hparams: HParams, weights: VariableFactory):
        """Creates the layers."""
        super().__init__(name="encoder")
        self._rate, self._top_rate = hparams.dropout, hparams.top_dropout
        self.annotation_width = hparams.num_units
        self.words = WordScale(hparams, weights)
        scopes = (weights.scope(f"layer_{i}") for i in range(hparams.encoder_layers))
        self.layers = [TransformerEncoderLayer(hparams, scope) for scope in scopes]
        self.output_norm = LayerNorm(hparams.num_units, weights, "output")

    def encode(
        self,
        embedded: tf.Tensor,
        length: tf.Tensor,
        masks: DropoutMasks,
        dtype: tf.DType,
        initial: tf.Tensor | None = None,
    ) -> EncoderOutput:
        """Encodes embedded words.

        Args:
          embedded: `[B, S, E]`.
          length: `[B]`, number of real words of a row; at least 1.
          masks: of dropout.
          dtype: type of products with kernels.
          initial: always None: there is no recurrent state.
        """
        assert initial is None, "the settings refuse cells that begin the encoder"
        encoder = with_weights(self, compute_weights(self, dtype))
        source_mask = tf.sequence_mask(length, tf.shape(embedded)[1], dtype=tf.float32)
        return EncoderOutput(
            encoder._annotations(embedded, source_mask, masks), source_mask, length, ()
        )

    def _annotations(
        self, embedded: tf.Tensor, source_mask: tf.Tensor, masks: DropoutMasks
    ) -> tf.Tensor:
        """Returns annotations `[B, S, U]`, zero at padding."""
        time = tf.cast(tf.range(tf.shape(embedded)[1]), tf.float32)[:, None]
        values = self.words(embedded) + positions(time, self.annotation_width)
        values = masks.dropout("input", self._rate, values)
        for index, layer in enumerate(self.layers):
            values = layer(values, source_mask[:, None, None], masks.scope(f"layer_{index}"))
        annotations = masks.dropout("top", self._top_rate, self.output_norm(values))
        return annotations * source_mask[:, :, None]
