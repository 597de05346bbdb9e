"""The attentional encoder-decoder of tensorflow/nmt (Luong et al. 2015, arXiv:1508.04025).

The baseline of Collier & Beel 2019: LSTM layers with input feeding, scaled general attention. As
there, `attention` may be additive instead (Bahdanau et al. 2015, arXiv:1409.0473), with the same
state h_t as its query.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.attention import additive_scores
from tfmann.layers.beams import merge_beams, split_beams
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.luong_attention import LuongAttention
from tfmann.layers.rnn import DecoderStack, State, product
from tfmann.memory import access


class LuongState(NamedTuple):
    """The state between steps."""

    attention: tf.Tensor  # [B, U] a_{t-1}, the attention vector that is fed back
    layers: tuple[State, ...]  # per layer h [B, U] (and c [B, U])


class LuongSource(NamedTuple):
    """Constants of a step."""

    attention: Any  # AttentionSource or BahdanauSource
    feed_kernel: tf.Tensor  # [U, G*U], of a_{t-1} in layer 1


class LuongCell(DecoderCell):
    """`a_t = W_c [c_t; h_t]`, `c_t = sum_s alpha_s h_s`, `alpha = softmax_s(g h_t^T W_m h_s)`.

    alpha is that of Collier & Beel 2019, equations 1 and 2, whose W_a is W_m here. Their scale
    beta_t has an index; here g is one learned number for all steps, as in tensorflow/nmt, which
    they extended. Unlike Luong et al.: no tanh on a_t unless `attention_tanh`, as there.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates the layers, the attention and W_c `[D+U, U]`."""
        super().__init__(hparams, annotation_width, weights)
        h, units = hparams, hparams.num_units
        self.output_width = self.readout_width = units
        self.stack = DecoderStack(h, feed_width=units, weights=weights)
        self.attention: Any
        if h.attention in ("bahdanau", "normed_bahdanau"):
            normed = h.attention == "normed_bahdanau"
            self.attention = BahdanauAttention(annotation_width, units, weights, normed)
        else:
            gain = h.attention == "scaled_luong"
            self.attention = LuongAttention(h, annotation_width, units, weights, gain)
        self.attention_kernel = weights.matrix(
            "attention_kernel", [annotation_width + units, units]
        )

    def initial_state(self, encoded: EncoderOutput) -> LuongState:
        """Returns the encoder's final states and a_{-1} = 0."""
        batch_size = tf.shape(encoded.length)[0]
        layers = self.stack.initial_states(encoded.final_state, batch_size)
        return LuongState(attention=tf.zeros_like(layers[0][0]), layers=layers)

    def prepare(self, encoded: EncoderOutput) -> LuongSource:
        """Projects the annotations to keys."""
        return LuongSource(
            attention=self.attention.prepare_annotations(encoded.annotations, encoded.mask),
            feed_kernel=self.stack.feed_kernel(),
        )

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects the words to their part of layer 1's pre-activations."""
        return self.stack.prepare_inputs(embedded, masks.scope("stack"))

    def step(self, inputs: tf.Tensor, state: LuongState, source: LuongSource) -> StepOutput:
        """Computes h_t from `[x_t; a_{t-1}]`, then alpha, c_t and a_t."""
        hidden, layers = self.stack.step(inputs, state.attention, state.layers, source.feed_kernel)
        alignments, context = self.attention.attend(hidden, source.attention)  # alpha_t, c_t
        vector = product(tf.concat([context, hidden], axis=-1), self.attention_kernel)  # a_t
        if self.hparams.attention_tanh:
            vector = tf.tanh(vector)
        return StepOutput(
            output=vector,
            state=LuongState(attention=vector, layers=layers),
            diagnostics={"alignments": alignments},
        )


class BahdanauSource(NamedTuple):
    """Constants of a step of additive attention."""

    keys: tf.Tensor  # [B, S, U] W_m h_s + b
    values: tf.Tensor  # [B, S, D] h_s
    mask: tf.Tensor  # [B, 1, S]
    score_vector: tf.Tensor  # [U] v, or g v / |v|


class BahdanauAttention(tf.keras.layers.Layer):
    """The additive attention of tensorflow/nmt: `v . tanh(W_q h_t + W_m h_s)`.

    With weight normalisation `g v / |v| . tanh(W_q h_t + W_m h_s + b)`, g starting at
    `sqrt(1 / U)`.
    """

    def __init__(self, annotation_width: int, units: int, weights: VariableFactory, normed: bool):
        """Creates W_m `[D, U]`, W_q `[U, U]` and v, and where `normed` g and b."""
        super().__init__(name="attention")
        self.memory_kernel = weights.matrix("memory_kernel", [annotation_width, units])
        self.query_kernel = weights.matrix("query_kernel", [units, units])
        self.score_vector = weights.matrix("score_vector", [units])
        self.normed = normed
        if normed:
            self.gain = weights.constant("attention_scale", units**-0.5)
            self.bias = weights.constant("attention_bias", np.zeros(units))

    def prepare_annotations(self, annotations: tf.Tensor, mask: tf.Tensor) -> BahdanauSource:
        """Projects annotations `[B, S, D]` to keys."""
        keys = product(annotations, self.memory_kernel)
        vector = tf.convert_to_tensor(self.score_vector)
        if self.normed:
            keys, vector = keys + self.bias, self.gain * access.normalize(vector)
        return BahdanauSource(keys, annotations, mask[:, None], vector)

    def attend(self, query: tf.Tensor, source: BahdanauSource) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns alpha `[B*K, S]` and c `[B*K, D]` of K queries a sentence, `[B*K, U]`."""
        query = split_beams(product(query, self.query_kernel), source.mask)
        scores = additive_scores(query, source.keys, source.score_vector)
        alignments = access.masked_softmax(scores, source.mask)
        return merge_beams(alignments), merge_beams(alignments @ source.values)
