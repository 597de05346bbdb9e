"""The decoder of RNNSearch, teacher-forced, for one sentence.

Bahdanau et al. 2015 in the two-GRU form that is the baseline of Meng et al. 2018 and
Tu et al. 2018:

    q_t = GRU1(s_{t-1}, y_{t-1});  e_j = v^T tanh(W_a q_t + U_a h_j);  a = softmax(e);
    c_t = sum_j a_j h_j;  s_t = GRU2(q_t, c_t);
    output = tanh(W_s s_t + W_y y_{t-1} + W_c c_t);  s_0 = tanh(W_init mean_j h_j + b).

Weights:
    query_gru: GRU1, `kernel` [E, 3U], `recurrent_kernel` [U, 3U], `bias` [3U].
    state_gru: GRU2, `kernel` [D, 3U], `recurrent_kernel` [U, 3U], `bias` [3U].
    query_kernel: W_a [U, A];  memory_kernel: U_a [D, A];  score_vector: v [A].
    readout_kernel: [U + E + D, O], rows ordered [s; y; c]; no bias.
    initial_kernel: W_init [D, U];  initial_bias: b [U].
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .addressing import softmax
from .recurrent import unit_step


def initial_state(weights: Mapping, annotations) -> np.ndarray:
    """s_0 [U] from the mean of the real annotations [S, D]."""
    mean = sum(np.asarray(h, dtype=np.float64) for h in annotations) / len(annotations)
    return np.tanh(mean @ weights["initial_kernel"] + weights["initial_bias"])


def attend(weights: Mapping, query, annotations) -> tuple[np.ndarray, np.ndarray]:
    """Additive attention; returns the weights a [S] and the context c [D]."""
    query = np.asarray(query, dtype=np.float64)
    energies = []
    for annotation in annotations:
        hidden = np.tanh(query @ weights["query_kernel"] + annotation @ weights["memory_kernel"])
        energies.append(np.dot(weights["score_vector"], hidden))
    alignment = softmax(energies)
    context = sum(weight * annotation for weight, annotation in zip(alignment, annotations))
    return alignment, context


def decode(weights: Mapping, annotations, target_embeddings) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given.

    Args:
        weights: see the module's docstring.
        annotations: h [S, D], real positions only.
        target_embeddings: y_{t-1} [T, E], beginning with that of `<s>`.

    Returns:
        `outputs` [T, O], the readouts before dropout and softmax; `alignments` [T, S];
        `states` s_t [T, U].
    """
    annotations = np.asarray(annotations, dtype=np.float64)
    state = initial_state(weights, annotations)
    outputs, alignments, states = [], [], []
    for y in target_embeddings:
        query, _ = unit_step("gru", y, state, weights["query_gru"])
        alignment, context = attend(weights, query, annotations)
        state, _ = unit_step("gru", context, query, weights["state_gru"])
        outputs.append(np.tanh(np.concatenate([state, y, context]) @ weights["readout_kernel"]))
        alignments.append(alignment)
        states.append(state)
    return {
        "outputs": np.array(outputs),
        "alignments": np.array(alignments),
        "states": np.array(states),
    }
