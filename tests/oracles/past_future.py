"""Past and Future layers on RNNSearch, teacher-forced, for one sentence.

Zheng et al. 2018 ("Modeling Past and Future for Neural Machine Translation"), as in the authors'
code. a_t is what has been translated, f_t what has not; a_0 = 0, f_0 = s_0:

    q_t = GRU1(s_{t-1}, y_{t-1});  q'_t = GRU_m(q_t, [a_{t-1}; f_{t-1}]);
    c_t by the additive attention of q'_t;  s_t = GRU2(q'_t, c_t);
    a_t = GRU_a(a_{t-1}, c_t);  f_t = FUT(f_{t-1}, c_t);
    output = tanh(W_s s_t + W_y y_{t-1} + W_c c_t + W_a a_t + W_f f_t);

FUT of f and c is one of
    "gru":    GRU_f(f, c);
    "gru_o":  GRU_f(f, x), x = tanh(W_3 (W_1 f - W_2 c) + b);
    "gru_i":  z, r = sigmoid(U f + C c + b);  k = tanh(W_3 (W_1 f - r * (W_2 c)) + b');
              z * f + (1 - z) * k.

Training also predicts y_t from what each layer has changed by, through a softmax of its own:
    D^a_t = tanh(W (W_l a_t - W_r a_{t-1}) + b);  D^f_t = tanh(W (W_l f_{t-1} - W_r f_t) + b).

Weights, in addition to those of RNNSearch (see `rnnsearch`):
    merge_gru: GRU_m, `kernel` [2U, 3U], rows ordered [a; f];  past_gru: GRU_a, `kernel` [D, 3U];
    future_gru: GRU_f, `kernel` [D, 3U] ("gru") or [U, 3U] ("gru_o");
    future_state_kernel: W_1 [U, U];  future_context_kernel: W_2 [D, U];
    future_candidate_kernel: W_3 [U, U];  future_candidate_bias: b or b' [U];
    future_gate_kernel: C [D, 2U];  future_gate_recurrent_kernel: U [U, 2U];
    future_gate_bias: b [2U]; gates z, r in the columns;
    layers_readout_kernel: [2U, O], rows ordered [a; f];
    past_gain_kernel: W_l [U, U];  past_loss_kernel: W_r [U, U];
    past_change_kernel: W [U, O];  past_change_bias: b [O];  the same for future_.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from . import rnnsearch
from .recurrent import sigmoid, unit_step


def future_step(weights: Mapping, kind: str, future, context) -> np.ndarray:
    """f_t [U] from f_{t-1} [U] and c_t [D]."""
    if kind == "gru":
        return unit_step("gru", context, future, weights["future_gru"])[0]
    before = future @ weights["future_state_kernel"]
    translated = context @ weights["future_context_kernel"]
    kernel, bias = weights["future_candidate_kernel"], weights["future_candidate_bias"]
    if kind == "gru_o":
        rest = np.tanh((before - translated) @ kernel + bias)
        return unit_step("gru", rest, future, weights["future_gru"])[0]
    if kind != "gru_i":
        raise ValueError(f"future layer {kind!r}")
    sums = future @ weights["future_gate_recurrent_kernel"]
    sums = sums + context @ weights["future_gate_kernel"] + weights["future_gate_bias"]
    z, r = np.split(sigmoid(sums), 2)
    candidate = np.tanh((before - r * translated) @ kernel + bias)
    return z * future + (1.0 - z) * candidate


def change(weights: Mapping, layer: str, greater, smaller) -> np.ndarray:
    """D [O] of the layer "past" or "future" from what it subtracts from, and what it subtracts."""
    difference = (
        greater @ weights[f"{layer}_gain_kernel"] - smaller @ weights[f"{layer}_loss_kernel"]
    )
    kernel, bias = weights[f"{layer}_change_kernel"], weights[f"{layer}_change_bias"]
    return np.tanh(difference @ kernel + bias)


def decode(
    weights: Mapping, kind: str, annotations, target_embeddings, auxiliary: bool = True
) -> dict[str, np.ndarray]:
    """Decodes one sentence whose target words are given.

    Args:
        weights: see the module's docstring.
        kind: of the future layer.
        annotations: h [S, D], real positions only.
        target_embeddings: y_{t-1} [T, E], beginning with that of `<s>`.
        auxiliary: compute D^a and D^f.

    Returns:
        `outputs` [T, O], the readouts before dropout and softmax; `alignments` [T, S]; `states`
        s_t [T, U]; `pasts` a_t and `futures` f_t [T, U]; `past_change` |a_t - a_{t-1}| and
        `future_change` |f_t - f_{t-1}| [T, 1]; `past_readouts` D^a and `future_readouts` D^f
        [T, O].
    """
    annotations = np.asarray(annotations, dtype=np.float64)
    state = rnnsearch.initial_state(weights, annotations)
    past, future = np.zeros(len(state)), state
    kernel = np.concatenate([weights["readout_kernel"], weights["layers_readout_kernel"]])
    rows = []
    for y in target_embeddings:
        query, _ = unit_step("gru", y, state, weights["query_gru"])
        query, _ = unit_step("gru", np.concatenate([past, future]), query, weights["merge_gru"])
        alignment, context = rnnsearch.attend(weights, query, annotations)
        state, _ = unit_step("gru", context, query, weights["state_gru"])
        new_past, _ = unit_step("gru", context, past, weights["past_gru"])
        new_future = future_step(weights, kind, future, context)
        row = {
            "outputs": np.tanh(np.concatenate([state, y, context, new_past, new_future]) @ kernel),
            "alignments": alignment, "states": state, "pasts": new_past, "futures": new_future,
            "past_change": [np.linalg.norm(new_past - past)],
            "future_change": [np.linalg.norm(new_future - future)],
        }  # fmt: skip
        if auxiliary:
            row["past_readouts"] = change(weights, "past", new_past, past)
            row["future_readouts"] = change(weights, "future", future, new_future)
        rows.append(row)
        past, future = new_past, new_future
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def parameter_parts(kind: str, units: int, annotation: int, readout: int) -> dict[str, int]:
    """Counts the parameters that the parts add to RNNSearch, without the two training softmaxes.

    With D = 2048, U = 1024 and O = 512: past 9.44M, future "gru_i" 10.49M, merge 9.44M, readout
    1.05M; and with 30,000 words the changes and their softmaxes 36.0M.
    """

    def gru(inputs: int) -> int:
        return 3 * (inputs * units + units * units + units)

    candidate = units * units + annotation * units + units * units + units
    future = {
        "gru": gru(annotation),
        "gru_o": gru(units) + candidate,
        "gru_i": 2 * (annotation * units + units * units + units) + candidate,
    }
    return {
        "merge": gru(2 * units),
        "past": gru(annotation),
        "future": future[kind],
        "readout": 2 * units * readout,
        "changes": 2 * (2 * units * units + units * readout + readout),
    }
