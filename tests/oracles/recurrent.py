"""One step of a GRU and of an LSTM, a stack of them, a bidirectional layer, two stacks.

Weights of a unit: `kernel` [in, G*U], `recurrent_kernel` [U, G*U], `bias` [G*U].
The gates lie side by side in the columns:

* GRU (Cho et al. 2014, G = 3): update z, reset r, candidate;
* LSTM (G = 4): input i, forget f, candidate g, output o.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

Weights = Mapping[str, np.ndarray]


def sigmoid(x):
    """The logistic function 1 / (1 + exp(-x)), for an array of any shape.

    Written with tanh because exp(-x) overflows for large negative x.
    """
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(x, dtype=np.float64)))


def gru_step(x, h, kernel, recurrent_kernel, bias) -> np.ndarray:
    """Returns the next state [U] of a GRU from its input `x` [in] and its state `h` [U].

    h' = z * h + (1 - z) * tanh(x W_c + b_c + r * (h U_c)): the reset gate is applied
    after the recurrent product, and the candidate's bias is outside that product.
    """
    x, h = np.asarray(x, dtype=np.float64), np.asarray(h, dtype=np.float64)
    from_input_z, from_input_r, from_input_c = np.split(x @ kernel + bias, 3)
    from_state_z, from_state_r, from_state_c = np.split(h @ recurrent_kernel, 3)
    z = sigmoid(from_input_z + from_state_z)
    r = sigmoid(from_input_r + from_state_r)
    candidate = np.tanh(from_input_c + r * from_state_c)
    return z * h + (1.0 - z) * candidate


def lstm_step(x, state, kernel, recurrent_kernel, bias) -> tuple[np.ndarray, np.ndarray]:
    """Returns the next state (h [U], c [U]) of an LSTM from `x` [in] and `state` = (h, c).

    A forget bias, where there is one, is already inside `bias`.
    """
    x = np.asarray(x, dtype=np.float64)
    h, c = (np.asarray(part, dtype=np.float64) for part in state)
    i, f, g, o = np.split(x @ kernel + h @ recurrent_kernel + bias, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return h, c


def unit_step(unit: str, x, state, weights: Weights):
    """One step of the unit called 'gru' or 'lstm'; returns (output [U], next state)."""
    arrays = weights["kernel"], weights["recurrent_kernel"], weights["bias"]
    if unit == "gru":
        h = gru_step(x, state, *arrays)
        return h, h
    if unit == "lstm":
        state = lstm_step(x, state, *arrays)
        return state[0], state
    raise ValueError(f"unit {unit!r}: expected 'gru' or 'lstm'")


def zero_state(unit: str, weights: Weights):
    """The state of zeros of a unit: h [U] for a GRU, (h [U], c [U]) for an LSTM."""
    zeros = np.zeros(len(weights["recurrent_kernel"]))
    return zeros if unit == "gru" else (zeros, zeros)


def stack_step(unit: str, layers: Sequence[Weights], x, states: Sequence):
    """One step of a stack, each layer reading the output of the one below.

    Returns:
        The output [U] of the top layer, and the list of next states from the bottom.
    """
    next_states = []
    for weights, state in zip(layers, states):
        x, state = unit_step(unit, x, state, weights)
        next_states.append(state)
    return x, next_states


def bidirectional_layer(
    xs,
    length: int,
    unit: str,
    forward_weights: Weights,
    backward_weights: Weights,
    merge: str = "concat",
):
    """Runs one unit from left to right and another from right to left over a sentence.

    Args:
        xs: the inputs [S, in]; positions from `length` on are padding. The backward
            unit starts at the last real position, `length - 1`.
        length: how many positions are real.
        unit: 'gru' or 'lstm'.
        forward_weights: of the left-to-right unit.
        backward_weights: of the right-to-left unit.
        merge: 'concat' (forward first, D = 2U) or 'sum' (D = U).

    Returns:
        The outputs [S, D], zero on padding; the forward unit's state after position
        `length - 1`; the backward unit's state after position 0.
    """
    units = len(forward_weights["recurrent_kernel"])
    forward_outputs = np.zeros((len(xs), units))
    forward = zero_state(unit, forward_weights)
    for s in range(length):
        forward_outputs[s], forward = unit_step(unit, xs[s], forward, forward_weights)
    backward_outputs = np.zeros((len(xs), units))
    backward = zero_state(unit, backward_weights)
    for s in reversed(range(length)):
        backward_outputs[s], backward = unit_step(unit, xs[s], backward, backward_weights)
    if merge == "sum":
        return forward_outputs + backward_outputs, forward, backward
    if merge == "concat":
        outputs = np.concatenate([forward_outputs, backward_outputs], axis=1)
        return outputs, forward, backward
    raise ValueError(f"merge {merge!r}: expected 'concat' or 'sum'")


def bidirectional_stacks(
    xs,
    length: int,
    unit: str,
    forward_layers: Sequence[Weights],
    backward_layers: Sequence[Weights],
):
    """Runs a stack from left to right and another from right to left over a sentence.

    The stacks know nothing of each other: every layer reads the one below of its own
    direction, and only the top layers are put side by side (the `bi` encoder of tensorflow/nmt).

    Args:
        xs: the inputs [S, in]; positions from `length` on are padding.
        length: how many positions are real.
        unit: 'gru' or 'lstm'.
        forward_layers: of the left-to-right stack, from the bottom.
        backward_layers: of the right-to-left stack, from the bottom; as many.

    Returns:
        The top layers' outputs [S, 2U], forward first, zero on padding; the final states from
        the bottom, of each layer first the forward one's, then the backward one's.
    """
    units = len(forward_layers[0]["recurrent_kernel"])
    outputs = np.zeros((len(xs), 2 * units))
    finals = []
    for direction, layers in enumerate((forward_layers, backward_layers)):
        states = [zero_state(unit, weights) for weights in layers]
        order = range(length) if direction == 0 else reversed(range(length))
        for s in order:
            top, states = stack_step(unit, layers, xs[s], states)
            outputs[s, direction * units : (direction + 1) * units] = top
        finals.append(states)
    return outputs, [state for pair in zip(*finals) for state in pair]
