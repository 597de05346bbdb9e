"""The attentional decoder of tensorflow/nmt, teacher-forced, for one sentence.

Luong et al. 2015 ("Effective Approaches to Attention-based Neural Machine
Translation") with input feeding; the baseline of Collier & Beel.

Weights:
    layers: from the bottom, each a dictionary of `kernel`, `recurrent_kernel`, `bias`
        (see recurrent.py); the first kernel is [E + U, G*U], rows ordered [x; a].
    memory_kernel: W_m [D, U].
    attention_scale: g, a number; read by the kinds that have a gain.
    query_kernel: [U, A];  score_vector: v [A];  attention_bias: b [A]; of the additive kinds.
    attention_kernel: W_c [D + U, U], rows ordered [c; h]; no bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from . import scores
from .addressing import softmax
from .recurrent import stack_step


def decode(
    weights: Mapping,
    source_annotations,
    initial_states: Sequence,
    target_embeddings,
    unit: str = "lstm",
    scaled: bool = True,
    tanh: bool = False,
    kind: str = "dot",
) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given.

    Args:
        weights: see the module's docstring.
        source_annotations: h [S, D], real positions only.
        initial_states: of each layer from the bottom, h for a GRU, (h, c) for an LSTM.
        target_embeddings: x [T, E].
        unit: 'lstm' or 'gru'.
        scaled: multiply the score by g.
        kind: of the score, 'dot', 'scaled_dot', 'cosine', 'bahdanau' or 'normed_bahdanau'; the
            second and third have the gain whether `scaled` or not.
        tanh: a_t = tanh(W_c [c_t; h_t]) as in the paper; tensorflow/nmt has no tanh.

    Returns:
        `outputs`, the attention vectors a_t [T, U], and `alignments` [T, S].
    """
    annotations = np.asarray(source_annotations, dtype=np.float64)
    attention_kernel = np.asarray(weights["attention_kernel"], dtype=np.float64)
    keys = annotations @ weights["memory_kernel"]
    states = list(initial_states)
    attention_vector = np.zeros(attention_kernel.shape[1])  # a_{-1} = 0
    outputs, alignments = [], []
    for x in target_embeddings:
        h, states = stack_step(
            unit, weights["layers"], np.concatenate([x, attention_vector]), states
        )
        alignment = softmax(energies(weights, kind, scaled, h, keys))
        context = np.zeros(annotations.shape[1])
        for s, annotation in enumerate(annotations):
            context += alignment[s] * annotation
        attention_vector = np.concatenate([context, h]) @ attention_kernel
        if tanh:
            attention_vector = np.tanh(attention_vector)
        outputs.append(attention_vector)
        alignments.append(alignment)
    return {"outputs": np.array(outputs), "alignments": np.array(alignments)}


def energies(weights: Mapping, kind: str, scaled: bool, h, keys) -> np.ndarray:
    """The scores [S] of a state h [U] against the keys W_m h_s [S, U]."""
    if not kind.endswith("bahdanau"):
        gain = weights["attention_scale"] if scaled or kind != "dot" else 1.0
        return scores.dot(h, keys, kind, gain)
    query = h @ weights["query_kernel"]
    normed = kind == "normed_bahdanau"
    gain = weights["attention_scale"] if normed else None
    bias = weights["attention_bias"] if normed else None
    return scores.additive(query, keys, weights["score_vector"], gain, bias)
