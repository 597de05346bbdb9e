"""NTM-style attention: the source addressed by content and location (Collier & Beel 2019, 3.1).

The luong cell with its score replaced by equations 11-15.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.layers.beams import split_beams
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.luong_attention import AttentionSource, LuongAttention
from tfmann.layers.ntm_memory import HEAD_CLIP
from tfmann.layers.rnn import DecoderStack, State, product
from tfmann.memory import access


class NTMAttentionState(NamedTuple):
    """The state between steps."""

    attention: tf.Tensor  # [B, U] a_{t-1}, the attention vector that is fed back
    weights: tf.Tensor  # [B, R, S] w_{t-1}
    layers: tuple[State, ...]  # per layer h [B, U] (and c [B, U])


class NTMAttentionSource(NamedTuple):
    """Constants of a step."""

    attention: AttentionSource  # keys W_a h_s
    last: tf.Tensor  # [B, 1, S] 1 at the sentence's last position
    feed_kernel: tf.Tensor  # [U, G*U], of a_{t-1} in layer 1


class NTMAttentionCell(DecoderCell):
    """w_t by content (12), interpolation (13), shift (14), sharpening (15); `a_t = W_c [c_t; h_t]`.

    The h_t of (11), which the decoder puts out for each head, is the head's key
    `k_t = tanh(W_k h_t + b)`, as in the authors' code.

    Unlike the paper: the shift is circular modulo each sentence's true length and no weight falls
    on padding (the authors' code wraps round 50 padded positions). The paper leaves open how the
    addresses and biases start: w_{-1} is the first position, and the heads' biases start at
    `gate_start`, `stay_start` and `sharpening_start`. `head_scale` multiplies what h_t adds to the
    biases. With several heads the contexts are concatenated, and `alignments` is the mean of the
    heads' addresses.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates the layers, W_a `[D, U]`, the heads' `[U, R*(U+J+3)]` and W_c `[R*D+U, U]`."""
        super().__init__(hparams, annotation_width, weights)
        units, self.heads = hparams.num_units, hparams.num_attention_heads
        self.output_width = self.readout_width = units
        self.taps = 2 * hparams.shift_range + 1
        self.stack = DecoderStack(hparams, feed_width=units, weights=weights)
        self.attention = LuongAttention(hparams, annotation_width, units, weights)
        width = units + self.taps + 3  # of a head's parameters
        self.head_kernel = weights.matrix("head_kernel", [units, self.heads * width])
        start = np.zeros([self.heads, width])
        start[:, units + 1] = hparams.gate_start
        start[:, units + 2 + hparams.shift_range] = hparams.stay_start
        start[:, -1] = hparams.sharpening_start
        self.head_bias = weights.constant("head_bias", start.reshape(-1))
        scales = np.full([self.heads, width], hparams.head_scale, np.float32)
        scales[:, :units] = 1  # a key's length does not matter where the score is a cosine
        self.head_scales = scales.reshape(-1)
        self.attention_kernel = weights.matrix(
            "attention_kernel", [self.heads * annotation_width + units, units]
        )

    def initial_state(self, encoded: EncoderOutput) -> NTMAttentionState:
        """Returns the encoder's final states, a_{-1} = 0 and every head on the first position."""
        batch_size = tf.shape(encoded.length)[0]
        layers = self.stack.initial_states(encoded.final_state, batch_size)
        first = tf.one_hot(tf.zeros_like(encoded.length), tf.shape(encoded.annotations)[1])
        return NTMAttentionState(
            attention=tf.zeros_like(layers[0][0]),
            weights=tf.tile(first[:, None], [1, self.heads, 1]),
            layers=layers,
        )

    def prepare(self, encoded: EncoderOutput) -> NTMAttentionSource:
        """Projects the annotations to keys, and marks the last positions."""
        last = tf.one_hot(encoded.length - 1, tf.shape(encoded.annotations)[1])
        return NTMAttentionSource(
            attention=self.attention.prepare_annotations(encoded.annotations, encoded.mask),
            last=last[:, None],
            feed_kernel=self.stack.feed_kernel(),
        )

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects the words to their part of layer 1's pre-activations."""
        return self.stack.prepare_inputs(embedded, masks.scope("stack"))

    def step(
        self, inputs: tf.Tensor, state: NTMAttentionState, source: NTMAttentionSource
    ) -> StepOutput:
        """Computes h_t from `[x_t; a_{t-1}]`, then w_t, c_t and a_t."""
        hidden, layers = self.stack.step(inputs, state.attention, state.layers, source.feed_kernel)
        parameters = product(hidden, self.head_kernel)
        if self.hparams.head_scale != 1:
            parameters *= self.head_scales
        parameters += self.head_bias
        weights, diagnostics = self._address(parameters, state.weights, source)  # [B, K*R, S]
        contexts = weights @ source.attention.values  # c_t of every head
        contexts = tf.reshape(contexts, [-1, self.heads * self.annotation_width])
        vector = product(tf.concat([contexts, hidden], axis=-1), self.attention_kernel)  # a_t
        read_weights = tf.reshape(weights, tf.shape(state.weights))
        return StepOutput(
            output=vector,
            state=NTMAttentionState(vector, read_weights, layers),
            diagnostics={
                **diagnostics,
                "read_weights": read_weights,
                "alignments": tf.reduce_mean(read_weights, axis=1),
            },
        )

    def _address(
        self, parameters: tf.Tensor, previous: tf.Tensor, source: NTMAttentionSource
    ) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
        """Maps head parameters `[B*K, R*(U+J+3)]`, w_{t-1} `[B*K, R, S]` to w_t `[B, K*R, S]`."""
        units, mask = self.hparams.num_units, source.attention.mask
        parameters = tf.clip_by_value(parameters, -HEAD_CLIP, HEAD_CLIP)
        parameters = split_beams(parameters, mask)  # [B, K, R*(U+J+3)]
        shape = [tf.shape(parameters)[0], -1, units + self.taps + 3]
        parameters = tf.reshape(parameters, shape)  # [B, K*R, U+J+3]
        key, strength, gate, kernel, gamma = tf.split(
            parameters, [units, 1, 1, self.taps, 1], axis=-1
        )
        key, strength = tf.tanh(key), tf.nn.softplus(strength)  # k_t, beta_t
        gate, kernel = tf.sigmoid(gate), tf.nn.softmax(kernel)  # g_t, s_t
        gamma = 1 + tf.nn.softplus(gamma)  # gamma_t

        scores = strength * self.attention.content_scores(key, source.attention)  # beta (11)
        content_weights = access.masked_softmax(scores, mask)  # w^c (12)
        previous = tf.reshape(previous, tf.shape(content_weights))
        gated_weights = access.interpolate(gate, content_weights, previous)  # w^g (13)
        shifted_weights = access.shift_within(gated_weights, kernel, mask, source.last)  # (14)
        weights = access.sharpen(shifted_weights, gamma, mask)  # w_t (15)
        diagnostics = {
            "content_weights": content_weights,
            "interpolation_gate": gate,
            "shift_kernel": kernel,
            "sharpening": gamma,
        }
        return weights, {
            name: tf.reshape(value, [-1, self.heads, tf.shape(value)[-1]])
            for name, value in diagnostics.items()
        }
