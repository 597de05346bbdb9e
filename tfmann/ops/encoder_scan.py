"""A recurrent layer over a whole sequence, with its gradient written out.

The gradient of the recurrent kernel is one product over all time steps after the backward loop,
and whatever does not depend on the loop's order is computed outside of it. Automatic
differentiation would multiply and add the whole kernel at every step: 0.98 of the words/s
(`benchmarks.ablation`, five turns, float32), and in bfloat16 a sum that loses small addends.
"""

from __future__ import annotations

from typing import Callable

import tensorflow as tf

from tfmann.ops.gradients import custom_gradient


def scan(
    unit_type: str,
    projected: tf.Tensor,
    kernel: tf.Tensor,
    dtype: tf.DType,
    initial: tf.Tensor | None = None,
) -> tuple[tf.Tensor, ...]:
    """Runs a GRU or LSTM layer.

    Args:
      unit_type: "gru" or "lstm".
      projected: `[S, C, B, G*U]` the inputs' part of the pre-activations, for C independent chains.
      kernel: `[C, U, G*U]` recurrent kernels.
      dtype: type of the recurrent products.
      initial: `[C, B, U]` h before the first step, zero if not given; an LSTM's c begins at zero.

    Returns:
      h, and for an LSTM c, of all steps: `[S, C, B, U]`.
    """
    run, gates = (_lstm, 4) if unit_type == "lstm" else (_gru, 3)
    zero = _zero_state(projected, gates)
    return run(projected, kernel, dtype, zero if initial is None else initial)


def _loop(
    body: Callable, sequences: tuple[tf.Tensor, ...], state: tuple[tf.Tensor, ...], reverse: bool
) -> tuple[tuple[tf.Tensor, ...], tuple[tf.Tensor, ...]]:
    """Calls `body(inputs of a step, state) -> (outputs, state)`.

    Returns:
      the outputs, stacked over time; the last state.
    """
    steps = tf.shape(sequences[0])[0]
    arrays = [
        tf.TensorArray(tf.float32, steps, element_shape=s.shape[1:]).unstack(s) for s in sequences
    ]
    outputs, _ = body([s[0] for s in sequences], state)  # for their shapes; not in the pruned graph
    stacks = tuple(tf.TensorArray(tf.float32, steps, element_shape=o.shape) for o in outputs)

    def step(count: tf.Tensor, state: tuple, stacks: tuple) -> tuple:
        time = steps - 1 - count if reverse else count
        outputs, state = body([array.read(time) for array in arrays], state)
        return count + 1, state, tuple(a.write(time, o) for a, o in zip(stacks, outputs))

    _, state, stacks = tf.while_loop(
        lambda count, *_: count < steps, step, (tf.constant(0), state, stacks)
    )
    return tuple(array.stack() for array in stacks), state


def _multiply(values: tf.Tensor, kernel: tf.Tensor, transpose: bool = False) -> tf.Tensor:
    """Multiplies `[C, B, I]` by `[C, I, O]` in the kernel's type; returns float32."""
    values = tf.cast(values, kernel.dtype)
    return tf.cast(tf.matmul(values, kernel, transpose_b=transpose), tf.float32)


def _scale_each_gate(values: tf.Tensor, factors: tf.Tensor) -> tf.Tensor:
    """Multiplies `[C, B, U]` by each third of `[C, B, 3U]`, in one operation."""
    chains, _, units = values.shape
    thirds = tf.expand_dims(values, 2) * tf.reshape(factors, [chains, -1, 3, units])
    return tf.reshape(thirds, [chains, -1, 3 * units])


def _previous_states(states: tf.Tensor, initial: tf.Tensor) -> tf.Tensor:
    """Returns the states one step earlier."""
    return tf.concat([initial[None], states[:-1]], axis=0)


