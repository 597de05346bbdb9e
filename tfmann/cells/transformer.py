"""The Transformer's decoder (Vaswani et al. 2017), and one whose source keys are rewritten.

A step is one target word. The state has the keys and values of self-attention for the words so
far. `kvmematt_transformer` is what Meng et al. 2018 name as future work, without equations: here
the last layer follows their equations 12 to 16.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.beams import merge_beams, split_beams
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
from tfmann.memory import access

_FORGET_START = -4.0  # sigmoid(-4) = 0.02: a model begins almost as one that rewrites nothing
_SUBLAYERS = 3  # of a layer, each with a mask of dropout


class SeenWords(NamedTuple):
    """The last W target words, as self-attention sees them; word t is in slot t modulo W."""

    keys: tf.Tensor  # [B, H, W, U/H]
    values: tf.Tensor  # [B, H, W, U/H]


class TransformerState(NamedTuple):
    """State between steps; everything belongs to the hypothesis."""

    time: tf.Tensor  # [B, 1], words so far
    words: tuple[SeenWords, ...]  # of every layer
    source_keys: Any  # [B, S, U] K_{t-1} of the last layer if they are rewritten, else ()


class SourceWords(NamedTuple):
    """The source as one layer's attention sees it."""

    keys: Any  # [B, H, S, U/H]; () where each hypothesis has its own
    values: tf.Tensor  # [B, H, S, U/H]


class TransformerSource(NamedTuple):
    """Constants of a step."""

    layers: tuple[SourceWords, ...]
    mask: tf.Tensor  # [B, 1, S]
    first_keys: Any  # [B, S, U] K_0 if they are rewritten, else ()


class Slot(NamedTuple):
    """Where a step writes among the last W words, and which of them it sees."""

    is_new: tf.Tensor  # [B, 1, W, 1] bool
    seen: tf.Tensor  # [B, 1, 1, W], 1 at words up to this one


class SelfAttention(tf.Module):
    """`W_o [c_1 .. c_H]` over the words up to this one, which is written first."""

    def __init__(self, hparams: HParams, weights: VariableFactory):
        """Creates the kernel of q, k and v `[U, 3U]`, and W_o `[U, U]`."""
        super().__init__(name="self_attention")
        units, self._heads = hparams.num_units, hparams.transformer_heads
        self.norm = LayerNorm(units, weights, "self")
        self.kernel = weights.matrix("self_kernel", [units, 3 * units])
        self.output_kernel = weights.matrix("self_output_kernel", [units, units])

    def __call__(self, x: tf.Tensor, words: SeenWords, slot: Slot) -> tuple[tf.Tensor, SeenWords]:
        """Returns what is added to x `[B, U]`, and the words with this one."""
        joined = product(self.norm(x), self.kernel)[:, None]  # [B, 1, 3U]
        query, key, value = (split_heads(p, self._heads) for p in tf.split(joined, 3, axis=-1))
        keys = tf.where(slot.is_new, key, words.keys)
        values = tf.where(slot.is_new, value, words.values)
        _, context = read_values(attention_scores(query, keys), values, slot.seen)
        return product(context[:, 0], self.output_kernel), SeenWords(keys, values)


class CrossAttention(tf.Module):
    """`W_o [c_1 .. c_H]` over the source, with keys `h_j W_k` and values `h_j W_v`."""

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates W_q `[U, U]`, W_k and W_v `[D, U]`, and W_o `[U, U]`."""
        super().__init__(name="cross_attention")
        units, self._heads = hparams.num_units, hparams.transformer_heads
        self.norm = LayerNorm(units, weights, "cross")
        self.query_kernel = weights.matrix("cross_query_kernel", [units, units])
        self.key_kernel = weights.matrix("cross_key_kernel", [annotation_width, units])
        self.value_kernel = weights.matrix("cross_value_kernel", [annotation_width, units])
        self.output_kernel = weights.matrix("cross_output_kernel", [units, units])

    def keys(self, annotations: tf.Tensor) -> tf.Tensor:
        """Returns `h_j W_k` `[B, S, U]` of annotations `[B, S, D]`."""
        return product(annotations, self.key_kernel)

    def prepare(self, annotations: tf.Tensor, with_keys: bool) -> SourceWords:
        """Projects annotations `[B, S, D]`, once for all steps."""
        keys = split_heads(self.keys(annotations), self._heads) if with_keys else ()
        values = product(annotations, self.value_kernel)
        return SourceWords(keys, split_heads(values, self._heads))

    def __call__(
        self, x: tf.Tensor, source: SourceWords, mask: tf.Tensor, keys: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Attends to the source.

        Args:
          x: `[B*K, U]`.
          source: the keys and values that all hypotheses of a sentence share.
          mask: `[B, 1, S]`.
          keys: `[B*K, S, U]`, in the place of the source's: each hypothesis has its own.

        Returns:
          what is added to x; the weights a, mean over heads, `[B*K, S]`.
        """
        query = product(self.norm(x), self.query_kernel)
        if keys is None:
            queries = split_heads(split_beams(query, mask), self._heads)  # [B, H, K, U/H]
            scores = attention_scores(queries, source.keys)
        else:
            queries = split_heads(query[:, None], self._heads)  # [B*K, H, 1, U/H]
            scores = attention_scores(queries, split_heads(keys, self._heads))[:, :, 0]
            scores = tf.transpose(split_beams(scores, mask), [0, 2, 1, 3])  # [B, H, K, S]
        weights, context = read_values(scores, source.values, mask[:, None])
        added = product(merge_beams(context), self.output_kernel)
        return added, merge_beams(tf.reduce_mean(weights, axis=1))


