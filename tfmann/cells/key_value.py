"""Key-value attention and its two companions (Mino et al. 2017, section 3).

`attn`: annotations `h_i = W_e [fwd; bwd]` are both keys and values. `key_value`: one half of the
encoder's states makes the keys, the other the values. `modifying_iw`: the upper halves of the
annotations are the keys, all of them the values, and W_d starts with zeros for the keys' half.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import DecoderCell, EncoderOutput, StepOutput
from tfmann.config import HParams
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.luong_attention import AttentionSource, DotProductAttention
from tfmann.layers.rnn import GATES, DecoderStack, State, product


class KeyValueState(NamedTuple):
    """The state between steps."""

    layers: tuple[State, ...]  # per layer h [B, U] (and c [B, U])
    query: tf.Tensor  # [B, Q] d_{j-1}, or its upper half; with dropout in training


class KeyValueCell(DecoderCell):
    """`e_j = tanh(W_d [d_j; c_j])` (5); the context does not enter the decoder's recurrence.

    As printed, the query of c_j is d_{j-1} (8, 12). The paper leaves open how key_value compares it
    with keys of half its width: here the query is the upper half of d_{j-1}, which u (13) selects
    in modifying_iw. Before `<s>`, h of every layer is a linear map of the last annotation, or of
    `[k_M; v_M]`. The paper calls this state d_1, but then c_1 has no query d_0. The paper shows the
    zeros of W_d (3.3) in the first row alone; here all rows have them, since c_j's upper half
    "should not be used".

    Dropout "to the last layer of each stacking LSTM" (section 4.2) is `top_dropout`, on the outputs
    of that layer: on the annotations, and on d as query and in the readout, not in the recurrence.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: VariableFactory):
        """Creates the maps to keys and values, the layers, the start and W_d.

        Raises:
          UsageError: an odd number of units, or an encoder whose states are not 2U wide.
        """
        super().__init__(hparams, annotation_width, weights)
        units = hparams.num_units
        if units % 2 or annotation_width != 2 * units:
            raise UsageError(
                "cell='key_value' halves the states of both directions: it needs an even num_units "
                "and encoder_type='bi' with annotation_merge='concat'"
            )
        self.system = hparams.key_value_system
        self.query_width = units if self.system == "attn" else units // 2  # Q
        self.read_width = units // 2 if self.system == "key_value" else units  # C
        if self.system == "key_value":
            self.key_kernel = weights.matrix("key_kernel", [units, units // 2])
            self.value_kernel = weights.matrix("value_kernel", [units, units // 2])
        else:
            self.annotation_kernel = weights.matrix("annotation_kernel", [2 * units, units])
        self.attention = DotProductAttention(hparams, self.query_width, weights)
        self.stack = DecoderStack(hparams, feed_width=0, weights=weights, bridge="zero")
        self.initial_kernel = weights.matrix("initial_kernel", [units, units])
        self.output_width, self.readout_width = units + self.read_width, units
        self.readout_kernel = weights.matrix("readout_kernel", [self.output_width, units])
        if self.system == "modifying_iw":  # the rows of [d; c] for the keys' half of c
            rows = np.arange(self.output_width)
            outside_key = (rows < units) | (rows >= units + units // 2)
            self.readout_kernel.assign(
                self.readout_kernel * outside_key[:, None].astype(np.float32)
            )

    def _keys_and_values(self, annotations: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Maps annotations `[..., 2U]` to keys `[..., Q]` and values `[..., C]` (3, 9, 10)."""
        if self.system == "key_value":
            parts = tf.split(annotations, 4, axis=-1)
            keys = product(tf.concat(parts[0::2], axis=-1), self.key_kernel)
            values = product(tf.concat(parts[1::2], axis=-1), self.value_kernel)
            return keys, values
        values = product(annotations, self.annotation_kernel)
        return values[..., : self.query_width], values

    def initial_state(self, encoded: EncoderOutput) -> KeyValueState:
        """Initialises `h` of every layer from the last annotation, or `[k_M; v_M]`; c = 0."""
        last = tf.gather(encoded.annotations, encoded.length - 1, batch_dims=1)
        keys, values = self._keys_and_values(last)
        annotation = tf.concat([keys, values], axis=-1) if self.system == "key_value" else values
        hidden = tf.matmul(annotation, self.initial_kernel)
        cell = (tf.zeros_like(hidden),) if self.hparams.unit_type == "lstm" else ()
        layers = ((hidden, *cell),) * self.hparams.decoder_layers
        return KeyValueState(layers, hidden[:, : self.query_width])

    def prepare(self, encoded: EncoderOutput) -> AttentionSource:
        """Maps the annotations to keys and values."""
        keys, values = self._keys_and_values(encoded.annotations)
        return self.attention.prepare(keys, values, encoded.mask)

    def prepare_inputs(self, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Returns layer 1's pre-activations from the words; in training, then the mask of d."""
        prepared = self.stack.prepare_inputs(embedded, masks.scope("stack"))
        units = self.hparams.num_units
        shape = tf.concat([tf.shape(embedded)[:-1], [units]], axis=0)
        mask = masks.mask("top", self.hparams.top_dropout, shape)
        if mask is None:
            return prepared
        mask.set_shape([*embedded.shape[:-1], units])
        return tf.concat([prepared, mask], axis=-1)

    def _split(self, prepared: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | None]:
        """Splits what `prepare_inputs` joined: the stack's part, and the mask if there is one."""
        units, width = self.hparams.num_units, prepared.shape[-1]
        if not self.hparams.top_dropout or width == GATES[self.hparams.unit_type] * units:
            return prepared, None
        stack, mask = tf.split(prepared, [width - units, units], axis=-1)
        return stack, mask

    def step(self, inputs: tf.Tensor, state: KeyValueState, source: AttentionSource) -> StepOutput:
        """Computes c_j by the query d_{j-1}, then d_j."""
        inputs, mask = self._split(inputs)
        alignments, context = self.attention.attend(state.query, source)  # c_j (7, 8, 11-13)
        hidden, layers = self.stack.step(inputs, None, state.layers, None)  # d_j (6)
        hidden = hidden if mask is None else hidden * mask
        return StepOutput(
            output=tf.concat([hidden, context], axis=-1),
            state=KeyValueState(layers, hidden[:, : self.query_width]),
            diagnostics={"alignments": alignments},
        )

    def readout(self, outputs: tf.Tensor, embedded: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Computes `tanh(W_d [d_j; c_j])` (5), then dropout: `[M, U]`."""
        del embedded
        readout = tf.tanh(product(outputs, self.readout_kernel))
        return masks.dropout("readout", self.hparams.readout_dropout, readout)
