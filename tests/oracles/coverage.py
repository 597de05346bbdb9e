"""RNNSearch whose attention reads a coverage of the source, teacher-forced, for one sentence.

Tu et al. 2016 ("Modeling Coverage for Neural Machine Translation"), section 3:

    q_t = GRU1(s_{t-1}, y_{t-1});
    e_j = v^T tanh(W_a q_t + U_a h_j + V_a C_{t-1,j});  a = softmax(e);  C_0 = 0;
    c_t = sum_j a_j h_j;  s_t = GRU2(q_t, c_t);
    output = tanh(W_s s_t + W_y y_{t-1} + W_c c_t);  s_0 = tanh(W_init mean_j h_j + b).

A coverage C_{t,j} is d numbers for each source position j.

"linguistic", d = 1: C_{t,j} = C_{t-1,j} + a_{t,j}.
"fertility", d = 1: C_{t,j} = C_{t-1,j} + a_{t,j} / Phi_j, Phi_j = N sigmoid(u_f . h_j), where Phi
is no less than 0.05.
"neural": one gated unit for all positions, whose update gate opens to what is new,

    z = sigmoid(U_z C + w_z a_j + H_z h_j + S_z s_{t-1});  r = the same with U_r, w_r, H_r, S_r;
    candidate = tanh(r * (U C) + w a_j + H h_j + S s_{t-1});
    C_{t,j} = (1 - z) * C + z * candidate,  where C = C_{t-1,j}.

Weights, in addition to those of RNNSearch (see `rnnsearch`):
    coverage_kernel: V_a [d, A].
    fertility_vector: u_f [D].
    coverage_recurrent_kernel: [U_z, U_r, U] [d, 3d];  coverage_alignment_vector: w [3d];
    coverage_memory_kernel: H [D, 3d];  coverage_state_kernel: S [U, 3d]; no biases.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from . import rnnsearch
from .addressing import softmax
from .recurrent import sigmoid, unit_step

LEAST_FERTILITY = 0.05


def attend(weights: Mapping, query, annotations, coverage) -> np.ndarray:
    """Returns the weights a [S] of a query [U], given the coverage [S, d] so far."""
    energies = []
    for annotation, covered in zip(annotations, coverage):
        sums = query @ weights["query_kernel"] + annotation @ weights["memory_kernel"]
        hidden = np.tanh(sums + covered @ weights["coverage_kernel"])
        energies.append(np.dot(weights["score_vector"], hidden))
    return softmax(energies)


def fertility(weights: Mapping, annotations, greatest: float) -> np.ndarray:
    """Phi [S]: how many target words a source word is expected to become."""
    expected = [greatest * sigmoid(np.dot(weights["fertility_vector"], h)) for h in annotations]
    return np.maximum(expected, LEAST_FERTILITY)


def neural_step(weights: Mapping, coverage, weight: float, annotation, state) -> np.ndarray:
    """The next C [d] of one position from its attention weight, its h [D] and s_{t-1} [U]."""
    inputs = (
        weight * weights["coverage_alignment_vector"]
        + annotation @ weights["coverage_memory_kernel"]
        + state @ weights["coverage_state_kernel"]
    )
    z_in, r_in, candidate_in = np.split(inputs, 3)
    z_of_c, r_of_c, candidate_of_c = np.split(coverage @ weights["coverage_recurrent_kernel"], 3)
    z, r = sigmoid(z_in + z_of_c), sigmoid(r_in + r_of_c)
    candidate = np.tanh(candidate_in + r * candidate_of_c)
    return (1.0 - z) * coverage + z * candidate


def decode(
    weights: Mapping, model: str, annotations, target_embeddings, max_fertility: float = 2.0
) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given.

    Args:
        weights: see the module's docstring.
        model: 'linguistic', 'fertility' or 'neural'.
        annotations: h [S, D], real positions only.
        target_embeddings: y_{t-1} [T, E], beginning with that of `<s>`.
        max_fertility: N.

    Returns:
        `outputs` [T, O], the readouts before dropout and softmax; `alignments` [T, S];
        `states` s_t [T, U]; `coverages` C_t [T, S, d]; `coverage` [T, S], the root of the mean
        square of a position's d numbers; for "fertility", `fertility` Phi [T, S], the same at
        every step.
    """
    annotations = np.asarray(annotations, dtype=np.float64)
    state = rnnsearch.initial_state(weights, annotations)
    coverage = np.zeros((len(annotations), len(weights["coverage_kernel"])))
    phi = np.ones(len(annotations))
    if model == "fertility":
        phi = fertility(weights, annotations, max_fertility)
    rows = []
    for y in target_embeddings:
        query, _ = unit_step("gru", y, state, weights["query_gru"])
        alignment = attend(weights, query, annotations, coverage)
        context = sum(weight * h for weight, h in zip(alignment, annotations))
        if model == "neural":
            parts = zip(coverage, alignment, annotations)
            coverage = np.array([neural_step(weights, *part, state) for part in parts])
        else:
            coverage = coverage + (alignment / phi)[:, np.newaxis]
        state, _ = unit_step("gru", context, query, weights["state_gru"])
        row = {
            "outputs": np.tanh(np.concatenate([state, y, context]) @ weights["readout_kernel"]),
            "alignments": alignment,
            "states": state,
            "coverages": coverage,
            "coverage": np.sqrt(np.mean(coverage**2, axis=1)),
        }
        rows.append({**row, "fertility": phi} if model == "fertility" else row)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def parameters(model: str, size: int, units: int, annotation: int, attention: int) -> int:
    """Counts the parameters that a coverage of `size` d adds to RNNSearch.

    With U = A = 1000 and D = 2000 the paper's counts, rounded there: linguistic 1,000, with
    fertility 3,000, neural with d = 1 10,006 and with d = 10 100,330.
    """
    read = size * attention
    if model == "neural":
        return read + 3 * size * (size + 1 + annotation + units)
    return read + (annotation if model == "fertility" else 0)