class Rewriting(tf.Module):
    """Meng et al. 2018, equations 14 to 16, on projected keys k_j; z is the FFN's input.

    `w = softmax_j(z W'_q . k_j / sqrt(U))`, `F = sigmoid(z W_F + b_F)`, `G = tanh(z W_G)`,
    `k_j <- k_j (1 - w_j F) + w_j G`. Unlike the paper, where F and G are sigmoids without a bias
    and the address is additive: G is a tanh, because keys have either sign; F has a bias, with
    which it begins near 0; the address is a dot product, as that of reading is.
    """

    def __init__(self, hparams: HParams, weights: VariableFactory):
        """Creates W'_q, W_F, W_G `[U, U]` and b_F `[U]`; W_G begins at 0."""
        super().__init__(name="rewriting")
        units = hparams.num_units
        self.query_kernel = weights.matrix("write_query_kernel", [units, units])
        self.forget_kernel = weights.matrix("forget_kernel", [units, units])
        self.forget_bias = weights.constant("forget_bias", np.full(units, _FORGET_START))
        self.add_kernel = weights.constant("add_kernel", np.zeros([units, units]))

    def __call__(
        self, z: tf.Tensor, keys: tf.Tensor, source: TransformerSource
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Rewrites the keys `[B*K, S, U]` by z `[B*K, U]`; returns them and diagnostics."""
        query = product(z, self.query_kernel) * z.shape[-1] ** -0.5
        scores = tf.matmul(query[:, None], keys, transpose_b=True)[:, 0]  # [B*K, S]
        write_weights = access.masked_softmax(split_beams(scores, source.mask), source.mask)
        write_weights = merge_beams(write_weights)[:, None]  # (15) [B*K, 1, S]
        forget = tf.sigmoid(product(z, self.forget_kernel) + self.forget_bias)[:, None]  # (14)
        add = tf.tanh(product(z, self.add_kernel))[:, None]  # (16)
        new_keys = access.erase_and_add(keys, write_weights, forget, add)
        drift = access.drift(split_beams(new_keys, source.mask), source.first_keys, source.mask)
        diagnostics = {
            "write_weights": write_weights,
            "erase_norm": access.norm(forget)[:, None],
            "add_norm": access.norm(add)[:, None],
            "key_drift": merge_beams(drift)[:, None, None],
        }
        return new_keys, diagnostics


class DecoderLayer(tf.Module):
    """`x <- x + sublayer(LN(x))`: self-attention, attention to the source, and the FFN."""

    def __init__(
        self, hparams: HParams, annotation_width: int, rewrites: bool, weights: VariableFactory
    ):
        """Creates the sublayers, and in a layer that rewrites keys, the rewriting."""
        super().__init__(name="layer")
        self.self_attention = SelfAttention(hparams, weights)
        self.cross_attention = CrossAttention(hparams, annotation_width, weights)
        self.rewriting = Rewriting(hparams, weights) if rewrites else None
        self.feed_norm = LayerNorm(hparams.num_units, weights, "feed")
        self.feed_forward = FeedForward(hparams, weights)


class TransformerCell(DecoderCell):
    """Pre-norm layers (`layers.transformer`) over `sqrt(U) y_{t-1} + PE(t-1)`, and a last LN.

    Unlike the paper: no dropout of attention weights, because masks are drawn before the loop; and
    self-attention sees the last W words, because every state must have the same shape. W is by
    default the length of the longest training target, so that in training every word is seen,
    unless `bpe_dropout` makes targets longer.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates the layers; `kvmematt_transformer` rewrites the keys of the last."""
        super().__init__(hparams, annotation_width, weights)
        units, count = hparams.num_units, hparams.decoder_layers
        self.rewrites = hparams.cell == "kvmematt_transformer"
        self.window = hparams.self_attention_window or hparams.tgt_max_len + 1  # W, with `</s>`
        self.words = WordScale(hparams, weights)
        self.layers = [
            DecoderLayer(
                hparams,
                annotation_width,
                self.rewrites and number == count - 1,
                weights.scope(f"layer_{number}"),
            )
            for number in range(count)
        ]
        self.output_norm = LayerNorm(units, weights, "output")
        self.output_width = self.readout_width = units
        self.memory_numbers = 2 * count * self.window * units

    def initial_state(self, encoded: EncoderOutput) -> TransformerState:
        """Returns no words, and the last layer's keys if they are rewritten."""
        heads = self.hparams.transformer_heads
        batch, width = tf.shape(encoded.length)[0], self.hparams.num_units // heads
        nothing = tf.zeros([batch, heads, self.window, width])
        source_keys: Any = ()
        if self.rewrites:
            source_keys = self.layers[-1].cross_attention.keys(encoded.annotations)
        words = (SeenWords(nothing, nothing),) * len(self.layers)
        return TransformerState(tf.zeros([batch, 1]), words, source_keys)

    def prepare(self, encoded: EncoderOutput) -> TransformerSource:
        """Projects the annotations to keys and values of every layer."""
        first_keys: Any = ()
        if self.rewrites:
            # for diagnostics alone, which need no gradient
            first_keys = tf.stop_gradient(self.layers[-1].cross_attention.keys(encoded.annotations))
        layers = tuple(
            layer.cross_attention.prepare(encoded.annotations, with_keys=not layer.rewriting)
            for layer in self.layers
        )
        return TransformerSource(layers, encoded.mask[:, None], first_keys)

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Returns `sqrt(U) y` `[..., U]`, followed by the masks of dropout if there is any."""
        words = self.words(embedded)
        width = (1 + _SUBLAYERS * len(self.layers)) * self.hparams.num_units
        shape = tf.concat([tf.shape(words)[:-1], [width]], axis=0)
        mask = masks.mask("layers", self.hparams.dropout, shape)
        if mask is None:
            return words
        mask.set_shape([*words.shape[:-1], width])
        return tf.concat([words, mask], axis=-1)

    def step(
        self, inputs: tf.Tensor, state: TransformerState, source: TransformerSource
    ) -> StepOutput:
        """Runs all layers on one word."""
        units = self.hparams.num_units
        x, *masks = tf.split(inputs, inputs.shape[-1] // units, axis=-1)

        def dropped(values: tf.Tensor) -> tf.Tensor:
            return values * masks.pop(0) if masks else values

        x = dropped(x + positions(state.time, units))
        slot, seen_words, source_keys = self._slot(state.time), [], state.source_keys
        diagnostics: dict[str, tf.Tensor] = {}
        for layer, words, source_words in zip(self.layers, state.words, source.layers):
            added, words = layer.self_attention(x, words, slot)
            x += dropped(added)
            keys = source_keys if layer.rewriting else None
            added, alignments = layer.cross_attention(x, source_words, source.mask, keys)
            x += dropped(added)
            z = layer.feed_norm(x)
            if layer.rewriting:
                source_keys, diagnostics = layer.rewriting(z, source_keys, source)
                diagnostics["read_weights"] = alignments[:, None]
            x += dropped(layer.feed_forward(z))
            seen_words.append(words)
        return StepOutput(
            output=self.output_norm(x),
            state=TransformerState(state.time + 1.0, tuple(seen_words), source_keys),
            diagnostics={**diagnostics, "alignments": alignments},
        )

    def _slot(self, time: tf.Tensor) -> Slot:
        """Returns the slot of the word at a time `[B, 1]`."""
        slots = tf.range(self.window, dtype=tf.float32)[None]
        is_new = tf.equal(slots, tf.math.floormod(time, float(self.window)))
        seen = tf.cast(slots <= time, tf.float32)
        return Slot(is_new[:, None, :, None], seen[:, None, None])
