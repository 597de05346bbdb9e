"""Steps of LSTM and GRU as pure functions, a GRU with its weights, and a decoder's layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tfmann.config import HParams
from tfmann.errors import UsageError
from tfmann.layers.dropout import DropoutMasks
from tfmann.layers.initializers import VariableFactory
from tfmann.ops.loop_gradients import StepMatrix

GATES = {"lstm": 4, "gru": 3}
State = tuple[tf.Tensor, ...]  # (h,) or (h, c), each [B, U]


def product(values: tf.Tensor, kernel: tf.Tensor | StepMatrix) -> tf.Tensor:
    """Multiplies `values [..., I]` by `kernel [I, O]` in the kernel's type; returns float32."""
    if values.shape.rank == 2:
        return _multiply(values, kernel)
    if isinstance(kernel, StepMatrix):
        kernel = kernel.tensor  # its list would hold many rows per step
    result = _multiply(tf.reshape(values, [-1, values.shape[-1]]), kernel)
    result = tf.reshape(result, tf.concat([tf.shape(values)[:-1], [kernel.shape[-1]]], axis=0))
    result.set_shape([*values.shape[:-1], kernel.shape[-1]])
    return result


def _multiply(values: tf.Tensor, kernel: tf.Tensor | StepMatrix) -> tf.Tensor:
    return tf.cast(tf.cast(values, kernel.dtype) @ kernel, tf.float32)


def lstm_step(sums: tf.Tensor, state: State) -> State:
    """Maps pre-activations `sums [..., 4U]` and (h, c) to `c' = f c + i g`, `h' = o tanh(c')`.

    The columns are input gate i, forget gate f, candidate g and output gate o.
    """
    i, f, g, o = tf.split(sums, 4, axis=-1)
    c = tf.sigmoid(f) * state[1] + tf.sigmoid(i) * tf.tanh(g)
    return tf.sigmoid(o) * tf.tanh(c), c


def gru_step(projected: tf.Tensor, recurrent: tf.Tensor, hidden: tf.Tensor) -> tf.Tensor:
    """Maps `W x + b` and `U h`, each `[..., 3U]`, and h to `h' = z h + (1 - z) candidate`.

    The columns are update gate z, reset gate r and candidate; r is applied after the recurrent
    product: `candidate = tanh(W x + b + r (U h))`.
    """
    units = hidden.shape[-1]
    # splits, not slices: the gradient of a split is one concatenation
    gates_in, candidate_in = tf.split(projected, [2 * units, units], axis=-1)
    gates_of_h, inner = tf.split(recurrent, [2 * units, units], axis=-1)
    z, r = tf.split(tf.sigmoid(gates_in + gates_of_h), 2, axis=-1)
    candidate = tf.tanh(candidate_in + r * inner)
    return candidate + z * (hidden - candidate)


class GRUCell(tf.Module):
    """`h' = z h + (1 - z) tanh(W x + b + r (U h))`, gates z and r; one bias vector per gate."""

    def __init__(
        self, input_width: int, units: int, weights: VariableFactory, update_start: float = 0.0
    ):
        """Creates W `[I, 3U]`, U `[U, 3U]` and b `[3U]`.

        Args:
          input_width: I.
          units: U.
          weights: makes the weights.
          update_start: start value of the update gate's bias; above 0, h changes little at first.
        """
        super().__init__(name="gru")
        self.kernel = weights.matrix("kernel", [input_width, 3 * units])
        self.recurrent_kernel = weights.recurrent("recurrent_kernel", units, 3)
        self.bias = weights.constant("bias", np.repeat([update_start, 0.0, 0.0], units))

    def __call__(
        self, inputs: tf.Tensor, hidden: tf.Tensor, addend: tf.Tensor | None = None
    ) -> tf.Tensor:
        """Maps x `[B, I]` and h `[B, U]` to the new h; adds `addend [B, 3U]` to `W x + b`."""
        projected = self.project(inputs)
        return self.from_projected(projected if addend is None else projected + addend, hidden)

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns `W x + b` `[..., 3U]` of inputs `[..., I]`, for example of all steps."""
        return product(inputs, self.kernel) + self.bias

    def from_projected(self, projected: tf.Tensor, hidden: tf.Tensor) -> tf.Tensor:
        """Maps `W x + b` `[B, 3U]` and h `[B, U]` to the new h."""
        return gru_step(projected, product(hidden, self.recurrent_kernel), hidden)


def recurrent_step(
    unit_type: str, projected: tf.Tensor, recurrent: tf.Tensor, state: State
) -> State:
    """Makes one step of an LSTM or GRU from `W x + b` and `U h`, each `[..., G*U]`."""
    if unit_type == "lstm":
        return lstm_step(projected + recurrent, state)
    return (gru_step(projected, recurrent, state[0]),)


def gate_bias(unit_type: str, units: int, forget_bias: float) -> np.ndarray:
    """Returns the start values of a bias `[G*U]`: zero, `forget_bias` at the LSTM's forget gate."""
    bias = np.zeros(GATES[unit_type] * units)
    if unit_type == "lstm":
        bias[units : 2 * units] = forget_bias
    return bias


