"""Key-value attention and its two companions (Mino et al. 2017, section 3).

`attn`: annotations `h_i = W_e [fwd; bwd]` are asked and read. `key_value`: the halves of the
encoder's states make keys, which are asked, and values, which are read. `modifying_iw`: one memory
of which half is asked, and W_d starts with zeros for that half.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.base import Encoded, MemoryCell, StepOutput, per_row, per_sentence
from tfmann.cells.bridge import decoder_stack
from tfmann.cells.dot_product import DotProduct
from tfmann.cells.noise import Noise
from tfmann.cells.recurrent import GATES, StackWeights, State, product
from tfmann.cells.weights import Weights
from tfmann.errors import UsageError
from tfmann.hparams import HParams
from tfmann.memory import addressing, attention

NAME = "key_value"
SHARED_HPARAMS = ("dot_product",)

HPARAMS = {
    "key_value_system": {
        "default": "key_value",
        "choices": ["attn", "key_value", "modifying_iw"],
        "help": "key_value cell: which of the three systems of Mino et al. 2017.",
    },
}


class KeyValueState(NamedTuple):
    """What one step leaves for the next."""

    layers: tuple[State, ...]  # per layer h [B, U] (and c [B, U])
    asked: tf.Tensor  # [B, Q] of the last layer's h, dropped in training


class KeyValueMemory(NamedTuple):
    """What every step reads."""

    keys: tf.Tensor  # [B, S, Q]
    values: tf.Tensor  # [B, S, C]
    mask: tf.Tensor  # [B, 1, S]
    stack: StackWeights


class KeyValueCell(MemoryCell):
    """`e_j = tanh(W_d [d_j; c_j])` (5); the context does not enter the decoder's recurrence.

    As printed, c_j is asked for by d_{j-1} (8, 12); where keys have half of the units, by its upper
    half. d before `<s>` is a linear map of the last annotation, h of every layer.

    "Dropout to the last layer of each stacking LSTM" (section 4.2) is `top_dropout`, on what that
    layer puts out: on the annotations, and on d where it asks and is read out, not where the layer
    itself goes on from it.
    """

    def __init__(self, hparams: HParams, annotation_width: int, weights: Weights):
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
        self.asked_width = units if self.system == "attn" else units // 2  # Q
        self.read_width = units // 2 if self.system == "key_value" else units  # C
        if self.system == "key_value":
            self.key_kernel = weights.matrix("key_kernel", [units, units // 2])
            self.value_kernel = weights.matrix("value_kernel", [units, units // 2])
        else:
            self.annotation_kernel = weights.matrix("annotation_kernel", [2 * units, units])
        self.dot_product = DotProduct(hparams.attention_score, self.asked_width, weights)
        self.stack = decoder_stack(hparams, feed_width=0, weights=weights)
        self.initial_kernel = weights.matrix("initial_kernel", [units, units])
        self.output_width, self.readout_width = units + self.read_width, units
        self.readout_kernel = weights.matrix("readout_kernel", [self.output_width, units])
        if self.system == "modifying_iw":  # of [d; c], the half of c that is asked
            rows = np.arange(self.output_width)
            used = (rows < units) | (rows >= units + units // 2)
            self.readout_kernel.assign(self.readout_kernel * used[:, None].astype(np.float32))

    def _keys_and_values(
        self, annotations: tf.Tensor, dtype: tf.DType
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Annotations `[..., 2U]` to keys `[..., Q]` and values `[..., C]`."""
        if self.system == "key_value":
            parts = tf.split(annotations, 4, axis=-1)
            keys = product(tf.concat(parts[0::2], axis=-1), tf.cast(self.key_kernel, dtype))
            values = product(tf.concat(parts[1::2], axis=-1), tf.cast(self.value_kernel, dtype))
            return keys, values
        values = product(annotations, tf.cast(self.annotation_kernel, dtype))
        return values[..., : self.asked_width], values

    def initial_state(self, encoded: Encoded) -> KeyValueState:
        """H of every layer from the last annotation (`[k_M; v_M]` of key_value), c = 0."""
        last = tf.gather(encoded.annotations, encoded.length - 1, batch_dims=1)
        keys, values = self._keys_and_values(last, tf.float32)
        whole = tf.concat([keys, values], axis=-1) if self.system == "key_value" else values
        hidden = tf.matmul(whole, self.initial_kernel)
        rest = (tf.zeros_like(hidden),) if self.hparams.unit_type == "lstm" else ()
        layers = ((hidden, *rest),) * self.hparams.decoder_layers
        return KeyValueState(layers, hidden[:, : self.asked_width])

    def prepare(self, encoded: Encoded, dtype: tf.DType = tf.float32) -> KeyValueMemory:
        """Keys and values."""
        keys, values = self._keys_and_values(encoded.annotations, dtype)
        keys = self.dot_product.prepare(keys)
        return KeyValueMemory(keys, values, encoded.mask[:, None], self.stack.prepare(dtype))

    def prepare_inputs(
        self, embedded: tf.Tensor, noise: Noise, dtype: tf.DType = tf.float32
    ) -> tf.Tensor:
        """Layer 1's sums from the words, and behind them in training the mask of d."""
        prepared = self.stack.prepare_inputs(embedded, noise.scope("stack"), dtype)
        units = self.hparams.num_units
        shape = tf.concat([tf.shape(embedded)[:-1], [units]], axis=0)
        mask = noise.mask("top", self.hparams.top_dropout, shape)
        if mask is None:
            return prepared
        mask.set_shape([*embedded.shape[:-1], units])
        return tf.concat([prepared, mask], axis=-1)

    def _split(self, prepared: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor | None]:
        """What `prepare_inputs` put together: the stack's part, and the mask if there is one."""
        units, width = self.hparams.num_units, prepared.shape[-1]
        if not self.hparams.top_dropout or width == GATES[self.hparams.unit_type] * units:
            return prepared, None
        stack, mask = tf.split(prepared, [width - units, units], axis=-1)
        return stack, mask

    def step(
        self, inputs: tf.Tensor, state: KeyValueState, memory: KeyValueMemory
    ) -> StepOutput:
        """Address by the state before, context, layers."""
        inputs, mask = self._split(inputs)
        asked = per_sentence(state.asked, memory.keys)
        scores = self.dot_product.scores(asked, memory.keys)  # (8, 12, 13)
        alignments = addressing.masked_softmax(scores, memory.mask)  # [B, K, S]
        context = per_row(attention.read(alignments, memory.values))  # (7, 11)
        top, layers = self.stack.step(inputs, None, state.layers, memory.stack)  # (6)
        top = top if mask is None else top * mask
        return StepOutput(
            output=tf.concat([top, context], axis=-1),
            state=KeyValueState(layers, top[:, : self.asked_width]),
            diagnostics={"alignments": per_row(alignments)},
        )

    def readout(
        self,
        outputs: tf.Tensor,
        embedded: tf.Tensor,
        noise: Noise,
        dtype: tf.DType = tf.float32,
    ) -> tf.Tensor:
        """`tanh(W_d [d_j; c_j])` (5), then dropout: `[M, U]`."""
        del embedded
        readout = tf.tanh(product(outputs, tf.cast(self.readout_kernel, dtype)))
        return noise.dropout("readout", self.hparams.readout_dropout, readout)
