"""The DNC with repairs of later papers and with memory hops, over one sequence of inputs.

Each is a field of `Options` (dnc_interface.py), off by default; with all of them off the
machine is that of dnc.py. From Csordás & Schmidhuber 2019 ("Improving Differentiable Neural
Computers Through Memory Masking, De-allocation, and Link Distribution Sharpness Control"):

* `masking`: every head looks its key up in the components that its mask mu lets through;
* `deallocation`: what the free gates have freed is also taken out of the memory;
* `sharp_links`: forward and backward weights are sharpened, and sum to 1.

The paper has one write head. Of several, each has its own mask, and the two sharpnesses of a
read head act on every link. From Franke et al. 2018 ("Robust and Scalable Differentiable
Neural Computer for Question Answering"):

* `content_only`: a memory without links, precedences and read modes;
* layer normalisation of the interface vector, where `interface_gain` is among the weights;
* bypass dropout, where `run` is given `bypass`.

Memory hops (`hops` = n) ask the memory n times in one step. o^1 is the controller's output
h_t. Hop 1 is the full step of the DNC; every later hop only reads, on the memory and the
links that hop 1 has left, and its forward and backward weights start from the read weights
of the hop before. o^{k+1} = GRU_hop(o^k, r^k). All hops share the interface layer: hop k > 1
computes the whole interface vector of o^k and uses the parts of the read heads alone. The
read weights and reads of the last hop go on to the next step.

Weights: those of dnc.py, where
    interface_kernel: [U, P];  interface_bias: [P];  P is `interface_size`, the parts as in
        dnc_interface.py.
    interface_gain: [P];  interface_offset: [P];  of the layer normalisation; both or neither.
    hop: GRU_hop, for more than one hop; `kernel` [R*W, 3U], `recurrent_kernel` [U, 3U] and
        `bias` [3U], in the form of `recurrent.gru_step`: columns z, r, candidate,
        o' = z * o + (1 - z) * candidate, the reset gate after the recurrent product.
    output_kernel: rows ordered [o^n; r_t].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import dnc
from .addressing import softmax
from .dnc_interface import PLAIN, Interface, Options, interface_size, slot_width, split
from .ntm import erase_and_add, next_query, read
from .recurrent import stack_step, zero_state

__all__ = [
    "PLAIN",
    "Options",
    "hop_steps",
    "interface_size",
    "run",
    "slot_width",
    "split",
    "step",
]

LINK_EPSILON = 1e-6
NORM_EPSILON = 1e-6


def initial_state(
    num_slots: int, width: int, num_read: int, num_write: int, options: Options = PLAIN
) -> dnc.State:
    """The state before the first step: zeros. A content-only memory has 0 links."""
    state = dnc.initial_state(num_slots, width, num_read, num_write)
    if options.content_only:
        state = state._replace(link=state.link[:0], precedence=state.precedence[:0])
    return state


def content(keys, strengths, memory, masks=None) -> np.ndarray:
    """Content addresses [K, N]: softmax_i(beta cosine(mu * m_i, mu * k)).

    Args:
        keys: k [K, W].
        strengths: beta [K].
        memory: m [N, W].
        masks: mu [K, W]; None looks at all components. The norms, with the floor of
            `dnc.content`, are of the masked vectors.
    """
    if masks is None:
        return dnc.content(keys, strengths, memory)
    weights = []
    for key, beta, mask in zip(keys, strengths, masks):
        masked = [mask * slot for slot in memory]
        weights.append(dnc.content([mask * key], [beta], masked)[0])
    return np.array(weights)


def retention(free_gates, read_weights) -> np.ndarray:
    """psi [N] = prod_r (1 - f_r w_r), from the free gates of step t and the reads of t - 1."""
    psi = np.ones(np.shape(read_weights)[1])
    for gate, weights in zip(free_gates, read_weights):
        psi = psi * (1.0 - gate * np.asarray(weights))
    return psi


def sharpen_link(weights, sharpness) -> np.ndarray:
    """(d + eps)^s / sum (d + eps)^s of forward or backward weights d [N]."""
    return softmax(sharpness * np.log(np.asarray(weights, dtype=np.float64) + LINK_EPSILON))


def read_weights(content_weights, link, previous, interface: Interface) -> np.ndarray:
    """The read weights [R, N] of one hop.

    Args:
        content_weights: [R, N], on the new memory.
        link: L_t [H, N, N].
        previous: the read weights of the hop before, or of the step before, [R, N].
        interface: without read modes the weights are those by content; with sharpnesses
            the forward and backward weights are sharpened.
    """
    if interface.read_modes is None:
        return np.asarray(content_weights)
    if interface.forward_sharpness is None or interface.backward_sharpness is None:
        return dnc.read_weights(content_weights, link, previous, interface.read_modes)
    result = []
    for head, modes in enumerate(interface.read_modes):
        s_f, s_b = interface.forward_sharpness[head], interface.backward_sharpness[head]
        candidates = [sharpen_link(dnc.backward(L, previous[head]), s_b) for L in link]
        candidates.append(content_weights[head])
        candidates += [sharpen_link(dnc.forward(L, previous[head]), s_f) for L in link]
        result.append(sum(mode * np.asarray(w) for mode, w in zip(modes, candidates)))
    return np.array(result)


def present(**quantities) -> dict[str, np.ndarray]:
    """The quantities that are not None."""
    return {name: value for name, value in quantities.items() if value is not None}


def read_memory(interface: Interface, state: dnc.State) -> tuple[dnc.State, dict[str, np.ndarray]]:
    """Reads from the memory along its links; what every hop does.

    Args:
        interface: of this hop.
        state: with the new memory and links, and the read weights of the hop before.

    Returns:
        The state with the read weights and reads of this hop; what the read heads did,
        by name, with `read_content` [R, N].
    """
    by_content = content(
        interface.read_keys, interface.read_strengths, state.memory, interface.read_masks
    )
    addressed = read_weights(by_content, state.link, state.read_weights, interface)
    reads = np.array([read(state.memory, weights) for weights in addressed])
    quantities = present(
        read_content=by_content,
        read_modes=interface.read_modes,
        read_masks=interface.read_masks,
        forward_sharpness=interface.forward_sharpness,
        backward_sharpness=interface.backward_sharpness,
    )
    return state._replace(read_weights=addressed, reads=reads), quantities


def write_memory(
    interface: Interface, state: dnc.State, options: Options
) -> tuple[dnc.State, dict[str, np.ndarray]]:
    """Frees, allocates and writes, and moves the links on; what only the first hop does.

    Args:
        interface: of the first hop.
        state: of step t - 1.
        options: see the module's docstring.

    Returns:
        The state with all but the read weights and reads of step t; what the write heads
        did, by name, with `write_content` [H, N].
    """
    g_w, g_a, f = interface.write_gates, interface.allocation_gates, interface.free_gates
    usage = dnc.usage_after(state.usage, state.write_weights, f, state.read_weights)
    by_content = content(  # of M_{t-1}, with what is being freed
        interface.write_keys, interface.write_strengths, state.memory, interface.write_masks
    )
    allocated = dnc.write_allocation(usage, g_w, g_a)
    written = dnc.write_weights(by_content, allocated, g_w, g_a)
    memory, psi = state.memory, None
    if options.deallocation:
        psi = retention(f, state.read_weights)
        memory = np.array([psi[slot] * memory[slot] for slot in range(len(memory))])
    memory = erase_and_add(memory, written, interface.erase, interface.add)
    state = state._replace(memory=memory, usage=usage, write_weights=written)
    if not options.content_only:
        link, precedence = dnc.link_and_precedence(state.link, state.precedence, written)
        state = state._replace(link=link, precedence=precedence)
    quantities = present(
        write_content=by_content,
        allocation=allocated,
        allocation_gate=g_a,
        write_gate=g_w,
        free_gate=f,
        write_masks=interface.write_masks,
        retention=psi,
    )
    return state, quantities


def gather(state: dnc.State, read_heads: dict, write_heads: dict) -> dict[str, np.ndarray]:
    """The quantities of a step by name, see `run`."""
    rows = {**state._asdict(), **read_heads, **write_heads}
    rows["content_weights"] = np.concatenate([rows.pop("read_content"), rows.pop("write_content")])
    if "read_modes" not in rows:
        del rows["link"], rows["precedence"]
    return rows


def step(
    raw, state: dnc.State, options: Options = PLAIN
) -> tuple[dnc.State, dict[str, np.ndarray]]:
    """One step of the memory, of a single hop, from the interface vector [P].

    Returns:
        The next state, and the quantities of this step by name (see `run`).
    """
    interface = split(raw, len(state.read_weights), len(state.write_weights), options)
    state, write_heads = write_memory(interface, state, options)
    state, read_heads = read_memory(interface, state)
    return state, gather(state, read_heads, write_heads)


def layer_norm(x, gain, offset) -> np.ndarray:
    """gain * (x - mean) / sqrt(variance + 1e-6) + offset, over the whole vector x [P]."""
    x = np.asarray(x, dtype=np.float64)
    mean = x.sum() / len(x)
    variance = np.square(x - mean).sum() / len(x)
    return gain * (x - mean) / np.sqrt(variance + NORM_EPSILON) + offset


def interface_vector(weights: Mapping, output) -> np.ndarray:
    """The interface vector [P] of a controller's output, or of a hop's, [U]."""
    vector = output @ weights["interface_kernel"] + weights["interface_bias"]
    if "interface_gain" in weights:
        return layer_norm(vector, weights["interface_gain"], weights["interface_offset"])
    return vector


def hop_steps(
    weights: Mapping, output, state: dnc.State, options: Options = PLAIN
) -> tuple[np.ndarray, dnc.State, dict[str, np.ndarray]]:
    """One step of the memory, of all its hops, from the controller's output h_t [U].

    Returns:
        o^n [U], which is h_t itself when n = 1; the next state; and the quantities of this
        step by name (see `run`).
    """
    num_read, num_write = len(state.read_weights), len(state.write_weights)
    interface = split(interface_vector(weights, output), num_read, num_write, options)
    state, write_heads = write_memory(interface, state, options)
    state, read_heads = read_memory(interface, state)
    addresses = [state.read_weights]
    for _ in range(1, options.hops):
        output = next_query(weights["hop"], output, state.reads)
        interface = split(interface_vector(weights, output), num_read, num_write, options)
        state, read_heads = read_memory(interface, state)
        addresses.append(state.read_weights)
    quantities = gather(state, read_heads, write_heads)
    if options.hops > 1:
        quantities["hop_read_weights"] = np.array(addresses)
    return output, state, quantities


def run(
    weights: Mapping,
    inputs,
    num_read: int,
    num_write: int,
    num_slots: int,
    unit: str = "lstm",
    initial_states: Sequence | None = None,
    start: dnc.State | None = None,
    options: Options = PLAIN,
    bypass=None,
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
        start: as of `dnc.run`.
        options: see the module's docstring.
        bypass: the bypass dropout's factors [L, U], 0 or 1 / keep: the output layer reads
            [bypass_t * o^n; r_t]. The interface, the hops and the controller's next step
            read what is not dropped. None drops nothing.

    Returns:
        What `dnc.run` returns; of several hops, what the read heads did in the last
        (`read_weights`, `reads`, their `content_weights`, `read_modes`). A content-only
        memory has no `link`, `precedence` and `read_modes`. Where the option is on also
        `read_masks` [L, R, W], `write_masks` [L, H, W]; `retention` psi [L, N];
        `forward_sharpness` and `backward_sharpness` [L, R]; `hop_read_weights`
        [L, n, R, N] of more than one hop.
    """
    width = slot_width(len(weights["interface_bias"]), num_read, num_write, options)
    state = start
    if state is None:
        state = initial_state(num_slots, width, num_read, num_write, options)
    states = initial_states
    if states is None:
        states = [zero_state(unit, layer) for layer in weights["layers"]]
    rows = []
    for t, x in enumerate(inputs):
        x = np.concatenate([x, state.reads.ravel()])  # r_{t-1}
        h, states = stack_step(unit, weights["layers"], x, states)
        h, states = dnc.clip_controller(h), [dnc.clip_controller(layer) for layer in states]
        last, state, quantities = hop_steps(weights, h, state, options)
        if bypass is not None:
            last = bypass[t] * last
        features = np.concatenate([last, state.reads.ravel()])
        output = features @ weights["output_kernel"] + weights["output_bias"]
        output = np.clip(output, -dnc.CONTROLLER_CLIP, dnc.CONTROLLER_CLIP)
        rows.append({"outputs": output, **quantities})
    return {**{name: np.array([row[name] for row in rows]) for name in rows[0]}, "state": states}
