"""The memory-augmented decoder, teacher-forced, for one sentence.

Collier & Beel, section 3.2: the decoder is the controller of an external memory, and a
read-only head in the manner of Luong attends to the source annotations.

Weights:
    layers: as in ntm.py; the first kernel is [E + D + R*W, G*U], rows ordered
        [x_t; c_{t-1}; r_{t-1}].
    memory_kernel: W_m [D, U];  attention_scale: g, a number.
    the external memory's: for "ntm" `head_kernel`, `head_bias`, `initial_memory`,
        `initial_weights`, `initial_reads` (see ntm.py); for "dnc" `interface_kernel`,
        `interface_bias` (see dnc.py).
    output_kernel: [U + D + R*W, U], rows ordered [h_t; c_t; r_t];  output_bias: [U].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import dnc, ntm, scores
from .addressing import softmax
from .recurrent import stack_step


def attend(weights: Mapping, h, annotations, kind: str = "dot") -> tuple[np.ndarray, np.ndarray]:
    """Luong attention with a gain; `dot` is score(s) = g h^T W_m h_s.

    Returns:
        The weights [S] and the context c [D] of a state h [U] over annotations [S, D].
    """
    keys = annotations @ weights["memory_kernel"]
    alignment = softmax(scores.dot(h, keys, kind, weights["attention_scale"]))
    return alignment, ntm.read(annotations, alignment)


def external_memory(
    weights: Mapping, num_read: int, num_write: int, addressing: str, num_slots: int | None
) -> tuple[Any, Callable]:
    """The external memory: its initial state, and a function (h, state) -> (state, rows)."""
    if addressing == "ntm":
        kernel, bias = weights["head_kernel"], weights["head_bias"]
        if len(weights["initial_weights"]) != num_read + num_write:
            raise ValueError(f"initial_weights: expected {num_read} + {num_write} rows")
        return ntm.initial_state(weights, num_read), lambda h, s: ntm.step(h @ kernel + bias, s)
    if addressing == "dnc" and num_slots is not None:
        kernel, bias = weights["interface_kernel"], weights["interface_bias"]
        width = dnc.slot_width(len(bias), num_read, num_write)
        state = dnc.initial_state(num_slots, width, num_read, num_write)
        return state, lambda h, s: dnc.step(h @ kernel + bias, s)
    raise ValueError(f"addressing {addressing!r}: expected 'ntm', or 'dnc' with num_slots")


def decode(
    weights: Mapping,
    source_annotations,
    initial_states: Sequence,
    target_embeddings,
    num_read: int,
    num_write: int,
    addressing: str = "ntm",
    num_slots: int | None = None,
    unit: str = "lstm",
    kind: str = "dot",
) -> dict[str, Any]:
    """Decodes one sentence whose target words are given.

    Args:
        weights: see the module's docstring.
        source_annotations: h [S, D], real positions only.
        initial_states: of each layer from the bottom, h for a GRU, (h, c) for an LSTM.
        target_embeddings: x [T, E].
        num_read: R of the external memory.
        num_write: H of the external memory.
        addressing: of the external memory, 'ntm' or 'dnc'. The clips of the DNC's
            controller and output are no part of its addressing and are left out.
        num_slots: N of the external memory, for 'dnc'; 'ntm' has it in `initial_memory`.
        unit: 'lstm' or 'gru'.
        kind: of the attention's score, 'dot', 'scaled_dot' or 'cosine'.

    Returns:
        `outputs` [T, U]; `alignments` [T, S]; `contexts` [T, D]; the quantities that
        `ntm.run` or `dnc.run` returns of each step; and `state`, the final controller
        states from the bottom.
    """
    annotations = np.asarray(source_annotations, dtype=np.float64)
    state, step = external_memory(weights, num_read, num_write, addressing, num_slots)
    context = np.zeros(annotations.shape[1])  # c_0 = 0
    states = list(initial_states)
    rows = []
    for x in target_embeddings:
        x = np.concatenate([x, context, state.reads.ravel()])
        h, states = stack_step(unit, weights["layers"], x, states)
        alignment, context = attend(weights, h, annotations, kind)
        state, quantities = step(h, state)
        features = np.concatenate([h, context, state.reads.ravel()])
        output = features @ weights["output_kernel"] + weights["output_bias"]
        rows.append({"outputs": output, "alignments": alignment, "contexts": context, **quantities})
    return {**{name: np.array([row[name] for row in rows]) for name in rows[0]}, "state": states}
