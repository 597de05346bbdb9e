"""The recurrent encoder: source words to annotations and final states."""

from __future__ import annotations

import tensorflow as tf

from tfmann.cells.base import EncoderOutput
from tfmann.config import HParams
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.layers.rnn import GATES, gate_bias, product
from tfmann.models.transformer_encoder import TransformerEncoder
from tfmann.ops.encoder_scan import scan


class EncoderLayer(tf.Module):
    """One layer, of one or two directions that run in one loop."""

    def __init__(self, hparams: HParams, width: int, directions: int, weights: VariableFactory):
        """Creates per direction a kernel `[in, G*U]`, a recurrent kernel `[U, G*U]` and a bias."""
        super().__init__(name="layer")
        self._unit_type, self._units = hparams.unit_type, hparams.num_units
        self._rate = hparams.dropout
        gates = GATES[hparams.unit_type]
        self.kernels, self.recurrent_kernels, self.biases = [], [], []
        for direction in ("forward", "backward")[:directions]:
            scope = weights.scope(direction)
            self.kernels.append(scope.matrix("kernel", [width, gates * self._units]))
            self.recurrent_kernels.append(scope.recurrent("recurrent_kernel", self._units, gates))
            bias = gate_bias(hparams.unit_type, self._units, hparams.forget_bias)
            self.biases.append(scope.constant("bias", bias))

    def run(
        self,
        inputs: tf.Tensor,
        length: tf.Tensor,
        masks: DropoutMasks,
        dtype: tf.DType,
        initial: tf.Tensor | None = None,
    ) -> tuple[list[tf.Tensor], tuple[tuple[tf.Tensor, ...], ...]]:
        """Runs over `inputs [S, B, in]`; all directions begin from h `initial [B, U]`, or zero.

        Inputs of twice that width are the concatenated inputs of the two directions.

        Returns:
          per direction h `[S, B, U]` in the order of the words (not masked), and the states at
          each sentence's end (its beginning for the backward direction).
        """
        parts = self._project(inputs, length, masks, dtype)
        if initial is not None:
            initial = tf.stack([initial] * len(parts))
        kernels = tf.stack(self.recurrent_kernels)
        # h and c, [S, directions, B, U]
        states = scan(self._unit_type, tf.stack(parts, axis=1), kernels, dtype, initial)
        last = tf.stack([length - 1, tf.range(tf.shape(length)[0])], axis=1)  # [B, 2]
        per_direction = [tf.unstack(part, len(parts), axis=1) for part in states]
        final = tuple(
            tuple(tf.gather_nd(part[direction], last) for part in per_direction)
            for direction in range(len(parts))
        )
        hidden = per_direction[0]
        if len(hidden) == 2:
            hidden[1] = _reverse(hidden[1], length)
        return hidden, final

    def _project(
        self, inputs: tf.Tensor, length: tf.Tensor, masks: DropoutMasks, dtype: tf.DType
    ) -> list[tf.Tensor]:
        """Computes the input part of each direction's gates, in its reading order."""
        inputs = masks.dropout("input", self._rate, inputs)
        parts = tf.split(inputs, inputs.shape[-1] // self.kernels[0].shape[0], axis=-1)
        if len(self.kernels) == 2:  # reversed before the product, which makes them wider
            parts = [parts[0], _reverse(parts[-1], length)]
        return [
            product(values, tf.cast(kernel, dtype)) + bias
            for values, kernel, bias in zip(parts, self.kernels, self.biases)
        ]


class Encoder(tf.Module):
    """`encoder_type` uni: a stack of L layers. bi: a stack of L/2 layers each way.

    The two stacks of bi are independent below the top, as in tensorflow/nmt and in Mino et al.
    2017, equations 1 and 2. Layers of the same height run in one loop. Annotations are the top
    layers' h, concatenated or summed, then dropped by `top_dropout`: the output of each stack,
    not its recurrent state. Final states go from the bottom, forward and backward alternately.
    """

    def __init__(self, hparams: HParams, weights: VariableFactory):
        """Creates the layers."""
        super().__init__(name="encoder")
        self._merge, self._rate = hparams.annotation_merge, hparams.top_dropout
        directions = 2 if hparams.encoder_type == "bi" else 1
        width = hparams.embedding_width
        self.layers = []
        for index in range(max(1, hparams.encoder_layers // directions)):
            scope = weights.scope(f"layer_{index}")
            self.layers.append(EncoderLayer(hparams, width, directions, scope))
            width = hparams.num_units
        self.annotation_width = width * (directions if self._merge == "concat" else 1)

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
          dtype: type of matrix products.
          initial: `[B, U]`, h of every layer and direction before its first word; zero if not
            given. An LSTM's c begins at zero.
        """
        hidden, finals = tf.transpose(embedded, [1, 0, 2]), []
        for index, layer in enumerate(self.layers):
            parts, final = layer.run(hidden, length, masks.scope(f"layer_{index}"), dtype, initial)
            finals.extend(final)
            top = index == len(self.layers) - 1
            if top and self._merge == "sum":
                hidden = tf.add_n(parts)
            else:
                hidden = tf.concat(parts, axis=-1)
        hidden = masks.dropout("top", self._rate, hidden)
        mask = tf.sequence_mask(length, tf.shape(embedded)[1], dtype=tf.float32)
        annotations = tf.transpose(hidden, [1, 0, 2]) * mask[:, :, None]
        return EncoderOutput(annotations, mask, length, final_state=tuple(finals))


def make_encoder(hparams: HParams, weights: VariableFactory) -> Encoder | TransformerEncoder:
    """Builds the encoder that `hparams.encoder_type` names."""
    encoder = TransformerEncoder if hparams.encoder_type == "transformer" else Encoder
    return encoder(hparams, weights)


def _reverse(values: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """Reverses the real part of every sentence of `[S, B, ...]`."""
    return tf.reverse_sequence(values, length, seq_axis=0, batch_axis=1)