class DecoderStack(tf.keras.layers.Layer):
    """A decoder's LSTM or GRU layers; layer 1 reads `[x; feed]`, the others the layer below.

    With dropout, the inputs of every layer are dropped, by a new mask at each time step.

    The setting `bridge` says how the layers start. `copy` hands the encoder's final states to the
    layers from the bottom, forward and backward alternately, as tensorflow/nmt does. `tanh` starts
    every layer's h from the tanh of an affine map of all final states' h, and its c from zero.
    `zero` starts every layer at zero, and so does an encoder without final states (memory,
    transformer).
    """

    def __init__(
        self, hparams: HParams, feed_width: int, weights: VariableFactory, bridge: str = ""
    ):
        """Creates kernel `[in, G*U]`, recurrent kernel `[U, G*U]` and bias of every layer.

        Args:
          hparams: which layers and how many.
          feed_width: F, width of what is fed back to layer 1.
          weights: makes the weights, in the scopes `stack` and `bridge`.
          bridge: how the layers start, if not as `hparams` says.

        Raises:
          UsageError: `copy` where the encoder has another number of final states.
        """
        super().__init__(name="stack")
        h = hparams
        self.unit_type, self.units, self.num_layers = h.unit_type, h.num_units, h.decoder_layers
        self.input_width, self.feed_width, self.rate = h.embedding_width, feed_width, h.dropout
        kernels, recurrent_kernels, biases = [], [], []
        gates = GATES[self.unit_type]
        for layer in range(self.num_layers):
            scope = weights.scope("stack").scope(f"layer_{layer}")
            width = self.units if layer else self.input_width + feed_width
            kernels.append(scope.matrix("kernel", [width, gates * self.units]))
            recurrent_kernels.append(scope.recurrent("recurrent_kernel", self.units, gates))
            bias = gate_bias(self.unit_type, self.units, h.forget_bias)
            biases.append(scope.constant("bias", bias))
        self.bridge = bridge or (h.bridge if h.final_states else "zero")
        if self.bridge == "copy" and h.final_states != self.num_layers:
            raise UsageError(
                f"bridge='copy' needs as many decoder layers as the encoder has final states: "
                f"{self.num_layers} and {h.final_states} here. Change num_decoder_layers or use "
                "bridge='tanh'."
            )
        if self.bridge == "tanh":
            scope, width = weights.scope("bridge"), self.num_layers * self.units
            self.bridge_kernel = scope.matrix("kernel", [h.final_states * self.units, width])
            self.bridge_bias = scope.constant("bias", np.zeros(width))
        # Assigned when they are full: Keras would save a layer that was never called without the
        # weights that were appended later.
        self.kernels, self.recurrent_kernels, self.biases = kernels, recurrent_kernels, biases

    def initial_states(
        self, final_states: Sequence[State], batch_size: tf.Tensor
    ) -> tuple[State, ...]:
        """Returns the layers' first states, from the encoder's final ones; `[B, U]` each."""
        if self.bridge == "copy":
            return tuple(final_states)
        hidden = [tf.zeros([batch_size, self.units])] * self.num_layers
        if self.bridge == "tanh":
            final = tf.concat([state[0] for state in final_states], axis=-1)
            sums = tf.matmul(final, self.bridge_kernel) + self.bridge_bias
            hidden = tf.split(tf.tanh(sums), self.num_layers, axis=-1)
        if self.unit_type == "gru":
            return tuple((h,) for h in hidden)
        return tuple((h, tf.zeros_like(h)) for h in hidden)

    def feed_kernel(self) -> tf.Tensor:
        """Returns the rows `[F, G*U]` of layer 1's kernel that multiply what is fed back."""
        return self.kernels[0][self.input_width :]

    def prepare_inputs(self, inputs: tf.Tensor, masks: DropoutMasks) -> tf.Tensor:
        """Projects inputs `[..., E]` to layer 1's `W x + b`; appends the masks of dropout.

        Returns:
          `[..., G*U]`, or `[..., G*U + F + (L-1)*U]` with dropout.
        """
        inputs = masks.dropout("input", self.rate, inputs)
        kernel = self.kernels[0][: self.input_width]
        projected = product(inputs, kernel) + self.biases[0]
        width = self.feed_width + (self.num_layers - 1) * self.units
        shape = tf.concat([tf.shape(inputs)[:-1], [width]], axis=0)
        mask = masks.mask("layers", self.rate, shape) if width else None
        if mask is None:
            return projected
        mask.set_shape([*inputs.shape[:-1], width])
        return tf.concat([projected, mask], axis=-1)

    def step(
        self,
        prepared: tf.Tensor,
        feed: tf.Tensor | None,
        states: Sequence[State],
        feed_kernel: tf.Tensor | StepMatrix | None,
    ) -> tuple[tf.Tensor, tuple[State, ...]]:
        """Makes one step of all layers.

        Args:
          prepared: from `prepare_inputs`, `[B, ...]`.
          feed: `[B, F]`, or None if F is 0.
          states: of every layer.
          feed_kernel: from `feed_kernel`; None if F is 0.

        Returns:
          h of the top layer `[B, U]`, the new states.
        """
        projected, masks = self._split(prepared)
        if feed is not None:
            feed = feed if masks is None else feed * masks[0]
            projected = projected + product(feed, feed_kernel)
        new_states: list[State] = []
        for layer, state in enumerate(states):
            if layer:
                below = new_states[-1][0]
                below = below if masks is None else below * masks[layer]
                projected = product(below, self.kernels[layer]) + self.biases[layer]
            recurrent = product(state[0], self.recurrent_kernels[layer])
            new_states.append(recurrent_step(self.unit_type, projected, recurrent, state))
        return new_states[-1][0], tuple(new_states)

    def _split(self, prepared: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor] | None]:
        """Splits what `prepare_inputs` joined: layer 1's `W x + b`, and the masks, if any."""
        width = GATES[self.unit_type] * self.units
        if prepared.shape[-1] == width:
            return prepared, None
        sizes = [width, self.feed_width] + [self.units] * (self.num_layers - 1)
        projected, *masks = tf.split(prepared, sizes, axis=-1)
        return projected, masks
