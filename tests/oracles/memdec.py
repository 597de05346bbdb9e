"""MemDec, teacher-forced, for one sentence.

Wang et al. 2016 ("Memory-enhanced Decoder for Neural Machine Translation"): a decoder of one GRU
with a memory of N slots m_i, which a step reads and writes at one address:

    x_i = v^T tanh(W_m m_i + W_s s_{t-1});  g = sigmoid(w_g . s_{t-1});
    w_t = g softmax(x) + (1 - g) w_{t-1};                                     (1)
    r_t = sum_i w_t(i) m_i;                                                   (2)
    k_t = tanh(W_r r_t + W_y y_{t-1});
    e_j = v_a^T tanh(W_a k_t + U_a h_j);  a = softmax(e);  c_t = sum_j a_j h_j;  (3)
    s_t = GRU(s_{t-1}, [c_t; y_{t-1}; r_t]);                                  (4)
    m_i <- m_i (1 - w_t(i) sigmoid(W_e s_t)) + w_t(i) sigmoid(W_d s_t);       (5)
    output = tanh(W_o [s_t; y_{t-1}; c_t]);  s_0 = tanh(W_init mean_j h_j + b);
    m_i = sigmoid(W_I mean_j h_j + b_I) + noise_i and w_0 = 1/N before the first step.

Weights, N slots of W numbers:
    decoder_gru: `kernel` [D + W, 3U], rows ordered [c; r], `recurrent_kernel`, `bias`;
    word_kernel: [E, 3U], its rows for y;
    query_kernel: W_a [U, A];  memory_kernel: U_a [D, A];  score_vector: v_a [A];
    address_query_kernel: W_s [U, A];  address_memory_kernel: W_m [W, A];
    address_score_vector: v [A];  gate_vector: w_g [U];
    read_query_kernel: W_r [W, U];  word_query_kernel: W_y [E, U];
    erase_kernel: W_e [U, W];  add_kernel: W_d [U, W];
    memory_initial_kernel: W_I [D, W];  memory_initial_bias: b_I [W];  initial_memory: noise [N, W];
    readout_kernel: [U + E + D, O], rows ordered [s; y; c];
    initial_kernel: W_init [D, U];  initial_bias: b [U].
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from . import rnnsearch
from .addressing import softmax
from .recurrent import sigmoid, unit_step


def initial_memory(weights: Mapping, annotations) -> np.ndarray:
    """The slots [N, W] before the first step."""
    mean = sum(annotations) / len(annotations)
    common = sigmoid(mean @ weights["memory_initial_kernel"] + weights["memory_initial_bias"])
    return np.array([common + noise for noise in weights["initial_memory"]])


def address(weights: Mapping, state, memory, before) -> tuple[np.ndarray, np.ndarray, float]:
    """w_t [N] (1), the content's address softmax(x) [N] and the gate g."""
    scores = []
    for slot in memory:
        sums = slot @ weights["address_memory_kernel"] + state @ weights["address_query_kernel"]
        scores.append(np.dot(weights["address_score_vector"], np.tanh(sums)))
    content = softmax(scores)
    gate = float(sigmoid(np.dot(weights["gate_vector"], state)))
    return gate * content + (1.0 - gate) * before, content, gate


def write(memory, where, erase, add) -> np.ndarray:
    """The slots [N, W] after (5)."""
    return np.array([m * (1.0 - w * erase) + w * add for m, w in zip(memory, where)])


def step(weights: Mapping, state, memory, where) -> dict[str, np.ndarray]:
    """Addresses and reads: `weights`, `content`, `gate` (1) and `read` (2)."""
    where, content, gate = address(weights, state, memory, where)
    read = sum(w * slot for w, slot in zip(where, memory))
    return {"weights": where, "content": content, "gate": gate, "read": read}


def decode(weights: Mapping, annotations, target_embeddings) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given.

    Args:
        weights: see the module's docstring.
        annotations: h [S, D], real positions only.
        target_embeddings: y_{t-1} [T, E], beginning with that of `<s>`.

    Returns:
        `outputs` [T, O], the readouts before dropout and softmax; `alignments` [T, S]; `states`
        s_t [T, U]; `read_weights` and `write_weights` [T, 1, N], both w_t; `content_weights`
        [T, 2, N] and `interpolation_gate` [T, 2, 1], the same for both heads; `erase_norm` and
        `add_norm` [T, 1]; `reads` r_t [T, W]; `memory` [T, N, W] after each step.
    """
    annotations = np.asarray(annotations, dtype=np.float64)
    state = rnnsearch.initial_state(weights, annotations)
    memory = initial_memory(weights, annotations)
    where = np.full(len(memory), 1.0 / len(memory))
    gru = weights["decoder_gru"]
    gru = {**gru, "kernel": np.concatenate([gru["kernel"], weights["word_kernel"]])}
    rows = []
    for y in target_embeddings:
        accessed = step(weights, state, memory, where)
        where, read = accessed["weights"], accessed["read"]
        query = np.tanh(read @ weights["read_query_kernel"] + y @ weights["word_query_kernel"])
        alignment, context = rnnsearch.attend(weights, query, annotations)
        state, _ = unit_step("gru", np.concatenate([context, read, y]), state, gru)
        erase = sigmoid(state @ weights["erase_kernel"])
        add = sigmoid(state @ weights["add_kernel"])
        memory = write(memory, where, erase, add)
        row = {
            "outputs": np.tanh(np.concatenate([state, y, context]) @ weights["readout_kernel"]),
            "alignments": alignment, "states": state, "reads": read, "memory": memory,
            "read_weights": [where], "write_weights": [where],
            "content_weights": [accessed["content"]] * 2,
            "interpolation_gate": [[accessed["gate"]]] * 2,
            "erase_norm": [np.linalg.norm(erase)], "add_norm": [np.linalg.norm(add)],
        }  # fmt: skip
        rows.append(row)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def memory_parameters(
    embedding: int, units: int, annotation: int, attention: int, slots: int, width: int
) -> dict[str, int]:
    """Counts the parameters that the memory adds to an RNNSearch of one GRU with query s_{t-1}.

    With E = 512, U = W = A = 1024, D = 2048 and 8 slots they are 11.0M and the noise.
    """
    return {
        "address": width * attention + units * attention + attention,
        "gate": units,
        "query": width * units + embedding * units,
        "gru": width * 3 * units,
        "write": 2 * units * width,
        "start": annotation * width + width,
        "noise": slots * width,
    }
