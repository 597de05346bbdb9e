"""Key-value attention and its two relatives, teacher-forced, for one sentence.

Mino et al. 2017 ("Key-value Attention Mechanism for Neural Machine Translation"),
section 3. K is the width of everything: embeddings, LSTMs, annotations. The encoder is a
stack of LSTMs from left to right and another from right to left, each on the embedded words
(1, 2); the decoder is a stack of LSTMs. Three systems:

    "attn":         h_i = W_e [h_fwd_i; h_bwd_i] (3) is both key and value;
    "key-value":    each direction's state is [k; v] (9);
                    key k_i = W_f [k_fwd_i; k_bwd_i], value v_i = W_g [v_fwd_i; v_bwd_i] (10);
    "modifying-IW": value h_i as in "attn", key h_i * u, u = [1..1, 0..0] (13).

A step, d_j being the top layer's state:

    alpha_ij = softmax_i(query_j . key_i) (8, 12);  c_j = sum_i alpha_ij value_i (7, 11);
    d_j = dec(d_{j-1}, y_{j-1}) (6);  e_j = tanh(W_d [d_j; c_j]) (5);
    p(y_j) = softmax(W_o e_j + b_o) (4).

As printed, the context asks with the state before the word is read: query_j is d_{j-1};
for "key-value", whose keys are K/2 wide, the upper half of it, the first K/2 numbers.
The context is not fed back into the decoder. The state before `<s>` is an affine map, as
the paper uses the word a matrix without a bias, of the last annotation ([k_M; v_M] for
"key-value"): the h of every layer, with c = 0. W_d is K x 3K/2 for "key-value".

Weights:
    forward_layers, backward_layers: of the encoder, from the bottom, LSTMs [K, 4K].
    layers: of the decoder, from the bottom, LSTMs [K, 4K].
    annotation_kernel: W_e [2K, K], rows ordered [fwd; bwd]; not for "key-value".
    key_kernel: W_f [K, K/2];  value_kernel: W_g [K, K/2], rows ordered [fwd; bwd]; only
        for "key-value".
    initial_kernel: [K, K].
    readout_kernel: W_d [K + C, K], rows ordered [d; c], C = K/2 for "key-value", else K.
    projection_kernel: W_o [K, V];  projection_bias: b_o [V].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from . import scores
from .addressing import softmax
from .recurrent import stack_step, zero_state

SYSTEMS = ("attn", "key-value", "modifying-IW")


def encode(weights: Mapping, embeddings) -> np.ndarray:
    """The top states [S, 2K], forward first, of the two stacks on a sentence [S, K]."""

    def run(layers: Sequence, positions: Sequence) -> dict:
        states = [zero_state("lstm", layer) for layer in layers]
        tops = {}
        for position in positions:
            tops[position], states = stack_step("lstm", layers, embeddings[position], states)
        return tops

    order = range(len(embeddings))
    forward = run(weights["forward_layers"], order)
    backward = run(weights["backward_layers"], order[::-1])
    return np.array([np.concatenate([forward[i], backward[i]]) for i in order])


def upper_half(width: int) -> np.ndarray:
    """The mask u [K], equation 13: ones in the first half, zeros in the second."""
    if width % 2:
        raise ValueError(f"width {width}: it must be even")
    return np.array([1.0] * (width // 2) + [0.0] * (width // 2))


def memory(weights: Mapping, system: str, states) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The keys and values of a sentence, and what the decoder starts from.

    Args:
        weights: see the module's docstring.
        system: one of `SYSTEMS`.
        states: the encoder's [S, 2K], forward first, real positions only.

    Returns:
        Keys [S, K] or [S, K/2], values of the same width, and the last annotation [K].
    """
    if system not in SYSTEMS:
        raise ValueError(f"system {system!r}: expected one of {', '.join(SYSTEMS)}")
    states = np.asarray(states, dtype=np.float64)
    if system == "key-value":
        keys, values = [], []
        for state in states:
            forward_key, forward_value, backward_key, backward_value = np.split(state, 4)
            keys.append(np.concatenate([forward_key, backward_key]) @ weights["key_kernel"])
            value = np.concatenate([forward_value, backward_value])
            values.append(value @ weights["value_kernel"])
        return np.array(keys), np.array(values), np.concatenate([keys[-1], values[-1]])
    annotations = np.array([state @ weights["annotation_kernel"] for state in states])
    if system == "attn":
        return annotations, annotations, annotations[-1]
    mask = upper_half(annotations.shape[1])
    return np.array([h * mask for h in annotations]), annotations, annotations[-1]


def decode(
    weights: Mapping, system: str, states, target_embeddings, kind: str = "dot"
) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given; no dropout.

    Args:
        weights: see the module's docstring.
        system: one of `SYSTEMS`.
        states: the encoder's [S, 2K], forward first, real positions only.
        target_embeddings: y_{j-1} [T, K], beginning with that of `<s>`.
        kind: of the score, 'dot' as printed, 'scaled_dot' or 'cosine'; the latter two with the
            gain `attention_scale`. Widths are those of what is compared: K, or K/2.

    Returns:
        `outputs` e_j [T, K]; `alignments` [T, S]; `states` d_j [T, K]; `contexts` [T, C].
    """
    keys, values, last = memory(weights, system, states)
    query_width = keys.shape[1]
    if system == "modifying-IW" and kind != "dot":  # the masked half takes no part
        keys = keys[:, : query_width // 2]
        query_width //= 2
    gain = 1.0 if kind == "dot" else weights["attention_scale"]
    h = last @ weights["initial_kernel"]
    layer_states = [(h, np.zeros(len(h))) for _ in weights["layers"]]
    rows = []
    for y in target_embeddings:
        alignment = softmax(scores.dot(h[:query_width], keys, kind, gain))
        context = sum(weight * value for weight, value in zip(alignment, values))
        h, layer_states = stack_step("lstm", weights["layers"], y, layer_states)
        output = np.tanh(np.concatenate([h, context]) @ weights["readout_kernel"])
        rows.append({"outputs": output, "alignments": alignment, "states": h, "contexts": context})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def modified_readout(readout_kernel) -> np.ndarray:
    """Returns the initial W_d [2K, K] of "modifying-IW", which ignores c_j's upper half.

    The paper draws W_d with outputs as rows; its columns K+1 .. 3K/2 are these rows.
    """
    kernel = np.array(readout_kernel, dtype=np.float64)
    width = kernel.shape[1]
    for row in range(width, 2 * width):
        if upper_half(width)[row - width]:
            kernel[row] = 0.0
    return kernel


def word_probabilities(weights: Mapping, outputs) -> np.ndarray:
    """Equation 4 of each e_j: [T, V] from [T, K]."""
    return np.array(
        [softmax(e @ weights["projection_kernel"] + weights["projection_bias"]) for e in outputs]
    )
