"""LSTM and GRU steps as pure functions, and stacks of them that decoder cells are built from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfmann.cells.noise import Noise
from tfmann.cells.weights import Weights
from tfmann.memory import deferred

GATES = {"lstm": 4, "gru": 3}
State = tuple[tf.Tensor, ...]  # (h,) or (h, c), each [B, U]


def product(values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    """`values [..., I]` times `kernel [I, O]` in the kernel's type, returned as float32."""
    if values.shape.rank == 2:
        found = deferred.product(values, kernel)
        return _product(values, kernel) if found is None else found
    flat = tf.reshape(values, [-1, values.shape[-1]])
    shape = tf.concat([tf.shape(values)[:-1], [kernel.shape[-1]]], axis=0)
    result = tf.reshape(_product(flat, kernel), shape)
    result.set_shape([*values.shape[:-1], kernel.shape[-1]])
    return result


def _product(values: tf.Tensor, kernel: tf.Tensor) -> tf.Tensor:
    if kernel.dtype == tf.float32:
        return tf.matmul(values, kernel)
    return tf.cast(tf.matmul(tf.cast(values, kernel.dtype), kernel), tf.float32)


def lstm_gates(sums: tf.Tensor) -> tuple[tf.Tensor, ...]:
    """Sums `[..., 4U]` to input, forget, candidate and output gate, each `[..., U]`."""
    i, f, candidate, o = tf.split(sums, 4, axis=-1)
    return tf.sigmoid(i), tf.sigmoid(f), tf.tanh(candidate), tf.sigmoid(o)


def lstm_step(sums: tf.Tensor, state: State) -> State:
    """Gates' sums `[..., 4U]` and (h, c) to the new (h, c)."""
    i, f, candidate, o = lstm_gates(sums)
    c = f * state[1] + i * candidate
    return o * tf.tanh(c), c


def gru_step(projected: tf.Tensor, recurrent: tf.Tensor, state: State) -> State:
    """Sums from the input and from the state, each `[..., 3U]` (update z, reset r, candidate).

    `h' = z h + (1 - z) candidate`; the reset gate stands after the recurrent product.
    """
    units = state[0].shape[-1]
    # splits, not slices: the gradient of a split is one concatenation
    gates_in, candidate_in = tf.split(projected, [2 * units, units], axis=-1)
    gates_of_h, inner = tf.split(recurrent, [2 * units, units], axis=-1)
    z, r = tf.split(tf.sigmoid(gates_in + gates_of_h), 2, axis=-1)
    candidate = tf.tanh(candidate_in + r * inner)
    return (candidate + z * (state[0] - candidate),)


def recurrent_step(
    unit_type: str, projected: tf.Tensor, recurrent: tf.Tensor, state: State
) -> State:
    """One step of either unit from the two parts of its gates' sums."""
    if unit_type == "lstm":
        return lstm_step(projected + recurrent, state)
    return gru_step(projected, recurrent, state)


def gate_bias(unit_type: str, units: int, forget_bias: float) -> np.ndarray:
    """Start values of a bias: zero but for the LSTM's forget gate."""
    bias = np.zeros(GATES[unit_type] * units)
    if unit_type == "lstm":
        bias[units : 2 * units] = forget_bias
    return bias


class StackWeights(NamedTuple):
    """A stack's kernels in the type of the products, cut where inputs and feed meet."""

    feed: tf.Tensor | None  # [F, G*U], rows of layer 1 that multiply what is fed back
    upper: tuple[tf.Tensor, ...]  # per layer above the first: [U, G*U]
    recurrent: tuple[tf.Tensor, ...]  # per layer: [U, G*U]
    biases: tuple[tf.Tensor, ...]  # per layer above the first: [G*U]


class RecurrentStack(tf.keras.layers.Layer):
    """Decoder layers of U units; layer 1 reads `[x; feed]`, each other the layer below.

    With dropout, the inputs of every layer are dropped, by a new mask at each time step.
    """

    def __init__(
        self,
        unit_type: str,
        num_layers: int,
        units: int,
        input_width: int,
        feed_width: int,
        dropout: float,
        forget_bias: float,
        weights: Weights,
    ):
        """Creates kernel `[in, G*U]`, recurrent kernel `[U, G*U]` and bias of every layer."""
        super().__init__(name="stack")
        self.unit_type, self.units, self.num_layers = unit_type, units, num_layers
        self.input_width, self.feed_width, self.rate = input_width, feed_width, dropout
        self.kernels, self.recurrent_kernels, self.biases = [], [], []
        gates = GATES[unit_type]
        for layer in range(num_layers):
            scope = weights.scope(f"layer_{layer}")
            width = units if layer else input_width + feed_width
            self.kernels.append(scope.matrix("kernel", [width, gates * units]))
            self.recurrent_kernels.append(scope.recurrent("recurrent_kernel", units, gates))
            bias = gate_bias(unit_type, units, forget_bias)
            self.biases.append(scope.constant("bias", bias))

    def prepare(self, dtype: tf.DType) -> StackWeights:
        """Casts the kernels once, outside the loop."""
        kernel = tf.cast(self.kernels[0], dtype)
        return StackWeights(
            feed=kernel[self.input_width :] if self.feed_width else None,
            upper=tuple(tf.cast(k, dtype) for k in self.kernels[1:]),
            recurrent=tuple(tf.cast(k, dtype) for k in self.recurrent_kernels),
            biases=tuple(tf.identity(bias) for bias in self.biases[1:]),
        )

    def prepare_inputs(self, inputs: tf.Tensor, noise: Noise, dtype: tf.DType) -> tf.Tensor:
        """Layer 1's sums from its inputs `[..., E]`, with the masks of this step's dropout behind.

        Returns:
          `[..., G*U]`, or `[..., G*U + F + (L-1)*U]` with noise.
        """
        inputs = noise.dropout("input", self.rate, inputs)
        kernel = tf.cast(self.kernels[0][: self.input_width], dtype)
        projected = product(inputs, kernel) + self.biases[0]
        width = self.feed_width + (self.num_layers - 1) * self.units
        shape = tf.concat([tf.shape(inputs)[:-1], [width]], axis=0)
        mask = noise.mask("layers", self.rate, shape) if width else None
        if mask is None:
            return projected
        mask.set_shape([*inputs.shape[:-1], width])
        return tf.concat([projected, mask], axis=-1)

    def step(
        self,
        prepared: tf.Tensor,
        feed: tf.Tensor | None,
        states: tuple[State, ...],
        weights: StackWeights,
    ) -> tuple[tf.Tensor, tuple[State, ...]]:
        """One step of all layers: the top's h `[B, U]` and the new states."""
        projected, masks = self._split(prepared)
        if feed is not None:
            fed = feed if masks is None else feed * masks[0]
            projected = projected + product(fed, weights.feed)
        new_states = []
        for layer, state in enumerate(states):
            if layer:
                below = new_states[-1][0]
                below = below if masks is None else below * masks[layer]
                projected = product(below, weights.upper[layer - 1]) + weights.biases[layer - 1]
            recurrent = product(state[0], weights.recurrent[layer])
            new_states.append(recurrent_step(self.unit_type, projected, recurrent, state))
        return new_states[-1][0], tuple(new_states)

    def _split(self, prepared: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor] | None]:
        """What `prepare_inputs` put together: layer 1's sums, and the masks if there are any."""
        width = GATES[self.unit_type] * self.units
        if prepared.shape[-1] == width:
            return prepared, None
        sizes = [width, self.feed_width] + [self.units] * (self.num_layers - 1)
        projected, *masks = tf.split(prepared, sizes, axis=-1)
        return projected, masks
