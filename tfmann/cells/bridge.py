"""The decoder's recurrent layers, and how they start from the encoder's final states."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tfmann.cells.base import Encoded
from tfmann.cells.recurrent import RecurrentStack, State
from tfmann.cells.weights import Weights
from tfmann.errors import UsageError
from tfmann.hparams import HParams


class Bridge(tf.keras.layers.Layer):
    """`copy`, `tanh` or `zero`, as the hyper-parameter `bridge` says.

    An `encoder_type` of memory leaves no states: every layer starts at zero.

    `copy` hands the final states to the decoder layers from the bottom, forward and backward
    alternately, as tensorflow/nmt does. `tanh` starts every layer's h from an affine map of all
    final states' h, and its c from zero.
    """

    def __init__(self, hparams: HParams, weights: Weights):
        """Creates the map of `tanh`.

        Raises:
          UsageError: `copy` with other numbers of layers above than below.
        """
        super().__init__(name="bridge")
        self._hparams = hparams
        states = hparams.final_states
        layers, units = hparams.decoder_layers, hparams.num_units
        self._kind = "zero" if hparams.encoder_type == "memory" else hparams.bridge
        if self._kind == "copy" and states != layers:
            raise UsageError(
                f"bridge='copy' needs as many decoder layers as the encoder has final states: "
                f"{layers} and {states} here. Change num_decoder_layers or use bridge='tanh'."
            )
        if self._kind == "tanh":
            self.kernel = weights.matrix("kernel", [states * units, layers * units])
            self.bias = weights.constant("bias", np.zeros(layers * units))

    def start(self, encoded: Encoded) -> tuple[State, ...]:
        """Returns the decoder layers' first states, each `[B, U]`."""
        h = self._hparams
        if self._kind == "copy":
            return encoded.final_state
        if self._kind == "tanh":
            final = tf.concat([state[0] for state in encoded.final_state], axis=-1)
            mapped = tf.tanh(tf.matmul(final, self.kernel) + self.bias)
            hidden = tf.split(mapped, h.decoder_layers, axis=-1)
        else:
            zeros = tf.zeros([tf.shape(encoded.length)[0], h.num_units])
            hidden = [zeros] * h.decoder_layers
        if h.unit_type == "gru":
            return tuple((state,) for state in hidden)
        return tuple((state, tf.zeros_like(state)) for state in hidden)



def decoder_stack(hparams: HParams, feed_width: int, weights: Weights) -> RecurrentStack:
    """The layers that a configuration asks for, of which the first also reads what is fed back."""
    return RecurrentStack(
        unit_type=hparams.unit_type,
        num_layers=hparams.decoder_layers,
        units=hparams.num_units,
        input_width=hparams.embedding_width,
        feed_width=feed_width,
        dropout=hparams.dropout,
        forget_bias=hparams.forget_bias,
        weights=weights.scope("stack"),
    )
