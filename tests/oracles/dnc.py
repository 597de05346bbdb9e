"""The Differentiable Neural Computer over one sequence of inputs.

Graves et al. 2016 ("Hybrid computing using a neural network with dynamic external
memory"), Methods, for any number R of read heads and H of write heads. Each write head
has its own temporal link and precedence.

Weights:
    layers: as in ntm.py; the first kernel is [X + R*W, G*U], rows ordered [x; r_{t-1}].
    interface_kernel: [U, P];  interface_bias: [P];  one part after the other:
        read keys R*W; read strengths R (1 + softplus); write keys H*W; write strengths H
        (1 + softplus); erase vectors H*W (sigmoid); write vectors H*W; free gates R,
        allocation gates H, write gates H (sigmoid); read modes R * (1 + 2H) (softmax,
        ordered backward 1..H, content, forward 1..H).
    output_kernel: [U + R*W, O], rows ordered [h_t; r_t];  output_bias: [O].

Memory, usage, links, precedences, weights and reads start at 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .addressing import softmax, softplus
from .ntm import erase_and_add, read
from .recurrent import sigmoid, stack_step, zero_state

USAGE_EPSILON = 1e-6
NORM_FLOOR = 1e-6
CONTROLLER_CLIP = 20.0


class Interface(NamedTuple):
    """The numbers that the controller emits at one step, after their activations."""

    read_keys: np.ndarray  # [R, W]
    read_strengths: np.ndarray  # [R], >= 1
    write_keys: np.ndarray  # [H, W]
    write_strengths: np.ndarray  # [H], >= 1
    erase: np.ndarray  # e [H, W], in [0, 1]
    add: np.ndarray  # the write vectors v [H, W]
    free_gates: np.ndarray  # f [R], in [0, 1]
    allocation_gates: np.ndarray  # g^a [H], in [0, 1]
    write_gates: np.ndarray  # g^w [H], in [0, 1]
    read_modes: np.ndarray  # pi [R, 1 + 2H], distributions


class State(NamedTuple):
    """State of the memory between steps."""

    memory: np.ndarray  # M [N, W]
    usage: np.ndarray  # u [N]
    link: np.ndarray  # L [H, N, N]
    precedence: np.ndarray  # p [H, N]
    read_weights: np.ndarray  # [R, N]
    write_weights: np.ndarray  # [H, N]
    reads: np.ndarray  # r [R, W]


def initial_state(num_slots: int, width: int, num_read: int, num_write: int) -> State:
    """The state before the first step: zeros."""
    return State(
        memory=np.zeros((num_slots, width)),
        usage=np.zeros(num_slots),
        link=np.zeros((num_write, num_slots, num_slots)),
        precedence=np.zeros((num_write, num_slots)),
        read_weights=np.zeros((num_read, num_slots)),
        write_weights=np.zeros((num_write, num_slots)),
        reads=np.zeros((num_read, width)),
    )


def slot_width(numbers: int, num_read: int, num_write: int) -> int:
    """W, from the length P of the interface vector."""
    scalars = 2 * num_read + 3 * num_write + num_read * (1 + 2 * num_write)
    width, rest = divmod(numbers - scalars, num_read + 3 * num_write)
    if rest:
        raise ValueError(f"{numbers} interface numbers fit no width with these heads")
    return width


def split(raw, num_read: int, num_write: int) -> Interface:
    """Cuts the interface vector [P] into its parts and activates them."""
    width = slot_width(len(raw), num_read, num_write)
    shapes = [
        (num_read, width),
        (num_read,),
        (num_write, width),
        (num_write,),
        (num_write, width),
        (num_write, width),
        (num_read,),
        (num_write,),
        (num_write,),
        (num_read, 1 + 2 * num_write),
    ]
    parts, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        parts.append(np.asarray(raw[start : start + size], dtype=np.float64).reshape(shape))
        start += size
    linear = Interface(*parts)
    return linear._replace(
        read_strengths=1.0 + softplus(linear.read_strengths),
        write_strengths=1.0 + softplus(linear.write_strengths),
        erase=sigmoid(linear.erase),
        free_gates=sigmoid(linear.free_gates),
        allocation_gates=sigmoid(linear.allocation_gates),
        write_gates=sigmoid(linear.write_gates),
        read_modes=np.array([softmax(modes) for modes in linear.read_modes]),
    )


def content(keys, strengths, memory) -> np.ndarray:
    """Content addresses [K, N] of K keys [K, W] with their strengths [K]: softmax(beta cosine).

    Norms are sqrt(sum x^2 + 1e-6), as in deepmind/dnc; the denominator also has 1e-8.
    """

    def length(vector) -> float:
        return np.sqrt(np.sum(np.square(np.asarray(vector, dtype=np.float64))) + NORM_FLOOR)

    def cosine(key, slot) -> float:
        return np.dot(key, slot) / (length(key) * length(slot) + 1e-8)

    weights = []
    for key, beta in zip(keys, strengths):
        weights.append(softmax([beta * cosine(key, slot) for slot in memory]))
    return np.array(weights)


def usage_after(usage, write_weights, free_gates, read_weights) -> np.ndarray:
    """The usage u_t [N], from what was written and read at the step before.

    u_t = (u + w - u w) psi with w = 1 - prod_h (1 - w_h) of the write weights and the
    retention psi = prod_r (1 - f_r w_r) of the read weights.

    Args:
        usage: u_{t-1} [N].
        write_weights: of step t - 1, [H, N].
        free_gates: f of step t, [R].
        read_weights: of step t - 1, [R, N].
    """
    result = np.zeros(len(usage))
    for slot in range(len(usage)):
        unwritten = 1.0
        for weights in write_weights:
            unwritten *= 1.0 - weights[slot]
        retention = 1.0
        for gate, weights in zip(free_gates, read_weights):
            retention *= 1.0 - gate * weights[slot]
        written = 1.0 - unwritten
        result[slot] = (usage[slot] + written - usage[slot] * written) * retention
    return result


def free_list(usage) -> list[int]:
    """The slots phi in order of usage; equally used ones in order of index."""
    # Usages that float32 cannot tell apart count as equal: the order of the rest is noise.
    rounded = np.asarray(usage).astype(np.float32)
    return sorted(range(len(usage)), key=lambda slot: (rounded[slot], slot))


def allocation(usage) -> np.ndarray:
    """The allocation weights a [N]: the freest slot first, then the next in what is left.

    a[phi_j] = (1 - u[phi_j]) prod_{i<j} u[phi_i], phi the free list. The usage is
    squeezed away from 0, where the product would end.
    """
    squeezed = USAGE_EPSILON + (1.0 - USAGE_EPSILON) * np.asarray(usage, dtype=np.float64)
    weights, product = np.zeros(len(squeezed)), 1.0
    for slot in free_list(squeezed):
        weights[slot] = (1.0 - squeezed[slot]) * product
        product *= squeezed[slot]
    return weights


def write_allocation(usage, write_gates, allocation_gates) -> np.ndarray:
    """The allocation weights [H, N] of the write heads, one after the other.

    Each head sees the usage [N] as raised by the heads before it, by (1 - u) g^w g^a a.
    """
    usage = np.array(usage, dtype=np.float64)
    result = []
    for write_gate, allocation_gate in zip(write_gates, allocation_gates):
        weights = allocation(usage)
        usage = usage + (1.0 - usage) * write_gate * allocation_gate * weights
        result.append(weights)
    return np.array(result)


def write_weights(content_weights, allocated, write_gates, allocation_gates) -> np.ndarray:
    """The write weights g^w (g^a a + (1 - g^a) c) [H, N]."""
    result = []
    for c, a, g_w, g_a in zip(content_weights, allocated, write_gates, allocation_gates):
        result.append(g_w * (g_a * np.asarray(a) + (1.0 - g_a) * np.asarray(c)))
    return np.array(result)


def link_and_precedence(link, precedence, write_weights) -> tuple[np.ndarray, np.ndarray]:
    """The temporal links [H, N, N] and the precedences [H, N] after a write.

    L[i, j] <- (1 - w[i] - w[j]) L[i, j] + w[i] p[j], 0 on the diagonal: slot i was
    written right after slot j. p <- (1 - sum w) p + w, after the link has used the old p.

    Args:
        link: L_{t-1} [H, N, N].
        precedence: p_{t-1} [H, N].
        write_weights: of step t, [H, N].
    """
    new_link = np.zeros(np.shape(link))
    new_precedence = np.zeros(np.shape(precedence))
    for head, w in enumerate(write_weights):
        for i in range(len(w)):
            for j in range(len(w)):
                if i != j:
                    retained = (1.0 - w[i] - w[j]) * link[head][i][j]
                    new_link[head, i, j] = retained + w[i] * precedence[head][j]
        new_precedence[head] = (1.0 - np.sum(w)) * np.asarray(precedence[head]) + w
    return new_link, new_precedence


def forward(link, weights) -> np.ndarray:
    """L w [N]: moves weights [N] along a link [N, N] to what was written next."""
    return np.array([sum(row[j] * weights[j] for j in range(len(weights))) for row in link])


def backward(link, weights) -> np.ndarray:
    """L^T w [N]: moves weights [N] along a link [N, N] to what was written before."""
    return forward(np.transpose(link), weights)


def read_weights(content_weights, link, previous, read_modes) -> np.ndarray:
    """The read weights [R, N]: backward, content and forward, mixed by the read modes.

    Args:
        content_weights: [R, N].
        link: L_t [H, N, N].
        previous: the read weights of step t - 1, [R, N].
        read_modes: [R, 1 + 2H], ordered backward 1..H, content, forward 1..H.
    """
    result = []
    for content_weight, before, modes in zip(content_weights, previous, read_modes):
        candidates = [backward(head_link, before) for head_link in link]
        candidates.append(content_weight)
        candidates += [forward(head_link, before) for head_link in link]
        result.append(sum(mode * np.asarray(w) for mode, w in zip(modes, candidates)))
    return np.array(result)


def step(raw, state: State) -> tuple[State, dict[str, np.ndarray]]:
    """One step of the memory from the interface vector [P].

    Returns:
        The next state, and the quantities of this step by name (see `run`).
    """
    interface = split(raw, len(state.read_weights), len(state.write_weights))
    usage = usage_after(state.usage, state.write_weights, interface.free_gates, state.read_weights)
    write_content = content(interface.write_keys, interface.write_strengths, state.memory)
    allocated = write_allocation(usage, interface.write_gates, interface.allocation_gates)
    written = write_weights(
        write_content, allocated, interface.write_gates, interface.allocation_gates
    )
    memory = erase_and_add(state.memory, written, interface.erase, interface.add)
    link, precedence = link_and_precedence(state.link, state.precedence, written)
    read_content = content(
        interface.read_keys, interface.read_strengths, memory
    )  # of the new memory
    addressed = read_weights(read_content, link, state.read_weights, interface.read_modes)
    reads = np.array([read(memory, weights) for weights in addressed])
    state = State(memory, usage, link, precedence, addressed, written, reads)
    quantities = {
        **state._asdict(),
        "allocation": allocated,
        "content_weights": np.concatenate([read_content, write_content]),
        "allocation_gate": interface.allocation_gates,
        "write_gate": interface.write_gates,
        "free_gate": interface.free_gates,
        "read_modes": interface.read_modes,
    }
    return state, quantities


def clip_controller(state):
    """The state of a controller layer, h or (h, c), clipped to [-20, 20]."""
    if isinstance(state, tuple):
        return tuple(clip_controller(part) for part in state)
    return np.clip(state, -CONTROLLER_CLIP, CONTROLLER_CLIP)


def run(
    weights: Mapping,
    inputs,
    num_read: int,
    num_write: int,
    num_slots: int,
    unit: str = "lstm",
    initial_states: Sequence | None = None,
    start: State | None = None,
) -> dict[str, Any]:
    """Runs the machine over one sequence.

    Args:
        weights: see the module's docstring.
        inputs: x [L, X].
        num_read: R.
        num_write: H.
        num_slots: N.
        unit: 'lstm' or 'gru'.
        initial_states: as of `ntm.run`.
        start: the memory's state before the first step; zeros when None. From zeros the
            untouched slots are alike: which of them is allocated next may hang on the
            rounding of the floats, the outputs do not. Distinct usages avoid it.

    Returns:
        As each step leaves them: `memory` [L, N, W], `usage` [L, N], `link` [L, H, N, N],
        `precedence` [L, H, N], `read_weights` [L, R, N], `write_weights` [L, H, N],
        `reads` [L, R, W]; `allocation` [L, H, N]; `content_weights` [L, R+H, N], read
        heads first; `allocation_gate` and `write_gate` [L, H]; `free_gate` [L, R];
        `read_modes` [L, R, 1+2H]; `outputs` [L, O]; and `state`, the final controller
        states from the bottom.
    """
    width = slot_width(len(weights["interface_bias"]), num_read, num_write)
    state = start
    if state is None:
        state = initial_state(num_slots, width, num_read, num_write)
    states = initial_states
    if states is None:
        states = [zero_state(unit, layer) for layer in weights["layers"]]
    rows = []
    for x in inputs:
        x = np.concatenate([x, state.reads.ravel()])  # r_{t-1}
        h, states = stack_step(unit, weights["layers"], x, states)
        h, states = clip_controller(h), [clip_controller(layer) for layer in states]
        state, quantities = step(h @ weights["interface_kernel"] + weights["interface_bias"], state)
        features = np.concatenate([h, state.reads.ravel()])
        output = features @ weights["output_kernel"] + weights["output_bias"]
        output = np.clip(output, -CONTROLLER_CLIP, CONTROLLER_CLIP)
        rows.append({"outputs": output, **quantities})
    return {**{name: np.array([row[name] for row in rows]) for name in rows[0]}, "state": states}