def _kernel_gradient(states: tf.Tensor, sums: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Sums `h_{t-1}^T d_t` over t: `[S, C, B, U]` and `[S, C, B, G*U]` to `[C, U, G*U]`."""

    def chains(values: tf.Tensor) -> tf.Tensor:
        values = tf.transpose(values, [1, 0, 2, 3])
        return tf.cast(tf.reshape(values, [values.shape[0], -1, values.shape[-1]]), dtype)

    return tf.cast(tf.matmul(chains(states), chains(sums), transpose_a=True), tf.float32)


def _zero_state(projected: tf.Tensor, gates: int) -> tf.Tensor:
    units = projected.shape[-1] // gates
    zeros = tf.zeros(tf.concat([tf.shape(projected)[1:3], [units]], axis=0))
    return tf.ensure_shape(zeros, [projected.shape[1], None, units])


def _gru(
    projected: tf.Tensor, kernel: tf.Tensor, dtype: tf.DType, initial: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """Computes `h' = z h + (1-z) c`, `c = tanh(p_c + r (h U_c))`."""

    @custom_gradient
    def run(projected: tf.Tensor, kernel: tf.Tensor, initial: tf.Tensor):
        cast = tf.cast(kernel, dtype)
        units = kernel.shape[1]

        def forward(inputs: list, state: tuple) -> tuple:
            recurrent = _multiply(state[0], cast)
            gates_in, candidate_in = tf.split(inputs[0], [2 * units, units], axis=-1)
            gates_of_h, inner = tf.split(recurrent, [2 * units, units], axis=-1)
            gates = tf.sigmoid(gates_in + gates_of_h)
            z, r = tf.split(gates, 2, axis=-1)
            candidate = tf.tanh(candidate_in + r * inner)
            h = candidate + z * (state[0] - candidate)
            return (h, gates, candidate, inner), (h,)

        (h, gates, candidate, inner), _ = _loop(forward, (projected,), (initial,), reverse=False)

        def gradient(dh: tf.Tensor):
            z, r = tf.split(gates, 2, axis=-1)
            before = _previous_states(h, initial)
            by_z = (before - candidate) * z * (1.0 - z)
            by_candidate = (1.0 - z) * (1.0 - tf.square(candidate))
            by_r = by_candidate * inner * r * (1.0 - r)
            factors = tf.concat([by_z, by_r, by_candidate * r], axis=-1)

            def backward(inputs: list, state: tuple) -> tuple:
                factors, z = inputs[1:]
                d = inputs[0] + state[0]
                sums = _scale_each_gate(d, factors)
                down = d * z + _multiply(sums, cast, transpose=True)
                return (sums, d), (down,)

            zero = _zero_state(projected, 3)
            (sums, d), (d_initial,) = _loop(backward, (dh, factors, z), (zero,), reverse=True)
            d_projected = tf.concat([sums[..., : 2 * units], d * by_candidate], axis=-1)
            return d_projected, _kernel_gradient(before, sums, dtype), d_initial

        return h, gradient

    return (run(projected, kernel, initial),)


def _lstm(
    projected: tf.Tensor, kernel: tf.Tensor, dtype: tf.DType, initial: tf.Tensor
) -> tuple[tf.Tensor, ...]:
    """Computes `c' = f c + i g`, `h' = o tanh(c')`."""

    @custom_gradient
    def run(projected: tf.Tensor, kernel: tf.Tensor, initial: tf.Tensor):
        cast = tf.cast(kernel, dtype)

        def forward(inputs: list, state: tuple) -> tuple:
            i, f, g, o = tf.split(inputs[0] + _multiply(state[0], cast), 4, axis=-1)
            gates = i, f, g, o = tf.sigmoid(i), tf.sigmoid(f), tf.tanh(g), tf.sigmoid(o)
            c = f * state[1] + i * g
            h = o * tf.tanh(c)
            return (h, c, tf.concat(gates, axis=-1)), (h, c)

        zero = _zero_state(projected, 4)
        (h, c, gates), _ = _loop(forward, (projected,), (initial, zero), reverse=False)

        def gradient(dh: tf.Tensor, dc: tf.Tensor):
            i, f, g, o = tf.split(gates, 4, axis=-1)
            squashed = tf.tanh(c)
            by_f = _previous_states(c, zero) * f * (1.0 - f)
            by_c = tf.concat([g * i * (1.0 - i), by_f, i * (1.0 - tf.square(g))], axis=-1)
            by_h = squashed * o * (1.0 - o)
            through = o * (1.0 - tf.square(squashed))

            def backward(inputs: list, state: tuple) -> tuple:
                by_c, by_h, through, f = inputs[2:]
                d = inputs[0] + state[0]
                e = inputs[1] + state[1] + d * through
                sums = tf.concat([_scale_each_gate(e, by_c), d * by_h], axis=-1)
                return (sums,), (_multiply(sums, cast, transpose=True), e * f)

            (sums,), (d_initial, _) = _loop(
                backward, (dh, dc, by_c, by_h, through, f), (zero, zero), reverse=True
            )
            return sums, _kernel_gradient(_previous_states(h, initial), sums, dtype), d_initial

        return (h, c), gradient

    return run(projected, kernel, initial)
