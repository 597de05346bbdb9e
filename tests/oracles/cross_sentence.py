"""The two rivals of the continuous cache, on RNNSearch, teacher-forced, for one sentence.

Tu et al. 2018 compare with them in Tables 4 and 5; both see only source sentences.

"Summary", Wang et al. 2017a ("Exploiting Cross-Sentence Context for Neural Machine
Translation"): a sentence GRU runs over each of the previous 3 source sentences, a document
GRU over its last states, oldest first; the document GRU's last state is d, the paper's D
(D here is the annotation width, as everywhere). Then

    both directions of the encoder begin with d in place of zeros;
    s_0 = tanh(W_init mean_j h_j + W_d d + b);
    z_t = sigmoid(U_z q_t + C_z c_t + D_z d);  s_t = GRU2(q_t, [c_t; z_t * d]).

"Previous", Jean et al. 2017 ("Does Neural Machine Translation Benefit from Larger
Context?"): a second encoder reads the source sentence before, a second attention looks at
its annotations with the same query, and its context p_t is used with c_t twice:

    p_t = sum_j b_j h'_j, b = softmax_j(v_p^T tanh(W_p q_t + U_p h'_j));
    s_t = GRU2(q_t, [c_t; p_t]);
    output = tanh(W_s s_t + W_y y_{t-1} + W_c c_t + W_r p_t).

Settled, where Tu et al. are silent:
* The extra parameters of their Table 5, 18.8M and 20.0M, leave no room for a second table
  of embeddings (18.6M): previous sentences are embedded by the encoder's.
* Jean's second attention asks with q_t alone. Their own paper also asks with c_t; so read,
  the model would have 22.0M more, not 20.0M.
* Wang's gate reads q_t, c_t and d, as their released two-GRU decoder does: 18.9M, which the
  rounding of Table 5 allows. As their paper prints it, z_t reads s_{t-1}, y_{t-1} and c_t:
  18.5M, which it does not. The released code weighs q_t and c_t by 1 - z_t as well, GRU gate
  by GRU gate; here z_t gates d alone, as printed. No bias, as printed.
* d enters the encoder as it is and s_0 through W_d, as in the released code.
* Before the first sentence of a document there is nothing: d = 0 and p_t = 0, and both
  models do what RNNSearch does. With 1 or 2 sentences before, the document GRU takes fewer
  steps. A previous sentence is read with its `</s>`; a blank one is `</s>` alone.

Weights, besides those of RNNSearch (see `rnnsearch`), which keep names and shapes:
    forward_gru, backward_gru: the encoder, `kernel` [E, 3U], `recurrent_kernel` [U, 3U],
        `bias` [3U]; D = 2U, forward first.
    "summary":
        sentence_gru: `kernel` [E, 3U], ...;  document_gru: `kernel` [U, 3U], ...;
        summary_initial_kernel: W_d [U, U];
        summary_state_kernel: [U, 3U], the rows of GRU2's kernel below those of c_t;
        gate_query_kernel: U_z [U, U];  gate_context_kernel: C_z [D, U];
        gate_summary_kernel: D_z [U, U].
    "previous":
        previous_forward_gru, previous_backward_gru: as the encoder's;
        previous_query_kernel: W_p [U, A];  previous_memory_kernel: U_p [D, A];
        previous_score_vector: v_p [A];
        previous_state_kernel: [D, 3U], the rows of GRU2's kernel below those of c_t;
        previous_readout_kernel: W_r [D, O], the readout's rows below [s; y; c].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from . import rnnsearch
from .kvmematt import gru_parameters
from .recurrent import sigmoid, unit_step, zero_state

HISTORY = 3  # previous source sentences that Wang et al. summarise


def history_of(document: Sequence, index: int, size: int) -> list:
    """The sentences before sentence `index`, at most `size` of them, oldest first."""
    return list(document[max(0, index - size) : index])


def run(gru: Mapping, inputs, state) -> list[np.ndarray]:
    """The states after each of the inputs, beginning from `state` [U]."""
    states = []
    for x in inputs:
        state, _ = unit_step("gru", x, state, gru)
        states.append(state)
    return states


def encode(forward_gru: Mapping, backward_gru: Mapping, embeddings, initial) -> np.ndarray:
    """The annotations [S, 2U] of a sentence [S, E]; both ways begin from `initial` [U]."""
    forward = run(forward_gru, embeddings, initial)
    backward = run(backward_gru, embeddings[::-1], initial)[::-1]
    return np.array([np.concatenate(pair) for pair in zip(forward, backward)])


def update(weights: Mapping, extra: str, query, context, extra_context) -> np.ndarray:
    """s_t [U] = GRU2(q_t, [c_t; extra]), whose extra rows are the kernel called `extra`."""
    kernel = np.concatenate([weights["state_gru"]["kernel"], weights[extra]])
    contexts = np.concatenate([context, extra_context])
    state, _ = unit_step("gru", contexts, query, {**weights["state_gru"], "kernel": kernel})
    return state


# --- Wang et al. 2017a -------------------------------------------------------------------


def summarise(weights: Mapping, history: Sequence) -> np.ndarray:
    """d [U] of the previous sentences, each [S, E], oldest first; zeros when there are none."""
    nothing = zero_state("gru", weights["document_gru"])
    sentences = [run(weights["sentence_gru"], words, nothing)[-1] for words in history]
    return run(weights["document_gru"], sentences, nothing)[-1] if sentences else nothing


def summary_gate(weights: Mapping, query, context, summary) -> np.ndarray:
    """z_t [U]."""
    return sigmoid(
        query @ weights["gate_query_kernel"]
        + context @ weights["gate_context_kernel"]
        + summary @ weights["gate_summary_kernel"]
    )


def decode_summary(
    weights: Mapping, embeddings, history: Sequence, target_embeddings
) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given, as Wang et al. 2017a.

    Args:
        weights: see the module's docstring.
        embeddings: of the source sentence [S, E], real positions only.
        history: of the previous source sentences, each [S, E], oldest first.
        target_embeddings: y_{t-1} [T, E], beginning with that of `<s>`.

    Returns:
        `outputs` [T, O], the readouts before dropout and softmax; `alignments` [T, S];
        `states` s_t [T, U]; `gates` z_t [T, U]; `summary` d [U]; `annotations` [S, 2U].
    """
    summary = summarise(weights, history)
    annotations = encode(weights["forward_gru"], weights["backward_gru"], embeddings, summary)
    mean = sum(annotations) / len(annotations)
    from_summary = summary @ weights["summary_initial_kernel"]
    state = np.tanh(mean @ weights["initial_kernel"] + from_summary + weights["initial_bias"])
    rows = []
    for y in target_embeddings:
        query, _ = unit_step("gru", y, state, weights["query_gru"])
        alignment, context = rnnsearch.attend(weights, query, annotations)
        z = summary_gate(weights, query, context, summary)
        state = update(weights, "summary_state_kernel", query, context, z * summary)
        output = np.tanh(np.concatenate([state, y, context]) @ weights["readout_kernel"])
        rows.append({"outputs": output, "alignments": alignment, "states": state, "gates": z})
    result = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return {**result, "summary": summary, "annotations": annotations}


