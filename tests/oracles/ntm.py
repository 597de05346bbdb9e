"""The Neural Turing Machine over one sequence of inputs.

Graves et al. 2014 ("Neural Turing Machines"), section 3, equations 2 to 10, with the
conventions of Collier & Beel 2018: every number of the head layer is clipped to
[-20, 20] before its activation, the initial memory, addresses and reads are weights, and
the heads read M_{t-1}, the memory as it was before this step's writes.

With n memory hops the memory is asked n times in one step: o^1 = h_t, the controller's
output, and o^{k+1} = GRU_hop(o^k, r^k). The hops share the head layer. In hops 1 to n-1 the
read heads alone move and read, each from its weights of the hop before; hop n is the full
step, on o^n. So a read head can shift n times in one step, and a write head, which moves in
hop n only, once. All hops read M_{t-1}.

Weights:
    layers: from the bottom, each a dictionary of `kernel`, `recurrent_kernel`, `bias`
        (see recurrent.py); the first kernel is [X + R*W, G*U], rows ordered [x; r_{t-1}],
        r_{t-1} one read head after the other.
    head_kernel: [U, P];  head_bias: [P];  P = (R + H) * (W + J + 3) + H * 2 * W.
        First the read heads, then the write heads, of each: key W (tanh), strength 1
        (softplus), gate 1 (sigmoid), shift J (softmax), sharpening 1 (1 + softplus).
        Then of each write head: erase W (sigmoid), add W (tanh).
    initial_memory: M_0 [N, W].
    initial_weights: [R + H, N], logits of w_0 (softmax), read heads first.
    initial_reads: [R, W], r_0 before its tanh.
    hop: GRU_hop, for more than one hop: `kernel` [R*W, 3U], `recurrent_kernel` [U, 3U],
        `bias` [3U], see `next_query`.
    output_kernel: [U + R*W, O], rows ordered [h_t; r_t], with hops [o^n; r_t];
        output_bias: [O].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .addressing import circular_shift, cosine_similarity, interpolate, sharpen, softmax
from .ntm_attention import HEAD_CLIP, Head, split_heads
from .recurrent import gru_step, sigmoid, stack_step, zero_state


class State(NamedTuple):
    """State of the memory and its heads between steps."""

    memory: np.ndarray  # M [N, W]
    read_weights: np.ndarray  # [R, N]
    write_weights: np.ndarray  # [H, N]
    reads: np.ndarray  # r [R, W]


def initial_state(weights: Mapping, num_read: int) -> State:
    """The state before the first step: all of it learned."""
    addresses = np.array([softmax(logits) for logits in weights["initial_weights"]])
    return State(
        memory=np.array(weights["initial_memory"], dtype=np.float64),
        read_weights=addresses[:num_read],
        write_weights=addresses[num_read:],
        reads=np.tanh(np.asarray(weights["initial_reads"], dtype=np.float64)),
    )


def split(raw, num_read: int, num_write: int, width: int) -> tuple[list[Head], list, list]:
    """Cuts the output of the head layer [P] into its parts.

    Returns:
        The R + H heads, read heads first; the erase vectors e [H][W]; the add vectors
        a [H][W].
    """
    vectors = len(raw) - num_write * 2 * width
    heads = split_heads(raw[:vectors], num_read + num_write, width)
    erase, add = [], []
    for pair in np.split(np.clip(raw[vectors:], -HEAD_CLIP, HEAD_CLIP), num_write):
        erase.append(sigmoid(pair[:width]))
        add.append(np.tanh(pair[width:]))
    return heads, erase, add


def content_address(strength, key, memory) -> np.ndarray:
    """Content address [N]: softmax_n(beta * cosine(k, M_n)), equations 5 and 6."""
    return softmax([strength * cosine_similarity(key, slot) for slot in memory])


def address(head: Head, memory, previous) -> tuple[np.ndarray, np.ndarray]:
    """One step of a head: its content address [N] and its weights [N].

    `previous` are the weights w_{t-1} [N] of this same head.
    """
    slots = len(memory)
    content = content_address(head.strength, head.key, memory)  # (5)
    gated = interpolate(head.gate, content, previous)  # (7)
    shifted = circular_shift(gated, head.shift, slots)  # (8)
    return content, sharpen(shifted, head.sharpening, slots)  # (9)


def read(memory, weights) -> np.ndarray:
    """The read vector r = sum_n w(n) M(n) [W], equation 2."""
    vector = np.zeros(np.shape(memory)[1])
    for weight, slot in zip(weights, memory):
        vector += weight * np.asarray(slot)
    return vector


def erase_and_add(memory, write_weights, erase, add) -> np.ndarray:
    """The memory [N, W] after the writes of all heads, equations 3 and 4.

    M(n) <- M(n) prod_h (1 - w_h(n) e_h) + sum_h w_h(n) a_h: every head erases before any
    head adds, so that their order makes no difference.

    Args:
        memory: [N, W].
        write_weights: [H, N].
        erase: e [H, W].
        add: a [H, W].
    """
    written = np.array(memory, dtype=np.float64)
    for weights, vector in zip(write_weights, erase):
        for slot, weight in enumerate(weights):
            written[slot] *= 1.0 - weight * np.asarray(vector)
    for weights, vector in zip(write_weights, add):
        for slot, weight in enumerate(weights):
            written[slot] += weight * np.asarray(vector)
    return written


def step(raw, state: State) -> tuple[State, dict[str, np.ndarray]]:
    """One step of the memory from the output of the head layer [P].

    Returns:
        The next state, and the quantities of this step by name (see `run`).
    """
    num_read, num_write = len(state.read_weights), len(state.write_weights)
    heads, erase, add = split(raw, num_read, num_write, state.memory.shape[1])
    contents, addresses = [], []
    for head, previous in zip(heads, [*state.read_weights, *state.write_weights]):
        content, weights = address(head, state.memory, previous)
        contents.append(content)
        addresses.append(weights)
    reads = [read(state.memory, weights) for weights in addresses[:num_read]]
    state = State(
        memory=erase_and_add(state.memory, addresses[num_read:], erase, add),
        read_weights=np.array(addresses[:num_read]),
        write_weights=np.array(addresses[num_read:]),
        reads=np.array(reads),
    )
    quantities = {
        **state._asdict(),
        "content_weights": np.array(contents),
        "interpolation_gate": np.array([head.gate for head in heads]),
        "shift_kernel": np.array([head.shift for head in heads]),
        "sharpening": np.array([head.sharpening for head in heads]),
        "erase": np.array(erase),
        "add": np.array(add),
    }
    return state, quantities


def read_hop(raw, state: State) -> State:
    """A hop that only reads, from the output of the head layer [P]: the read heads move."""
    num_read, num_write = len(state.read_weights), len(state.write_weights)
    heads, _, _ = split(raw, num_read, num_write, state.memory.shape[1])
    addresses = []
    for head, previous in zip(heads, state.read_weights):
        addresses.append(address(head, state.memory, previous)[1])
    reads = [read(state.memory, weights) for weights in addresses]
    return state._replace(read_weights=np.array(addresses), reads=np.array(reads))


def next_query(weights: Mapping, query, reads) -> np.ndarray:
    """o^{k+1} [U] = GRU_hop(o^k, r^k).

    Args:
        weights: of GRU_hop, `kernel` [R*W, 3U], `recurrent_kernel` [U, 3U] and `bias` [3U]
            in the form of `recurrent.gru_step`: columns z, r, candidate;
            o^{k+1} = z * o^k + (1 - z) * candidate, the reset gate after the recurrent
            product.
        query: o^k [U], the state of the unit.
        reads: r^k [R, W], one head after the other the input of the unit.
    """
    arrays = weights["kernel"], weights["recurrent_kernel"], weights["bias"]
    return gru_step(np.ravel(reads), query, *arrays)


def hop_steps(
    weights: Mapping, output, state: State, hops: int = 1
) -> tuple[np.ndarray, State, dict[str, np.ndarray]]:
    """One step of the memory, of all its hops, from the controller's output h_t [U].

    Returns:
        o^n [U], which is h_t itself when n = 1; the next state; and the quantities of this
        step by name (see `run`).
    """
    if hops < 1:
        raise ValueError(f"hops {hops}: expected 1 or more")
    addresses = []
    for _ in range(hops - 1):
        state = read_hop(output @ weights["head_kernel"] + weights["head_bias"], state)
        addresses.append(state.read_weights)
        output = next_query(weights["hop"], output, state.reads)
    state, quantities = step(output @ weights["head_kernel"] + weights["head_bias"], state)
    if hops > 1:
        quantities["hop_read_weights"] = np.array([*addresses, state.read_weights])
    return output, state, quantities


def run(
    weights: Mapping,
    inputs,
    num_read: int,
    num_write: int,
    unit: str = "lstm",
    initial_states: Sequence | None = None,
    hops: int = 1,
) -> dict[str, Any]:
    """Runs the machine over one sequence.

    Args:
        weights: see the module's docstring.
        inputs: x [L, X].
        num_read: R.
        num_write: H.
        unit: 'lstm' or 'gru'.
        initial_states: of each controller layer from the bottom, h for a GRU, (h, c) for
            an LSTM; zeros when None.
        hops: n, see the module's docstring.

    Returns:
        `outputs` [L, O]; `memory` [L, N, W], as each step leaves it; `read_weights`
        [L, R, N]; `write_weights` [L, H, N]; `reads` [L, R, W]; of all heads, read heads
        first, `content_weights` [L, R+H, N], `interpolation_gate` [L, R+H],
        `shift_kernel` [L, R+H, J], `sharpening` [L, R+H]; `erase` and `add` [L, H, W];
        and `state`, the final controller states from the bottom. Of several hops these
        are of the last one, and `hop_read_weights` [L, n, R, N] are of all.
    """
    if len(weights["initial_weights"]) != num_read + num_write:
        raise ValueError(f"initial_weights: expected {num_read} + {num_write} rows")
    state = initial_state(weights, num_read)
    states = initial_states
    if states is None:
        states = [zero_state(unit, layer) for layer in weights["layers"]]
    rows = []
    for x in inputs:
        x = np.concatenate([x, state.reads.ravel()])  # r_{t-1}
        h, states = stack_step(unit, weights["layers"], x, states)
        h, state, quantities = hop_steps(weights, h, state, hops)
        features = np.concatenate([h, state.reads.ravel()])
        output = features @ weights["output_kernel"] + weights["output_bias"]
        rows.append({"outputs": output, **quantities})
    return {**{name: np.array([row[name] for row in rows]) for name in rows[0]}, "state": states}