def summary_parameters(embedding: int, units: int, annotation: int) -> dict[str, int]:
    """Counts the parameters that the parts of Wang et al. 2017a add to RNNSearch.

    With E = 620, U = 1000 and D = 2000 they are 18,866,000.
    """
    return {
        "sentence_gru": gru_parameters(embedding, units),
        "document_gru": gru_parameters(units, units),
        "initial_state": units * units,
        "gate": (units + annotation + units) * units,
        "state_gru": units * 3 * units,
    }


# --- Jean et al. 2017 --------------------------------------------------------------------


def look_back(weights: Mapping, query, annotations) -> tuple[np.ndarray, np.ndarray]:
    """b [S'] and p_t [D] from the previous sentence's annotations [S', D]; S' may be 0."""
    if len(annotations) == 0:
        return np.zeros(0), np.zeros(annotations.shape[1])
    names = "query_kernel", "memory_kernel", "score_vector"
    previous_weights = {name: weights[f"previous_{name}"] for name in names}
    return rnnsearch.attend(previous_weights, query, annotations)


def decode_previous(
    weights: Mapping, embeddings, history: Sequence, target_embeddings
) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given, as Jean et al. 2017.

    Args:
        weights: see the module's docstring.
        embeddings: of the source sentence [S, E], real positions only.
        history: of the previous source sentences, each [S, E], oldest first; the last is read.
        target_embeddings: y_{t-1} [T, E], beginning with that of `<s>`.

    Returns:
        `outputs` [T, O], the readouts before dropout and softmax; `alignments` [T, S];
        `states` s_t [T, U]; `previous_alignments` b [T, S'], S' = 0 without history;
        `previous_contexts` p_t [T, D].
    """
    nothing = zero_state("gru", weights["forward_gru"])
    annotations = encode(weights["forward_gru"], weights["backward_gru"], embeddings, nothing)
    previous = np.zeros((0, annotations.shape[1]))
    if history:
        grus = weights["previous_forward_gru"], weights["previous_backward_gru"]
        previous = encode(*grus, history[-1], nothing)
    readout = np.concatenate([weights["readout_kernel"], weights["previous_readout_kernel"]])
    state = rnnsearch.initial_state(weights, annotations)
    rows = []
    for y in target_embeddings:
        query, _ = unit_step("gru", y, state, weights["query_gru"])
        alignment, context = rnnsearch.attend(weights, query, annotations)
        back, previous_context = look_back(weights, query, previous)
        state = update(weights, "previous_state_kernel", query, context, previous_context)
        row = {
            "outputs": np.tanh(np.concatenate([state, y, context, previous_context]) @ readout),
            "alignments": alignment,
            "states": state,
            "previous_alignments": back,
            "previous_contexts": previous_context,
        }
        rows.append(row)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def previous_parameters(
    embedding: int, units: int, annotation: int, attention: int, readout: int
) -> dict[str, int]:
    """Counts the parameters that the parts of Jean et al. 2017 add to RNNSearch.

    With E = O = 620, U = A = 1000 and D = 2000 they are 19,967,000.
    """
    return {
        "encoder": 2 * gru_parameters(embedding, units),
        "attention": units * attention + annotation * attention + attention,
        "state_gru": annotation * 3 * units,
        "readout": annotation * readout,
    }
